"""Checks the published numbers against each other and against the released results.

Reads data/published and data/released. Writes data/audit/checks.csv: for every check the printed number, the number
that follows from other numbers, and the verdict. No setting changes the table.
"""

from inspect import isgeneratorfunction

import pandas as pd

from stages.audit import (
    blog_and_draft,
    courtois,
    grim,
    kowsher_experiments,
    kowsher_glue,
    kowsher_parameters,
    kowsher_training,
    released,
)
from stages.audit.findings import Finding, read_content
from stages.evidence import measurements
from stages.evidence.data_files import REMEDY
from stages.evidence.released import read_observations
from stages.evidence.verdicts import Statement
from stages.files.paths import AUDIT
from stages.files.storage import write_table
from stages.schema.settings import Settings

# Sources by the part of an identifier before the first full stop, in the order of the table.
SOURCES = {
    "C": "Courtois et al. 2024",
    "K": "Kowsher et al.",
    "K24": "Kowsher et al. 2024, arXiv",
    "K25": "Kowsher et al. 2025, NAACL",
    "H": "Hadamard blog post",
    "AOP": "Attention over parameters",
}
PARTS = (
    courtois,
    grim,
    kowsher_parameters,
    kowsher_experiments,
    kowsher_glue,
    kowsher_training,
    blog_and_draft,
    released,
)


def name_facts(frame: pd.DataFrame) -> pd.Series:
    """Name the fact of every check: checks that hold or fail for the same reason share a fact, named after a check.

    Facts are listed in checks.yaml. Checks with equal words and verdict, as in both editions, are a fact, too.
    """
    listed = read_content("checks")["facts"]
    # The first check with the same words and verdict.
    first = frame.groupby(["statement", "verdict", "arithmetic"], sort=False)["check"].transform("first")
    facts = frame["check"].map(listed).fillna(first.map(listed))
    return facts.fillna(first)


def make_checks(raw: pd.DataFrame) -> pd.DataFrame:
    """Make the table of all checks, sorted by source; `raw` measures the results that Courtois et al. released."""
    findings = []
    for entry in read_content("checks")["readings"]:
        findings.append(Finding(**entry | {"verdict": Statement[entry["verdict"]]}, by="reading"))
    # The checks of a module are its own generators, in the order of the file.
    for part in PARTS:
        for check in filter(isgeneratorfunction, vars(part).values()):
            if check.__module__ == part.__name__:
                findings += check(raw) if part is released else check()
    frame = pd.DataFrame(findings)
    prefix = frame["check"].str.partition(".")[0]
    frame = frame.assign(source=prefix.map(SOURCES), order=prefix.map(list(SOURCES).index))
    frame = frame.sort_values("order", kind="stable", ignore_index=True)
    frame = frame.assign(fact=name_facts(frame))
    return frame[["check", "source", "statement", "verdict", "arithmetic", "by", "fact"]]


def main(settings: Settings) -> dict:
    """Write checks.csv; no setting matters."""
    raw = measurements.compute_measurements(read_observations())
    try:
        checks = make_checks(raw)
    except KeyError as error:
        raise ValueError(f"data/published or data/released: no number for {error}; {REMEDY}") from None
    write_table(AUDIT, checks)
    return {}
