"""Checks the published numbers against each other and against the released results.

Reads data/published and data/released. Writes data/audit/checks.csv: for every check what was printed, what follows
from it, and the verdict. It depends on no run, so it is computed once.
"""

import pandas as pd

from stages.audit import blog_and_draft, counts, courtois, described, experiments, kowsher
from stages.audit import released as of_released
from stages.evidence import measurements, released
from stages.files.paths import AUDIT
from stages.files.storage import write_table
from stages.schema.settings import Settings

SOURCES = {  # by what stands before the first full stop of a check's identifier
    "C": "Courtois et al. 2024",
    "K": "Kowsher et al.",
    "K24": "Kowsher et al. 2024, arXiv",
    "K25": "Kowsher et al. 2025, NAACL",
    "H": "Hadamard blog post",
    "AOP": "Attention over parameters",
}
COLUMNS = ["check", "source", "statement", "verdict", "arithmetic", "by", "fact"]


def checks(raw: pd.DataFrame) -> pd.DataFrame:
    """Makes all checks, one row per check, in the order of SOURCES and, within a source, of the modules.

    raw: measurements of the results that Courtois et al. released. Returns COLUMNS, all of them text: the fields of
    `Finding`; source, a value of SOURCES; fact, the identifier of a check, equal where checks stand or fall for one
    reason. ValueError where two checks have one identifier, or checks.yaml names in `facts` one that does not exist.
    """
    parts = (described, courtois, counts, kowsher, experiments, blog_and_draft)
    findings = [finding for part in parts for finding in part.findings()] + of_released.findings(raw)
    frame = pd.DataFrame([vars(finding) for finding in findings])
    double = frame.loc[frame["check"].duplicated(), "check"]
    if len(double):
        raise ValueError(f"stages/audit: two checks are named {double.iloc[0]}; rename one")
    source = frame["check"].str.partition(".")[0]
    frame = frame.assign(source=source.map(SOURCES), order=source.map(list(SOURCES).index))
    frame = frame.sort_values("order", kind="stable", ignore_index=True)
    # a fact has the name of the first check of its group in checks.yaml or, for checks in no group, of the first row
    # with the same words, whose own group counts
    groups = [group["checks"] for group in described.content()["facts"]]
    unknown = {name for group in groups for name in group} - set(frame["check"])
    if unknown:
        raise ValueError(f"stages/audit/checks.yaml: facts: {sorted(unknown)[0]} is no check; mend its name")
    listed = {name: group[0] for group in groups for name in group}
    same = frame.groupby(["statement", "verdict", "arithmetic"], sort=False)["check"].transform("first")
    fact = [listed.get(check) or listed.get(first, first) for check, first in zip(frame["check"], same, strict=True)]
    return frame.assign(fact=fact)[COLUMNS]


def main(settings: Settings) -> dict:
    """Writes checks.csv; no setting matters, and nothing is added to the record of the stage."""
    write_table(AUDIT, checks(measurements.measurements(released.observations())))
    return {}
