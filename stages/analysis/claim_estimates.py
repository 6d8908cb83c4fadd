"""What a rule for a claim measures in one place: a count, value, difference or ratio of operators, or of spreads."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pandas as pd

from stages.evidence import baselines, convergence, survival
from stages.evidence.estimate import Estimate, between, spreads
from stages.evidence.statistics import summarise, units, varies, within_sd

LOST, CLEAN = "accuracy_lost", {"metric": "accuracy", "condition": "noise=0"}  # what noise takes, and from what


def estimate(test: dict, rows: pd.DataFrame, select: dict, confidence: float) -> Estimate | None:
    """Estimates what a test asks for in one place.

    Times to a milestone alone are cut at the last step at which all runs compared are known (stages.evidence.survival).
    Where a run never got there, a mean is a lower bound, and so is a difference or ratio if the run is one of the
    operator `of`; if it is one of `than`, they are upper bounds. Both at once decide nothing.

    Args:
        test: an entry of claim_rules.yaml, which explains its keys.
        rows: measurements (see evidence/derived.py), with what `baselines.add_baselines` adds where known.
        select: fields of `rows` and their values in this place; the operators of `of` and `than` are added.
        confidence: of the interval, such as 0.95.

    Returns:
        In the unit of the claim; None if runs that it needs are missing, or a spread is 0 or unknown.
    """
    selects = [select | {"operator": test[side]} for side in ("of", "than")] if "of" in test else [select]
    if "baseline" in test:
        selects[1]["metric"] = test["baseline"]
    arms = [_scaled(test, rows, fields) for fields in selects]
    if any(arm.empty for arm in arms):
        return None
    arms, _ = survival.restrict_times(arms)
    never = tuple(int((~arm["reached"]).sum()) for arm in arms)
    if test["test"] == "difference":
        ends = {name: late > 0 for name, late in zip(("at_least", "at_most"), never, strict=True)}
        effect = between(*arms, confidence, bool(test.get("ratio")), **ends)
    else:
        effect = _spread(arms, confidence) if test["test"] == "spread" else _mean(arms[0], confidence, never[0] > 0)
    if effect is None or effect.exact:
        return effect
    clean = CLEAN if select.get("metric") == LOST else {}
    scores = [_scaled(test, rows, fields | clean) for fields in selects]
    return replace(
        effect,
        checkpoints=min(arm["pretraining_seed"].nunique() for arm in arms) or None,
        never=never,
        at_chance=baselines.nothing_to_compare(scores, "value", lost=bool(clean)),
    )


def _mean(runs: pd.DataFrame, confidence: float, at_least: bool) -> Estimate:
    """The mean of measurements; a count has no interval. at_least: it is a lower bound, the interval open above."""
    summary = summarise(runs, confidence)
    mean = Estimate(summary.mean, unit=summary.unit, n=(summary.n,), at_least=at_least)
    if mean.exact or not varies(units(runs)[0]):  # equal values have no t interval
        return mean
    error, high = summary.sd / sqrt(summary.n), np.inf if at_least else summary.high
    return replace(mean, low=summary.low, high=high, error=error, freedom=summary.n - 1)


def _spread(arms: list[pd.DataFrame], confidence: float) -> Estimate | None:
    """Ratio of the standard deviations over fine-tuning seeds, each pooled within its pre-training runs.

    Stability over fine-tuning seeds is a property of what happens after one pre-training run; the spread between
    pre-training runs is no part of it. The interval takes scores to be normal, with one spread in all runs of an arm.
    """
    deviations = [within_sd(arm) for arm in arms]
    if not all(deviation > 0 for deviation in deviations):  # too few runs (NaN), or all equal
        return None
    freedom = tuple(len(arm) - arm["pretraining_seed"].nunique() for arm in arms)
    return replace(spreads(*deviations, freedom, confidence), n=tuple(map(len, arms)))


def bounds(test: dict) -> tuple[float, float]:
    """What a test claims, as a range: its lower and its upper end, infinite where it is open."""
    if "within" in test:
        return -test["within"], test["within"]
    if "between" in test:
        return tuple(test["between"])
    return test.get("above", -np.inf), test.get("below", np.inf)


def _scaled(test: dict, rows: pd.DataFrame, select: dict) -> pd.DataFrame:
    """Selects rows, and multiplies their values and ends of chance by `scale`, to the unit of the claim's numbers."""
    runs = convergence.selected(rows, select)  # with `reached`, False where a time is only a bound
    numbers = runs.columns.intersection(["value", "most_frequent_high"])
    return runs.assign(**test.get("scale", 1) * runs[numbers])  # ** takes a frame apart into its columns
