"""The power of a claim's tests: what repetitions of this run, with as many seeds and such a spread, would find."""

from math import exp, isinf, log, sqrt

from stages.analysis.claim_estimates import bounds
from stages.analysis.claim_tests import Place
from stages.evidence import power

SHARE, SPREAD, RATIO = "share", "spread", "ratio"  # kinds of answers; or the name of a metric


def of_place(place: Place, alpha: float) -> dict:
    """Computes the power of the test, at level alpha, in one place of a claim, whose estimate has an interval.

    For a claimed effect, an equivalence of equal operators and the middle of a claimed range, this is the share of
    repetitions that would show them (kind SHARE); otherwise the smallest effect that OFTEN of them would show.

    Returns:
        effect: a true value in the unit of the claim, or the margin of an equivalence. share: of the repetitions, those
        in which it would be shown. bound: what it would be shown to lie beyond; None for a range or a spread, and where
        the bound is no effect (0, or a ratio of 1). kind: SHARE, SPREAD, RATIO or, for smallest differences and means,
        the metric. certainty: ranks places of one kind; the lowest one is the least certain of an answer.
    """
    test, estimate = place.test, place.estimate
    low, high = bounds(test)
    scale = log if estimate.log else float
    if test["test"] == "spread":
        smallest = power.smallest_spread(estimate.freedom, alpha)
        return {"kind": SPREAD, "certainty": smallest, "effect": smallest, "share": power.OFTEN, "bound": None}
    distribution = estimate.error, estimate.freedom
    if "within" in test:
        share = power.inside(high, high, *distribution, alpha)
        return {"kind": SHARE, "certainty": share, "effect": high, "share": share, "bound": None}
    if not isinf(low) and not isinf(high):
        middle = sqrt(low * high) if estimate.log else (low + high) / 2
        ends = scale(middle) - scale(low), scale(high) - scale(middle)
        share = power.inside(*ends, *distribution, alpha / 2)
        return {"kind": SHARE, "certainty": share, "effect": middle, "share": share, "bound": None}
    bound = low if isinf(high) else high
    beyond = {"bound": None if bound == (1 if estimate.log else 0) else bound}
    if "size" in test:
        share = power.direction(abs(scale(test["size"]) - scale(bound)), *distribution, alpha)
        return beyond | {"kind": SHARE, "certainty": share, "effect": test["size"], "share": share}
    reach = power.smallest_effect(*distribution, alpha) * (1 if isinf(high) else -1)
    effect = exp(log(bound) + reach) if estimate.log else bound + reach
    kind = RATIO if estimate.log else place.select.get("metric")
    return beyond | {"kind": kind, "certainty": -abs(reach), "effect": effect, "share": power.OFTEN}
