"""One run of stage translation as a record, without torch: one operator, one task and one seed."""

from pathlib import Path
from typing import Any, ClassVar

from pydantic import SkipValidation

from stages.files.paths import SENTENCE_PAIRS
from stages.runner.run import Job, Run
from stages.schema.translation_sections import Layers

TRANSLATION = "translation"  # the task that is no sequence task


class TranslationRun(Run):
    """A Transformer with one operator, trained on one task from one seed.

    task: TRANSLATION, or recurrence or copy, the sequence tasks. size: what observations name as the size, in
    translation the protocol. training: the section of params.yaml on that protocol, or on the sequence tasks.
    """

    beside: ClassVar[dict[str, Any]] = {"training": {"seeds", "operators"}}  # these lists decide no single result
    operator: str
    task: str
    size: str
    training: SkipValidation[Layers]  # params.yaml has been validated already

    @property
    def name(self) -> str:
        """What progress and errors call the run."""
        return f"{self.task}, {self.size}, {self.operator}, seed {self.seed}"

    @property
    def data(self) -> Path:
        """The folder of the protocol's sentence pairs; a run on a sequence task has none."""
        return SENTENCE_PAIRS / self.size

    @property
    def job(self) -> Job:
        """The run as a job, with the sentence pairs as its input; sequence tasks are drawn and have none."""
        return Job(self.name, self, (self.data,) if self.task == TRANSLATION else ())
