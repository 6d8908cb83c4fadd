"""The pages of the report: each is one file that needs no network, and can be read without its script.

Templates: reports/templates/*.html, style.css, ledger.css and tables.js. All data is escaped.
"""

import re
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from stages.files.quoting import show_controls
from stages.report import text_templates
from stages.report.looks import GREY, GRID, HEAT, INK, PAPER, STYLES, TONES
from stages.report.tables import FORMULA

# colours of figures, and the colours that stand for them inside a page; see style.css
COLOURS = {
    INK: "currentColor",
    GRID: "var(--rule)",
    GREY: "var(--soft)",
    HEAT: f"var(--heat, {HEAT})",
    PAPER: "var(--page)",
}
for _operator, (_colour, _) in STYLES.items():
    # variants have the colour of their operator, which stands first
    COLOURS.setdefault(_colour, f"var(--{_operator}, {_colour})")
for _tone, _colour in TONES.items():
    COLOURS.setdefault(_colour, f"var(--{_tone}, {_colour})")


def make_environment(folder: Path) -> jinja2.Environment:
    """Builds the Jinja environment of the HTML templates of a folder."""
    templates = text_templates.make_environment(folder, autoescape=True, finalize=_show_controls)
    # tables.js puts an apostrophe before texts that a spreadsheet would compute
    templates.globals.update(computed=FORMULA.pattern)
    templates.filters.update(formula=format_formula, inline=embed_svg)
    return templates


def _show_controls(value: object) -> object:
    # a subclass of text is HTML already
    return show_controls(value) if type(value) is str else value


def embed_svg(svg: bytes, name: str, role: str = "") -> Markup:
    """Prepares a figure for a page: unique identifiers, and colours that follow the light or dark scheme.

    In figure `noise`, `id="axes_1"` becomes `id="noise-axes_1"`, and `fill: #24292f` becomes `fill: currentColor`. With
    an ARIA `role` such as `img`, the keyboard reaches every mark with a hover text.
    """
    # the beginning of every identifier, and of every reference to an identifier
    text = re.sub(r'\bid="|url\(#|href="#', rf"\g<0>{name}-", svg.decode())
    for colour, variable in COLOURS.items():
        text = text.replace(f": {colour}", f": {variable}")
    if role:
        text = text.replace('class="mark"', f'class="mark" role="{role}" tabindex="0"')
    return Markup(text)


def format_formula(text: str) -> Markup:
    """Writes a formula in HTML: `h^2/n_q` is `h<sup>2</sup>/n<sub>q</sub>`."""
    # plain text, because Markup would escape the tags below
    escaped = str(escape(text))
    raised = re.sub(r"\^(\w)", r"<sup>\1</sup>", escaped)
    return Markup(re.sub(r"_(\w)", r"<sub>\1</sub>", raised))
