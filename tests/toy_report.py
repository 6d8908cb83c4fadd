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

ROOT = Path(__file__).parents[1]
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
NOISE = ("noise=0", "noise=0.2", "noise=0.4")


def write_observations(columns: tuple[str, ...], seed: int = 0) -> None:
    """Writes counts, losses and scores of four operators at the size `tiny`."""
    generator = np.random.default_rng(seed)
    rows = {
        "parameters": list_counts(),
        "pretraining": [],
        "baselines": list_baselines(columns),
        "finetuning": [],
        "noise": [],
        "cross_domain": [],
        "question_answering": [],
    }
    for operator in OPERATORS:
        rows["pretraining"] += list_losses(operator, generator)
        rows["finetuning"] += list_scores(operator, columns, generator)
        noisy = [("sst2", "sst2", condition, "accuracy") for condition in NOISE]
        rows["noise"] += list_robustness("noise", operator, noisy, generator)
        metrics = ("accuracy", "balanced_accuracy", "majority_accuracy")
        transferred = product(("qqp", "mrpc"), ("qqp", "mrpc"), (None,), metrics)
        rows["cross_domain"] += list_robustness("cross_domain", operator, list(transferred), generator)
        rows["question_answering"] += list_answers(operator)
    for name, listed in rows.items():
        observations.write(observations.FOLDER / f"{name}.csv", listed)


def list_counts() -> list[Observation]:
    """Lists the parameters of `tiny` and of BERT-base."""
    counts = []
    for place, operator in enumerate(OPERATORS):
        for metric, value in (("attention_parameters", 12480), ("masked_lm_parameters", 2092538)):
            counts.append(("tiny", operator, metric, value - 100 * place))
    for operator, (whole, share) in BASE.items():
        counts.append(("base", operator, "masked_lm_parameters", whole))
        counts.append(("base", operator, "saved_percent", share))
    rows = []
    for size, operator, metric, value in counts:
        rows.append(Observation(stage="parameters", operator=operator, size=size, metric=metric, value=value))
    return rows


def list_losses(operator: str, generator: np.random.Generator) -> list[Observation]:
    """Lists losses that fall from 7 to 3 nats, of every seed."""
    rows = []
    for seed, step in product(SEEDS[operator], (0, 400, 800)):
        row = Observation(
            stage="pretraining",
            operator=operator,
            size="tiny",
            pretraining_seed=seed,
            condition=f"step={step}",
            metric="validation_loss",
            value=7.0 - step / 200 + generator.normal() / 50,
        )
        rows.append(row)
    return rows


def list_columns(columns: tuple[str, ...]) -> list[dict]:
    """Lists the fields of a score, for every metric of every column."""
    fields = []
    for column in columns:
        for metric in scores.METRICS["courtois2024"][column]:
            fields.append({"task": TASKS[column], "evaluated_on": column, "metric": metric, "n": 200})
    return fields


def list_scores(operator: str, columns: tuple[str, ...], generator: np.random.Generator) -> list[Observation]:
    """Lists the scores of an operator after fine-tuning with three seeds."""
    rows = []
    for pretraining, finetuning, fields in product(SEEDS[operator], (1, 2, 3), list_columns(columns)):
        row = Observation(
            stage="finetuning",
            protocol="courtois2024",
            operator=operator,
            size="tiny",
            pretraining_seed=pretraining,
            finetuning_seed=finetuning,
            value=0.6 + generator.normal() / 50,
            **fields,
        )
        rows.append(row)
    return rows


def list_baselines(columns: tuple[str, ...]) -> list[Observation]:
    """Lists the scores of two answers without a model, on the same columns."""
    rows = []
    for operator, value in (("most_frequent", 0.5), ("words_and_overlap", 0.7)):
        for fields in list_columns(columns):
            rows.append(Observation(stage="baselines", operator=operator, size=None, value=value, **fields))
    return rows


def list_answers(operator: str) -> list[Observation]:
    """Lists both metrics of an operator on every task of question answering."""
    rows = []
    tasks = ("squad1", "squad2", "squad1_triviaqa", "squad2_triviaqa")
    for task, seed, metric in product(tasks, (1, 2), ("exact_match", "f1")):
        row = Observation(
            stage="question_answering",
            protocol="kowsher2025",
            operator=operator,
            size="tiny",
            task=task,
            evaluated_on=task[:6],
            metric=metric,
            pretraining_seed=seed,
            finetuning_seed=1,
            value=0.5 + seed / 100,
            n=200,
        )
        rows.append(row)
    return rows


def list_robustness(stage: str, operator: str, cells: list[tuple], generator: np.random.Generator) -> list[Observation]:
    """Lists accuracies of every seed. cells: task, split, condition and metric."""
    rows = []
    for seed, (task, split, condition, metric) in product(SEEDS[operator], cells):
        row = Observation(
            stage=stage,
            protocol="courtois2024",
            operator=operator,
            size="tiny",
            task=task,
            evaluated_on=split,
            condition=condition,
            metric=metric,
            pretraining_seed=seed,
            finetuning_seed=1,
            value=0.6 + generator.normal() / 50,
            n=200,
        )
        rows.append(row)
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
    params = yaml.safe_load((ROOT / "stages/scales/laptop.yaml").read_text())
    params.update(operators=list(OPERATORS), sizes=["tiny"], protocols=["courtois2024"])
    shutil.copyfile(ROOT / params["operators_file"], params["operators_file"])
    Path("params.yaml").write_text(yaml.safe_dump(params))
    write_observations(columns)
    write_inputs()
    for stage in ("audit", "analysis", "report"):
        run_stage([stage])
    return folder / "reports"
