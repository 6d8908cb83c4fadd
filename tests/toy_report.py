"""A report on made-up numbers, for the tests of the report and of its page."""

import json
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import yaml

from stages.__main__ import main as run_stage
from stages.evidence import scores
from stages.files import observations
from stages.files.observations import Observation
from tests.places import ROOT
from tests.toy_settings import edit_laptop

OPERATORS = ("original", "symmetric", "pairwise", "shared")
# masked-LM parameters of BERT-base, and the share saved in per cent
BASE = {
    "original": (109514298, 0.0),
    "symmetric": (102427194, 6.4714),
    "pairwise": (103017018, 5.9328),
}
# seeds of pre-training; the two of shared are too few for a verdict
SEEDS = {
    "original": (1, 2, 3),
    "symmetric": (1, 2, 3),
    "pairwise": (1, 2, 3),
    "shared": (1, 2),
}
TASKS = {column: column.split("_")[0] for column in scores.COLUMNS}
TRANSFERRED = ("accuracy", "balanced_accuracy", "majority_accuracy")
ANSWERED = ("squad1", "squad2", "squad1_triviaqa", "squad2_triviaqa")
NOISE = ("noise=0", "noise=0.2", "noise=0.4")


def write_observations(columns: tuple[str, ...]) -> None:
    """Writes counts, losses and scores of four operators at the size `tiny`."""
    generator = np.random.default_rng(0)
    scored = list_columns(columns)
    noisy = [{"task": "sst2", "evaluated_on": "sst2", "condition": level, "metric": "accuracy"} for level in NOISE]
    transferred = []
    for task, split, metric in product(("qqp", "mrpc"), ("qqp", "mrpc"), TRANSFERRED):
        transferred.append({"task": task, "evaluated_on": split, "metric": metric})
    answered = []
    for task, metric in product(ANSWERED, ("exact_match", "f1")):
        answered.append({"protocol": "kowsher2025", "task": task, "evaluated_on": task[:6], "metric": metric})
    measured = {"finetuning": scored, "noise": noisy, "cross_domain": transferred, "question_answering": answered}
    rows = {"parameters": list_counts(), "baselines": list_baselines(scored), "pretraining": []}
    for operator in OPERATORS:
        for seed, step in product(SEEDS[operator], (0, 400, 800)):
            loss = {"metric": "validation_loss", "condition": f"step={step}"}
            value = 7.0 - step / 200 + generator.normal() / 50
            rows["pretraining"].append(make_row("pretraining", operator, value, pretraining_seed=seed, **loss))
        for stage, cells in measured.items():
            tuned = (1, 2, 3) if stage == "finetuning" else (1,)
            for seed, again, cell in product(SEEDS[operator], tuned, cells):
                run = {"protocol": "courtois2024", "pretraining_seed": seed, "finetuning_seed": again, "n": 200}
                run.update(cell)
                row = make_row(stage, operator, 0.6 + generator.normal() / 50, **run)
                rows.setdefault(stage, []).append(row)
    for name, listed in rows.items():
        observations.write(observations.find_file(name), listed)


def make_row(stage: str, operator: str, value: float, size: str | None = "tiny", **fields) -> Observation:
    """Makes an observation, by default of the size `tiny`."""
    return Observation(stage=stage, operator=operator, value=value, size=size, **fields)


def list_counts() -> list[Observation]:
    """Lists the parameters of `tiny` and of BERT-base."""
    rows = []
    for place, operator in enumerate(OPERATORS):
        for metric, value in (("attention_parameters", 12480), ("masked_lm_parameters", 2092538)):
            rows.append(make_row("parameters", operator, value - 100 * place, metric=metric))
    for operator, (whole, share) in BASE.items():
        rows.append(make_row("parameters", operator, whole, "base", metric="masked_lm_parameters"))
        rows.append(make_row("parameters", operator, share, "base", metric="saved_percent"))
    return rows


def list_columns(columns: tuple[str, ...]) -> list[dict]:
    """Lists the fields of a score, for every metric of every column."""
    fields = []
    for column in columns:
        for metric in scores.METRICS["courtois2024"][column]:
            fields.append({"task": TASKS[column], "evaluated_on": column, "metric": metric})
    return fields


def list_baselines(cells: list[dict]) -> list[Observation]:
    """Lists the scores of two answers without a model."""
    rows = []
    for (operator, value), cell in product((("most_frequent", 0.5), ("words_and_overlap", 0.7)), cells):
        rows.append(make_row("baselines", operator, value, None, n=200, **cell))
    return rows


def write_inputs() -> None:
    """Writes further inputs of the report, with text that would break an unescaped page."""
    for folder in ("filtered", "tokens", "tasks", "runs"):
        Path("data", folder).mkdir()
    Path("data/filtered/ledger.csv").write_text(
        "shard,fate,rule,reason,documents,bytes,all_documents,all_bytes\n"
        "part_1,in,,,10,100,10,100\ntotal,in,,,10,100,10,100\ntotal,kept,,,6,60,6,60\n"
        "total,not_selected,,,0,0,0,0\ntotal,dropped,category,adult,4,40,5,50\n"
    )
    split = {"documents": 3, "tokens": 200, "sequences": 3, "dropped_tokens": 8, "shards": []}
    index = {"sequence_length": 64, "vocabulary_size": 2000, "splits": {"train": split, "validation": split}}
    Path("data/tokens/index.json").write_text(json.dumps(index))
    Path("data/tasks/statistics.csv").write_text(
        "task,split,examples,available,reduced,subset,source,dropped,reason,majority_share\n"
        "qqp,train,800,900,True,True,<script>alert(1)</script> & 50% \\input{x},2,wrong number of columns,0.6\n"
        "stsb,train,800,800,False,False,embedded,0,,\n"
    )
    for number, stage in enumerate(("corpus", "filtering")):
        record = {
            "stage": stage,
            "seconds": 1.5,
            "started": "2026-01-01T00:00:00+00:00",
            "commit": "c" * 40,
            "packages": {"numpy": f"2.{number}"},
            "cores": 2,
        }
        Path(f"data/runs/{stage}.json").write_text(json.dumps(record))


def make(folder: Path, monkeypatch, columns: tuple[str, ...] = scores.COLUMNS) -> Path:
    """Runs audit, analysis and report in a folder; returns the folder of reports."""
    monkeypatch.chdir(folder)
    for name in ("data/published", "data/released", "reports/templates"):
        shutil.copytree(ROOT / name, folder / name)
    params = edit_laptop({"operators": list(OPERATORS), "sizes": ["tiny"], "protocols": ["courtois2024"]})
    shutil.copyfile(ROOT / params["operators_file"], params["operators_file"])
    Path("params.yaml").write_text(yaml.safe_dump(params))
    write_observations(columns)
    write_inputs()
    for stage in ("audit", "analysis", "report"):
        run_stage([stage])
    return folder / "reports"
