"""A run as one record: all that its job needs."""

import json
from typing import Any, ClassVar

from stages.plumbing.sections import Record, Seed


class Run(Record):
    """What is trained, by which recipe (`training`, a section of params.yaml, which is sound already), from which seed.

    Its content decides its result, so that runs of equal content are one job. `beside` names what is no part of that:
    what becomes of the result, and the recipe's list of seeds, of which the run has one.
    """

    beside: ClassVar[dict[str, Any]] = {"training": {"seeds"}}
    seed: Seed

    @property
    def content(self) -> dict[str, Any]:
        """As JSON: all fields of a recipe, where the record's annotation names the kind that several recipes share."""
        return self.model_dump(mode="json", exclude=self.beside, serialize_as_any=True)

    @property
    def text(self) -> str:
        """The content as one text, equal for equal runs."""
        return json.dumps(self.content, sort_keys=True)
