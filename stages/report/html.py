"""The pages of the report: each is one file that needs no network, and can be read without its script.

Templates: reports/templates/*.html, style.css, ledger.css and tables.js. All data is escaped.
"""

import re
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from stages.report import text_templates
from stages.report.claims_and_audit import SYMBOL_OF, TONE_OF
from stages.report.looks import GRID, HEAT, INK, PAPER, STYLES
from stages.report.tables import FORMULA

# colours of figures, and the colours that stand for them inside a page; see style.css
COLOURS = {
    INK: "currentColor",
    GRID: "var(--rule)",
    HEAT: f"var(--heat, {HEAT})",
    PAPER: "var(--page)",
}
COLOURS.update({colour: f"var(--{operator}, {colour})" for operator, (colour, _) in STYLES.items()})
# the beginning of every identifier of an SVG, and of every reference to an identifier
IDENTIFIER = re.compile(r'\bid="|url\(#|href="#')


def make_environment(folder: Path) -> jinja2.Environment:
    """Builds the Jinja environment of the HTML templates of a folder."""
    templates = text_templates.make_environment(folder, autoescape=True)
    templates.globals.update(computed=FORMULA.pattern, symbols=SYMBOL_OF, tones=TONE_OF)
    templates.filters.update(formula=format_formula, inline=embed_svg)
    return templates


def embed_svg(svg: bytes, name: str) -> Markup:
    """Prepares a figure for a page: unique identifiers, and colours that follow the light or dark scheme.

    In figure `noise`, `id="axes_1"` becomes `id="noise-axes_1"`, and `fill: #24292f` becomes `fill: currentColor`.
    """
    text = IDENTIFIER.sub(rf"\g<0>{name}-", svg.decode())
    for colour, variable in COLOURS.items():
        text = text.replace(f": {colour}", f": {variable}")
    return Markup(text)


def format_formula(text: str) -> Markup:
    """Writes a formula in HTML: `h^2/n_q` is `h<sup>2</sup>/n<sub>q</sub>`."""
    # Markup would escape the replacements
    escaped = str(escape(text))
    raised = re.sub(r"\^(\w)", r"<sup>\1</sup>", escaped)
    return Markup(re.sub(r"_(\w)", r"<sub>\1</sub>", raised))
