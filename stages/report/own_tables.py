"""Tables of our own: each is an entry of reports/templates/tables.yaml that selects from a frame.

An entry names its `frame` (or several, whose rows then stand one below the other), the values that rows must have
(`where`), the fields that tell its lines apart (`line`; without it every row is a line) and its columns. A column takes
of each line the first row that has the values of its own `where`; `each` repeats it for every combination of values of
some fields; one that is `optional` stands only where the field named there has a value; `form` names an entry of
`forms`, whose keys it takes over. Texts are templates over that row, the column's keys, and facts of the run. With
`wide`, the CSV has a row per line, too, with the values of the field `across` side by side.
"""

from collections.abc import Callable

import pandas as pd

from stages.evidence.cell_verdicts import NOT_RUN
from stages.report.inputs import select
from stages.report.tables import MISSING, Grid, Group, Heading, Line, Value
from stages.report.words import content, say


def table(name: str, read: Callable[[str], pd.DataFrame], entry: dict | None = None, **facts: object) -> Grid:
    """Builds a table as its entry describes it; where its frame has no rows, one line says so.

    Args:
        name, read: the name of the table and of its files; a function that returns a frame by its name.
        entry: what describes the table; by default the entry of its name in tables.yaml.
        facts: what texts may name beside a row's fields, and `several`, the fields with several values, added here.
    """
    entry, forms = entry or content("tables")[name], content("tables")["forms"]
    csv = select(_frames(entry["frame"], read), **entry.get("where", {}))
    rows = csv.astype(object).where(csv.notna(), "")  # for the templates, to which a gap is an empty text
    facts |= {"several": {str(field) for field in rows if (rows[field][rows[field] != ""]).nunique() > 1}}
    columns = [
        repeated
        for column in entry["columns"]
        if "optional" not in column or (rows[column["optional"]] != "").any()
        for repeated in _each(facts | forms.get(column.get("form"), {}) | column, rows)
    ]
    groups = [
        Group(
            say(entry["label"], **facts | line.iloc[0].to_dict()),
            (Line("", tuple(_value(column, line) for column in columns)),),
        )
        for _, line in (rows.groupby(entry.get("line") or [*range(len(rows))], sort=False) if len(rows) else ())
    ]
    notes = [say(note, rows=rows.to_dict("records"), **facts) for note in entry.get("notes", ())]
    return Grid(
        name=name,
        title=say(entry["title"], **facts),
        stage=entry["stage"],
        first=entry["first"],
        headings=tuple(
            Heading(say(column["label"], **column), say(column.get("meaning", ""), **column)) for column in columns
        ),
        groups=tuple(groups) or (Group("This run", (Line("", (), note=NOT_RUN),)),),
        notes=tuple(filter(None, notes)),
        measured=bool(groups),
        csv=_wide(csv, entry["line"], **entry["wide"]) if "wide" in entry and len(csv) else csv,
    )


def _wide(rows: pd.DataFrame, line: list[str], across: str, of: list[str]) -> pd.DataFrame:
    """Reshapes rows to one per line (fields that tell lines apart), with columns for every value of the field `across`.

    of: fields of numbers. A column of the first is named by the value of `across`, one of another `VALUE_FIELD`.
    """
    first, *others = [  # `VALUE_FIELD` at first for all, as columns that are joined must have different names
        rows.pivot_table(value, line, across, sort=False).rename(columns=lambda name, value=value: f"{name}_{value}")
        for value in of
    ]
    return first.rename(columns=lambda name: name.removesuffix(f"_{of[0]}")).join(others).reset_index()


def _frames(named: str | list[str], read: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
    """Reads a frame, or several, one below the other, with a field `frame` that tells them apart."""
    if isinstance(named, str):
        return read(named)
    frames = [frame.assign(frame=name) for name in named if len(frame := read(name))]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _each(column: dict, rows: pd.DataFrame) -> list[dict]:
    """Returns the column, or one for every combination of values that its rows have in the fields named in `each`."""
    if "each" not in column:
        return [column]
    selected = select(rows, **column.get("where", {}))
    if selected.empty:
        return []
    combinations = selected[column["each"]].drop_duplicates().to_dict("records")  # for texts; in `where` for rows
    return [column | values | {"where": column.get("where", {}) | values} for values in combinations]


def _value(column: dict, line: pd.DataFrame) -> Value:
    """What a column says of a line's first row with the values of the column's `where`; MISSING without such a row."""
    rows = select(line, **column.get("where", {}))
    kind = column.get("kind", "number")
    if rows.empty:
        return Value(MISSING, kind=kind)
    said = [part for part in ("text", "spread", "detail") if part in column]
    parts = {part: say(column[part], **column | rows.iloc[0].to_dict()) for part in said}
    return Value(**parts | {"text": parts["text"] or MISSING, "kind": kind})
