"""A run of training or evaluation as a record, and a job: the work that decides a result."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from stages.schema.sections import Record, Seed


class Run(Record):
    """The training or evaluation of a model from a seed; a subclass adds the fields.

    The content decides the result, so that runs of equal content are the same job. The field `training` of a subclass
    is a recipe: a validated section of params.yaml.
    """

    # The fields that are no part of the content, as pydantic's `exclude` names fields: where results go, and the
    # recipe's list of seeds, because the run has a single seed.
    beside: ClassVar[dict[str, Any]] = {"training": {"seeds"}}
    seed: Seed

    @property
    def content(self) -> dict[str, Any]:
        """The fields that decide the result, as JSON, with the fields of the recipe's own class."""
        return self.model_dump(mode="json", exclude=self.beside, serialize_as_any=True)

    @property
    def text(self) -> str:
        """The content as JSON text, equal for equal runs."""
        return json.dumps(self.content, sort_keys=True)


@dataclass(frozen=True)
class Job:
    """A call of a job function, which decides a result."""

    # the job in messages about progress and errors
    name: str
    # the first argument of the function; a dictionary is JSON
    argument: dict | Run
    # files and folders that decide the result, together with `content` and the code
    inputs: tuple[Path, ...]
    # names of files and folders that the function must leave in the job's folder for this run; a finished job that
    # lacks such a file is called again; no part of the fingerprint
    required: tuple[str, ...] = ()
    # name of a file or folder in the job's folder -> path in an output of the stage other than data/results, which
    # leaves out the file or folder
    external_files: dict[str, Path] = field(default_factory=dict)
    # how much a job computes in comparison with jobs of equally large inputs; large jobs start first
    work: float = 1.0

    @property
    def content(self) -> dict:
        """The settings that decide the result, as JSON."""
        return self.argument.content if isinstance(self.argument, Run) else self.argument
