"""The pages of the report: each one file that needs no network, and reads without its script.

Templates: reports/templates/*.html, style.css and tables.js. Everything that comes from data is escaped for HTML;
inside the style sheet, for CSS.
"""

from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from stages.evidence.arithmetic import NOT_DECIDED
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.statistics import ONE_CHECKPOINT, TOO_FEW
from stages.report import drawing
from stages.report.words import FILTERS, formula

TONES = {
    "good": ("holds", "reproduced"),
    "bad": ("fails", "contradicted", "unsupported"),
    "open": ("partly", "truncated", NOT_DECIDED, "inconclusive", ONE_CHECKPOINT, TOO_FEW, AT_CHANCE),
}


def render(folder: Path, context: dict) -> str:
    """Renders a whole page from `folder`/report.html and its parts; `context["page"]` is the page."""
    return environment(folder).get_template("report.html").render(context)


def environment(*folders: Path) -> jinja2.Environment:
    """Builds what renders the templates of some folders, those of the first before those of the next."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= FILTERS | {"css_string": css_string, "formula": html_formula, "tone": tone}
    templates.filters["inline_svg"] = lambda svg, name: Markup(drawing.inline(svg, name))
    return templates


def tone(verdict: str) -> str:
    """Returns how a verdict is coloured: `good`, `bad`, `open` or `none`."""
    return next((name for name, verdicts in TONES.items() if verdict in verdicts), "none")


def css_string(value: object) -> Markup:
    """Writes a CSS string literal, in which whatever is not a plain letter or digit is its code point."""
    safe = "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):x} " for c in str(value))
    return Markup(f'"{safe}"')


def html_formula(text: str) -> Markup:
    """Powers and indices raised and lowered."""
    return Markup(formula(text, escape, {"^": "<sup>{}</sup>", "_": "<sub>{}</sub>"}))
