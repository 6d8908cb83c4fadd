"""What a judgement of a claim rests on, in the words of claim_words.yaml, whose templates say everything in English."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2
import yaml

from stages.analysis import claim_power
from stages.analysis.claim_tests import Outcome, Place
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.estimate import Estimate
from stages.evidence.statistics import FEWEST
from stages.evidence.translation import model

PATH = Path(__file__).with_name("claim_words.yaml")


@cache
def _environment() -> jinja2.Environment:
    """What renders the texts, which are no markup: the report escapes them where it shows them."""
    texts = yaml.safe_load(PATH.read_text(encoding="utf-8"))
    environment = jinja2.Environment(loader=jinja2.DictLoader(texts))
    environment.filters |= {"model": model, "figure": _figure, "short": "{:g}".format, "entries": _entries}
    environment.filters |= {"number": lambda value: _minus(f"{value:.3g}")}
    environment.globals |= {"say": say, "readings": texts["readings"], "measures": texts["measures"], "fewest": FEWEST}
    return environment


def say(name: str, **values: object) -> str:
    """A text of claim_words.yaml with these values, in one line."""
    return " ".join(_environment().get_template(name).render(values).split())


def fields(outcome: Outcome, confidence: float, alpha: float) -> dict:
    """Describes an outcome in the columns of the ledger, with its verdict and the reason for it.

    Args:
        outcome: of the tests of a claim.
        confidence: of the intervals.
        alpha: the level of the tests.
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
    """What so many runs with such a spread would find; empty for counts. places: with an estimate each."""
    kinds: dict[str, list[tuple[float, str]]] = {}
    for place in places:
        if place.estimate.has_interval:
            of_place = claim_power.of_place(place, alpha)
            sentence = say("power_of_place", place=place, estimate=place.estimate, power=of_place)
            kinds.setdefault(of_place["kind"], []).append((of_place["certainty"], sentence))
    smallest = [min(place.estimate.n, default=1) for place in places if not place.estimate.has_interval]
    return say(
        "power",
        ended=any(place.estimate.at_least or place.estimate.at_most for place in places),
        kinds=[(len(sentences), min(sentences)[1]) for sentences in kinds.values()],
        single=sum(n < 2 for n in smallest),
        equal=sum(n > 1 for n in smallest),
    )


def _entries(record: dict, *keys: str) -> list[str]:
    """The values of these keys that the record has, in the order of the keys."""
    return [str(record[key]) for key in keys if record.get(key)]


def _figure(value: float, estimate: Estimate) -> str:
    """A number with as many digits as the size of the estimate asks for."""
    count = estimate.exact and float(estimate.value).is_integer()
    size = abs(estimate.value)
    return _minus(f"{value:{',.0f' if count or size >= 1000 else '.3g' if size < 1 else '.2f'}}")


def _minus(text: str) -> str:
    return text.replace("-", "−").replace("inf", "∞")
