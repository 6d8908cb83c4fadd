"""report.tex and one .tex per table. Templates: reports/templates/*.tex.

The delimiters of the templates have no meaning in LaTeX: `<< value >>`, `<% statement %>`, `<# comment #>`. Every value
is escaped for LaTeX. Tables need array, booktabs and longtable, which every TeX distribution has.
"""

import re
import shutil
import subprocess
import tempfile
import unicodedata
from pathlib import Path

import jinja2

from stages.files.storage import temporary_sibling
from stages.report.tables import Grid
from stages.report.text_templates import mark_formula

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
    "\N{NO-BREAK SPACE}": "~",
    "…": r"\ldots{}",
    "°": r"$^\circ$",
    "†": r"\textdagger{}",
    "“": "``",
    "”": "''",
}
RAISED = {"^": "\\textsuperscript{{{}}}", "_": "\\textsubscript{{{}}}"}
# runs of pdflatex until the contents and the widths of long tables have settled
RUNS = 3
# shares of the width of the line, 170 mm: a letter of 7 points, and the space around a column
LETTER = 0.0088
GAP = 0.014
# an identifier in a text: it may break after a full stop, an underscore (escaped) or a slash
BREAK = re.compile(r"(?<=\w)(\.(?!\d)|\\_|/)(?=\w)")


class Latex(str):
    """Text that is LaTeX already."""


def environment(folder: Path) -> jinja2.Environment:
    """Builds the Jinja environment of the LaTeX templates of a folder; `escape` is applied to every value."""
    templates = jinja2.Environment(
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
    templates.filters.update(
        path=path,
        address=address,
        tex=Latex,
        breakable=breakable,
        formula=format_formula,
        columns=choose_columns,
    )
    return templates


def escape(value: object) -> Latex:
    """Escapes a value: `50 %` is `50 \\%`. A character that pdfLaTeX cannot set is its code point: `U+6F22`."""
    if isinstance(value, Latex):
        return value
    # a standard deviation stays on one line with the sign before it
    text = str(value).replace("± ", "±\N{NO-BREAK SPACE}")
    return Latex("".join(_escape_character(character) for character in text))


def format_formula(text: str) -> Latex:
    """Writes a formula in LaTeX: `h^2` is `h\\textsuperscript{2}`."""
    return Latex(mark_formula(text, escape, RAISED))


def breakable(text: str) -> Latex:
    """Escapes a text and lets identifiers break, such as `C.REL` after the full stop; numbers stay whole."""
    return Latex(BREAK.sub(r"\1\\allowbreak{}", escape(text)))


def address(url: str) -> Latex:
    """Returns an address for `href` as it is. ValueError for any character that our addresses do not have."""
    if not re.fullmatch(r"https://[\w./-]+", url, re.ASCII):
        raise ValueError(f"{url!r} cannot stand in LaTeX as an address")
    return Latex(url)


def path(name: str) -> Latex:
    """Returns the name of a file or a label as it is. ValueError for any character but letters, digits and `_.-`."""
    if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
        raise ValueError(f"{name!r} cannot name a file or label in LaTeX; allowed: letters, digits, `_`, `.`, `-`")
    return Latex(name)


def choose_columns(grid: Grid) -> Latex:
    """Chooses the column types of a table.

    Returns:
        `lrr` and so on if all cells fit the line, otherwise paragraphs that fill the line together. The width of a
        paragraph is the longest word of the column, and a part of the rest by the square root of the mean length.
    """
    columns = _list_cells(grid)
    numeric = [kind == "number" for kind in grid.kinds]
    # labels of groups and of lines come first
    numeric = [False] * (len(columns) - len(numeric)) + numeric
    natural = sum(max(map(len, column)) for column in columns)
    if LETTER * natural + GAP * len(columns) < 1:
        return Latex("".join("r" if flag else "l" for flag in numeric))
    words = [max(map(_longest_word, column)) for column in columns]
    weights = [(sum(map(len, column)) / len(column)) ** 0.5 for column in columns]
    free = 1 - GAP * len(columns)
    rest = max(free - LETTER * sum(words), 0)
    widths = []
    for word, weight in zip(words, weights, strict=True):
        widths.append(LETTER * word + rest * weight / sum(weights))
    # words that need more than the line share it
    shrink = min(free / sum(widths), 1)
    types = []
    for width, flag in zip(widths, numeric, strict=True):
        side = "raggedleft" if flag else "raggedright"
        types.append(rf">{{\{side}\arraybackslash}}p{{{width * shrink:.3f}\linewidth}}")
    return Latex("".join(types))


def _list_cells(grid: Grid) -> list[list[str]]:
    """Lists the texts of every column, the heading first."""
    labels = [grid.first, "Source"] if grid.labelled else [grid.first]
    columns = [[text] for text in labels]
    columns += [[heading.label] for heading in grid.headings]
    for group in grid.groups:
        for line in group.lines:
            texts = [f"{group.label} {group.remark}"]
            if grid.labelled:
                texts.append(line.label)
            texts += [value.whole for value in line.values]
            # a line with a remark has no values
            for column, text in zip(columns, texts, strict=False):
                column.append(text)
    return columns


def _longest_word(text: str) -> int:
    """Counts the letters of the longest word; identifiers break, so their parts are words."""
    parts = re.split(r"[ \t\n_/]+|\.(?!\d)", text)
    return max(map(len, parts))


def _escape_character(character: str) -> str:
    """Escapes one character: by ESCAPES, as itself if every font has it, otherwise by its code point."""
    if character in ESCAPES:
        return ESCAPES[character]
    if character.isspace():
        return " "
    if character.isascii() and character.isprintable():
        return character
    # accented letters and superscripts of Latin 1 can be set in every font encoding, unlike þ or ð
    settable = unicodedata.decomposition(character) or character in "æÆøØß"
    if ord(character) < 0x100 and settable:
        return character
    return f"U+{ord(character):04X}"


def compile_pdf(folder: Path, name: str) -> None:
    """Compiles folder/NAME.tex to folder/NAME.pdf.

    Args:
        folder: the folder of the document, with its tables and figures.
        name: the name of the document.

    Raises:
        ValueError: pdflatex is missing or ends with an error.
    """
    if not shutil.which("pdflatex"):
        raise ValueError("report.pdf: true needs pdflatex (TeX Live); install it, or set report.pdf to false")
    # pdflatex runs in `folder`; its other files go elsewhere
    with tempfile.TemporaryDirectory() as build:
        options = ["-interaction=nonstopmode", "-halt-on-error", f"-output-directory={build}"]
        command = ["pdflatex", *options, f"{name}.tex"]
        for _ in range(RUNS):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
            if done.returncode:
                raise ValueError(
                    f"{folder / name}.tex: pdflatex ended with an error; install what its last lines miss, or set "
                    f"report.pdf to false: {done.stdout[-1000:]}"
                )
        with temporary_sibling(folder / f"{name}.pdf") as target:
            shutil.copyfile(Path(build) / f"{name}.pdf", target)
