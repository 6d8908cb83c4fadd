"""Runs on a pre-trained model as records, without torch, and the job that does those of finetuning and convergence.

A run is one task, one pre-trained model and one seed. Its content decides its result, so equal runs share a job.
"""

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import SkipValidation

from stages.benchmarks.glue import TASKS, validation_tables
from stages.benchmarks.metrics import scores
from stages.files.observations import Observation
from stages.files.paths import TASK_FOLDER, TOKENIZER
from stages.files.storage import read_once, write_atomically
from stages.runner.run import Job, Run
from stages.schema.training_sections import Finetuning


class ModelRun(Run):
    """Any run on one model and one task.

    seed, pretraining_seed: the seeds of the model's fine-tuning and of its pre-training. columns: what all observations
    of the run share, in this order: stage, protocol, operator, size and, where there is one, condition. They are no
    part of the run's content (they stand in `beside`), so two stages that ask for the same training share its job.
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
        """PROTOCOL-OPERATOR-SIZE, followed by -step=N for a model of an intermediate pre-training checkpoint."""
        return "-".join(value for name, value in self.columns.items() if name != "stage")

    @property
    def name(self) -> str:
        """The run as progress and errors name it."""
        return f"{self.model} {self.task}, pre-training seed {self.pretraining_seed}, seed {self.seed}"

    def observed(self, evaluated_on: str, metric: str, value: float, n: int, **columns: str) -> Observation:
        """Makes an observation of one measurement of the run.

        Args:
            evaluated_on: the validation split, as the papers call it (`mnli_m`; usually the task's name).
            metric, value: the name of the metric and its value, a fraction unless the metric says otherwise.
            n: number of examples behind the value.
            columns: further columns of the observation, such as `condition`.
        """
        seeds = {"pretraining_seed": self.pretraining_seed, "finetuning_seed": self.seed}
        measured = {"task": self.task, "evaluated_on": evaluated_on, "metric": metric, "value": float(value), "n": n}
        return Observation(**measured, **seeds, **self.columns, **columns)


class TunedRun(ModelRun):
    """Any run that trains the pre-trained model of folder `weights` further. training: the recipe, validated before."""

    weights: str
    training: SkipValidation[Finetuning]


class FinetuningRun(TunedRun):
    """A run on a task of GLUE. keep: the folder in which stage finetuning keeps the fine-tuned model, or None."""

    beside: ClassVar[dict[str, Any]] = TunedRun.beside | {"keep": True}
    keep: Path | None = None

    @property
    def content(self) -> dict[str, Any]:
        """What decides the result, as JSON; with `labels`, the number of outputs of the head, which no field says."""
        return super().content | {"labels": TASKS[self.task].outputs}

    @property
    def job(self) -> Job:
        """The job of `finetune`; where the run has a `keep`, it has to leave the folder `model`, to be copied there."""
        inputs = (Path(self.weights), TASK_FOLDER / self.task, TOKENIZER)
        leaves = ("model",) if self.keep else ()
        return Job(self.name, self, inputs, leaves, {"model": self.keep} if self.keep else {})


def finetune(run: FinetuningRun, folder: Path) -> dict:
    """Job: fine-tunes the model of a run and predicts every validation split of its task.

    Leaves in `folder`, the job's own, predictions.json, which `predictions_of` reads, and, where the run has a `keep`,
    the folder `model`. Returns {"seconds": those of training}. The import, which loads torch, is left to the worker.
    """
    from stages.classification.training import train_and_predict

    train, kept = TASK_FOLDER / run.task / "train.parquet", folder / "model" if run.keep else None
    predictions, seconds = train_and_predict(run, TOKENIZER, train, validation_tables(run.task), kept)
    write_atomically(folder / "predictions.json", json.dumps(predictions))
    return {"seconds": seconds}


def predictions_of(folder: Path) -> dict[str, list]:
    """Reads what `finetune` predicted: for each validation split, by its name in the papers, a number per example."""
    return json.loads((folder / "predictions.json").read_text())


@read_once(16)  # tables; the eight tasks have nine that are scored
def examples(table: Path) -> pd.DataFrame:
    """Reads the columns example_id and label of the table of a task, into a frame that all callers share."""
    return pd.read_parquet(table, columns=["example_id", "label"])


def measured(run: FinetuningRun, folder: Path) -> list[Observation]:
    """Observes every metric of a run on every validation split. folder: where its job has left the predictions."""
    tables = validation_tables(run.task)
    return [
        run.observed(evaluated_on, metric, value, len(predicted))
        for evaluated_on, predicted in predictions_of(folder).items()
        for metric, value in scores(run.task, np.array(predicted), examples(tables[evaluated_on])["label"]).items()
    ]
