"""Our own tables: each is an entry of reports/templates/tables.yaml that selects from a frame.

An entry names its `frame` (or several, joined one below the other), the values that rows must have (`where`), the
fields that tell lines apart (`line`; by default every row is a line) and the columns. A column shows the first row of
each line that its own `where` selects. `each` repeats a column for every combination of values of some fields,
`optional` names a field that must have a value, and `form` an entry of `forms` whose keys the column inherits. Texts
are templates over the row, the keys of the column, and facts of the run. With `wide`, the CSV has a row per line.
"""

from collections.abc import Callable

import pandas as pd

from stages.evidence.cell_verdicts import NOT_RUN
from stages.evidence.fields import select_rows
from stages.report.tables import MISSING, Grid, Group, Heading, Line, Value
from stages.report.text_templates import fill_template, read_content

# parts of a cell, and the keys that a column may leave out
PARTS = ("text", "spread", "detail")
DEFAULTS = {"kind": "number", "meaning": "", "where": {}}
# the row of a table without rows
NOTHING = (Group("This run", (Line("", (), note=NOT_RUN),)),)


def build_table(name: str, read: Callable[[str], pd.DataFrame], entry: dict | None = None, **facts: object) -> Grid:
    """Builds a table by its entry of tables.yaml, or by `entry`; without rows, a single line with a remark.

    `read` returns a frame by name; texts may name `facts` beside the fields of a row.
    """
    entry = entry or read_content("tables")[name]
    csv = select_rows(_read_frames(entry["frame"], read), **entry.get("where", {}))
    # templates read a gap as an empty text
    rows = csv.astype(object).where(csv.notna(), "")
    values = rows.mask(rows == "").nunique()
    facts["several"] = set(values.index[values > 1])
    columns = _list_columns(entry, rows, facts)
    groups = []
    # without fields that tell lines apart, every row is a line
    by = entry.get("line") or list(range(len(rows)))
    for _, line in rows.groupby(by, sort=False) if len(rows) else ():
        label = fill_template(entry["label"], **{**facts, **line.iloc[0].to_dict()})
        cells = tuple(_fill_value(column, line) for column in columns)
        groups.append(Group(label, (Line("", cells),)))
    # labels may name the values of `each`
    headings = []
    for column in columns:
        label = fill_template(column["label"], **column)
        headings.append(Heading(label, fill_template(column["meaning"], **column)))
    notes = [fill_template(note, rows=rows.to_dict("records"), **facts) for note in entry.get("notes", ())]
    if groups and "wide" in entry:
        csv = _spread_columns(csv, entry["line"], **entry["wide"])
    return Grid(
        name=name,
        title=fill_template(entry["title"], **facts),
        stage=entry["stage"],
        first=entry["first"],
        headings=tuple(headings),
        groups=tuple(groups) or NOTHING,
        notes=tuple(note for note in notes if note),
        measured=bool(groups),
        csv=csv,
    )


def _read_frames(named: str | list[str], read: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
    """Reads a frame, or several, one below the other, with the name of each frame in a field `frame`."""
    if isinstance(named, str):
        return read(named)
    frames = [read(name).assign(frame=name) for name in named]
    frames = [frame for frame in frames if len(frame)]
    if not frames:
        return pd.DataFrame()
    return pd.concat(frames, ignore_index=True)


def _list_columns(entry: dict, rows: pd.DataFrame, facts: dict) -> list[dict]:
    """Lists the columns with all settings filled in: `optional`, `form` and `each` are resolved."""
    columns = []
    for column in entry["columns"]:
        if "optional" in column:
            # a gap is NaN, or an empty text in a frame of texts
            values = rows[column["optional"]]
            if (values.isna() | (values == "")).all():
                continue
        form = read_content("tables")["forms"].get(column.get("form"), {})
        column = {**DEFAULTS, **facts, **form, **column}
        if "each" not in column:
            columns.append(column)
            continue
        selected = select_rows(rows, **column["where"])
        if selected.empty:
            continue
        for values in selected[column["each"]].drop_duplicates().to_dict("records"):
            # the values select the rows, and texts may name them
            columns.append({**column, **values, "where": {**column["where"], **values}})
    return columns


def _fill_value(column: dict, line: pd.DataFrame) -> Value:
    """Fills the texts of a cell from the first row of the line that `where` of the column selects."""
    rows = select_rows(line, **column["where"])
    if rows.empty:
        return Value(MISSING, kind=column["kind"])
    values = {**column, **rows.iloc[0].to_dict()}
    parts = {part: fill_template(column[part], **values) for part in PARTS if part in column}
    parts["text"] = parts["text"] or MISSING
    return Value(kind=column["kind"], **parts)


def _spread_columns(rows: pd.DataFrame, line: list[str], across: str, of: list[str]) -> pd.DataFrame:
    """Reshapes a long table to one row per line: `task` across gives `rte`, and further fields `rte_sd`."""
    parts = []
    for field in of:
        part = rows.pivot_table(field, line, across, sort=False)
        if field != of[0]:
            part = part.add_suffix(f"_{field}")
        parts.append(part)
    # the lines of all parts are the same
    first, *others = parts
    return first.join(others).reset_index()
