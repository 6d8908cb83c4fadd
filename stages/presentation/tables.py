"""Tables as they are shown: groups of lines of values, with the CSV that stands beside them.

A published table gives every row of the paper up to three lines: published, recomputed from the released raw
results, reproduced in this run. Other tables are plain. Nothing here knows HTML or LaTeX.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isnan

import pandas as pd

from stages.evidence.cells import NOT_RUN
from stages.evidence.specifications import Table
from stages.evidence.statistics import EXACT

MISSING = "–"
FORMULA = re.compile(r"[\w()+\-/^=., ]+")


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
        """What makes the numbers and this table again."""
        return f"dvc repro {self.stage} report"


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

    columns: by name in `frame`, the heading and the function that writes a value as text or as a Value.
    """
    (first, (heading, label)), *others = columns.items()
    groups = []
    for row in frame.to_dict("records"):
        values = [form(row[column]) for column, (_, form) in others]
        values = tuple(value if isinstance(value, Value) else Value(value) for value in values)
        groups.append(Group(label(row[first]), (Line("", values),)))
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


def from_cells(table: Table, cells: pd.DataFrame) -> Grid:
    """A published table with its cells as analysis filled them."""
    columns = cells.drop_duplicates("column_key")
    lines = {"published": _published, "recomputed": _recomputed, "reproduced": _reproduced}
    groups = []
    for _, row in cells.groupby("row_key", sort=False):
        printed = row["printed"].notna().any()
        made = [build(row) for name, build in lines.items() if printed or name == "reproduced"]
        remark = "" if printed else "not in the paper"
        groups.append(Group(row["row"].iloc[0], tuple(line for line in made if line), remark))
    command = f"dvc repro {table.stage} report"
    csv = cells.drop(columns=["table", "decimals"]).assign(command=command)
    return Grid(
        name=table.name,
        place=f"{table.source}, {table.number}",
        title=table.title,
        stage=table.stage,
        first="Operator" if "{size}" not in table.row_key else "Model",
        headings=tuple(Heading(*pair) for pair in zip(columns["column"], columns["metric"], strict=True)),
        groups=tuple(groups),
        notes=(*table.notes, *_unit_notes(cells)),
        labelled=True,
        csv=csv.rename(columns={"reproduced": "reproduced_mean"}),
    )


def _published(row: pd.DataFrame) -> Line:
    return Line("published", tuple(_printed(cell) for cell in row.itertuples()))


def _printed(cell) -> Value:
    if pd.isna(cell.printed):
        return Value(MISSING)
    kind = "formula" if isnan(cell.published) and FORMULA.fullmatch(cell.printed) else "number"
    return Value(cell.printed, kind=kind)


def _recomputed(row: pd.DataFrame) -> Line | None:
    if row["released"].isna().all():
        return None
    values = tuple(
        Value(number(cell.released, cell.decimals), spread(cell.released_sd, cell.decimals))
        for cell in row.itertuples()
    )
    return Line(_with_n("recomputed", row["released_n"]), values)


def _reproduced(row: pd.DataFrame) -> Line | None:
    measurable = row[row["status"] != ""]
    if measurable.empty:
        return None
    if (measurable["status"] == NOT_RUN).all():
        return Line("reproduced", (), note=NOT_RUN)
    exact = (measurable["unit_of_inference"] == EXACT).any()
    label = "counted" if exact else _with_n("reproduced", row["reproduced_n"])
    return Line(label, tuple(_measured(cell) for cell in row.itertuples()))


def _measured(cell) -> Value:
    if cell.status == NOT_RUN:
        return Value("not run", detail=NOT_RUN, kind="text")
    if not cell.status:
        return Value(MISSING)
    detail = ""
    if not isnan(cell.interval_low):
        detail = (
            f"interval {interval(cell.interval_low, cell.interval_high, cell.decimals)}; "
            f"n = {cell.reproduced_n} {cell.unit_of_inference}, {cell.runs} runs"
        )
    return Value(number(cell.reproduced, cell.decimals), spread(cell.reproduced_sd, cell.decimals), detail)


def _with_n(label: str, counts: pd.Series) -> str:
    known = counts.dropna().unique()
    return f"{label}, n = {' or '.join(str(n) for n in known)}"


def _unit_notes(cells: pd.DataFrame) -> list[str]:
    """Says what n counts and ± means in the reproduced lines."""
    measured = cells[cells["status"] == "reproduced"]
    measured = measured[measured["unit_of_inference"] != EXACT]
    notes = []
    for (unit, n, runs), _ in measured.groupby(["unit_of_inference", "reproduced_n", "runs"]):
        each = f", each the mean of {runs // n} fine-tuning runs" if runs > n else ""
        speaks = "the operator" if unit.startswith("pre") and n > 1 else "this checkpoint alone"
        notes.append(f"Reproduced: mean ± sample standard deviation over n = {n} {unit}{each}; speaks for {speaks}.")
    return notes
