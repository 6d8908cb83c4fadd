"""The audit: every check of the published numbers, with its arithmetic, as one table.

Input: data/published/ and the released raw results. Nothing of this run enters it.
"""

import pandas as pd

from stages.evidence import audit_counts, audit_courtois, audit_experiments, audit_kowsher, audit_released, audit_small

SOURCES = {  # by the first letter or letters of a check
    "C": "Courtois et al. 2024",
    "K": "Kowsher et al.",
    "K24": "Kowsher et al. 2024, arXiv",
    "K25": "Kowsher et al. 2025, NAACL",
    "H": "Hadamard blog post",
    "AOP": "Attention over parameters",
}
COLUMNS = ["check", "source", "statement", "verdict", "arithmetic"]


def checks(released: pd.DataFrame) -> pd.DataFrame:
    """One row a check, in the order of the sources. ValueError for an identifier that stands there twice."""
    printed = (audit_courtois, audit_counts, audit_kowsher, audit_experiments, audit_small)
    found = [finding for part in printed for finding in part.findings()] + audit_released.findings(released)
    frame = pd.DataFrame([vars(finding) for finding in found])
    frame["source"] = frame["check"].str.partition(".")[0].map(SOURCES)
    order = frame["check"].str.partition(".")[0].map(list(SOURCES).index)
    double = frame.loc[frame["check"].duplicated(), "check"]
    if len(double):
        raise ValueError(f"audit: {double.iloc[0]} stands there twice")
    return frame.assign(order=order).sort_values("order", kind="stable", ignore_index=True)[COLUMNS]
