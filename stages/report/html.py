"""The pages of the report: each is one file that needs no network, and can be read without its script.

Templates: reports/templates/*.html, style.css and tables.js. All data is escaped: for HTML or, in style.css, for CSS.
"""

from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from stages.evidence.arithmetic import NOT_DECIDED
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.statistics import ONE_CHECKPOINT, TOO_FEW
from stages.report import drawing
from stages.report.text_templates import FILTERS, mark_formula

# verdicts on claims and checks, by their meaning for the paper
TONES = {
    "good": ("holds", "reproduced"),
    "bad": ("fails", "contradicted", "unsupported"),
    "open": ("partly", "truncated", NOT_DECIDED, "inconclusive", ONE_CHECKPOINT, TOO_FEW, AT_CHANCE),
}
RAISED = {"^": "<sup>{}</sup>", "_": "<sub>{}</sub>"}


def render(folder: Path, context: dict) -> str:
    """Renders a page.

    Args:
        folder: the folder of report.html, the template.
        context: the result of `stage.fill_context`, with `page`, one of its `pages`.
    """
    return environment(folder).get_template("report.html").render(context)


def environment(folder: Path) -> jinja2.Environment:
    """Builds the Jinja environment of the HTML and Markdown templates of a folder."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(FILTERS)
    templates.filters.update(
        css_string=escape_css,
        tone=choose_tone,
        formula=format_formula,
        inline_svg=inline_svg,
    )
    return templates


def choose_tone(verdict: str) -> str:
    """Returns how a verdict is coloured: `good`, `bad`, `open`, or `none` for a verdict that TONES does not list."""
    for name, verdicts in TONES.items():
        if verdict in verdicts:
            return name
    return "none"


def format_formula(text: str) -> Markup:
    """Writes a formula in HTML: `h^2` is `h<sup>2</sup>`."""
    return Markup(mark_formula(text, escape, RAISED))


def inline_svg(svg: bytes, name: str) -> Markup:
    """Returns a figure as part of a page, as `drawing.inline` does."""
    return Markup(drawing.inline(svg, name))


def escape_css(value: object) -> Markup:
    """Writes a CSS string literal; any character but ASCII letters and digits is a code point: `a<` is `"a\\3c "`."""
    parts = []
    for character in str(value):
        if character.isascii() and character.isalnum():
            parts.append(character)
        else:
            parts.append(f"\\{ord(character):x} ")
    return Markup(f'"{"".join(parts)}"')
