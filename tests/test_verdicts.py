"""Words beside verdicts in our own tables, and no verdict in a CSV of the examples that its interval contradicts."""

from pathlib import Path

import pandas as pd

from stages.evidence.verdicts import Difference
from stages.report import own_tables

ROOT = Path(__file__).parents[1]
ROW = {
    "quantity": "loss",
    "source": "reproduced",
    "size": "tiny",
    "at": "validation_loss",
    "arm": "shared",
    "reference": "original",
    "estimate": 0.2,
    "n": 3,
    "detectable": 0.4,
    "reason": "",
}


def build_losses(*changes: dict) -> list[str]:
    """Builds the table of losses from rows with `changes`; returns the cells of verdicts."""
    frame = pd.DataFrame([ROW | change for change in changes])
    grid = own_tables.build_table("loss_differences", lambda _: frame, simultaneous="simultaneous 95 %")
    [place] = [number for number, heading in enumerate(grid.headings) if heading.label == "Verdict"]
    return [group.lines[0].values[place].whole for group in grid.groups]


def test_a_reason_stands_beside_a_verdict_that_needs_a_reason():
    higher = {"low": 0.1, "high": 0.5, "verdict": Difference.HIGHER, "tests": 2, "reason": "above zero"}
    flipped = higher | {"reason": "above zero; joint sign flips disagree (p = 0.063)"}
    missing = higher | {"low": None, "verdict": Difference.TOO_FEW, "reason": "an interval takes 3 seeds"}
    assert build_losses(higher, flipped, missing) == [
        Difference.HIGHER,
        f"{Difference.HIGHER} (joint sign flips disagree (p = 0.063))",
        f"{Difference.TOO_FEW} (an interval takes 3 seeds)",
    ]


# words of verdicts by the side of zero on which an interval lies
SIDES = {
    "above": {"higher"},
    "below": {"lower"},
    "across": {"not significant"},
}
# verdicts that do not depend on the interval
OTHERS = ("at chance", "machine was busy", "too few", "one checkpoint per arm", "no interval", "not tested")


def find_side(row) -> str:
    if row.low > 0:
        return "above"
    return "below" if row.high < 0 else "across"
