"""Decides a claim from its estimates: one verdict for all the places that the claim speaks of, with a known error.

A test is an entry of claim_rules.yaml, which explains its keys. It is made in every place that it names: a size
(`sizes`), or a task or condition (`each`: a field and its values).

A claim holds where it holds in every place, so each is tested at alpha and all must pass (an intersection-union test,
Berger 1982). It fails where it fails somewhere, so the places' p values against it are adjusted by Holm's method. Both
err in at most a share alpha of repetitions of the run, however many places there are; with neither, the claim stays
open. A claim about an operator is decided by three pre-training runs or more per arm: one checkpoint leaves it open,
and so do two seeds. The value of a test marked `point` decides with any number of runs. A place where all that is
compared is at chance shows nothing: the claim cannot hold there, and fails where it is shown to fail in another place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd

from stages.analysis.claim_estimates import bounds, estimate
from stages.evidence.arithmetic import FAILS, HOLDS, TRUNCATED, judge
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.estimate import Estimate
from stages.evidence.statistics import EXACT, FEWEST, INCONCLUSIVE, NOT_TESTED, PRETRAINING, holm, too_few

PARTLY = "partly"  # a verdict on counts
AS_CLAIMED, NOT_AS_CLAIMED, OPPOSITE, UNDECIDED = "as claimed", "not as claimed", "opposite direction", "undecided"


@dataclass(frozen=True)
class Place:
    """One place of a claim. test: an entry of claim_rules.yaml. estimate: None where nothing was measured.

    select: the fields that measurements of this place have; size: of the models, None where the test itself names it.
    """

    test: dict
    estimate: Estimate | None
    select: dict = field(default_factory=dict)
    size: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What the tests of a claim found. verdict: as `evaluate` lists them. places: how many the claim speaks of.

    reading: what the runs themselves say, AS_CLAIMED to UNDECIDED or AT_CHANCE, even if they are too few to speak for
    an operator; an empty text for counts and where nothing was measured. measured: the places with an estimate.
    """

    verdict: str
    reading: str = ""
    measured: tuple[Place, ...] = ()
    places: int = 0


def evaluate(
    tests: list[dict],
    rows: pd.DataFrame,
    confidence: float,
    alpha: float,
    size: str | None = None,
    single: bool = False,
) -> Outcome:
    """Makes all tests of one claim in all of its places.

    Args:
        tests, rows: entries of claim_rules.yaml, and measurements as `claim_estimates.estimate` takes them.
        confidence, alpha: the levels of the intervals and of the tests.
        size: where it is given, the one size that takes the place of the tests' `sizes`.
        single: whether single runs are read by their value, which decides about those runs and nothing else.

    Returns:
        The outcome; its verdict is HOLDS, FAILS, INCONCLUSIVE, NOT_TESTED where measurements are missing, or why there
        is none: AT_CHANCE, or as `statistics.too_few` says. But of counts, FAILS needs no other places, and
        AT_CHANCE goes before NOT_TESTED. Of counts also TRUNCATED (all hold or are truncated) and PARTLY (some fail).
    """
    places = [place for test in tests for place in _places(test, rows, size, confidence)]
    measured = tuple(place for place in places if place.estimate is not None)
    if not measured:
        return Outcome(NOT_TESTED)
    complete = len(measured) == len(places)
    if all(place.test["test"] == "exact" for place in measured):
        verdicts = {_counted(place) for place in measured}
        verdict = TRUNCATED if FAILS not in verdicts else PARTLY
        verdict = verdicts.pop() if len(verdicts) == 1 else verdict
        return Outcome(verdict if complete else NOT_TESTED, "", measured, len(places))
    verdict = decide(measured, alpha, single)
    verdict = NOT_TESTED if verdict != FAILS and not complete else verdict
    reading = _reading(measured, verdict, alpha)
    compared = [place.estimate for place in measured if not place.test.get("point")]
    seeds = [effect.checkpoints for effect in compared if effect.checkpoints is not None]
    if verdict != FAILS and any(place.estimate.at_chance for place in measured):
        verdict = reading = AT_CHANCE
    elif verdict != NOT_TESTED:
        verdict = too_few(PRETRAINING, *seeds or [FEWEST]) or verdict  # times have no seeds, so never too few
    return Outcome(verdict, reading, measured, len(places))


