"""What a judgement of a claim rests on, in words: what the runs say, for whom they speak, and the arithmetic."""

import pandas as pd

from stages.analysis.claim_tests import (
    AS_CLAIMED,
    FEW,
    NOT_AS_CLAIMED,
    NOTHING,
    ONE,
    OPPOSITE,
    UNDECIDED,
    Outcome,
)  # fmt: skip
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.statistics import FEWEST, ONE_CHECKPOINT, TOO_FEW

SAID = {
    AS_CLAIMED: "The runs are as claimed",
    NOT_AS_CLAIMED: "The runs are not as claimed",
    OPPOSITE: "The runs differ in the opposite direction",
    UNDECIDED: "The runs leave it undecided",
    AT_CHANCE: "All that is compared scores no better than a constant answer",
}
SOMEWHERE = (NOT_AS_CLAIMED, OPPOSITE, AT_CHANCE)  # readings that one place of several decides
SHOWN = 3  # lines of arithmetic a claim


def fields(found: Outcome) -> dict:
    """The columns of the ledger that come from an outcome as they are."""
    return {
        "unit_of_inference": found.unit,
        "estimate": found.estimate,
        "interval": found.interval,
        "power": found.power,
        "reading": found.reading,
    }


def because(found: Outcome) -> str:
    """Why the verdict is what it is, in a sentence or two."""
    if found.verdict == NOTHING:
        return "This run has not all of the measurements."
    if found.verdict == ONE:
        single = "" if found.interval else " by their values alone, which have no interval"
        return f"{_said(found)}{single}. One checkpoint per arm speaks for itself and not for its operator."
    few = f" A verdict on an operator takes {FEWEST} seeds." if found.verdict == FEW else ""
    return f"{_said(found)}.{few}"


def read(found: Outcome) -> str:
    """What the runs say where no verdict is given, as the end of a sentence."""
    said = _said(found)[0].lower() + _said(found)[1:]
    seeds = {ONE: ONE_CHECKPOINT, FEW: TOO_FEW}.get(found.verdict)
    return f"{said}, from {seeds}" if seeds else said


def _said(found: Outcome) -> str:
    somewhere = found.reading in SOMEWHERE and found.places > 1
    return SAID[found.reading] + (", in one place at least" if somewhere else "")


def listed(parts: list[str]) -> str:
    """With a space before, separated by commas; nothing for nothing."""
    return f" {', '.join(parts)}" if parts else ""


def arithmetic(checks: pd.DataFrame) -> list[str]:
    """The checks in words, those that fail first; as many as fit, and how many more there are."""
    order = checks.sort_values("verdict", key=lambda verdicts: verdicts != "fails", kind="stable")
    lines = [
        f"[{row.check}, {row.verdict}] {row.statement}: {row.arithmetic}." for row in order.head(SHOWN).itertuples()
    ]
    more = len(checks) - len(lines)
    return [*lines, f"And {more} more in the audit."] if more > 0 else lines
