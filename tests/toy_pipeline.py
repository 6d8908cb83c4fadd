"""Repositories of a tiny run, in which tests call `dvc repro`."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import yaml

ROOT = Path(__file__).parents[1]
ENVIRONMENT = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
HOSTILE = ("shared; touch pwned; echo", "$(touch pwned)", "`touch pwned`", "' & touch pwned & '", "../../pwned", "a b")
NAMED = ("operators", "sizes", "protocols", "translation.operators")  # of which dvc.yaml makes names and paths


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def clone(folder: Path, edit=None) -> Path:
    """A repository of the files that Git tracks or would, with the parameters of a tiny run, or of `edit`."""
    names = run(ROOT, "git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    for name in names:
        if (ROOT / name).is_file() and name != "dvc.lock" and not name.startswith("reports/examples/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    shutil.copyfile(ROOT / "stages/scales/laptop.yaml", folder / "params.yaml")
    change(folder, edit or shrink)
    run(folder, "git", "init", "--quiet")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    run(folder, "git", "add", "--all")
    run(folder, "git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--message", "tiny")


def shrink(params: dict) -> None:
    params["operators"] = ["original", "shared"]
    params["corpus"] |= {"documents": 300, "shards": 2}
    params["tokenization"] |= {"validation_documents": 20}
    params["tasks"] |= {"names": ["sst2", "stsb", "mnli", "qnli"], "train_examples": 64, "validation_examples": 32}
    params["tasks"]["questions"] |= {"train_examples": 32, "validation_examples": 16}
    params["question_answering"] |= {"seeds": [1, 2], "epochs": 1}
    params["noise"] |= {"tasks": ["sst2", "mnli"], "levels": [0.0, 0.4], "seeds": [1, 2]}
    params["cross_domain"]["tasks"] = ["mnli", "qnli"]
    params["models"]["tiny"] |= {"layers": 1, "hidden": 16, "heads": 4, "intermediate": 64}
    params["pretraining"] |= {"seeds": [1, 2], "steps": 12, "warmup_steps": 2, "batch_size": 8}
    params["pretraining"] |= {"evaluation_interval": 4, "checkpoint_interval": 5}
    params["finetuning"]["courtois2024"] |= {"seeds": [1, 2], "epochs": 1}
    params["convergence"] |= {"steps": [6, 12], "tasks": ["sst2", "stsb"]}
    shrink_translation(params["translation"])
    params["timing"] |= {"tasks": ["sst2"], "repeats": 1, "steps": 1}


def shrink_translation(section: dict) -> None:
    section["operators"] = ["original", "hadamard"]
    small = {"hidden": 16, "heads": 2, "seeds": [1], "operators": ["original", "hadamard"]}
    for protocol in section["protocols"].values():
        protocol |= small | {"train_pairs": 40, "held_out_pairs": 10, "epochs": 1, "warmup_steps": 2}
    section["sequence_tasks"] |= small | {"steps": 3, "warmup_steps": 1}


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"protocol": "str", "condition": "str"})


def change(folder: Path, edit) -> None:
    path = folder / "params.yaml"
    params = yaml.safe_load(path.read_text())
    edit(params)
    path.write_text(yaml.safe_dump(params, sort_keys=False))


def stages_run(output: str) -> set[str]:
    """The stages that ran, beside the check of params.yaml, which every edit of it brings."""
    return {line.split("'")[1].split("@")[0] for line in output.splitlines() if line.startswith("Running stage")} - {
        "settings"
    }


def jobs_to_do(output: str) -> Counter[str]:
    """How many jobs of each stage were not done before."""
    found = re.findall(r"^(\w+): (\d+) jobs?, (\d+) of them done before", output, re.MULTILINE)
    return +sum((Counter({stage: int(whole) - int(done)}) for stage, whole, done in found), Counter())


def observations(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "data/observations").iterdir()}


def extend(params: dict, key: str, name: str) -> None:
    *sections, last = key.split(".")
    for section in sections:
        params = params[section]
    params[last] = [*params[last], name]


def is_refused_before_any_stage(folder: Path, key: str, name: str) -> bool:
    before = (folder / "params.yaml").read_text()
    change(folder, lambda params: extend(params, key, name))
    command = [str(Path(sys.executable).with_name("dvc")), "repro"]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    (folder / "params.yaml").write_text(before)
    said = done.stdout + done.stderr
    return done.returncode != 0 and not stages_run(said) and not list(folder.parent.rglob("*pwned*"))
