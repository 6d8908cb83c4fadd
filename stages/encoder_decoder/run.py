"""Describes a run of stage translation (operator, task and seed) without loading torch."""

from pathlib import Path
from typing import Any, ClassVar

from pydantic import SkipValidation

from stages.files.paths import SENTENCE_PAIRS
from stages.runner.run import Job, Run
from stages.schema.translation_sections import Layers

# the task that is no sequence task
TRANSLATION = "translation"


class TranslationRun(Run):
    """A Transformer with one operator, trained on a single task from a single seed.

    Attributes:
        operator: name of the operator.
        task: `translation`, or the sequence tasks `recurrence` and `copy`.
        size: size in observations; in translation the name of the protocol.
        training: the section of params.yaml on that protocol, or on the sequence tasks.
    """

    # These lists decide no single result.
    beside: ClassVar[dict[str, Any]] = {"training": {"seeds", "operators"}}
    operator: str
    task: str
    size: str
    # params.yaml has been validated already.
    training: SkipValidation[Layers]

    @property
    def name(self) -> str:
        """Name of the run in progress bars and errors, such as `copy, sequences, fixed, seed 1`."""
        return f"{self.task}, {self.size}, {self.operator}, seed {self.seed}"

    @property
    def data(self) -> Path:
        """The folder of the protocol's sentence pairs, which only translation runs have."""
        return SENTENCE_PAIRS / self.size

    @property
    def job(self) -> Job:
        """The run as a job; the input is the folder of sentence pairs, or nothing for a sequence task, whose data are drawn."""
        inputs = (self.data,) if self.task == TRANSLATION else ()
        return Job(self.name, self, inputs)
