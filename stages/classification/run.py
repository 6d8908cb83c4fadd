"""What a fine-tuning run is, without torch: one pre-trained model, one task and one seed."""

from pathlib import Path
from typing import Any, ClassVar

from pydantic import SkipValidation

from stages.benchmarks.glue import TASKS
from stages.plumbing.files import TASK_FOLDER, TOKENIZER
from stages.plumbing.jobs import Job
from stages.plumbing.run import Run
from stages.plumbing.training_sections import Finetuning


class TunedRun(Run):
    """Any run that trains a pre-trained model further.

    name: that of the model, the task and the seeds, for progress and errors. weights: the folder of the model.
    columns: what all observations of the run share.
    """

    beside: ClassVar[dict[str, Any]] = Run.beside | {"columns": True}
    name: str
    task: str
    weights: str
    pretraining_seed: int
    training: SkipValidation[Finetuning]
    columns: dict[str, str]


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
