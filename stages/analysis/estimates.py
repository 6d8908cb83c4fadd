"""What a rule for a claim measures in one place: a count, a value, a difference or ratio of operators, or of spreads.

An estimate answers one question in both directions: how sure is it that the true value lies above a bound, and below?
From these p values claim_tests.py makes verdicts, over as many places as the claim speaks of.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import exp, inf, isinf, isnan, log, nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from stages.common.evidence.cells import matching
from stages.common.evidence.convergence import MILESTONES, NOT_REACHED
from stages.common.evidence.statistics import (
    EXACT,
    FINETUNING,
    PRETRAINING,
    REPEATS,
    above,
    mean_interval,
    summarise,
    units,
    varies,
    within_sd,
)

LOST, CLEAN = "accuracy_lost", {"metric": "accuracy", "condition": "noise=0"}  # what noise takes, and from what
WITHIN = "fine-tuning seeds within pre-training seeds"
TRAINING = "training seeds"  # of a model that is trained on its task from new weights


@dataclass(frozen=True)
class Estimate:
    """A value with its interval (NaN where there is none) and what it was made of.

    unit: what n counts on each side. checkpoints: pre-training runs on the smaller side; None where no model was
    pre-trained, as in counts and times. error, freedom: of the t distribution (`log`: of logarithms), or of the F
    distribution, whose freedom is a pair. at_least, at_most: the true value may only be larger, or only smaller, since
    runs ended before they got there. never: how many on each side. at_chance: no side scores above a constant answer,
    so that there is nothing to compare; of what noise takes, one side does not without noise, and has little to lose.
    sides: their runs (of `log`: the logarithms), where those of one are all equal: they have a permutation test, and no
    interval.
    """

    value: float
    low: float = nan
    high: float = nan
    unit: str = EXACT
    n: tuple[int, ...] = ()
    checkpoints: int | None = None
    error: float = nan
    freedom: float | tuple[int, int] = nan
    log: bool = False
    at_least: bool = False
    at_most: bool = False
    never: tuple[int, ...] = ()
    at_chance: bool = False
    sides: tuple[np.ndarray, np.ndarray] | None = field(default=None, compare=False)

    @property
    def exact(self) -> bool:
        return self.unit == EXACT

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not isnan(self.low)

    @property
    def tested(self) -> bool:
        """Whether there is a test, with an interval or without."""
        return self.known or self.sides is not None

    def p_above(self, bound: float) -> float:
        """p of the one-sided test that the true value lies above a bound; NaN without a test."""
        if isinf(bound):
            return float(bound > 0)
        return 1.0 if self.at_most else self._tail(bound, upper=True)

    def p_below(self, bound: float) -> float:
        """p of the one-sided test that the true value lies below a bound; NaN without a test."""
        if isinf(bound):
            return float(bound < 0)
        return 1.0 if self.at_least else self._tail(bound, upper=False)

    def _tail(self, bound: float, upper: bool) -> float:
        if self.sides is not None:
            own, other = self.sides[0] - (log(bound) if self.log else bound), self.sides[1]
            return above(own, other) if upper else above(other, own)
        if not self.known:
            return nan
        if isinstance(self.freedom, tuple):
            tail = stats.f.sf if upper else stats.f.cdf
            return float(tail((self.value / bound) ** 2, *self.freedom))
        distance = log(self.value / bound) if self.log else self.value - bound
        return float((stats.t.sf if upper else stats.t.cdf)(distance / self.error, self.freedom))


def value(test: dict, rows: pd.DataFrame, select: dict, confidence: float) -> Estimate | None:
    """The mean of the selected measurements; a count has no interval and needs none."""
    found = _scaled(test, rows, select)
    if found.empty:
        return None
    made = summarise(found, confidence)
    if made.unit == EXACT:
        return Estimate(made.mean)
    known = {
        "unit": _unit(select, made.unit),
        "n": (made.n,),
        "checkpoints": _checkpoints(found),
        "at_chance": _nothing_there(test, rows, [select]),
    }
    values = units(found)[0]
    if not varies(values):
        return Estimate(made.mean, **known)
    return Estimate(made.mean, made.low, made.high, error=made.sd / sqrt(made.n), freedom=made.n - 1, **known)


def difference(test: dict, rows: pd.DataFrame, select: dict, confidence: float) -> Estimate | None:
    """`of` less `than`, or with `ratio` their ratio (of geometric means), by Welch's t.

    Of times to a milestone, a run that never got there counts with its last step: a ratio is then only known to be at
    least, or at most, what it seems, and both at once decide nothing. Times are compared within a round, which has one
    value of every operator.
    """
    selects = [select | {"operator": test[side]} for side in ("of", "than")]
    sides, never = ([found(test, rows, own) for own in selects] for found in (_scaled, _never))
    if any(side.empty and late.empty for side, late in zip(sides, never, strict=True)):
        return None
    sides = [pd.concat([side, late]) if len(late) else side for side, late in zip(sides, never, strict=True)]
    ratio = bool(test.get("ratio"))
    if units(sides[0])[1] == REPEATS:
        own, other = (side.set_index("condition")["value"].astype(float) for side in sides)
        return paired(own, other.reindex(own.index), confidence, ratio)
    made = compared(*(units(side)[0] for side in sides), confidence, ratio, *(len(late) > 0 for late in never))
    return replace(
        made,
        unit=_unit(select, units(sides[0])[1]),
        checkpoints=_fewest(sides),
        never=tuple(map(len, never)),
        at_chance=_nothing_there(test, rows, selects),
    )


def compared(
    own: np.ndarray,
    other: np.ndarray,
    confidence: float,
    ratio: bool = False,
    at_least: bool = False,
    at_most: bool = False,
) -> Estimate:
    """Two arms [n] and [m], one number for every pre-training run, by Welch's t; with `ratio` of logarithms.

    Where the runs of an arm are all equal, by an exact permutation test.
    """
    made = Estimate(nan, unit=PRETRAINING, n=(len(own), len(other)), log=ratio, at_least=at_least, at_most=at_most)
    own, other = (np.log(side) if ratio else side for side in (own, other))
    difference = float(np.mean(own) - np.mean(other))
    if not (varies(own) and varies(other)):
        sides = (own, other) if min(len(own), len(other)) > 1 else None
        return replace(made, value=exp(difference) if ratio else difference, sides=sides)
    result = stats.ttest_ind(own, other, equal_var=False)
    interval = result.confidence_interval(confidence)
    ends = difference, -inf if at_most else float(interval.low), inf if at_least else float(interval.high)
    value, low, high = map(exp, ends) if ratio else ends
    error = float(np.sqrt(np.var(own, ddof=1) / len(own) + np.var(other, ddof=1) / len(other)))
    return replace(made, value=value, low=low, high=high, error=error, freedom=float(result.df))


def paired(own: pd.Series, other: pd.Series, confidence: float, ratio: bool = False) -> Estimate:
    """Two arms with one time each in every round: the mean difference or, with `ratio`, the geometric mean ratio.

    The interval is that of the t distribution over the rounds, of differences or of logarithms of ratios.
    """
    differences = (np.log(own / other) if ratio else own - other).to_numpy(float)
    mean, sd, low, high = mean_interval(differences, confidence)
    back = exp if ratio else float
    made = Estimate(back(mean), unit=REPEATS, n=(len(own), len(other)), log=ratio)
    if not varies(differences):
        return made
    n = len(differences)
    return replace(made, low=back(low), high=back(high), error=sd / sqrt(n), freedom=n - 1)


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


def spreads(own: float, other: float, freedom: tuple[int, int], confidence: float) -> Estimate:
    """The ratio of two standard deviations with these degrees of freedom, with the interval of the F distribution."""
    low, high = (own / other / sqrt(stats.f.ppf(q, *freedom)) for q in ((1 + confidence) / 2, (1 - confidence) / 2))
    return Estimate(own / other, low, high, WITHIN, freedom=freedom)


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
    if rows.empty or "most_frequent_high" not in rows or rows["most_frequent_high"].isna().any():
        return False
    return bool((rows["value"] / rows["scale"]).mean() <= rows["most_frequent_high"].iloc[0])


def _scaled(test: dict, rows: pd.DataFrame, select: dict) -> pd.DataFrame:
    found = matching(rows, select)
    scale = test.get("scale", 1)
    return found.assign(value=found["value"] * scale, scale=scale)


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


def _unit(select: dict, unit: str) -> str:
    """What n counts; translation trains from new weights, and pre-trains nothing."""
    return TRAINING if unit == PRETRAINING and select.get("stage") == "translation" else unit


def unit_of_inference(estimate: Estimate) -> str:
    """What the estimate rests on, in words."""
    if estimate.exact:
        return "a count"
    shown = str(estimate.n[0]) if len(set(estimate.n)) == 1 else " and ".join(map(str, estimate.n))
    arm = " per arm" if len(estimate.n) > 1 else ""
    if estimate.unit == REPEATS:
        return f"{shown} timed repeats{arm} on one machine"
    if estimate.unit == FINETUNING:
        if max(estimate.n) == 1:
            return f"one fine-tuning run on one checkpoint{arm}"
        return f"{shown} fine-tuning seeds on one checkpoint{arm}"
    if estimate.unit in (PRETRAINING, TRAINING):
        return f"{shown} {estimate.unit}{arm}" if min(estimate.n) > 1 else f"one checkpoint{arm}"
    seeds = estimate.checkpoints
    runs = "one checkpoint" if seeds == 1 else f"{seeds} pre-training seeds"
    return f"{shown} fine-tuning runs within {runs}{arm}"
