"""The audit: every check of the published numbers, with its arithmetic, as one table.

Input: data/published/ and the released raw results. Nothing of this run enters it.
"""

import pandas as pd

from stages.audit import blog_and_draft, counts, courtois, described, experiments, kowsher
from stages.audit import released as of_released

SOURCES = {  # by the first letter or letters of a check
    "C": "Courtois et al. 2024",
    "K": "Kowsher et al.",
    "K24": "Kowsher et al. 2024, arXiv",
    "K25": "Kowsher et al. 2025, NAACL",
    "H": "Hadamard blog post",
    "AOP": "Attention over parameters",
}
COLUMNS = ["check", "source", "statement", "verdict", "arithmetic", "by", "fact"]


def checks(released: pd.DataFrame) -> pd.DataFrame:
    """One row a check, in the order of the sources.

    Args:
        released: measurements of the results that Courtois et al. released.

    Returns:
        COLUMNS. `by` tells arithmetic from reading; checks with one `fact` stand or fall for one reason.

    Raises:
        ValueError: for an identifier that stands there twice, or a fact of a check that there is not.
    """
    parts = (described, courtois, counts, kowsher, experiments, blog_and_draft)
    findings = [finding for part in parts for finding in part.findings()] + of_released.findings(released)
    frame = pd.DataFrame([vars(finding) for finding in findings])
    double = frame.loc[frame["check"].duplicated(), "check"]
    if len(double):
        raise ValueError(f"stages/audit: two checks are named {double.iloc[0]}; rename one")
    source = frame["check"].str.partition(".")[0]
    frame = frame.assign(source=source.map(SOURCES), order=source.map(list(SOURCES).index))
    frame = frame.sort_values("order", kind="stable", ignore_index=True)
    return frame.assign(fact=_facts(frame))[COLUMNS]


def _facts(frame: pd.DataFrame) -> list[str]:
    """The first check of every check's fact: as checks.yaml groups them, or of the same words and numbers."""
    groups = [group["checks"] for group in described.content()["facts"]]
    unknown = {name for group in groups for name in group} - set(frame["check"])
    if unknown:
        raise ValueError(f"stages/audit/checks.yaml: facts: {sorted(unknown)[0]} is no check; mend its name")
    listed = {name: group[0] for group in groups for name in group}
    same = frame.groupby(["statement", "verdict", "arithmetic"], sort=False)["check"].transform("first")
    return [listed.get(check) or listed.get(first, first) for check, first in zip(frame["check"], same, strict=True)]
