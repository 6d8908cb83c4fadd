"""The audit: every check of the published numbers, with its arithmetic, as one table.

Input: data/published/ and the released raw results. No result of a run of ours enters it.
"""

import pandas as pd

from stages.audit import blog_and_draft, counts, courtois, described, experiments, kowsher
from stages.audit import released as of_released

SOURCES = {  # by what stands before the first full stop of a check's identifier
    "C": "Courtois et al. 2024",
    "K": "Kowsher et al.",
    "K24": "Kowsher et al. 2024, arXiv",
    "K25": "Kowsher et al. 2025, NAACL",
    "H": "Hadamard blog post",
    "AOP": "Attention over parameters",
}
COLUMNS = ["check", "source", "statement", "verdict", "arithmetic", "by", "fact"]


def checks(released: pd.DataFrame) -> pd.DataFrame:
    """Makes all checks, one row per check, in the order of SOURCES.

    released: what `measurements.measurements` returns for the results that Courtois et al. released.

    Returns:
        COLUMNS, all of them text. check, statement, verdict, arithmetic, by: as in `Finding`. source: a value of
        SOURCES. fact: the identifier of a check; checks that stand or fall for one reason have the same.

    Raises:
        ValueError: two checks have one identifier, or checks.yaml names in `facts` a check that does not exist.
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
    """Returns for every row the check that stands for its fact: the first of its group in `facts` of checks.yaml.

    For a row in no group, it is the first row with the same statement, verdict and arithmetic, or the check that stands
    for the fact of that row.
    """
    groups = [group["checks"] for group in described.content()["facts"]]
    unknown = {name for group in groups for name in group} - set(frame["check"])
    if unknown:
        raise ValueError(f"stages/audit/checks.yaml: facts: {sorted(unknown)[0]} is no check; mend its name")
    listed = {name: group[0] for group in groups for name in group}
    same = frame.groupby(["statement", "verdict", "arithmetic"], sort=False)["check"].transform("first")
    return [listed.get(check) or listed.get(first, first) for check, first in zip(frame["check"], same, strict=True)]
