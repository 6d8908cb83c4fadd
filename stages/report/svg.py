"""Saves figures as SVG and PDF: equal bytes for equal numbers, text as text, and hover texts at marks."""

import re
from collections.abc import Iterable
from io import BytesIO
from xml.etree import ElementTree

from matplotlib.figure import Figure

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
# digits beyond the tenth of a point, which is an eighth of a pixel
DIGITS = re.compile(r"(\.\d)\d+")
SHORTENED = ("d", "x", "y", "transform")
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


def save_figure(figure: Figure, words: Iterable[str]) -> dict[str, bytes]:
    """Saves a figure by format, without dates; `words` are the hover texts of the artists `mark0`, `mark1`, ..."""
    files = {}
    for form, date in (("svg", "Date"), ("pdf", "CreationDate")):
        buffer = BytesIO()
        figure.savefig(buffer, format=form, metadata={date: None})
        files[form] = buffer.getvalue()
    files["svg"] = add_titles(files["svg"], {f"mark{place}": text for place, text in enumerate(words)})
    return files


def add_titles(svg: bytes, titles: dict[str, str]) -> bytes:
    """Adds a title to every element with an identifier in `titles`, and drops what nobody sees."""
    root = ElementTree.fromstring(svg)
    metadata = root.find(f"{{{SVG}}}metadata")
    if metadata is not None:
        root.remove(metadata)
    used = set(re.findall(r'#([^")]+)', svg.decode()))
    for element in list(root.iter()):
        identifier = element.get("id", "")
        title = titles.get(identifier)
        if title:
            child = ElementTree.Element(f"{{{SVG}}}title")
            child.text = title
            # a title has to come first
            element.insert(0, child)
            element.set("class", "mark")
        if identifier not in used:
            element.attrib.pop("id", None)
        for name in SHORTENED:
            if name in element.attrib:
                element.set(name, DIGITS.sub(r"\1", element.get(name)).replace("\n", ""))
        # the indentation of the file
        element.tail = None
        if not (element.text or "").strip():
            element.text = None
    return ElementTree.tostring(root)
