"""A change of params.yaml costs what it must: tables of what every key starts again, and of the jobs that are redone.

DVC starts the stages that list a key, and then those whose inputs have become others. A stage that is started redoes
only the jobs whose settings have changed. The report is rendered after every change of the file.
"""

from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from stages.convergence import stage as convergence
from stages.finetuning import stage as finetuning
from stages.plumbing.files import PRETRAINED
from stages.plumbing.settings import Settings
from stages.pretraining import stage as pretraining
from stages.question_answering import stage as question_answering

ROOT = Path(__file__).parents[1]
STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
PARAMS = yaml.safe_load((ROOT / "stages/scales/laptop.yaml").read_text())
ITEM = {"operator": "original", "size": "tiny", "protocol": "courtois2024"}  # the command that is looked at

ALL = "pretraining finetuning noise cross_domain convergence question_answering timing analysis"
STARTS = {  # key, or the section that holds it: what DVC starts first; the longest key that fits a key holds
    "scale": "",
    "workers": "",
    "report": "",
    "operators_file": "parameters pretraining timing",
    "operators": ALL,  # of the stages with a command for every operator: the new operator's alone
    "sizes": ALL,
    "protocols": "finetuning noise cross_domain analysis",
    "data.source": "corpus tasks sentence_pairs analysis",
    "data.root": "corpus tokenization tasks sentence_pairs",
    "corpus": "corpus",
    "filtering": "filtering",
    "tokenization": "tokenization",
    "tasks": "tasks",
    "tasks.names": "tasks baselines finetuning",
    "models": "parameters timing",  # a size that no command trains
    "models.tiny": "parameters pretraining timing",
    "variants": "parameters pretraining timing analysis",
    "pretraining": "pretraining timing",
    "pretraining.initializer_range": "parameters pretraining timing",
    "pretraining.steps": "pretraining convergence timing",
    "finetuning": "timing",  # of the other protocol, which timing alone follows
    "finetuning.courtois2024": "finetuning convergence",
    "finetuning.courtois2024.maximum_length": "finetuning noise cross_domain convergence",
    "finetuning.courtois2024.precision": "finetuning noise cross_domain convergence",
    "question_answering": "question_answering",
    "question_answering.tasks": "baselines question_answering",
    "noise": "noise",
    "noise.tasks": "finetuning noise convergence",
    "cross_domain": "cross_domain",
    "cross_domain.tasks": "finetuning cross_domain convergence",
    "convergence": "convergence",
    "convergence.steps": "pretraining convergence",
    "translation": "sentence_pairs translation analysis",
    "timing": "timing",
    "analysis": "analysis",
}

NONE, NEW, EVERY = "no job", "new jobs alone", "every job"
JOBS = {  # a change: the jobs of pretraining, finetuning, convergence and question answering that it redoes
    ("pretraining.seeds", (1, 2, 3)): (NEW, NONE, NONE, NONE),  # and those that follow from the new models
    ("pretraining.steps", 1400): (EVERY, NONE, NEW, NONE),  # the others, as their weights become others
    ("pretraining.learning_rate", 1e-4): (EVERY, NONE, NONE, NONE),
    ("finetuning.courtois2024.seeds", (1, 2, 3, 4)): (NONE, NEW, NONE, NONE),
    ("finetuning.courtois2024.epochs", 6): (NONE, EVERY, EVERY, NONE),
    ("finetuning.kowsher2025.epochs", 6): (NONE, NONE, NONE, NONE),
    ("noise.tasks", ("mnli",)): (NONE, NONE, NONE, NONE),
    ("cross_domain.tasks", ("mnli", "qnli")): (NONE, NONE, NONE, NONE),
    ("convergence.steps", (200, 500, 1000)): (NONE, NONE, NEW, NONE),  # pre-training goes to step 200 again, no further
    ("convergence.steps", (1000,)): (NONE, NONE, NONE, NONE),
    ("convergence.seeds", (1, 2)): (NONE, NONE, NEW, NONE),
    ("question_answering.seeds", (1, 2)): (NONE, NONE, NONE, NEW),
    ("question_answering.null_threshold", 1.0): (NONE, NONE, NONE, EVERY),
}


def keys(section: dict, prefix: str = ""):
    for key, value in section.items():
        if isinstance(value, dict):
            yield from keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def listed(stage: dict) -> list[str]:
    """The parameters of a command of a stage, and the lists that its matrix runs over."""
    known = {f"${{item.{name}}}": value for name, value in ITEM.items()}
    known |= {f"${{{name}.protocol}}": PARAMS[name]["protocol"] for name in ("convergence", "timing")}
    names = [*stage.get("params", []), *(text.strip("${}") for text in stage.get("matrix", {}).values())]
    for pattern, value in known.items():
        names = [name.replace(pattern, value) for name in names]
    return names


def started(key: str) -> set[str]:
    return {
        name
        for name, stage in STAGES.items()
        if any(key == other or key.startswith(f"{other}.") for other in listed(stage))
    }


@pytest.mark.parametrize("key", keys(PARAMS))
def test_every_key_starts_the_stages_of_the_table(key):
    sections = [name for name in STARTS if key == name or key.startswith(f"{name}.")]
    assert started(key) == set(STARTS[max(sections, key=len)].split())


def planned(settings: Settings) -> list[set[str]]:
    """The settings of all jobs of one command of four stages."""
    operator, size, protocol = ITEM["operator"], ITEM["size"], ITEM["protocol"]
    trained = {(p, f): Path("after") / f"{p}-{f}" for p in (1, 2) for f in range(9)}
    plans = (
        pretraining.planned(settings, operator, size),
        finetuning.planned(settings, protocol, operator, size),
        [run for _, run in convergence.planned(settings, operator, size)],
        question_answering.planned(settings, operator, size, trained),
    )
    return [{str({key: run[key] for key in run if key != "keep"}) for run in plan} for plan in plans]


@pytest.mark.parametrize(("change", "redone"), JOBS.items(), ids=lambda value: str(value))
def test_a_change_redoes_the_jobs_of_the_table(change, redone, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed in (1, 2):
        (PRETRAINED / f"original-tiny/seed-{seed}").mkdir(parents=True)
    params = deepcopy(PARAMS)
    before = planned(Settings.model_validate(params))
    *sections, last = change[0].split(".")
    section = params
    for name in sections:
        section = section[name]
    section[last] = list(change[1]) if isinstance(change[1], tuple) else change[1]
    after = planned(Settings.model_validate(params))
    for old, new, expected in zip(before, after, redone, strict=True):
        found = NONE if new <= old else NEW if new & old else EVERY
        assert found == expected
