"""What a judgement of a claim rests on, in the words of claim_words.yaml, whose templates say everything in English."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2
import pandas as pd
import yaml

from stages.analysis import claim_power
from stages.analysis.claim_tests import Outcome, Place
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.estimate import Estimate
from stages.evidence.statistics import FEWEST
from stages.evidence.translation import model

PATH = Path(__file__).with_name("claim_words.yaml")
SHOWN = 3  # checks of the audit that are written out beside a claim


@cache
def _content() -> dict:
    return yaml.safe_load(PATH.read_text(encoding="utf-8"))


@cache
def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment()  # of text, not of markup: the report escapes it where it is shown
    environment.filters |= {"model": model, "figure": _figure, "short": "{:g}".format, "entries": _entries}
    environment.filters |= {"number": lambda value: _minus(f"{value:.3g}")}
    return environment.from_string(_content()[name])


def say(name: str, **values: object) -> str:
    """A text of claim_words.yaml with these values, in one line."""
    return " ".join(_template(name).render(values).split())


def rule(test: dict) -> str:
    """A test: what is compared, where, and what must hold."""
    return say("rule", test=test, subject=say("subject", test=test)).replace("_", " ")


def fields(outcome: Outcome, confidence: float, alpha: float) -> dict:
    """Describes an outcome in the columns of the ledger.

    Args:
        outcome: of the tests of a claim.
        confidence: of the intervals.
        alpha: the level of the tests.
    """
    measured, with_interval = outcome.measured, [place for place in outcome.measured if place.estimate.has_interval]
    return {
        "unit_of_inference": "; ".join(dict.fromkeys(unit_of_inference(place.estimate) for place in measured)),
        "estimate": "; ".join(_in_place("estimate", place) for place in measured),
        "interval": "; ".join(_in_place("interval", place, confidence=confidence) for place in with_interval),
        "power": "" if outcome.verdict == AT_CHANCE else power(measured, alpha),
        "reading": outcome.reading,
    }


def because(outcome: Outcome) -> str:
    """Why the verdict is what it is, in a sentence or two."""
    interval = any(place.estimate.has_interval for place in outcome.measured)
    reading = _reading(outcome) if outcome.reading else ""
    return say("because", outcome=outcome, reading=reading, interval=interval, fewest=FEWEST)


def elsewhere(outcome: Outcome, size: str | None, comparable: bool) -> str:
    """Says what the runs show where they give no verdict.

    Args:
        outcome: of the claim's tests in these runs.
        size: that was tested in place of the sizes of the claim; None where the claim names no size.
        comparable: as in `Scope`.
    """
    return say("elsewhere", outcome=outcome, reading=_reading(outcome), size=size, comparable=comparable)


def _reading(outcome: Outcome) -> str:
    return say("reading", outcome=outcome, readings=_content()["readings"])


def unit_of_inference(estimate: Estimate) -> str:
    """What an estimate rests on."""
    return say("unit_of_inference", estimate=estimate)


def power(places: Sequence[Place], alpha: float) -> str:
    """What so many runs with such a spread would find; empty for counts. places: with an estimate each."""
    kinds: dict[str, list[tuple[float, str]]] = {}
    for place in places:
        if place.estimate.has_interval:
            unit, of_place = unit_of_inference(place.estimate), claim_power.of_place(place, alpha)
            sentence = say("power_of_place", unit=unit, test=place.test, estimate=place.estimate, power=of_place)
            kinds.setdefault(of_place["kind"], []).append((of_place["certainty"], sentence))
    smallest = [min(place.estimate.n, default=1) for place in places if not place.estimate.has_interval]
    return say(
        "power",
        ended=any(place.estimate.at_least or place.estimate.at_most for place in places),
        kinds=[(len(sentences), min(sentences)[1]) for sentences in kinds.values()],
        single=sum(n < 2 for n in smallest),
        equal=sum(n > 1 for n in smallest),
    )


def arithmetic(checks: pd.DataFrame) -> str:
    """The checks in words, those that fail first; as many as fit, and how many more there are."""
    order = checks.sort_values("verdict", key=lambda verdicts: verdicts != "fails", kind="stable")
    return say("arithmetic", checks=order.to_dict("records"), shown=SHOWN)


def _in_place(name: str, place: Place, **values: object) -> str:
    """A text about a place, after what is compared there where that needs saying."""
    subject = say("subject", test=place.test)
    label = say("place", subject=subject, test=place.test, select=place.select, size=place.size)
    text = say(name, test=place.test, estimate=place.estimate, **values)
    return f"{label}: {text}" if label else text


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
