"""The theme of all figures: colours of ink and lines, colour and stroke of every operator, and marks of sources."""

import zlib
from pathlib import Path

import matplotlib as mpl

from stages.schema.operators import describe_operators

# with matplotlib's defaults for all other settings, in place of the user's
SETTINGS = mpl.rc_params_from_file(Path(__file__).with_name("figures.mplstyle"))
INK = SETTINGS["text.color"]
GRID = SETTINGS["grid.color"]
GREY = "#57606a"
# the page, which shows through hollow marks
PAPER = "#ffffff"
# of heat maps, in which the opacity stands for the number
HEAT = "#3d5a98"
# colours that colour-blind readers can tell apart (Okabe and Ito), with strokes that differ in print
STYLES = {name: operator.look for name, operator in describe_operators().items() if operator.look}
# operators by the name of a variant of params.yaml; stage `report` fills the table
PARENTS: dict[str, str] = {}
# colours of operators of the user without a look
FURTHER = ("#aa4466", "#6b7f1f", "#4b5fc0", "#8a6d3b")


def find_style(operator: str) -> tuple:
    """Finds colour and stroke of an operator: from its look, or else its name; a variant has its operator's colour."""
    if operator in STYLES:
        return STYLES[operator]
    # a checksum, because `hash` differs between processes
    number = zlib.crc32(operator.encode())
    gap = 1 + number // 10 % 4
    # matplotlib's form: offset, and lengths of dash, gap, dot and gap
    stroke = (0, (3 + number % 10, gap, 1, gap))
    colour = FURTHER[number % len(FURTHER)]
    if operator in PARENTS:
        colour, _ = find_style(PARENTS[operator])
    return colour, stroke


# shape, colour and size of marks by source: a paper's numbers are crosses, released results and studies grey; this run
# and counted numbers have the colour of the operator (None)
MARKS = {
    "published": ("x", INK, 6),
    "released": ("o", GREY, 6),
    "study": ("D", GREY, 5),
    "reproduced": ("o", None, 6),
    "counted": ("s", None, 5),
}


def find_mark(source: str, operator: str) -> dict:
    """Finds matplotlib's properties of the mark for a source of numbers, such as `published`, and an operator."""
    shape, colour, size = MARKS[source]
    colour = colour or find_style(operator)[0]
    # the marks of this run are hollow
    fill = PAPER if source == "reproduced" else colour
    return {"marker": shape, "markersize": size, "color": colour, "markerfacecolor": fill}


# colours by the tone of a verdict
TONES = {"good": "#0b6b3a", "bad": "#a4161a", "open": "#7a4d00", "": GREY}
