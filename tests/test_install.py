"""The installed package is complete: the operators run without the packages of the pipeline."""

import re
import shutil
import tomllib
import zipfile

import yaml

from tests.places import ROOT
from tests.processes import run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BUILD = "from setuptools import build_meta; build_meta.build_wheel('wheels')"
IMPORTED = {  # a distribution: its module, where the name is another
    "scikit-learn": "sklearn",
    "pyyaml": "yaml",
    "nvidia-ml-py": "pynvml",
}
ALONE = """
import importlib, pkgutil, sys
sys.modules |= dict.fromkeys(sys.argv[1:])  # none of them can be imported
import fewer_attention, torch
for module in {module.name for module in pkgutil.iter_modules(fewer_attention.__path__)}:
    importlib.import_module(f"fewer_attention.{module}")
from fewer_attention.bert import OperatorBertForMaskedLM
from fewer_attention.configuration import make_configuration
from fewer_attention.export import convert_to_stock_bert
size = dict(layers=1, hidden=8, heads=2, intermediate=8, positions=8, vocab_size=16)
model = OperatorBertForMaskedLM(make_configuration("pairwise", **size)).eval()
ids = torch.arange(8)[None]
torch.testing.assert_close(convert_to_stock_bert(model).eval()(ids).logits, model(ids).logits)
"""


def list_names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}


def test_a_wheel_holds_the_operators_alone_and_they_run_without_the_packages_of_the_pipeline(tmp_path):
    own, pipeline = list_names(PROJECT["dependencies"]), list_names(PROJECT["optional-dependencies"]["pipeline"])
    needed = own | {"numpy", "pyyaml", "safetensors", "tokenizers", "tqdm", "filelock"}  # by transformers itself
    assert own == {"torch", "transformers"}
    assert {"dvc", "datasets", "statsmodels"} < pipeline
    source = tmp_path / "stages/attention"
    shutil.copytree(ROOT / "stages/attention", source, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    run(tmp_path, "python", "-c", BUILD)
    [wheel] = (tmp_path / "wheels").iterdir()
    archive, citation = zipfile.ZipFile(wheel), yaml.safe_load((ROOT / "CITATION.cff").read_text())
    held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == {f"fewer_attention/{path.name}" for path in source.iterdir()} >= {"fewer_attention/py.typed"}
    assert f"-{citation['version']}-" in wheel.name
    archive.extractall(tmp_path / "target")
    absent = ["stages", *(IMPORTED.get(name, name) for name in pipeline - needed)]
    run(tmp_path, "python", "-c", ALONE, *absent, PYTHONPATH=str(tmp_path / "target"))
