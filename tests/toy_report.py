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
BASE = (("original", 109514298, 0.0), ("symmetric", 102427194, 6.4714), ("pairwise", 103017018, 5.9328))
SEEDS = {operator: (1, 2, 3) if operator != "shared" else (1, 2) for operator in OPERATORS}  # two are too few
TASKS = {column: column.split("_")[0] for column in scores.COLUMNS}


def write_observations(columns: tuple[str, ...], seed: int = 0) -> None:
    """Counts, losses and scores of four operators at the size `tiny`; SEEDS of pre-training, three of fine-tuning."""
    generator = np.random.default_rng(seed)
    counts = [
        Observation(stage="parameters", operator=operator, size="tiny", metric=metric, value=value - 100 * place)
        for place, operator in enumerate(OPERATORS)
        for metric, value in (("attention_parameters", 12480), ("masked_lm_parameters", 2092538))
    ]
    counts += [
        Observation(stage="parameters", operator=operator, size="base", metric=metric, value=value)
        for operator, whole, share in BASE
        for metric, value in (("masked_lm_parameters", whole), ("saved_percent", share))
    ]
    observations.write(observations.FOLDER / "parameters.csv", counts)
    observations.write(observations.FOLDER / "baselines.csv", baseline_rows(columns))
    kinds = {"pretraining": [], "finetuning": [], "noise": [], "cross_domain": [], "question_answering": []}
    for operator in OPERATORS:
        model = {"operator": operator, "size": "tiny"}
        for p in SEEDS[operator]:
            for step in (0, 400, 800):
                run = {"condition": f"step={step}", "value": 7.0 - step / 200 + generator.normal() / 50}
                run |= {"metric": "validation_loss", "pretraining_seed": p}
                kinds["pretraining"].append(Observation(stage="pretraining", **model, **run))
        kinds["finetuning"] += score_rows(model, columns, generator)
        for stage in ("noise", "cross_domain"):
            kinds[stage] += robustness_rows(stage, model, generator)
        kinds["question_answering"] += answer_rows(model)
    for stage, rows in kinds.items():
        observations.write(observations.FOLDER / f"{stage}.csv", rows)


def score_rows(model: dict[str, str], columns: tuple[str, ...], generator: np.random.Generator) -> list[Observation]:
    """Scores of one model after fine-tuning."""
    rows = []
    for p in SEEDS[model["operator"]]:
        for f in (1, 2, 3):
            for column in columns:
                for metric in scores.METRICS["courtois2024"][column]:
                    run = {"task": TASKS[column], "evaluated_on": column, "metric": metric}
                    run |= {"pretraining_seed": p, "finetuning_seed": f, "value": 0.6 + generator.normal() / 50}
                    rows.append(Observation(stage="finetuning", protocol="courtois2024", n=200, **model, **run))
    return rows


def baseline_rows(columns: tuple[str, ...]) -> list[Observation]:
    """Scores that need no model, on the same columns."""
    rows = []
    for operator, value in (("most_frequent", 0.5), ("words_and_overlap", 0.7)):
        for column in columns:
            for metric in scores.METRICS["courtois2024"][column]:
                score = {"task": TASKS[column], "evaluated_on": column, "metric": metric, "value": value, "n": 200}
                rows.append(Observation(stage="baselines", operator=operator, size=None, **score))
    return rows


def answer_rows(model: dict[str, str]) -> list[Observation]:
    """Both metrics of one model on every task of question answering."""
    rows = []
    for task in ("squad1", "squad2", "squad1_triviaqa", "squad2_triviaqa"):
        for p in (1, 2):
            for metric in ("exact_match", "f1"):
                run = {"task": task, "evaluated_on": task[:6], "metric": metric, "value": 0.5 + p / 100, "n": 200}
                run |= {"protocol": "kowsher2025", "pretraining_seed": p, "finetuning_seed": 1}
                rows.append(Observation(stage="question_answering", **model, **run))
    return rows


def robustness_rows(stage: str, model: dict[str, str], generator: np.random.Generator) -> list[Observation]:
    """Accuracies of one model under two kinds of noise on one task, or of two tasks on each other."""
    conditions = ("noise=0", "noise=0.2", "noise=0.4", "typos=0.2", "typos=0.4")
    cells = [("sst2", "sst2", condition, "accuracy") for condition in conditions]
    if stage == "cross_domain":
        metrics = ("accuracy", "balanced_accuracy", "majority_accuracy")
        cells = [(*tasks, None, metric) for tasks in product(("qqp", "mrpc"), repeat=2) for metric in metrics]
    rows = []
    for p in SEEDS[model["operator"]]:
        for task, evaluated_on, condition, metric in cells:
            run = {"task": task, "evaluated_on": evaluated_on, "condition": condition, "metric": metric, "n": 200}
            run |= {"pretraining_seed": p, "finetuning_seed": 1, "value": 0.6 + generator.normal() / 50}
            rows.append(Observation(stage=stage, protocol="courtois2024", **model, **run))
    return rows


def write_inputs() -> None:
    """What the report reads beside the analysis, with text that would break an unescaped page."""
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
        record = {"stage": stage, "seconds": 1.5, "started": "2026-01-01T00:00:00+00:00", "commit": "c" * 40}
        record |= {"packages": {"numpy": f"2.{number}"}, "cores": 2}
        Path(f"data/runs/{stage}.json").write_text(json.dumps(record))


def make(folder: Path, monkeypatch, columns: tuple[str, ...] = scores.COLUMNS) -> Path:
    """Runs both stages in `folder`; gives its folder of reports."""
    monkeypatch.chdir(folder)
    for name in ("data/published", "data/released", "reports/templates"):
        shutil.copytree(ROOT / name, folder / name)
    params = yaml.safe_load((ROOT / "stages/scales/laptop.yaml").read_text())
    params |= {"operators": list(OPERATORS), "sizes": ["tiny"], "protocols": ["courtois2024"]}
    shutil.copyfile(ROOT / params["operators_file"], params["operators_file"])
    Path("params.yaml").write_text(yaml.safe_dump(params))
    write_observations(columns)
    write_inputs()
    for stage in ("audit", "analysis", "report"):
        run_stage([stage])
    return folder / "reports"
