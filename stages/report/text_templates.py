"""Texts of the report: Jinja templates over numbers and keys, from the YAML files of reports/templates.

The texts are plain; HTML and LaTeX templates escape the texts where they are shown.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from math import nan
from pathlib import Path

import jinja2

from stages.evidence.statistics import FEWEST
from stages.evidence.verdicts import Difference, Statement
from stages.files.documents import read_yaml
from stages.files.paths import REPORTS
from stages.report import names, tables
from stages.schema.settings import Settings

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


def gather_facts(settings: Settings) -> dict[str, object]:
    """Gathers facts that most texts may name: settings and data, all verdicts, and the confidence of intervals."""
    options = settings.analysis
    return {
        "settings": settings,
        "data": settings.report.data or describe_data(settings),
        "difference": Difference,
        "statement": Statement,
        "confidence": f"{100 * options.confidence:g} %",
        "simultaneous": f"simultaneous {100 * (1 - options.alpha):g} %",
    }


def describe_banner(settings: Settings) -> str:
    """Describes scale, models and data of a run, such as `This run trains BERT-tiny ...`."""
    models = []
    for size in settings.sizes:
        model = settings.models[size]
        layers = f"{model.layers} layer{'s' if model.layers > 1 else ''}"
        models.append(f"BERT-{size} ({layers}, width {model.hidden})")
    facts = gather_facts(settings)
    return fill_sentence("banner", models=", ".join(models), base="base" in settings.sizes, **facts)


def describe_data(settings: Settings) -> str:
    """Describes by their sources what text and tasks of a run are, such as `files on disk`."""
    sources = read_content("sentences")["sources"]
    text, tasks = sources[settings.data.source], sources[settings.task_source]
    if not settings.has_tasks:
        return f"{text['text']}, without tasks"
    if text == tasks:
        return text["both"]
    return f"{text['text']} and {tasks['tasks']}"


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
