"""Tables as they are shown: groups of lines of values, with the CSV that stands beside them.

Nothing here knows HTML or LaTeX. stages/presentation/paper_tables.py makes them of the papers' tables; `plain` makes
all others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan

import pandas as pd

from stages.evidence.cells import NOT_RUN

MISSING = "–"
LONG, WIDE, GAP = 36, 90, 0.4  # lines that no longer fit a page; characters that fill one; space between groups


@dataclass(frozen=True)
class Value:
    """text and, beside it, spread (`± 0.37`); detail: more on hover. kind: number, text or formula."""

    text: str
    spread: str = ""
    detail: str = ""
    kind: str = "number"


@dataclass(frozen=True)
class Line:
    """label: where its values come from. note: one remark in place of all values."""

    label: str
    values: tuple[Value, ...]
    note: str = ""


@dataclass(frozen=True)
class Group:
    """The lines of one row of the paper. remark: what sets the row apart, such as that the paper has none."""

    label: str
    lines: tuple[Line, ...]
    remark: str = ""


@dataclass(frozen=True)
class Heading:
    label: str
    meaning: str = ""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """name: of its files. place: where it stands in a paper; empty for tables of our own.

    stage: the pipeline stage whose numbers it shows. labelled: whether its lines have labels.
    """

    name: str
    place: str = ""
    title: str
    stage: str
    first: str
    headings: tuple[Heading, ...]
    groups: tuple[Group, ...]
    notes: tuple[str, ...] = ()
    labelled: bool = False
    csv: pd.DataFrame

    @property
    def kinds(self) -> list[str]:
        """Of every column: the kind of its first value that is not missing."""
        lines = [line.values for group in self.groups for line in group.lines if line.values]
        columns = list(zip(*lines, strict=True)) or [()] * len(self.headings)
        return [next((value.kind for value in column if value.text != MISSING), "number") for column in columns]

    @property
    def command(self) -> str:
        return command(self.stage)

    @property
    def long(self) -> bool:
        """Whether it needs more than a page, text of several lines taken into account."""
        lines = [line for group in self.groups for line in group.lines]
        heights = [1 + sum(len(value.text) for value in line.values) // WIDE for line in lines]
        return sum(heights) + GAP * len(self.groups) * self.labelled > LONG


def command(stage: str) -> str:
    """What makes the numbers of a stage, and the report, again."""
    return f"dvc repro {stage} report" if stage != "report" else "dvc repro report"


def number(value: float, decimals: int) -> str:
    """Fixed decimals, thousands separated; a true minus sign; a dash for NaN."""
    return MISSING if isnan(value) else f"{value:,.{decimals}f}".replace("-", "−")


def spread(value: float, decimals: int) -> str:
    return "" if isnan(value) else f"± {number(value, decimals)}"


def interval(low: float, high: float, decimals: int) -> str:
    return MISSING if isnan(low) else f"{number(low, decimals)} to {number(high, decimals)}"


def probability(p: float) -> str:
    """Three digits after the point, and never a zero."""
    return MISSING if isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def plain(
    frame: pd.DataFrame,
    columns: dict[str, tuple[Heading, Callable]],
    *,
    name: str,
    title: str,
    stage: str,
    **more,
) -> Grid:
    """A table without line labels: the first of `columns` labels the rows, the others are its values.

    A frame without rows gives one line that says so.

    columns: by name in `frame`, the heading and the function that writes a value as text or as a Value.
    """
    (first, (heading, label)), *others = columns.items()
    groups = []
    for row in frame.to_dict("records"):
        values = [form(row[column]) for column, (_, form) in others]
        values = tuple(value if isinstance(value, Value) else Value(value) for value in values)
        groups.append(Group(label(row[first]), (Line("", values),)))
    groups = groups or [Group("This run", (Line("", (), note=NOT_RUN),))]
    return Grid(
        name=name,
        title=title,
        stage=stage,
        first=heading.label,
        headings=tuple(heading for _, (heading, _) in others),
        groups=tuple(groups),
        csv=frame,
        **more,
    )


def text(value: object) -> Value:
    return Value(str(value), kind="text")
