"""A model card for every pre-trained operator and size.

The template is Markdown: every value, such as `report.data`, is escaped, so that readers see its characters.
"""

import re
from collections.abc import Iterator

from stages.evidence.fields import select_rows
from stages.files.model_folders import render_card
from stages.files.paths import find_pretrained
from stages.files.quoting import show_controls
from stages.report import names, read_results
from stages.report.facts import describe_banner
from stages.report.table_rows import OVERVIEW
from stages.report.text_templates import TEMPLATES, make_environment
from stages.schema.settings import Settings


class Code(str):
    """A value that the template sets as code, where Markdown takes every character but a backtick as it is."""


def escape(value: object) -> str:
    r"""Escapes a value for Markdown, on one line: `a_b <i>` is `a\_b \<i\>`. Values of type Code stay."""
    text = show_controls(str(value))
    if isinstance(value, Code):
        return text
    line = " ".join(text.split())
    # the characters that Markdown, HTML inside Markdown or a table of GitHub would interpret
    return re.sub(r"[\\`*_{}\[\]<>|#~$&]", r"\\\g<0>", line)


def render_cards(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yields the file name, such as `shared-tiny.md`, and the text of the card of every operator and size of a run."""
    templates = make_environment(TEMPLATES, finalize=escape)
    templates.filters["code"] = Code
    template = templates.get_template("model_card.md")
    operators = settings.describe_operators()
    summaries = select_rows(read_results.read_summaries(), metric=OVERVIEW)
    for size in settings.sizes:
        for operator in settings.operators:
            variant = settings.collect_operator_settings(operator)
            text = template.render(
                banner=describe_banner(settings),
                variant=variant,
                described=operators[variant["operator"]],
                model=settings.models[size],
                folder=f"data/pretraining/{operator}-{size}/seed-N",
                seeds=settings.pretraining.seeds,
                rows=select_rows(summaries, operator=operator, size=size).to_dict("records"),
            )
            # the folder of the first seed is the example of the card
            folder = find_pretrained(operator, size, settings.pretraining.seeds[0])
            title = escape(f"BERT-{size} with {names.name_key(operator)} attention")
            # the metadata of the card has the task of the hub, and no measured values
            card = render_card(folder, title, text.strip(), operator, variant, "fill-mask", {})
            yield f"{operator}-{size}.md", card
