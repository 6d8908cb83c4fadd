"""What a judgement of a claim rests on, and the power of its tests, in the words of claim_words.yaml's templates."""

from collections.abc import Sequence
from functools import cache
from math import exp, isinf, log, sqrt
from pathlib import Path

import jinja2
import yaml

from stages.analysis.claim_estimates import bounds
from stages.analysis.claim_tests import Outcome, Place
from stages.evidence import power as powers
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.estimate import Estimate
from stages.evidence.statistics import FEWEST
from stages.evidence.translation import model

PATH = Path(__file__).with_name("claim_words.yaml")
SHARE, SPREAD, RATIO = "share", "spread", "ratio"  # kinds of answers of `power_of_place`; or the name of a metric


@cache
def _environment() -> jinja2.Environment:
    """What renders the texts. They are no markup, so that nothing is escaped here: the report does it on its pages."""
    texts = yaml.safe_load(PATH.read_text(encoding="utf-8"))
    environment = jinja2.Environment(loader=jinja2.DictLoader(texts))
    environment.filters |= {"model": model, "figure": _figure, "short": "{:g}".format, "entries": _entries}
    environment.filters |= {"number": lambda value: _minus(f"{value:.3g}")}
    environment.globals |= {"say": say, "readings": texts["readings"], "measures": texts["measures"], "fewest": FEWEST}
    return environment


def say(name: str, **values: object) -> str:
    """Renders a text of claim_words.yaml, by its key there, with these values; line breaks become single spaces."""
    return " ".join(_environment().get_template(name).render(values).split())


def fields(outcome: Outcome, confidence: float, alpha: float) -> dict:
    """Describes an outcome in the columns of the ledger (`claims.COLUMNS`), from `verdict` to `power`, in words.

    Args:
        outcome: of the tests of a claim.
        confidence, alpha: the levels of the intervals and of the tests.

    Returns:
        A text for each of these columns; that of `power` is empty where the verdict is AT_CHANCE, and for counts.
    """
    units = dict.fromkeys(say("unit_of_inference", estimate=place.estimate) for place in outcome.measured)
    return {
        "verdict": outcome.verdict,
        "because": say("because", outcome=outcome),
        "unit_of_inference": "; ".join(units),
        "estimate": say("estimates", places=outcome.measured),
        "interval": say("intervals", places=outcome.measured, confidence=confidence),
        "power": "" if outcome.verdict == AT_CHANCE else power(outcome.measured, alpha),
        "reading": outcome.reading,
    }


def power(places: Sequence[Place], alpha: float) -> str:
    """Says what repetitions with so many runs and such a spread would find; an empty text for counts.

    Of places whose powers can be ranked (of one kind), the least certain one speaks; those with fewer than FEWEST runs,
    or equal ones, on a side have no interval and are counted. If any run ended before its milestone, the text says that
    alone. places: each with an estimate.
    """
    kinds: dict[str, list[tuple[float, str]]] = {}  # by kind, the certainty and the sentence of each place
    for place in places:
        if place.estimate.has_interval:
            of_place = power_of_place(place, alpha)
            sentence = say("power_of_place", place=place, estimate=place.estimate, power=of_place)
            kinds.setdefault(of_place["kind"], []).append((of_place["certainty"], sentence))
    smallest = [min(place.estimate.n, default=1) for place in places if not place.estimate.has_interval]
    return say(
        "power",
        ended=any(place.estimate.at_least or place.estimate.at_most for place in places),
        kinds=[(len(sentences), min(sentences)[1]) for sentences in kinds.values()],
        few=sum(n < FEWEST for n in smallest),
        equal=sum(n >= FEWEST for n in smallest),
    )


def power_of_place(place: Place, alpha: float) -> dict:
    """Computes the power of the test, at level alpha, in one place of a claim, whose estimate has an interval.

    For a claimed effect (`size`), an equivalence of equal operators and the middle of a claimed range, this is the
    share of repetitions that would show them (SHARE); else the smallest effect that 80 % (powers.OFTEN) would show.

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
        smallest = powers.smallest_spread(estimate.freedom, alpha)
        return {"kind": SPREAD, "certainty": smallest, "effect": smallest, "share": powers.OFTEN, "bound": None}
    distribution = estimate.error, estimate.freedom
    if "within" in test:
        share = powers.inside(high, high, *distribution, alpha)
        return {"kind": SHARE, "certainty": share, "effect": high, "share": share, "bound": None}
    if not isinf(low) and not isinf(high):
        middle = sqrt(low * high) if estimate.log else (low + high) / 2
        ends = scale(middle) - scale(low), scale(high) - scale(middle)
        share = powers.inside(*ends, *distribution, alpha / 2)  # unlike an equivalence, tested two-sided
        return {"kind": SHARE, "certainty": share, "effect": middle, "share": share, "bound": None}
    bound = low if isinf(high) else high
    beyond = {"bound": None if bound == (1 if estimate.log else 0) else bound}
    if "size" in test:
        share = powers.direction(abs(scale(test["size"]) - scale(bound)), *distribution, alpha)
        return beyond | {"kind": SHARE, "certainty": share, "effect": test["size"], "share": share}
    reach = powers.smallest_effect(*distribution, alpha) * (1 if isinf(high) else -1)
    effect = exp(log(bound) + reach) if estimate.log else bound + reach
    kind = RATIO if estimate.log else place.select.get("metric")
    return beyond | {"kind": kind, "certainty": -abs(reach), "effect": effect, "share": powers.OFTEN}


def _entries(record: dict, *keys: str) -> list[str]:
    """The values, as texts, of those of the keys that the record has and that are not empty; in the keys' order."""
    return [str(record[key]) for key in keys if record.get(key)]


def _figure(value: float, estimate: Estimate) -> str:
    """Formats a number by its estimate: whole if that is a count or from 1,000, `.3g` below 1, else two decimals."""
    count = estimate.exact and float(estimate.value).is_integer()
    size = abs(estimate.value)
    return _minus(f"{value:{',.0f' if count or size >= 1000 else '.3g' if size < 1 else '.2f'}}")


def _minus(text: str) -> str:
    """Puts the signs of minus and infinity into a formatted number."""
    return text.replace("-", "−").replace("inf", "∞")
