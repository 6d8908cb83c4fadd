"""The three rules by which Courtois et al. chose documents (2024, Appendix A), each a parameter.

The paper does not say whether a document without a score is dropped: the authors' code treats a missing or zero
`harmful_pp` as out of bounds, which `missing_harmful_pp: drop` does.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from stages.records.records import Metadata
from stages.schema.sections import Filtering

# warnings of OSCAR 22.01 and 23.01
WARNINGS = ("tiny", "short_sentences", "header", "footer", "noisy", "adult")
# categories with a second name, which is a link in olbat/ut1-blacklists
ALIASES = {"agressif": ("agressif", "aggressive"), "adult": ("adult", "porn")}

# a rule and the reason by this rule: ("categories", "adult"), ("harmful_pp", "low")
Reason = tuple[str, str]


def select_rules(settings: Filtering) -> dict:
    """Returns the keys of `filtering` that are rules, for the argument of a job."""
    return settings.model_dump(include={"excluded_categories", "harmful_pp", "missing_harmful_pp", "quality_warnings"})


def make_reason_finder(rules: Mapping[str, Any]) -> Callable[[Metadata], tuple[Reason, ...]]:
    """Makes the function that returns the reasons to drop a document, () for a document that passes.

    `rules` are the settings of `select_rules`. A reason is a pair (rule, detail), in this order of rules:
    - ("categories", an excluded category)
    - ("harmful_pp", `low`, `high` or `missing`); a perplexity on a bound is out of bounds, and 0 is missing
    - ("quality_warnings", a warning, or `other` for an unknown warning)
    """
    # {"adult": "adult", "porn": "adult"}: `porn` is a second name of the category `adult`
    category_by_name = {}
    for category in rules["excluded_categories"]:
        for name in ALIASES.get(category, (category,)):
            category_by_name[name] = category

    # few combinations occur, so each is worked out once
    @lru_cache(maxsize=1 << 14)
    def combine_reasons(
        categories: tuple[str, ...], level: str | None, warnings: tuple[str, ...]
    ) -> tuple[Reason, ...]:
        found = [("categories", category_by_name[name]) for name in categories if name in category_by_name]
        if level:
            found.append(("harmful_pp", level))
        if rules["quality_warnings"] == "drop":
            found += [("quality_warnings", name if name in WARNINGS else "other") for name in warnings]
        # each reason once, in the order of the rules
        return tuple(dict.fromkeys(found))

    def find_reasons(metadata: Metadata) -> tuple[Reason, ...]:
        level = find_level(metadata.harmful_pp, rules)
        # UNSET (no such key) and None (nothing applies) are false; OSCAR 22.01 calls the warnings `annotation`
        warnings = metadata.quality_warnings or metadata.annotation or ()
        return combine_reasons(metadata.categories or (), level, warnings)

    return find_reasons


def find_level(perplexity: float | None, rules: Mapping[str, Any]) -> str | None:
    """Returns the reason to drop a document by perplexity: `low`, `high` or `missing`; None lets the document pass.

    `rules` has the bounds `harmful_pp`, such as {"above": 5, "below": 100}, and `missing_harmful_pp`.
    """
    # a perplexity of 0 counts as missing
    if not perplexity:
        return "missing" if rules["missing_harmful_pp"] == "drop" else None
    if perplexity <= rules["harmful_pp"]["above"]:
        return "low"
    if perplexity >= rules["harmful_pp"]["below"]:
        return "high"
    return None
