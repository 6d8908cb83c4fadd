"""The few tests that decide claims: exact counts, values, differences and ratios of operators, spreads.

A test is an entry of claim_rules.yaml. Each gives an interval, and the interval a verdict: YES where all of it
satisfies the claim, NO where none of it does, OPEN otherwise, NOTHING where there are no measurements.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import isnan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from stages.evidence.cells import matching
from stages.evidence.statistics import EXACT, summarise, units, welch

YES, NO, OPEN, NOTHING = "yes", "no", "open", "nothing"


@dataclass(frozen=True)
class Outcome:
    """effect: what was found, with its interval, in words."""

    verdict: str
    effect: str


@dataclass(frozen=True)
class Estimate:
    """low and high are NaN where there is no interval; exact: a count, which needs none."""

    value: float
    low: float
    high: float
    exact: bool = False


def evaluate(
    tests: list[dict], rows: pd.DataFrame, size: str | None, confidence: float, alpha: float, single: bool = False
) -> Outcome:
    """All tests of one claim. size: in place of the sizes of the tests; single: single runs decide by their value.

    YES if all hold, NO if one does not, NOTHING if some have no measurements, OPEN otherwise.
    """
    outcomes = [outcome for test in tests for outcome in _cases(test, rows, size, confidence, alpha, single)]
    verdicts = [outcome.verdict for outcome in outcomes]
    effect = "; ".join(outcome.effect for outcome in outcomes if outcome.verdict != NOTHING)
    for verdict in (NO, NOTHING, OPEN):
        if verdict in verdicts and (verdict != NO or verdicts.count(NOTHING) < len(verdicts)):
            return Outcome(verdict, effect)
    return Outcome(YES if verdicts else NOTHING, effect)


def _cases(
    test: dict, rows: pd.DataFrame, size: str | None, confidence: float, alpha: float, single: bool
) -> Iterator[Outcome]:
    """One outcome for every size and every value of `each`."""
    field, values = next(iter(test.get("each", {}).items()), (None, [None]))
    sizes = [None] if "size" in test["select"] else [size] if size else test["sizes"]
    for value, place in product(values, sizes):
        select = test["select"] | ({field: value} if field else {}) | ({"size": place} if place else {})
        estimate = ESTIMATES[test["test"]](test, rows, select, _confidence(test, confidence, alpha))
        label = " ".join(str(part) for part in (_subject(test), value, f"BERT-{place}" if place else None) if part)
        if estimate is None:
            yield Outcome(NOTHING, "")
        else:
            yield Outcome(_verdict(test, estimate, single), f"{label} {_shown(test, estimate)}".strip())


def _confidence(test: dict, confidence: float, alpha: float) -> float:
    return 1 - 2 * alpha if "within" in test else confidence  # two one-sided tests at alpha


def _subject(test: dict) -> str:
    return f"{test['of']} {'/' if test.get('ratio') else '−'} {test['than']}" if "of" in test else ""


def _scaled(test: dict, rows: pd.DataFrame, select: dict) -> pd.DataFrame:
    found = matching(rows, select)
    return found.assign(value=found["value"] * test.get("scale", 1))


def _value(test: dict, rows: pd.DataFrame, select: dict, confidence: float) -> Estimate | None:
    found = _scaled(test, rows, select)
    if found.empty:
        return None
    made = summarise(found, confidence)
    return Estimate(made.mean, made.low, made.high, made.unit == EXACT)


def _pair(test: dict, rows: pd.DataFrame, select: dict) -> tuple[np.ndarray, np.ndarray] | None:
    sides = [_scaled(test, rows, select | {"operator": test[side]}) for side in ("of", "than")]
    return None if any(side.empty for side in sides) else (units(sides[0])[0], units(sides[1])[0])


def _difference(test: dict, rows: pd.DataFrame, select: dict, confidence: float) -> Estimate | None:
    pair = _pair(test, rows, select)
    if pair is None:
        return None
    if test.get("ratio"):
        made = welch(np.log(pair[0]), np.log(pair[1]), confidence)
        return Estimate(*(float(np.exp(x)) for x in (made.difference, made.low, made.high)))
    made = welch(*pair, confidence)
    return Estimate(made.difference, made.low, made.high)


def _spread(test: dict, rows: pd.DataFrame, select: dict, confidence: float) -> Estimate | None:
    """Ratio of standard deviations; the interval from the F distribution, which takes values to be normal."""
    pair = _pair(test, rows, select)
    if pair is None or min(map(len, pair)) < 2 or np.ptp(pair[1]) == 0:
        return None
    ratio = float(np.var(pair[0], ddof=1) / np.var(pair[1], ddof=1))
    freedom = len(pair[0]) - 1, len(pair[1]) - 1
    low, high = (ratio / stats.f.ppf(q, *freedom) for q in ((1 + confidence) / 2, (1 - confidence) / 2))
    return Estimate(sqrt(ratio), sqrt(low), sqrt(high))


ESTIMATES = {"exact": _value, "value": _value, "difference": _difference, "spread": _spread}


def _bounds(test: dict) -> tuple[float, float]:
    """The claim as a range."""
    if "equals" in test:
        half = 0.5 * 10.0 ** -test["decimals"] * (1 + 1e-9)
        return test["equals"] - half, test["equals"] + half
    if "within" in test:
        return -test["within"], test["within"]
    if "between" in test:
        return tuple(test["between"])
    return test.get("above", -np.inf), test.get("below", np.inf)


def _verdict(test: dict, estimate: Estimate, single: bool) -> str:
    low, high = _bounds(test)
    if estimate.exact or test.get("point") or (isnan(estimate.low) and single):
        return YES if low <= estimate.value <= high else NO
    if isnan(estimate.low):
        return OPEN
    if low <= estimate.low and estimate.high <= high:
        return YES
    return NO if estimate.high < low or estimate.low > high else OPEN


def _shown(test: dict, estimate: Estimate) -> str:
    exact = estimate.exact and float(estimate.value).is_integer()
    form = "{:,.0f}" if exact or abs(estimate.value) >= 1000 else "{:.3g}" if abs(estimate.value) < 1 else "{:.2f}"
    sign = "+" if "of" in test and not test.get("ratio") and test["test"] == "difference" and estimate.value > 0 else ""
    text, low, high = (form.format(x).replace("-", "−") for x in (estimate.value, estimate.low, estimate.high))
    if estimate.exact:
        return text
    return f"{sign}{text} (single runs)" if isnan(estimate.low) else f"{sign}{text} ({low} to {high})"


def describe(test: dict) -> str:
    """The test in words: what is compared, where, and what must hold."""
    select = test["select"]
    quantity = " ".join(
        str(select[key]) for key in ("metric", "evaluated_on", "task", "condition", "operator") if select.get(key)
    )
    subject = f"{_subject(test)}: " if "of" in test else ""
    each = "".join(f", each {field}" for field in test.get("each", {}))
    sizes = ", ".join(f"BERT-{size}" for size in test.get("sizes", [select.get("size")]) if size)
    if test["test"] == "exact":
        return f"{quantity}{each} ({sizes}) is {test['equals']:,.{test['decimals']}f}"
    if "within" in test:
        asked = f"is equivalent within {test['within']}"
    elif "between" in test:
        asked = f"lies between {test['between'][0]:g} and {test['between'][1]:g}"
    else:
        asked = " and ".join(f"lies {side} {test[side]:g}" for side in ("above", "below") if side in test)
    kind = "ratio of standard deviations of " if test["test"] == "spread" else ""
    return f"{subject}{kind}{quantity}{each} ({sizes}) {asked}"
