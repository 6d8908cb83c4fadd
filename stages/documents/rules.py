"""The three rules by which Courtois et al. chose documents (2024, Appendix A), each a parameter.

The paper leaves open what happens to a document without a score: the authors' code treats a missing or zero
`harmful_pp` as out of bounds, which `missing_harmful_pp: drop` does.
"""

from dataclasses import dataclass
from functools import cached_property

from stages.documents.records import Annotations

WARNINGS = ("tiny", "short_sentences", "header", "footer", "noisy", "adult")  # OSCAR's own, 22.01 and 23.01
# Second names that UT1 gives to folders (links in its distribution, olbat/ut1-blacklists).
ALIASES = {"agressif": ("aggressive",), "adult": ("porn",)}

Reason = tuple[str, str]  # rule, and what of it applied


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

    @cached_property
    def _excluded(self) -> dict[str, str]:
        """Every spelling of an excluded category, with the name under which it is counted."""
        return {
            spelling: category
            for category in self.excluded_categories
            for spelling in (category, *ALIASES.get(category, ()))
        }

    def reasons(self, document: Annotations) -> list[Reason]:
        """Why a document is dropped, in the order of the rules, each reason once; empty when it is kept."""
        found: list[Reason] = []
        if document.categories:
            names = (self._excluded.get(category) for category in document.categories)
            found += [("categories", name) for name in dict.fromkeys(names) if name]
        if not document.harmful_pp:
            if not self.keep_missing:
                found.append(("harmful_pp", "missing"))
        elif document.harmful_pp <= self.above:
            found.append(("harmful_pp", "low"))
        elif document.harmful_pp >= self.below:
            found.append(("harmful_pp", "high"))
        if not self.keep_warned and (warnings := document.quality_warnings or document.annotation):
            names = (warning if warning in WARNINGS else "other" for warning in warnings)
            found += [("quality_warnings", name) for name in dict.fromkeys(names)]
        return found
