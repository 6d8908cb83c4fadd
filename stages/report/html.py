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
from stages.report.words import FILTERS, formula

TONES = {  # verdicts on claims and checks, by what they say of the paper
    "good": ("holds", "reproduced"),
    "bad": ("fails", "contradicted", "unsupported"),
    "open": ("partly", "truncated", NOT_DECIDED, "inconclusive", ONE_CHECKPOINT, TOO_FEW, AT_CHANCE),
}


def render(folder: Path, context: dict) -> str:
    """Renders a page from `folder`/report.html; context: that of `stage.context`, with `page`, one of its `pages`."""
    return environment(folder).get_template("report.html").render(context)


def environment(*folders: Path) -> jinja2.Environment:
    """Builds the Jinja environment of HTML templates; where several folders have a template, the first one's counts."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= FILTERS | {"css_string": css_string, "tone": tone}
    raised = {"^": "<sup>{}</sup>", "_": "<sub>{}</sub>"}
    templates.filters["formula"] = lambda text: Markup(formula(text, escape, raised))
    templates.filters["inline_svg"] = lambda svg, name: Markup(drawing.inline(svg, name))
    return templates


def tone(verdict: str) -> str:
    """Returns how a verdict is coloured: `good`, `bad`, `open`, or `none` for one that TONES does not list."""
    return next((name for name, verdicts in TONES.items() if verdict in verdicts), "none")


def css_string(value: object) -> Markup:
    """Writes a CSS string literal, in which whatever is not an ASCII letter or digit is escaped by its code point."""
    safe = "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):x} " for c in str(value))
    return Markup(f'"{safe}"')
