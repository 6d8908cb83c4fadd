"""Saves figures as SVG and PDF: equal bytes for equal numbers, text as text, without parts that nobody can see."""

import re
from io import BytesIO

from matplotlib.figure import Figure

from stages.report.looks import INK, SETTINGS

# digits beyond the tenth of a point, which is an eighth of a pixel
COORDINATES = re.compile(rb' (?:d|x|y)="[^"]*"')
DIGITS = re.compile(rb"(\.\d)\d+")
ZERO = re.compile(rb"\.0\b")
# identifiers and references to them
IDENTIFIER = re.compile(r' id="([^"]*)"')
REFERENCE = re.compile(r'(?:url\(#|href="#)([^")]*)')
# what matplotlib writes without need: indentation, line breaks of paths, turns by no angle
INDENT = re.compile(r"^ +", re.MULTILINE)
BREAK = re.compile(r' ?\n(?=[A-Z] |z\n|"[ />])')
# a group of one element; groups of groups need several passes
LONELY = re.compile(r"<g>\n(<[^\n]*)\n</g>")
PASSES = 3
EMPTY = re.compile(r"<g/>\n")
NO_TURN = re.compile(r' transform="rotate\(-?0 [^)]*\)"')
# the font and the colour of most texts, which the whole figure declares once
FAMILY = f"font-family: '{SETTINGS['font.sans-serif'][0]}', sans-serif"
SIZE = f"font-size: {SETTINGS['font.size']:g}px"
FILL = f"fill: {INK}"


def save_figure(figure: Figure) -> dict[str, bytes]:
    """Saves a figure as SVG and PDF, by format; both have no date, so that bytes repeat."""
    files = {}
    for form, date in (("svg", "Date"), ("pdf", "CreationDate")):
        buffer = BytesIO()
        figure.savefig(buffer, format=form, metadata={date: None})
        files[form] = buffer.getvalue()
    shortened = COORDINATES.sub(_shorten_digits, files["svg"])
    files["svg"] = shrink_svg(shortened.decode()).encode()
    return files


def _shorten_digits(attribute: re.Match) -> bytes:
    """Cuts coordinates after the tenth of a point: `1.23456` is `1.2`, and `1.0` is `1`."""
    return ZERO.sub(b"", DIGITS.sub(rb"\1", attribute[0]))


def shrink_svg(svg: str) -> str:
    """Makes an SVG smaller without changing a pixel: drops unused parts, and declares the usual font once."""
    used = list(dict.fromkeys(REFERENCE.findall(svg)))

    def keep_used(identifier: re.Match) -> str:
        return identifier[0] if identifier[1] in used else ""

    svg = IDENTIFIER.sub(keep_used, svg)
    for number, identifier in enumerate(used):
        # a checksum of ten letters, which is no other text
        svg = svg.replace(identifier, f"i{number}")
    svg = EMPTY.sub("", NO_TURN.sub("", BREAK.sub("", INDENT.sub("", svg))))

    def remove_inherited(text: re.Match) -> str:
        own = [part for part in text[1].split("; ") if part not in (FAMILY, SIZE, FILL)]
        return f'<text style="{"; ".join(own)}"' if own else "<text"

    for _ in range(PASSES):
        svg = LONELY.sub(r"\1", svg)
    svg = re.sub(r'<text style="([^"]*)"', remove_inherited, svg)
    return svg.replace("<svg ", f'<svg style="{FAMILY}; {SIZE}; {FILL}" ', 1)
