"""One sentence beside each verdict: what so many runs with such a spread would find."""

from math import exp, isinf, log, sqrt

from stages.analysis.claim_estimates import bounds
from stages.evidence import power
from stages.evidence.estimate import Estimate, unit_of_inference

POWER = "power"


def sentence(cells: list[tuple[dict, Estimate]], alpha: float) -> str:
    """Of the cell that is least certain of an answer, as a claim holds only where it holds in all; empty for counts.

    Powers, and effects in several units, cannot be ranked against each other: then it is one sentence of each kind.
    """
    if any(made.at_least or made.at_most for _, made in cells):
        return "Some runs ended before they got there, which leaves no spread to tell power from."
    found = [_found(test, made, alpha) for test, made in cells if made.known]
    if not found:
        return ""
    kinds, parts = dict.fromkeys(kind for kind, _, _ in found), []
    for kind in kinds:
        own = [(certainty, words) for other, certainty, words in found if other == kind]
        places = f"{len(own)} places" + (" of this kind" if len(kinds) > 1 else "")
        parts.append(min(own)[1] + (f" Of {places}, this is the least certain one." if len(own) > 1 else ""))
    silent = [min(made.n, default=1) for _, made in cells if not made.known]
    single, equal = sum(n < 2 for n in silent), sum(n > 1 for n in silent)
    if single:
        parts.append(f"{single} more of single runs {'has' if single == 1 else 'have'} none.")
    if equal:
        parts.append(f"{equal} more {'has' if equal == 1 else 'have'} none, as all runs of one side are equal.")
    return " ".join(parts)


def _found(test: dict, made: Estimate, alpha: float) -> tuple[str, float, str]:
    """What is measured of the cell; a number, the lower the less certain the cell is; and its sentence."""
    low, high = bounds(test)
    scale = log if made.log else float
    noun = "a mean" if test["test"] == "value" else "a ratio" if made.log else "a difference"
    if test["test"] == "spread":
        smallest = power.smallest_spread(made.freedom, alpha)
        return "spread", smallest, _words(made, f"a ratio of {_number(smallest)}", power.OFTEN)
    if "within" in test:
        share = power.inside(high, high, made.error, made.freedom, alpha)
        return POWER, share, _words(made, f"equivalence of equal operators within {_number(high)}", share)
    if not isinf(low) and not isinf(high):
        middle = sqrt(low * high) if made.log else (low + high) / 2
        ends = scale(middle) - scale(low), scale(high) - scale(middle)
        share = power.inside(*ends, made.error, made.freedom, alpha / 2)
        return POWER, share, _words(made, f"{noun} of {_number(middle)}, amid the claimed range,", share)
    bound = low if isinf(high) else high
    nothing = bound == (1 if made.log else 0)
    shown = "be found" if nothing else f"be shown to lie {'above' if isinf(high) else 'below'} {_number(bound)}"
    if "size" in test:
        share = power.direction(abs(scale(test["size"]) - scale(bound)), made.error, made.freedom, alpha)
        return POWER, share, _words(made, f"{noun} of {_number(test['size'])}", share, shown)
    reach = power.smallest_effect(made.error, made.freedom, alpha) * (1 if isinf(high) else -1)
    reached = exp(log(bound) + reach) if made.log else bound + reach
    said = _words(made, f"{noun} of {_number(reached)}", power.OFTEN, shown)
    unit = "ratio" if made.log else test["select"].get("metric", said)  # where every cell has its own metric: unranked
    return unit, -abs(reach), said


def _words(made: Estimate, what: str, share: float, shown: str = "be found") -> str:
    return f"With {unit_of_inference(made)} and this spread {what} would {shown} in {100 * share:.0f} % of such runs."


def _number(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")
