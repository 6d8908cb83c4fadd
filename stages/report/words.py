"""English from templates: Jinja filled with numbers and keys. The text is plain; each form of the report escapes it."""

import re
from collections.abc import Callable, Iterable
from functools import cache
from math import nan

import jinja2
import pandas as pd
import yaml

from stages.evidence.statistics import FEWEST
from stages.files.paths import REPORTS
from stages.report import names, tables
from stages.schema.settings import Settings

TEMPLATES = REPORTS / "templates"
RAISED = re.compile(r"([\^_])(\w)")  # or lowered, in a plain-text formula


def say(template: str, **values: object) -> str:
    """Fills a Jinja template, in one line. jinja2.UndefinedError where it needs a value that is not given."""
    return names.unbroken(" ".join(_compiled(template).render(values).split()))


def sentence(name: str, **values: object) -> str:
    """Fills a text of sentences.yaml; the result is empty where the template decides to say nothing."""
    return say(content("sentences")[name], **values)


@cache
def content(name: str) -> dict:
    """Reads NAME.yaml of reports/templates, once: a dictionary, but for the checklist, a list."""
    return yaml.safe_load((TEMPLATES / f"{name}.yaml").read_text(encoding="utf-8"))


def facts_of(settings: Settings) -> dict[str, object]:
    """Gathers what most texts may name: the settings, and the confidence of single and simultaneous intervals."""
    options = settings.analysis
    return {
        "settings": settings,
        "confidence": f"{100 * options.confidence:g} %",
        "simultaneous": f"simultaneous {100 * (1 - options.alpha):g} %",
    }


def alternative(kind: str, rows: pd.DataFrame) -> str:
    """Says in words, without a full stop, what a panel shows; kind: of figure, in `alternatives` of sentences.yaml."""
    return say(content("sentences")["alternatives"][kind], rows=rows.to_dict("records"))


@cache
def _compiled(template: str) -> jinja2.Template:
    """Parses a template, once."""
    return ENVIRONMENT.from_string(template)


def _number(value: object) -> float:
    """The value as a number; NaN where it is none, such as the empty text of a gap in a table."""
    return float(value) if isinstance(value, (int, float)) else nan


def listed(words: list[str]) -> str:
    """Joins one or more words as in `one`, `one and another`, `one, another and a third`."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def by(rows: Iterable[dict], field: str) -> list[tuple[object, list[dict]]]:
    """Groups rows by a field, in the order in which its values appear; Jinja's own `groupby` sorts them."""
    groups: dict[object, list[dict]] = {}
    for row in rows:
        groups.setdefault(row[field], []).append(row)
    return list(groups.items())


FILTERS = {  # of all templates: numbers, times `scale`, and names as a reader knows them
    "number": lambda value, decimals=0, scale=1: tables.number(_number(value) * scale, decimals),
    "spread": lambda value, decimals=0, scale=1: tables.spread(_number(value) * scale, decimals),
    "signed": lambda value, decimals=0, scale=1: tables.signed(_number(value) * scale, decimals),
    "to": lambda low, high, decimals=0, scale=1: tables.interval(_number(low) * scale, _number(high) * scale, decimals),
    "p": lambda value: tables.probability(_number(value)),
    "in_words": tables.in_words,
    "detectable": tables.detectable,
    "by": by,
    "task": names.task,
    "label": names.label,
    "operator": names.operator,
    "protocol": names.protocol,
    "milestone": names.milestone,
    "listed": listed,
}
ENVIRONMENT = jinja2.Environment(undefined=jinja2.StrictUndefined)  # of text, not of markup: escaped where it is shown
ENVIRONMENT.filters |= FILTERS
ENVIRONMENT.globals |= {"fewest": FEWEST, "model": names.model}  # and the words for a finding, without their tone
ENVIRONMENT.globals["verdict_on"] = lambda quantity, finding: content("sentences")["verdicts"][quantity][finding][0]


def formula(text: str, escape: Callable[[str], str], marks: dict[str, str]) -> str:
    """Writes `h^2/n` in a markup language, with its powers raised and its indices lowered.

    Args:
        text: of the formula; `^` raises the one character after it, `_` lowers it.
        escape: escapes plain text for the language that is written.
        marks: by `^` and `_`, the markup of that language, with `{}` in the place of the character.
    """
    between = RAISED.split(text)[::3]  # the plain parts; between two of them stand a mark and its character
    signs = [marks[mark].format(escape(character)) for mark, character in RAISED.findall(text)]
    return "".join(f"{escape(plain)}{sign}" for plain, sign in zip(between, [*signs, ""], strict=True))
