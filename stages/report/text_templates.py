"""Texts of the report: Jinja templates over numbers and keys, from the YAML files of reports/templates.

The texts are plain; HTML and LaTeX templates escape the texts where they are shown.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from math import nan
from pathlib import Path

import jinja2

from stages.evidence.statistics import FEWEST
from stages.files.paths import REPORTS
from stages.files.yaml_files import read_yaml
from stages.report import names, tables

TEMPLATES = REPORTS / "templates"


def fill_template(template: str, **values: object) -> str:
    """Fills a Jinja template and returns one line: `{{ n }} runs` with n = 3 is `3 runs`.

    Raises:
        jinja2.UndefinedError: the template needs a value that is not given.
    """
    filled = _parse_template(template).render(values)
    return names.keep_percent_together(" ".join(filled.split()))


def fill_sentence(name: str, **values: object) -> str:
    """Fills a text of sentences.yaml; the result is empty if the template has nothing to say."""
    return fill_template(read_content("sentences")[name], **values)


@cache
def read_content(name: str) -> dict:
    """Reads a YAML file of reports/templates, such as `sections`, once; the checklist is a list."""
    return read_yaml(TEMPLATES / f"{name}.yaml")


def format_scaled(
    format_value: Callable[[float, int], str], value: float | str, decimals: int = 0, scale: float = 1
) -> str:
    """Formats a number times `scale` by a function of tables.py: 0.5 with scale 100 gives `50`."""
    # a gap of a table is an empty text
    number = nan if isinstance(value, str) else value * scale
    return format_value(number, decimals)


def list_words(words: Sequence[str]) -> str:
    """Joins words as in running text: `a`, `a and b`, or `a, b and c`; no words are an empty text."""
    *others, last = words or [""]
    return f"{', '.join(others)} and {last}" if others else last


FILTERS = {
    "number": partial(format_scaled, tables.format_number),
    "spread": partial(format_scaled, tables.format_spread),
    "signed": partial(format_scaled, tables.format_signed),
    "to": tables.format_interval,
    "name": names.name_key,
}


def make_environment(folder: Path, **options) -> jinja2.Environment:
    """Builds the Jinja environment, with FILTERS, of the templates of a folder; a missing value is an error."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,
    )
    templates.filters.update(FILTERS)
    return templates


# sentences are text and no markup, so nothing is escaped; an end of line stays a space
ENVIRONMENT = jinja2.Environment(undefined=jinja2.StrictUndefined)
ENVIRONMENT.filters.update(FILTERS)
ENVIRONMENT.globals.update(fewest=FEWEST)
_parse_template = cache(ENVIRONMENT.from_string)
