"""report.tex and one .tex a table. Templates: reports/templates/*.tex.

Delimiters that LaTeX leaves alone: `<< value >>`, `<% statement %>`, `<# comment #>`. Every value is escaped
for LaTeX. Tables need array, booktabs, graphicx and longtable, which every TeX distribution has; tables wider than
the line are scaled to it, tables longer than a page break.
"""

import re
import shutil
import subprocess
import tempfile
import unicodedata
from pathlib import Path

import jinja2

from stages.plumbing.files import temporary_sibling
from stages.report.markup import formula
from stages.report.tables import Grid

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
    "·": r"$\cdot$",
    "√": r"$\surd$",
    "≥": r"$\geq$",
    "∞": r"$\infty$",
    "–": "--",
    "—": "---",
    "’": "'",
    "…": r"\ldots{}",
    "°": r"$^\circ$",
    "†": r"\textdagger{}",
    "“": "``",
    "”": "''",
}

RUNS = 3  # of pdflatex, until the contents and the widths of long tables have settled
GAP = 0.013  # of the line, that a column loses to the space around it
SHARE = 0.65  # columns of long tables grow with this power of their mean length
LETTER = 0.0088  # of the line, for every letter of their longest word
WORD = re.compile(r"[\s_/]+|\.(?!\d)")  # where a line may end
FEW = 3  # columns beside the first, with which a paragraph may be wide
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
    made.filters |= {
        "formula": latex_formula,
        "path": path,
        "address": address,
        "columns": columns,
        "tex": Latex,
        "stacked": stacked,
    }
    made.filters |= {"long_columns": long_columns, "breakable": breakable}
    return made


def escape(value: object) -> Latex:
    """Safe in running text. Characters that a plain pdfLaTeX cannot set are given by their code point."""
    if isinstance(value, Latex):
        return value
    return Latex("".join(_character(character) for character in str(value)))


def columns(grid: Grid) -> list[Latex]:
    """Column types for tabular: numbers right, text left, long text in paragraphs."""
    lines = [line.values for group in grid.groups for line in group.lines if line.values]
    longest = [max(len(value.text) for value in values) for values in zip(*lines, strict=True)]
    longest = longest or [0] * len(grid.kinds)  # a table of remarks alone
    wide = [kind == "text" and length > LONG for kind, length in zip(grid.kinds, longest, strict=False)]
    width = min(0.7 if len(wide) < FEW else 0.5, 0.8 / max(sum(wide), 1))
    paragraph = rf">{{\raggedright\arraybackslash}}p{{{width:.2f}\linewidth}}"
    simple = {"number": "r", "formula": "l", "text": "l"}
    return [Latex(paragraph if long else simple[kind]) for kind, long in zip(grid.kinds, wide, strict=True)]


def long_columns(grid: Grid) -> list[Latex]:
    """Column types of a table that breaks over pages: paragraphs that share the line by what they hold."""
    lines = [(group.label, line) for group in grid.groups for line in group.lines if line.values]
    rows = [[label, *([line.label] if grid.labelled else []), *(v.whole for v in line.values)] for label, line in lines]
    heads = [grid.first, *(["Source"] if grid.labelled else []), *(heading.label for heading in grid.headings)]
    least = [
        LETTER * max(len(word) for cell in (*cells, head) for word in WORD.split(cell))
        for head, cells in zip(heads, zip(*rows, strict=True), strict=True)
    ]
    weight = [(sum(map(len, cells)) / len(cells)) ** SHARE for cells in zip(*rows, strict=True)]
    free = 0.98 - GAP * len(heads) - sum(least)
    widths = [low + free * part / sum(weight) for low, part in zip(least, weight, strict=True)]
    paragraph = r">{{\raggedright\arraybackslash}}p{{{:.3f}\linewidth}}"
    return [Latex(paragraph.format(width)) for width in widths]


def breakable(text: str) -> Latex:
    """Text whose long identifiers may break after `.`, `_` and `/`; numbers stay whole."""
    return Latex(re.sub(r"(?<=\w)(\.(?!\d)|\\_|/)(?=\w)", r"\1\\allowbreak{}", escape(text)))


def stacked(text: str) -> Latex:
    """Words one below the other, as a heading of a narrow column."""
    return Latex(r"\shortstack[r]{" + r"\\[-2pt]".join(map(escape, text.split())) + "}")


def address(url: str) -> Latex:
    """An address for `href`. ValueError for any character that an address of ours does not need."""
    if not re.fullmatch(r"https://[\w./-]+", url, re.ASCII):
        raise ValueError(f"{url!r} cannot stand in LaTeX as an address")
    return Latex(url)


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


def compile_pdf(folder: Path, name: str) -> None:
    """folder/NAME.pdf from folder/NAME.tex. ValueError where pdflatex is missing, or ends with an error."""
    if not shutil.which("pdflatex"):
        raise ValueError("report.pdf: true needs pdflatex (TeX Live); install it, or set report.pdf to false")
    with tempfile.TemporaryDirectory() as made:
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"-output-directory={made}", f"{name}.tex"]
        for _ in range(RUNS):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
            if done.returncode:
                raise ValueError(
                    f"{folder / name}.tex: pdflatex ended with an error; install what its last lines miss, or set "
                    f"report.pdf to false: {done.stdout[-1000:]}"
                )
        with temporary_sibling(folder / f"{name}.pdf") as path:
            shutil.copyfile(Path(made) / f"{name}.pdf", path)
