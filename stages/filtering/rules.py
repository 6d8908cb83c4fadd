"""The three rules by which Courtois et al. chose documents (2024, Appendix A), each a parameter.

The paper leaves open what happens to a document without a score: the authors' code treats a missing or zero
`harmful_pp` as out of bounds, which `missing_harmful_pp: drop` does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from stages.plumbing.sections import Filtering
from stages.records.records import Annotations

WARNINGS = ("tiny", "short_sentences", "header", "footer", "noisy", "adult")  # OSCAR's own, 22.01 and 23.01
# Second names that UT1 gives to folders (links in its distribution, olbat/ut1-blacklists).
ALIASES = {"agressif": ("aggressive",), "adult": ("porn",)}

Reason = tuple[str, str]  # rule, and what of it applied


def rules_of(settings: Filtering) -> dict:
    """The fields of `Rules` as params.yaml has them, in the form in which a job takes them."""
    return {
        "excluded_categories": settings.excluded_categories,
        "above": settings.harmful_pp.above,
        "below": settings.harmful_pp.below,
        "keep_missing": settings.missing_harmful_pp == "keep",
        "keep_warned": settings.quality_warnings == "keep",
    }


@dataclass(frozen=True)
class Rules:
    """excluded_categories: UT1 folders. above, below: bounds of harmful_pp (perplexity), both exclusive.

    keep_missing: whether a document without a score, or with score 0, passes. keep_warned: whether one with
    quality warnings does.
    """

    excluded_categories: tuple[str, ...]
    above: float
    below: float
    keep_missing: bool
    keep_warned: bool

    def reasons(self, document: Annotations) -> tuple[Reason, ...]:
        """Why a document is dropped, in the order of the rules, each reason once; empty when it is kept."""
        score = document.harmful_pp
        if not score:
            level = None if self.keep_missing else "missing"
        elif score <= self.above:
            level = "low"
        else:
            level = "high" if score >= self.below else None
        return self._reasons(document.categories or (), level, document.quality_warnings or document.annotation or ())

    @cached_property
    def _reasons(self) -> Callable[..., tuple[Reason, ...]]:
        """By categories, level of the score, and warnings; few combinations occur, so each is worked out once."""
        spellings = {
            spelling: category
            for category in self.excluded_categories
            for spelling in (category, *ALIASES.get(category, ()))
        }

        @lru_cache(maxsize=1 << 14)
        def reasons(categories: tuple[str, ...], level: str | None, warnings: tuple[str, ...]):
            listed = [("categories", spellings[name]) for name in categories if name in spellings]
            scored = [("harmful_pp", level)] if level else []
            counted = () if self.keep_warned else warnings
            warned = [("quality_warnings", name if name in WARNINGS else "other") for name in counted]
            return tuple(dict.fromkeys(listed + scored + warned))

        return reasons
