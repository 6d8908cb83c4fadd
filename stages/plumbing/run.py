"""A run of training or evaluation as one record: everything that its job needs."""

import json
from typing import Any, ClassVar

from stages.plumbing.sections import Record, Seed


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
