"""Runs on a pre-trained model, without torch; those on GLUE as jobs, for the stages finetuning and convergence.

A run is one task, one pre-trained model and one seed. Its content decides its result, so equal runs of both stages are
one job.
"""

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import SkipValidation

from stages.benchmarks.glue import TASKS, validation_tables
from stages.benchmarks.metrics import scores
from stages.plumbing.files import TASK_FOLDER, TOKENIZER, read_once, write_atomically
from stages.plumbing.jobs import Job
from stages.plumbing.observations import Observation
from stages.plumbing.run import Run
from stages.plumbing.training_sections import Finetuning


class ModelRun(Run):
    """Any run on one model and one task; `seed` is that of the fine-tuning.

    columns: what all observations of the run share: stage, protocol, operator, size.
    """

    beside: ClassVar[dict[str, Any]] = Run.beside | {"columns": True}
    task: str
    pretraining_seed: int
    columns: dict[str, str]

    @property
    def operator(self) -> str:
        return self.columns["operator"]

    @property
    def size(self) -> str:
        return self.columns["size"]

    @property
    def model(self) -> str:
        """PROTOCOL-OPERATOR-SIZE, and a step of pre-training where it has one."""
        return "-".join(value for name, value in self.columns.items() if name != "stage")

    @property
    def name(self) -> str:
        """For progress and errors."""
        return f"{self.model} {self.task}, pre-training seed {self.pretraining_seed}, seed {self.seed}"

    def observed(self, evaluated_on: str, metric: str, value: float, n: int, **columns: str) -> Observation:
        """One measurement of the run.

        Args:
            evaluated_on: the validation split, as the papers call it.
            metric: its name.
            value: a fraction, unless the metric says otherwise.
            n: examples behind it.
            columns: what else is to be said of it.
        """
        seeds = {"pretraining_seed": self.pretraining_seed, "finetuning_seed": self.seed}
        measured = {"task": self.task, "evaluated_on": evaluated_on, "metric": metric, "value": float(value), "n": n}
        return Observation(**measured, **seeds, **self.columns, **columns)


class TunedRun(ModelRun):
    """Any run that trains a pre-trained model further. weights: the folder of the model."""

    weights: str
    training: SkipValidation[Finetuning]


class FinetuningRun(TunedRun):
    """A run on a task of GLUE. keep: where the stage finetuning keeps its model; None where it does not."""

    beside: ClassVar[dict[str, Any]] = TunedRun.beside | {"keep": True}
    keep: Path | None = None

    @property
    def content(self) -> dict[str, Any]:
        """As JSON, with the outputs of the model's head."""
        return super().content | {"labels": TASKS[self.task].outputs}

    @property
    def job(self) -> Job:
        """Leaves the fine-tuned model where it is kept."""
        inputs = (Path(self.weights), TASK_FOLDER / self.task, TOKENIZER)
        leaves = ("model",) if self.keep else ()
        return Job(self.name, self, inputs, leaves, {"model": self.keep} if self.keep else {})


def finetune(run: FinetuningRun, folder: Path) -> dict:
    """Job: leaves predictions.json, a list a validation split, and the fine-tuned model where it is kept."""
    from stages.classification.training import train_and_predict

    train, kept = TASK_FOLDER / run.task / "train.parquet", folder / "model" if run.keep else None
    predictions, seconds = train_and_predict(run, TOKENIZER, train, validation_tables(run.task), kept)
    write_atomically(folder / "predictions.json", json.dumps(predictions))
    return {"seconds": seconds}


def predictions_of(folder: Path) -> dict[str, list]:
    """The predictions that `finetune` has written, by validation split."""
    return json.loads((folder / "predictions.json").read_text())


@read_once(16)
def examples(table: Path) -> pd.DataFrame:
    """The examples (example_id, label) of a table of a task."""
    return pd.read_parquet(table, columns=["example_id", "label"])


def measured(run: FinetuningRun, folder: Path) -> list[Observation]:
    """Every metric of one run on every validation split. folder: in which its job has left the predictions."""
    tables = validation_tables(run.task)
    return [
        run.observed(evaluated_on, metric, value, len(predicted))
        for evaluated_on, predicted in predictions_of(folder).items()
        for metric, value in scores(run.task, np.array(predicted), examples(tables[evaluated_on])["label"]).items()
    ]
