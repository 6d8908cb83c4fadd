"""Saves figures as SVG and PDF: equal bytes for equal numbers, text as text, and hover texts at marks."""

import re
from collections.abc import Iterable
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
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
    """Returns a figure as `svg` and `pdf`; `words` are the hover texts of the artists `mark0`, `mark1`, ..."""
    # rounded, because the layout's last digits differ between processes
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(np.round(axes.get_position().bounds, 6))
    files = {}
    for form, fields in METADATA.items():
        buffer = BytesIO()
        # None leaves a field out of the file
        figure.savefig(buffer, format=form, metadata=dict.fromkeys(fields))
        files[form] = buffer.getvalue()
    titles = {f"mark{number}": text for number, text in enumerate(words)}
    files["svg"] = add_titles(files["svg"], titles)
    return files


def add_titles(svg: bytes, titles: dict[str, str]) -> bytes:
    """Adds hover texts (`titles`, by identifier) to an SVG, and makes the file smaller without a visible change."""
    # drop the indentation
    root = ElementTree.fromstring(re.sub(rb">\s+<", b"><", svg))
    # identifiers that another element refers to, as in `href="#axes_1"`
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
        # cut digits beyond a tenth of a point (an eighth of a pixel), `.0`, needless spaces and line ends
        for name in {"d", "x", "y", "transform"} & element.attrib.keys():
            element.set(name, re.sub(r"(?<=\.\d)\d+|\.0\b| (?= |$)|\n", "", element.get(name, "")))
        style = element.get("style", "").replace(f"{FONT}; ", "")
        if style:
            element.set("style", style)
    root.set("style", FONT)
    return ElementTree.tostring(root, encoding="unicode").encode()
