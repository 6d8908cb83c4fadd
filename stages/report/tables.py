"""Tables as shown, without HTML or LaTeX: groups of lines of values, with the CSV of the same numbers.

paper_tables.py builds the tables of the papers, claims_and_audit.py those of claims and checks, own_tables.py the rest.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import floor, isfinite, isnan, log10
from typing import ClassVar

import pandas as pd

from stages.files.quoting import show_controls

# a function from the name of a frame to the frame (frames.py)
Reader = Callable[[str], pd.DataFrame]
MISSING = "–"
# numbers, and the dash that papers print for no number
NUMBER = r"[+-]?[0-9.,]+(e[+-]?[0-9]+)?%?|-"
# how a text begins that a spreadsheet would compute; tables.js has the same pattern from html.py
FORMULA = re.compile(rf"^(?!({NUMBER})$)[=+@\t\r＝＋＠－-]")


@dataclass(frozen=True)
class Value:
    """One cell: the number or words, `spread` behind (`± 0.37`), `detail` on hover, and the reason for a verdict.

    `kind` is number, text or formula. A verdict of a ledger has a symbol, a tone, and `checks` of the audit (name,
    symbol).
    """

    text: str
    spread: str = ""
    detail: str = ""
    kind: str = "number"
    because: str = ""
    checks: tuple[tuple[str, str], ...] = ()
    symbol: str = ""
    tone: str = ""

    @property
    def whole(self) -> str:
        """The printed parts of the value, without the detail."""
        names = [name for name, _ in self.checks]
        parts = [self.text, self.spread, self.because, *names]
        return " ".join(filter(None, parts))


@dataclass(frozen=True)
class Line:
    """One line. label: the source of the values, or empty. note: a remark in place of values."""

    label: str
    values: tuple[Value, ...]
    note: str = ""


@dataclass(frozen=True)
class Group:
    """One row of a table, of one or more lines.

    `remark` is a property, such as `not in the paper`; claims and checks have a `source`.
    """

    label: str
    lines: tuple[Line, ...]
    remark: str = ""
    source: str = ""


@dataclass(frozen=True)
class Heading:
    """The heading of a column of values. meaning: an explanation of the label, or empty."""

    label: str
    meaning: str = ""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The fields that tables and figures share.

    `place` is the place in a paper, empty for our own, and `stage` computes the numbers of `csv`. `measured`: whether
    this run or the released results have a number here. `folded`: why a page folds a figure, or empty.
    """

    name: str
    place: str = ""
    title: str
    stage: str
    notes: tuple[str, ...] = ()
    csv: pd.DataFrame
    measured: bool = True
    folded: str = ""
    empty: ClassVar[bool] = False

    @property
    def shown(self) -> bool:
        """Whether a page shows the item: a number of ours or of a paper."""
        return not self.empty and bool(self.place or self.measured)

    @property
    def command(self) -> str:
        """The command that computes the numbers again."""
        return write_command(self.stage)


@dataclass(frozen=True, kw_only=True)
class Grid(Shown):
    """A table: `first` is the heading of the labels of groups, and `headings` are those of the columns of values.

    `labelled`: whether lines have labels. `parts`: names of the tables that hold one edition each. `kind`: `table`, or
    `ledger` if the page unfolds rows to the reasons; the first value of such a row is the statement, with its place.
    """

    first: str
    headings: tuple[Heading, ...]
    groups: tuple[Group, ...]
    labelled: bool = False
    parts: tuple[str, ...] = ()
    kind: str = "table"

    @property
    def width(self) -> str:
        """The CSS classes of a table with many columns: 12 columns give `wide upright`."""
        columns = len(self.headings)
        # a table with more columns than the number has the class, which style.css defines
        limits = {"wide": 6, "upright": 11, "turned": 18}
        classes = [name for name, limit in limits.items() if columns > limit]
        return " ".join(classes)

    @cached_property
    def kinds(self) -> list[str]:
        """The kind of every column, which decides the alignment: `number` or `text`, as of the first value present."""
        kinds = []
        for column in self.columns:
            present = [value.kind for value in column if value.text != MISSING]
            kinds.append(present[0] if present else "number")
        return kinds

    @property
    def columns(self) -> list[tuple[Value, ...]]:
        """The values of every column; a line with a remark has no values."""
        lines = [line.values for group in self.groups for line in group.lines if line.values]
        return list(zip(*lines, strict=True)) or [() for _ in self.headings]


def write_command(stage: str) -> str:
    """Returns the command that computes a stage and the report again."""
    if stage == "report":
        return "dvc repro report"
    return f"dvc repro {stage} report"


def format_number(value: float, decimals: int) -> str:
    """Formats fixed decimals, such as `−1,234.50`; a rounded zero has no sign, and NaN is a dash."""
    if isnan(value):
        return MISSING
    return f"{value:z,.{decimals}f}".replace("-", "−")


def choose_decimals(half: float, most: int) -> int:
    """Chooses decimals down to one digit below the first digit of the half-width of an interval, at most `most`.

    A half-width of 12 gives 0, 1.5 gives 1 and 0.03 gives 3; zero, NaN and an infinite half-width give `most`.
    """
    if half == 0 or not isfinite(half):
        return most
    wanted = 1 - floor(log10(half))
    return min(max(wanted, 0), most)


def format_signed(value: float, decimals: int) -> str:
    """Formats a difference with the sign, such as `+0.63` or `−20.5`; a rounded zero has no sign."""
    text = format_number(value, decimals)
    if round(value, decimals) > 0:
        return f"+{text}"
    return text


def format_spread(value: float, decimals: int) -> str:
    """Formats a standard deviation, such as `± 0.37`; NaN is an empty text."""
    if isnan(value):
        return ""
    return f"± {format_number(value, decimals)}"


def format_interval(low: float, high: float, decimals: int) -> str:
    """Formats an interval: `1.20 to 3.40`, or a dash (NaN)."""
    if isnan(low):
        return MISSING
    # an end that rounds to zero keeps its sign, on which the verdict depends; 0.0 turns an exact -0.0 into 0.0
    text = f"{low + 0.0:,.{decimals}f} to {high + 0.0:,.{decimals}f}"
    return text.replace("-", "−")


def write_csv(frame: pd.DataFrame) -> str:
    """Writes a table as CSV; a text that a spreadsheet would compute, such as `=1+1`, gets an apostrophe."""
    return frame.map(_quote_formula).to_csv(index=False, lineterminator="\n")


def _quote_formula(cell: object) -> object:
    """Puts an apostrophe before a text that begins like a formula and is no number: `=1+1` gives `'=1+1`."""
    if not isinstance(cell, str):
        return cell
    text = show_controls(cell)
    return f"'{text}" if FORMULA.match(text) else text
