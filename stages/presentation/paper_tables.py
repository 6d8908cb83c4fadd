"""The papers' tables: every row up to three lines, published, recomputed from the released raw results, and reproduced.

Made from the cells that analysis filled (stages/evidence/cells.py).
"""

import re
from math import isnan

import pandas as pd

from stages.evidence.cells import NOT_COMPARABLE, NOT_IN_PAPER, NOT_MEASURED, NOT_RUN
from stages.evidence.specifications import Table
from stages.evidence.statistics import EXACT, PRETRAINING, REPEATS
from stages.presentation.tables import MISSING, Grid, Group, Heading, Line, Value, command, interval, number, spread

CHANGED = "†"  # a cell that the paper's other edition prints otherwise
CSV = {  # column of the file: column of the cells
    "row": "row_key",
    "column": "column_key",
    "metric": "metric",
    "printed": "printed",
    "published": "published",
    "released": "released",
    "reproduced_mean": "reproduced",
    "reproduced_sd": "reproduced_sd",
    "reproduced_n": "reproduced_n",
    "interval_low": "interval_low",
    "interval_high": "interval_high",
    "verdict": "verdict",
}
FORMULA = re.compile(r"[\w()+\-/^=., ]+")


def from_cells(table: Table, cells: pd.DataFrame) -> Grid:
    """A published table with its cells as analysis filled them."""
    groups, headings, labelled = (_list if table.is_list else _matrix)(cells)
    columns = {name: cells[column] for name, column in CSV.items()}
    return Grid(
        name=table.name,
        place=f"{table.source}, {table.number}",
        title=table.title,
        stage=table.stage,
        first=table.first,
        headings=headings,
        groups=groups,
        notes=(*table.notes, *_edition_notes(table, cells), *_unit_notes(cells)),
        labelled=labelled,
        csv=pd.DataFrame(columns).assign(command=command(table.stage)),
    )


def _matrix(cells: pd.DataFrame) -> tuple[tuple[Group, ...], tuple[Heading, ...], bool]:
    """Up to three lines for every row of the paper."""
    lines = {"published": _published, "recomputed": _recomputed, "reproduced": _reproduced}
    groups = []
    for _, row in cells.groupby("row_key", sort=False):
        printed = row["printed"].notna().any()
        made = [build(row) for name, build in lines.items() if printed or name == "reproduced"]
        remark = "" if printed else NOT_IN_PAPER
        groups.append(Group(row["row"].iloc[0], tuple(line for line in made if line), remark))
    columns = cells.drop_duplicates("column_key")
    headings = tuple(Heading(*pair) for pair in zip(columns["column"], columns["metric"], strict=True))
    return tuple(groups), headings, True


def _list(cells: pd.DataFrame) -> tuple[tuple[Group, ...], tuple[Heading, ...], bool]:
    """One line for every number."""
    groups = []
    for cell in cells.itertuples():
        recomputed = Value(number(cell.released, cell.decimals))
        values = (Value(cell.column, kind="text"), _printed(cell), recomputed, _measured(cell))
        groups.append(Group(cell.row, (Line("", values),)))
    headings = ("Where", "Published", "Recomputed", "Reproduced or counted")
    if cells["released"].isna().all():
        groups = [Group(group.label, (Line("", _without(group.lines[0].values, 2)),)) for group in groups]
        headings = _without(headings, 2)
    return tuple(groups), tuple(Heading(label) for label in headings), False


def _without(values: tuple, place: int) -> tuple:
    return values[:place] + values[place + 1 :]


def _edition_notes(table: Table, cells: pd.DataFrame) -> list[str]:
    if table.edition is None:
        return []
    changed = int(cells["other_edition"].notna().sum())
    other = "arXiv" if "naacl" in table.name else "NAACL"
    if not changed:
        return [f"All cells that both editions have are the same in the {other} edition."]
    cells_are = "the one cell" if changed == 1 else f"the {changed} cells"
    return [f"{CHANGED} marks {cells_are} that the {other} edition prints otherwise; its value shows on hover."]


def _published(row: pd.DataFrame) -> Line:
    return Line("published", tuple(_printed(cell) for cell in row.itertuples()))


def _printed(cell) -> Value:
    if pd.isna(cell.printed):
        return Value(MISSING)
    kind = "formula" if isnan(cell.published) and FORMULA.fullmatch(cell.printed) else "number"
    if pd.notna(cell.other_edition):
        return Value(f"{cell.printed} {CHANGED}", detail=f"other edition: {cell.other_edition}", kind=kind)
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
        return Value(NOT_RUN, kind="text")
    if not cell.status:
        return Value(MISSING)
    detail = ""
    if not isnan(cell.interval_low):
        detail = (
            f"interval {interval(cell.interval_low, cell.interval_high, cell.decimals)}; "
            f"n = {cell.reproduced_n} {cell.unit_of_inference}, {cell.runs} runs"
        )
    if cell.verdict not in (NOT_MEASURED, NOT_IN_PAPER):
        detail = "; ".join(part for part in (detail, _against(cell.verdict)) if part)
    return Value(number(cell.reproduced, cell.decimals), spread(cell.reproduced_sd, cell.decimals), detail)


def _against(verdict: str) -> str:
    return verdict if verdict == NOT_COMPARABLE else f"against the published number: {verdict}"


def _with_n(label: str, counts: pd.Series) -> str:
    known = counts.dropna().unique()
    return f"{label}, n = {' or '.join(str(n) for n in known)}"


def _unit_notes(cells: pd.DataFrame) -> list[str]:
    """Says what n counts and ± means in the reproduced lines."""
    measured = cells[cells["status"] == "reproduced"]
    measured = measured[measured["unit_of_inference"].notna() & (measured["unit_of_inference"] != EXACT)]
    notes = []
    for (unit, n, runs), _ in measured.groupby(["unit_of_inference", "reproduced_n", "runs"]):
        each = f", each the mean of {runs // n} fine-tuning runs" if runs > n else ""
        speaks = (
            "the operator"
            if unit == PRETRAINING and n > 1
            else "this machine"
            if unit == REPEATS
            else "this checkpoint alone"
        )
        notes.append(f"Reproduced: mean ± sample standard deviation over n = {n} {unit}{each}; speaks for {speaks}.")
    return notes
