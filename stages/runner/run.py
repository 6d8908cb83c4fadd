"""A run of training or evaluation as one record, and a job: what decides one result, and what the job leaves."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from stages.schema.sections import Record, Seed


class Run(Record):
    """What is trained or evaluated, and from which seed; a subclass adds the fields.

    Its field `training` is a recipe: a section of params.yaml, which has been validated already. The content decides
    the result, so that runs of equal content are one job. `beside` is what is no part of it, as pydantic's `exclude`
    takes it: what becomes of the result, and the recipe's list of seeds, of which the run has one as `seed`.
    """

    beside: ClassVar[dict[str, Any]] = {"training": {"seeds"}}
    seed: Seed

    @property
    def content(self) -> dict[str, Any]:
        """What decides the result, as JSON; of a recipe all fields, also those that the annotated base class lacks."""
        return self.model_dump(mode="json", exclude=self.beside, serialize_as_any=True)

    @property
    def text(self) -> str:
        """The content as one text, equal for equal runs."""
        return json.dumps(self.content, sort_keys=True)


@dataclass(frozen=True)
class Job:
    """A call of a job function, which decides one result.

    name: what progress and errors call the job.
    settings: the first argument of the function: a Run, or a dictionary that is JSON.
    inputs: files and folders whose content decides the result together with the settings and the code.
    leaves: names of files and folders that the function must leave in the job's folder for this run. They are no part
    of the fingerprint: a job that has a result is called again where one of them is missing, and a run that wants fewer
    of them reuses the job.
    places: by such a name, where another output of the stage keeps that file or folder (results.py).
    """

    name: str
    settings: dict | Run
    inputs: tuple[Path, ...]
    leaves: tuple[str, ...] = ()
    places: dict[str, Path] = field(default_factory=dict)

    @property
    def content(self) -> dict:
        """The settings that decide the result, as JSON; a Run may hold others."""
        return self.settings.content if isinstance(self.settings, Run) else self.settings
