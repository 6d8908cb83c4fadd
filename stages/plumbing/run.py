"""A run of training as one record: all that its job needs."""

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
        """As JSON."""
        return self.model_dump(mode="json", exclude=self.beside)
