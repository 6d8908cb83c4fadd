"""report.tex and one .tex per table. Templates: reports/templates/*.tex.

The delimiters of the templates have no meaning in LaTeX: `<< value >>`, `<% statement %>`, `<# comment #>`. Every value
is escaped for LaTeX. Tables need array, booktabs and longtable, which every TeX distribution has.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import mean

import jinja2

from stages.files.paths import REPORTS
from stages.report import text_templates
from stages.report.tables import Grid

ESCAPES = str.maketrans(
    {
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
        "–": "--",
        "—": "---",
        "’": "'",
        "\N{NO-BREAK SPACE}": "~",
        "…": r"\ldots{}",
        "°": r"$^\circ$",
        "†": r"\textdagger{}",
        "▲": r"$\bigtriangleup$",
        "▼": r"$\bigtriangledown$",
        "○": r"$\circ$",
        "“": "``",
        "”": "''",
    }
)


class Latex(str):
    """Text that is LaTeX already."""


def make_environment(folder: Path) -> jinja2.Environment:
    """Builds the Jinja environment of the LaTeX templates of a folder; every value passes `escape`."""
    templates = text_templates.make_environment(
        folder,
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        finalize=escape,
        keep_trailing_newline=True,
    )
    templates.filters.update(
        tex=Latex,
        breakable=make_breakable,
        formula=format_formula,
        columns=choose_columns,
    )
    return templates


def escape(value: object) -> Latex:
    r"""Escapes a value for LaTeX: `50 %` is `50 \%`. Values of type Latex stay.

    A character that pdfLaTeX cannot set becomes its code point, such as `U+6F22`.
    """
    if isinstance(value, Latex):
        return value
    # a standard deviation stays on one line with the sign before it
    text = str(value).replace("± ", "±\N{NO-BREAK SPACE}").translate(ESCAPES)
    spaced = re.sub(r"\s", " ", text)
    # every font encoding has ASCII, superscripts and most letters of Latin 1
    unknown = "[^ -~¹²³À-ÏÑ-ÖØ-Ýß-ïñ-öø-ýÿ]"
    return Latex(re.sub(unknown, lambda match: f"U+{ord(match[0]):04X}", spaced))


def format_formula(text: str) -> Latex:
    r"""Writes a formula in LaTeX: `h^2` is `h\textsuperscript{2}`."""
    # `escape` has already changed `^` and `_`
    raised = re.sub(r"\\textasciicircum\{\}(\w)", r"\\textsuperscript{\1}", escape(text))
    return Latex(re.sub(r"\\_(\w)", r"\\textsubscript{\1}", raised))


def make_breakable(text: str) -> Latex:
    """Escapes a text and allows breaks inside identifiers: `C.REL` may break after the full stop."""
    # after a full stop, an underscore (escaped) or a slash between letters
    return Latex(re.sub(r"(?<=\w)(\.(?!\d)|\\_|/)(?=\w)", r"\1\\allowbreak{}", escape(text)))


def choose_columns(grid: Grid) -> Latex:
    """Chooses the column types of a table: numbers are flush right, and widths follow the lengths of the cells."""
    columns = [[grid.first, *(group.label for group in grid.groups)]]
    if grid.labelled:
        columns.append([line.label for group in grid.groups for line in group.lines])
    # labels of groups and of lines are texts
    kinds = ["text" for _ in columns] + grid.kinds
    for heading, values in zip(grid.headings, grid.columns, strict=True):
        columns.append([heading.label, *(value.whole for value in values)])
    weights = []
    for column in columns:
        # a word is not broken
        longest_word = max(map(len, " ".join(column).split()))
        # cells of more than 60 letters run over a few lines
        weights.append(longest_word + min(mean(map(len, column)), 60))
    # each column loses 0.014 of the width of the line to the space around it
    share = (1 - 0.014 * len(columns)) / sum(weights)
    types = []
    for kind, weight in zip(kinds, weights, strict=True):
        side = "raggedleft" if kind == "number" else "raggedright"
        types.append(rf">{{\{side}\arraybackslash}}p{{{share * weight:.3f}\linewidth}}")
    return Latex("".join(types))


def compile_pdf() -> None:
    """Compiles report.tex to report.pdf, beside the tables and figures of the report.

    Raises:
        ValueError: pdflatex is missing or ends with an error.
    """
    if not shutil.which("pdflatex"):
        raise ValueError("report.pdf: true needs pdflatex (TeX Live); install it, or set report.pdf to false")
    # pdflatex runs in the folder of report.tex; its other files go elsewhere
    with tempfile.TemporaryDirectory() as build:
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"-output-directory={build}", "report"]
        # after three runs, the contents and the widths of long tables have settled
        for _ in range(3):
            done = subprocess.run(command, cwd=REPORTS, capture_output=True, text=True, errors="replace")
            if done.returncode:
                raise ValueError(
                    f"{REPORTS}/report.tex: pdflatex ended with an error; install the package that the "
                    f"last lines name, or set report.pdf to false: {done.stdout[-1000:]}"
                )
        shutil.copyfile(Path(build) / "report.pdf", REPORTS / "report.pdf")
