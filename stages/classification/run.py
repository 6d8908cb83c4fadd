"""What a run on a pre-trained model is, without torch: one model, one task and one seed."""

from pathlib import Path
from typing import Any, ClassVar

from pydantic import SkipValidation

from stages.benchmarks.glue import TASKS
from stages.plumbing.files import TASK_FOLDER, TOKENIZER
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
