"""Tables as they are shown, without HTML or LaTeX: groups of lines of values, with the CSV that stands next to them.

paper_tables.py makes those of the papers, verdicts.py those of claims and checks, own_tables.py all others.
"""

import re
from dataclasses import dataclass
from math import ceil, isinf, isnan
from typing import ClassVar

import pandas as pd

MISSING = "–"
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
PHRASE = 45  # characters; a cell with more of them is a text
FORMULA = re.compile(r"[=+@\t\r-]")  # how a text begins that a spreadsheet would compute
NUMBER = re.compile(r"[+-]?[0-9.,]+(e[+-]?[0-9]+)?%?|-")  # or the dash that papers print for no number
LONG, WIDE, GAP = 36, 90, 0.4  # lines that fit a page; characters that fit a line; space between groups, in lines


@dataclass(frozen=True)
class Value:
    """One cell. text and, next to it, spread (`± 0.37`); detail: more on hover. kind: number, text, formula or verdict.

    because: why a verdict is what it is, a sentence. checks: of the audit, behind the verdict, each as (name, verdict).
    """

    text: str
    spread: str = ""
    detail: str = ""
    kind: str = "number"
    because: str = ""
    checks: tuple[tuple[str, str], ...] = ()

    @property
    def whole(self) -> str:
        """All that is printed of the value, without its detail."""
        return " ".join(part for part in (self.text, self.spread, self.because, *(n for n, _ in self.checks)) if part)


@dataclass(frozen=True)
class Line:
    """One line. label: where its values come from; may be empty. note: one remark, of a line without values."""

    label: str
    values: tuple[Value, ...]
    note: str = ""


@dataclass(frozen=True)
class Group:
    """One row of a table, of one or more lines. remark: what sets the row apart, such as that the paper has none.

    anchor: a name that links can lead to. words: what a reader may filter the row by, each as (menu, choice).
    """

    label: str
    lines: tuple[Line, ...]
    remark: str = ""
    anchor: str = ""
    words: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Heading:
    """The heading of a column of values. meaning: what the label leaves open; may be empty."""

    label: str
    meaning: str = ""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What tables and figures have in common. name: of the files. place: where it stands in a paper, empty for our own.

    stage: the pipeline stage whose numbers it shows. notes: paragraphs below it. csv: the numbers shown.
    measured: whether this run, or what the authors released, has a number in it.
    """

    name: str
    place: str = ""
    title: str
    stage: str
    notes: tuple[str, ...] = ()
    csv: pd.DataFrame
    measured: bool = True

    @property
    def command(self) -> str:
        """The command that makes its numbers again."""
        return command(self.stage)


@dataclass(frozen=True, kw_only=True)
class Grid(Shown):
    """A table. first: the heading of the column with the labels of groups. labelled: whether lines have labels.

    links: to its place in a paper, each as (text, address). parts: names of tables that hold one edition of it each.
    """

    first: str
    headings: tuple[Heading, ...]
    groups: tuple[Group, ...]
    labelled: bool = False
    links: tuple[tuple[str, str], ...] = ()
    parts: tuple[str, ...] = ()
    kind: ClassVar[str] = "table"
    empty: ClassVar[bool] = False

    @property
    def kinds(self) -> list[str]:
        """The kind of every column of values: that of its first value that is not missing."""
        lines = [line.values for group in self.groups for line in group.lines if line.values]
        columns = list(zip(*lines, strict=True)) or [()] * len(self.headings)
        return [next((value.kind for value in column if value.text != MISSING), "number") for column in columns]

    @property
    def long(self) -> bool:
        """Whether it may need more than a page: several columns of text, or too many lines, broken ones among them."""
        lines = [line for group in self.groups for line in group.lines]
        heights = [1 + sum(len(value.whole) for value in line.values) // WIDE for line in lines]
        texts = [
            max((len(v.whole) for v in column), default=0)
            for column in zip(*(line.values for line in lines if line.values), strict=True)
        ]
        wordy = sum(length > PHRASE for length in texts) > 1
        return wordy or sum(heights) + GAP * len(self.groups) * self.labelled > LONG


def command(stage: str) -> str:
    """Returns the command that makes the numbers of a stage, and the report, again."""
    return f"dvc repro {stage} report" if stage != "report" else "dvc repro report"


def number(value: float, decimals: int) -> str:
    """Formats fixed decimals: thousands separated, a true minus sign but for a rounded zero, a dash for NaN."""
    return MISSING if isnan(value) else f"{value:z,.{decimals}f}".replace("-", "−")


def in_words(count: int) -> str:
    """Writes a count, 0 or more, as running text has it: up to ten as a word."""
    return WORDS[count] if count < len(WORDS) else f"{count:,}"


def detectable(difference: float, unit: str = "points") -> str:
    """Says in words which difference is detected with 80 % power; it is rounded up to a tenth, never down."""
    tenths = ceil(round(10 * difference, 6))  # 11.000000000000002 is 11
    return f"{number(tenths / 10, 1)} {unit} would be detected with 80 % power, at the first step of Holm's method"


def signed(value: float, decimals: int) -> str:
    """Formats a difference with its sign: `+0.63`, `−20.5`; a rounded zero has none."""
    return f"{'+' if round(value, decimals) > 0 else ''}{number(value, decimals)}"


def spread(value: float, decimals: int) -> str:
    """Formats a standard deviation as it stands behind a mean, `± 0.37`; nothing for NaN."""
    return "" if isnan(value) else f"± {number(value, decimals)}"


def interval(low: float, high: float, decimals: int) -> str:
    """Formats an interval, as in `1.20 to 3.40` or, without an upper end, `1.20 or more`; a dash where there is none.

    Args:
        low, high: its ends; low is NaN where there is no interval, high is infinite where it has no upper end.
        decimals: of both.
    """
    if isnan(low):
        return MISSING
    return f"{number(low, decimals)} {'or more' if isinf(high) else f'to {number(high, decimals)}'}"


def probability(p: float) -> str:
    """Formats a probability with three digits after the point, and never as zero; a dash for NaN."""
    return MISSING if isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def csv_of(frame: pd.DataFrame) -> str:
    """Writes a table as CSV, in which numbers stand as they are.

    A text that a spreadsheet would compute (it begins with FORMULA, and is no NUMBER) gets an apostrophe, to stay text.
    """
    return frame.map(
        lambda cell: (
            f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) and not NUMBER.fullmatch(cell) else cell
        )
    ).to_csv(index=False, lineterminator="\n")
