"""Describes a run of stage translation (operator, task and seed) without loading torch."""

from pathlib import Path

from pydantic import SkipValidation

from stages.files.paths import SENTENCE_PAIRS
from stages.runner.job import Job, Run
from stages.schema.translation_sections import Layers

# The name of the only task that is no sequence task.
TRANSLATION = "translation"


class TranslationRun(Run):
    """A Transformer with one operator, trained on a single task from a single seed.

    The task is `translation`, `recurrence` or `copy`; `size`, for observations, is the name of the protocol; `training`
    is the section of params.yaml on the protocol, or on the sequence tasks.
    """

    # These lists do not influence the result of a single run, so runs of equal content share a job.
    beside = Run.beside | {"training": {"seeds", "operators"}}
    operator: str
    task: str
    size: str
    # The section is not validated a second time, because params.yaml has been validated already.
    training: SkipValidation[Layers]

    @property
    def name(self) -> str:
        """Name of the run in progress bars and errors, such as `copy, sequences, fixed, seed 1`."""
        return f"{self.task}, {self.size}, {self.operator}, seed {self.seed}"

    @property
    def data(self) -> Path:
        """The folder of the protocol's sentence pairs."""
        return SENTENCE_PAIRS / self.size

    @property
    def job(self) -> Job:
        """The run as a job; sequence tasks have no input."""
        inputs = (self.data,) if self.task == TRANSLATION else ()
        return Job(self.name, self, inputs)
