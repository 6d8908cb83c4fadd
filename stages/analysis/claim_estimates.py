"""What a rule for a claim measures in one place: a count, a value, a difference or ratio of operators, or of spreads.

The measurements that the rule selects become an estimate (estimate.py); claim_tests.py makes verdicts of estimates.
"""

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

import numpy as np
import pandas as pd

from stages.evidence import baselines
from stages.evidence.cells import matching
from stages.evidence.convergence import MILESTONES, NOT_REACHED
from stages.evidence.estimate import Estimate, between, spreads
from stages.evidence.statistics import (
    EXACT,
    summarise,
    units,
    varies,
    within_sd,
)

LOST, CLEAN = "accuracy_lost", {"metric": "accuracy", "condition": "noise=0"}  # what noise takes, and from what


def value(test: dict, rows: pd.DataFrame, select: dict, confidence: float) -> Estimate | None:
    """The mean of the selected measurements; a count has no interval and needs none."""
    found = _scaled(test, rows, select)
    if found.empty:
        return None
    made = summarise(found, confidence)
    if made.unit == EXACT:
        return Estimate(made.mean)
    known = {
        "unit": made.unit,
        "n": (made.n,),
        "checkpoints": _checkpoints(found),
        "at_chance": _nothing_there(test, rows, [select]),
    }
    values = units(found)[0]
    if not varies(values):
        return Estimate(made.mean, **known)
    return Estimate(made.mean, made.low, made.high, error=made.sd / sqrt(made.n), freedom=made.n - 1, **known)


def difference(test: dict, rows: pd.DataFrame, select: dict, confidence: float) -> Estimate | None:
    """`of` less `than`, or with `ratio` their ratio, as `estimate.between` compares them.

    Of times to a milestone, a run that never got there counts with its last step: a ratio is then only known to be at
    least, or at most, what it seems, and both at once decide nothing.
    """
    selects = [select | {"operator": test[side]} for side in ("of", "than")]
    sides, never = ([found(test, rows, own) for own in selects] for found in (_scaled, _never))
    if any(side.empty and late.empty for side, late in zip(sides, never, strict=True)):
        return None
    sides = [pd.concat([side, late]) if len(late) else side for side, late in zip(sides, never, strict=True)]
    ratio = bool(test.get("ratio"))
    ends = {name: len(late) > 0 for name, late in zip(("at_least", "at_most"), never, strict=True)}
    return replace(
        between(*sides, confidence, ratio, **ends),
        checkpoints=_fewest(sides),
        never=tuple(map(len, never)),
        at_chance=_nothing_there(test, rows, selects),
    )


def spread(test: dict, rows: pd.DataFrame, select: dict, confidence: float) -> Estimate | None:
    """Ratio of the standard deviations over fine-tuning seeds, each pooled within its pre-training runs.

    Stability over fine-tuning seeds is a property of what happens after one pre-training run; the spread between
    pre-training runs is no part of it. The interval takes scores to be normal, with one spread in all runs of a side.
    """
    selects = [select | {"operator": test[side]} for side in ("of", "than")]
    sides = [_scaled(test, rows, own) for own in selects]
    deviations = [within_sd(side) for side in sides]
    if not all(deviation > 0 for deviation in deviations):  # too few runs (NaN), or all equal
        return None
    freedom = tuple(len(side) - side["pretraining_seed"].nunique() for side in sides)
    return replace(
        spreads(*deviations, freedom, confidence),
        n=tuple(map(len, sides)),
        checkpoints=_fewest(sides),
        at_chance=_nothing_there(test, rows, selects),
    )


ESTIMATES: dict[str, Callable] = {"exact": value, "value": value, "difference": difference, "spread": spread}


def bounds(test: dict) -> tuple[float, float]:
    """The claim as a range."""
    if "within" in test:
        return -test["within"], test["within"]
    if "between" in test:
        return tuple(test["between"])
    return test.get("above", -np.inf), test.get("below", np.inf)


def _nothing_there(test: dict, rows: pd.DataFrame, selects: list[dict]) -> bool:
    """Whether what is selected on each side is no result, by the rule that `Estimate` states for `at_chance`."""
    if selects[0].get("metric") == LOST:
        return any(_at_chance(_scaled(test, rows, select | CLEAN)) for select in selects)
    return all(_at_chance(_scaled(test, rows, select)) for select in selects)


def _at_chance(rows: pd.DataFrame) -> bool:
    """Whether a mean score is at chance; rows that no baseline stands beside have no column for it."""
    return "most_frequent_high" in rows and baselines.all_at_chance(rows["value"], rows["most_frequent_high"])


def _scaled(test: dict, rows: pd.DataFrame, select: dict) -> pd.DataFrame:
    found = matching(rows, select)
    numbers = found.columns.intersection(["value", "most_frequent_high"])
    return found.assign(**test.get("scale", 1) * found[numbers])


def _never(test: dict, rows: pd.DataFrame, select: dict) -> pd.DataFrame:
    """The runs that had not reached a milestone when they ended."""
    if select.get("metric") not in MILESTONES:
        return rows.iloc[:0]
    return _scaled(test, rows, select | {"metric": select["metric"] + NOT_REACHED})


def _checkpoints(rows: pd.DataFrame) -> int | None:
    seeds = rows["pretraining_seed"].nunique()
    return seeds or None


def _fewest(sides: list[pd.DataFrame]) -> int | None:
    counts = [_checkpoints(side) for side in sides]
    return None if None in counts else min(counts)
