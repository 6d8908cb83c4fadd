"""report.tex, supplement.tex and one .tex per table. Templates: reports/templates/*.tex.

Their delimiters have no meaning in LaTeX: `<< value >>`, `<% statement %>`, `<# comment #>`. Every value is escaped
for LaTeX. Tables need array, booktabs, graphicx and longtable, which every TeX distribution has.
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
from stages.report.words import formula

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

RUNS = 3  # of pdflatex, until the contents and the widths of long tables have settled
# GAP, LETTER, LARGE and WIDE_GAP are shares of the width of the line, 170 mm.
GAP = 0.013  # space around a column of a table of 7 points
FILLED = 0.98  # of the line, that columns of paragraphs take together: rounded widths must not run over it
SHARE = 0.65  # columns of paragraphs grow with this power of their mean length, so that long ones leave room for others
LETTER, CAPITAL = 0.0088, 0.3  # a letter of 7 points; by how much a capital is wider, in letters
LARGE, WIDE_GAP = 0.0098, 0.025  # a letter, and the space around a column, in a table of 9 points
WORD = re.compile(r"[ \t\n_/]+|\.(?!\d)|(?<=–)")  # what ends a word: blanks, `_`, `/`, `.` but in a number, a dash


class Latex(str):
    """Text that is LaTeX already."""


def environment(folder: Path) -> jinja2.Environment:
    """Builds the Jinja environment of a folder's LaTeX templates, with `escape` for every value but Latex."""
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
    raised = {"^": "\\textsuperscript{{{}}}", "_": "\\textsubscript{{{}}}"}
    templates.filters["formula"] = lambda text: Latex(formula(text, escape, raised))
    templates.filters |= {"path": path, "address": address, "tex": Latex}
    templates.filters |= {"breakable": breakable, "form": form, "paragraphs": paragraphs}
    return templates


def escape(value: object) -> Latex:
    """Escapes a value for running text; characters that a plain pdfLaTeX cannot set are given by their code point."""
    if isinstance(value, Latex):
        return value
    return Latex("".join(_character(character) for character in unbroken(str(value))))


def unbroken(text: str) -> str:
    """Keeps a standard deviation and the ± before it on one line."""
    return text.replace("± ", "±\N{NO-BREAK SPACE}")


def form(grid: Grid) -> str:
    """Decides how a table is set so that no letter is below 7 points: in the first of these forms that it fits.

    `plain`, as wide as its cells need; `paragraphs`, as wide as the line, on several pages; `turned`, a quarter turn.
    """
    cells = _columns(grid)
    if not grid.long and sum(LARGE * max(map(len, column)) + WIDE_GAP for column in cells) < 1:
        return "plain"
    return "paragraphs" if sum(map(_narrowest, cells)) + GAP * len(cells) < 1 else "turned"


def paragraphs(grid: Grid) -> list[Latex]:
    """Returns a LaTeX column type for each column of a table in the form `paragraphs`; numbers are flush right.

    Widths are shares of the line: room for the longest word (where words alone fill the line, up to 2 % of it less),
    and of the rest a part by the mean length of the cells.
    """
    cells = _columns(grid)
    least = list(map(_narrowest, cells))
    weight = [(sum(map(len, column)) / len(column)) ** SHARE for column in cells]
    free = FILLED - GAP * len(cells) - sum(least)
    widths = [low + free * part / sum(weight) for low, part in zip(least, weight, strict=True)]
    sides = ["raggedright"] * (len(cells) - len(grid.kinds))  # columns of labels, which have no kind
    sides += ["raggedleft" if kind == "number" else "raggedright" for kind in grid.kinds]
    pairs = zip(sides, widths, strict=True)
    return [Latex(rf">{{\{side}\arraybackslash}}p{{{width:.3f}\linewidth}}") for side, width in pairs]


def _columns(grid: Grid) -> list[tuple[str, ...]]:
    """The texts of every column, heading first; columns of labels (of groups, and of lines if labelled) come first."""
    rows = [(grid.first, *(["Source"] if grid.labelled else []), *(heading.label for heading in grid.headings))]
    rows += [
        (
            f"{group.label} {group.remark}",
            *([line.label] if grid.labelled else []),
            *(unbroken(v.whole) for v in line.values),
        )
        for group in grid.groups
        for line in group.lines
        if line.values  # others hold one remark
    ]
    return list(zip(*rows, strict=True))


def _narrowest(column: tuple[str, ...]) -> float:
    """The share of the line's width that the longest word of a column needs, at 7 points; capitals are wide."""
    words = (word for cell in column for word in WORD.split(cell))
    return LETTER * max(len(word) + CAPITAL * sum(map(str.isupper, word)) for word in words)


def breakable(text: str) -> Latex:
    """Escapes a text and lets identifiers in it break after `.`, `_` (by now `\\_`) and `/`; numbers stay whole."""
    return Latex(re.sub(r"(?<=\w)(\.(?!\d)|\\_|/)(?=\w)", r"\1\\allowbreak{}", escape(text)))


def address(url: str) -> Latex:
    """Returns an address for `href` as it is. ValueError for any character that an address of ours does not need."""
    if not re.fullmatch(r"https://[\w./-]+", url, re.ASCII):
        raise ValueError(f"{url!r} cannot stand in LaTeX as an address")
    return Latex(url)


def path(name: str) -> Latex:
    """Returns the name of a file or a label as it is. ValueError for any character but letters, digits and `_.-`."""
    if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
        raise ValueError(f"{name!r} cannot name a file or label in LaTeX; allowed: letters, digits, `_`, `.`, `-`")
    return Latex(name)


def _character(character: str) -> str:
    """Escapes one character: by ESCAPES, as itself where every font has it, otherwise as `U+` and its code point."""
    if character in ESCAPES:
        return ESCAPES[character]
    if character.isspace():
        return " "
    latin = ord(character) < 0x100 and (unicodedata.decomposition(character) or character in "æÆøØß")
    # letters with accents and superscripts; unlike þ or ð, they can be set in every font encoding
    settable = (character.isascii() and character.isprintable()) or latin
    return character if settable else f"U+{ord(character):04X}"


def compile_pdf(folder: Path, name: str) -> None:
    """Compiles folder/NAME.tex to folder/NAME.pdf. ValueError where pdflatex is missing, or ends with an error."""
    if not shutil.which("pdflatex"):
        raise ValueError("report.pdf: true needs pdflatex (TeX Live); install it, or set report.pdf to false")
    with tempfile.TemporaryDirectory() as build:  # for its other files; it runs in `folder`, which has the figures
        options = ["-interaction=nonstopmode", "-halt-on-error", f"-output-directory={build}"]
        command = ["pdflatex", *options, f"{name}.tex"]
        for _ in range(RUNS):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
            if done.returncode:
                raise ValueError(
                    f"{folder / name}.tex: pdflatex ended with an error; install what its last lines miss, or set "
                    f"report.pdf to false: {done.stdout[-1000:]}"
                )
        with temporary_sibling(folder / f"{name}.pdf") as path:
            shutil.copyfile(Path(build) / f"{name}.pdf", path)
