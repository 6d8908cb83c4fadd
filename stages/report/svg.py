"""Saves figures as SVG and PDF: equal bytes for equal numbers, text as text, and hover texts at marks."""

import re
from collections.abc import Iterable
from io import BytesIO
from xml.etree import ElementTree

from matplotlib.figure import Figure

from stages.report.looks import SETTINGS

SVG = "http://www.w3.org/2000/svg"
# metadata that files do not have, by format
METADATA = {"svg": ("Date", "Format", "Type", "Creator"), "pdf": ("CreationDate",)}
# the font of texts, which the whole figure declares once
FONT = f"font-family: '{SETTINGS['font.sans-serif'][0]}', sans-serif"
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def save_figure(figure: Figure, words: Iterable[str]) -> dict[str, bytes]:
    """Saves a figure by format, without dates; `words` are the hover texts of the artists `mark0`, `mark1`, ..."""
    files = {}
    for form, fields in METADATA.items():
        buffer = BytesIO()
        figure.savefig(buffer, format=form, metadata=dict.fromkeys(fields))
        files[form] = buffer.getvalue()
    titles = {f"mark{place}": text for place, text in enumerate(words)}
    files["svg"] = add_titles(files["svg"], titles)
    return files


def add_titles(svg: bytes, titles: dict[str, str]) -> bytes:
    """Adds a title to every element with an identifier in `titles`, and drops what nobody sees."""
    # without the indentation of the file
    root = ElementTree.fromstring(re.sub(rb">\s+<", b"><", svg))
    used = set(re.findall(r'#([^")]+)', svg.decode()))
    for element in list(root.iter()):
        identifier = element.get("id", "")
        if identifier in titles:
            child = ElementTree.Element(f"{{{SVG}}}title")
            child.text = titles[identifier]
            # a title has to come first
            element.insert(0, child)
            element.set("class", "mark")
        if identifier not in used:
            element.attrib.pop("id", None)
        # digits beyond the tenth of a point, which is an eighth of a pixel, and other characters without effect
        for name in {"d", "x", "y", "transform"} & element.attrib.keys():
            element.set(name, re.sub(r"(?<=\.\d)\d+|\.0\b| (?= |$)|\n", "", element.get(name, "")))
        style = element.get("style", "").replace(f"{FONT}; ", "")
        if style:
            element.set("style", style)
    root.set("style", FONT)
    return ElementTree.tostring(root, encoding="unicode").encode()
