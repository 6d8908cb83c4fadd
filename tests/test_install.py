"""What is installed is whole: a wheel runs a stage, and the operators run without the packages of the pipeline."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BUILD = "from setuptools import build_meta; build_meta.build_wheel('wheels')"
INPUTS = ("params.yaml", "my_operators.py", "data/published", "data/released")
IMPORTED = {  # a distribution: its module, where the name is another
    "scikit-learn": "sklearn",
    "pyyaml": "yaml",
    "nvidia-ml-py": "pynvml",
}
ALONE = """
import importlib, pkgutil, sys
sys.modules |= dict.fromkeys(sys.argv[1:])  # none of them can be imported
import torch
from stages.common import attention
for module in pkgutil.iter_modules(attention.__path__):
    importlib.import_module(f"stages.common.attention.{module.name}")
from stages.common.attention.bert import OperatorBertForMaskedLM
from stages.common.attention.configuration import configuration
from stages.common.attention.export import to_stock_bert
size = dict(layers=1, hidden=8, heads=2, intermediate=8, positions=8, vocab_size=16)
model = OperatorBertForMaskedLM(configuration("pairwise", **size)).eval()
ids = torch.arange(8)[None]
torch.testing.assert_close(to_stock_bert(model).eval()(ids).logits, model(ids).logits)
"""


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def test_a_wheel_holds_every_file_and_runs_a_stage(tmp_path):
    shutil.copytree(ROOT / "stages", tmp_path / "stages", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    subprocess.run([sys.executable, "-c", BUILD], cwd=tmp_path, check=True, capture_output=True)
    [wheel] = (tmp_path / "wheels").iterdir()
    target, folder = tmp_path / "target", tmp_path / "run"
    zipfile.ZipFile(wheel).extractall(target)
    for path in (tmp_path / "stages").rglob("*"):
        assert path.is_dir() or (target / path.relative_to(tmp_path)).exists(), path
    for name in INPUTS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile)(ROOT / name, folder / name)
    environment = os.environ | {"PYTHONPATH": str(target)}
    subprocess.run([sys.executable, "-m", "stages", "audit"], cwd=folder, env=environment, check=True)
    assert (folder / "data/audit/checks.csv").exists()


def test_the_operators_run_without_the_packages_of_the_pipeline():
    own, pipeline = names(PROJECT["dependencies"]), names(PROJECT["optional-dependencies"]["pipeline"])
    needed = {"numpy", "pyyaml", "safetensors", "tokenizers", "tqdm", "filelock"}  # by transformers itself
    assert own == {"torch", "transformers"} and {"dvc", "datasets", "statsmodels"} < pipeline
    absent = [IMPORTED.get(name, name) for name in pipeline - needed]
    subprocess.run([sys.executable, "-c", ALONE, *absent], cwd=ROOT, check=True)


def test_the_readme_and_the_checks_install_the_pipeline():
    assert f"{PROJECT['name']}[pipeline]" in PROJECT["optional-dependencies"]["test"]
    for name in ("README.md", "CONTRIBUTING.md", ".ci/run"):
        assert "-c constraints.txt -e '.[test]'" in (ROOT / name).read_text()
