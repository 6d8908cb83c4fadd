"""report.tex and one .tex a table. Templates: reports/templates/*.tex.

Delimiters that LaTeX leaves alone: `<< value >>`, `<% statement %>`, `<# comment #>`. Every value is escaped
for LaTeX. Tables need array, booktabs and graphicx, which every TeX distribution has; tables wider than the
line are scaled to it.
"""

import re
import unicodedata
from pathlib import Path

import jinja2

from stages.presentation.markup import formula
from stages.presentation.tables import Grid

ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "−": r"$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "–": "--",
    "—": "---",
    "’": "'",
    "…": r"\ldots{}",
}


LONG = 45  # characters that a column of text holds on one line


class Latex(str):
    """Text that is LaTeX already."""


def environment(folder: Path) -> jinja2.Environment:
    """With `escape` applied to every value, and the filters `formula`, `path` and `columns`."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        undefined=jinja2.StrictUndefined,
        finalize=escape,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"formula": latex_formula, "path": path, "columns": columns}
    return made


def escape(value: object) -> Latex:
    """Safe in running text. Characters that a plain pdfLaTeX cannot set are given by their code point."""
    if isinstance(value, Latex):
        return value
    return Latex("".join(_character(character) for character in str(value)))


def columns(grid: Grid) -> list[Latex]:
    """Column types for tabular: numbers right, text left, long text in paragraphs."""
    lines = [line.values for group in grid.groups for line in group.lines if line.values]
    longest = [max((len(value.text) for value in values), default=0) for values in zip(*lines, strict=True)]
    wide = [kind == "text" and length > LONG for kind, length in zip(grid.kinds, longest, strict=False)]
    width = min(0.7, 0.8 / max(sum(wide), 1))
    paragraph = rf">{{\raggedright\arraybackslash}}p{{{width:.2f}\linewidth}}"
    simple = {"number": "r", "formula": "l", "text": "l"}
    return [Latex(paragraph if long else simple[kind]) for kind, long in zip(grid.kinds, wide, strict=True)]


def path(name: str) -> Latex:
    """A file's name or a label, as it stands. ValueError for any but letters, digits and `_.-`."""
    if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
        raise ValueError(f"{name!r} cannot name a file or label in LaTeX; allowed: letters, digits, `_`, `.`, `-`")
    return Latex(name)


def _character(character: str) -> str:
    if character in ESCAPES:
        return ESCAPES[character]
    if character.isspace():
        return " "
    latin = ord(character) < 0x100 and (unicodedata.decomposition(character) or character in "æÆøØßåÅ")
    settable = (character.isascii() and character.isprintable()) or latin  # in every font encoding
    return character if settable else f"U+{ord(character):04X}"


def latex_formula(text: str) -> Latex:
    """Powers and indices raised and lowered."""
    marks = {"": "{}", "^": "\\textsuperscript{{{}}}", "_": "\\textsubscript{{{}}}"}
    return Latex("".join(marks[mark].format(escape(part)) for mark, part in formula(text)))