def _places(test: dict, rows: pd.DataFrame, size: str | None, confidence: float) -> list[Place]:
    """Makes the places of a test, one for every size and every value of the field that its `each` names."""
    key, values = next(iter(test.get("each", {}).items()), (None, [None]))
    sizes = [None] if "size" in test["select"] else [size] if size else test["sizes"]
    selects = [
        (test["select"] | ({key: value} if key else {}) | ({"size": name} if name else {}), name)
        for value, name in product(values, sizes)
    ]
    return [Place(test, estimate(test, rows, select, confidence), select, name) for select, name in selects]


def _counted(place: Place) -> str:
    """Judges a count by the printed number, with the tolerance of its digits and `word` ("about"), or by a range."""
    if "printed" not in place.test:
        low, high = bounds(place.test)
        return HOLDS if low <= place.estimate.value <= high else FAILS
    count = Fraction(place.estimate.value).limit_denominator(10**9)  # makes 100/3 of the float 33.33...
    exact = 1 / (1 - count / 100) if place.test.get("fold") else count  # a saving in per cent as a factor
    return judge(str(place.test["printed"]), exact, place.test.get("word", ""))


def decide(places: Sequence[Place], alpha: float, single: bool = False) -> str:
    """HOLDS, FAILS or INCONCLUSIVE, by the rule at the head of this file; how many seeds there are is not asked here.

    Args:
        places: each with an estimate.
        alpha: the level of the test of the claim as a whole.
        single: as for `evaluate`.
    """
    claimed, against = np.array([_p_values(place, single) for place in places]).T
    if (claimed < alpha).all() and not any(place.estimate.at_chance for place in places):
        return HOLDS
    return FAILS if _shown_somewhere(places, against, alpha) else INCONCLUSIVE


def _shown_somewhere(places: Sequence[Place], p_values: np.ndarray, alpha: float) -> bool:
    """Whether one of p values [places] is below alpha after Holm's method, in a place that is not at chance."""
    return any(p < alpha and not place.estimate.at_chance for place, p in zip(places, holm(p_values), strict=True))


def _p_values(place: Place, single: bool) -> tuple[float, float]:
    """p of the test that the effect is as claimed, and p of the test that it lies outside of what is claimed.

    Both are two-sided, but the first is one-sided at both ends for an equivalence. Without a test they are 1 and NaN.
    Counts, tests marked `point` and, if `single`, estimates without a test count as known without error: p is 0 or 1.
    """
    effect = place.estimate
    if effect.exact or place.test.get("point") or (single and not effect.tested):
        effect = replace(effect, unit=EXACT)
    elif not effect.tested:
        return 1.0, np.nan
    low, high = bounds(place.test)
    claimed = max(effect.p_above(low), effect.p_below(high)) * (1 if "within" in place.test else 2)
    against = 2 * min(effect.p_below(low), effect.p_above(high))
    if effect.exact and not claimed:  # at a bound both are 0, and it is as claimed
        against = 1.0
    return min(1.0, claimed), min(1.0, against)


def _reading(places: Sequence[Place], verdict: str, alpha: float) -> str:
    """What the runs say, AS_CLAIMED to UNDECIDED; OPPOSITE only where an effect in the other direction is shown."""
    if verdict == HOLDS:
        return AS_CLAIMED
    if verdict != FAILS:
        return UNDECIDED
    # two-sided p that an effect has the sign opposite to the claimed one; NaN without a direction or a test
    opposite = np.full(len(places), np.nan)
    for number, place in enumerate(places):
        test, effect = place.test, place.estimate
        if test.get("point"):  # no direction is tested
            continue
        if test["test"] in ("difference", "spread") and effect.tested and ("above" in test) != ("below" in test):
            null = 1.0 if test.get("ratio") or test["test"] == "spread" else 0.0
            opposite[number] = min(1.0, 2 * (effect.p_below(null) if "above" in test else effect.p_above(null)))
    return OPPOSITE if _shown_somewhere(places, opposite, alpha) else NOT_AS_CLAIMED
