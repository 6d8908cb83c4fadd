"""Our own tables: each is an entry of reports/templates/tables.yaml that selects from a frame.

An entry names its `frame` (or several, one below the other, each with its name in the field `frame`), the values that
rows must have (`where`), the fields that tell lines apart (`line`; by default every row is a line) and the columns. The
form `default` has the keys that a column may leave out, and `form` names another entry of `forms` with keys. A column
shows, of each line, the first row that its own `where` selects: the `field`, or a `text`. `each` repeats a column for
every combination of values of some fields. A label is a list of fields, or a text.

Texts are templates over the row, the keys of the column, facts of the run, and `shown` (the field in print),
`significant` and `remark` (the reason beside a verdict). A note is a text, or a mapping: `text` names the distinct
values of the fields `of` in the rows that `where` selects, and the note is left out without values. A table of the kind
`ledger` has verdicts, with the `marks` of a row such as `symbol`. `csv` names another frame for the file.
"""

from collections.abc import Iterable

import pandas as pd

from stages.evidence.fields import select_rows, stack_frames
from stages.evidence.verdicts import Difference
from stages.report.names import name_fields
from stages.report.tables import MISSING, Grid, Group, Heading, Line, Reader, Value, format_number
from stages.report.text_templates import fill_template, read_content


def build_table(name: str, read: Reader, entry: dict | None = None, **facts: object) -> Grid:
    """Builds a table by its entry of tables.yaml, or by `entry`; a table without rows has a single line `not run`.

    `read` returns a frame by name; texts may name `facts` beside the fields of a row.
    """
    entry = entry or read_content("tables")[name]
    frame = entry["frame"]
    if isinstance(frame, str):
        csv = read(frame)
    else:
        csv = stack_frames([read(part).assign(frame=part) for part in frame])
    csv = select_rows(csv, **entry.get("where", {}))
    # templates read a gap as an empty text
    rows = csv.astype(object).where(csv.notna(), "")
    columns = _list_columns(entry["columns"], rows, facts)
    label = entry["label"]
    # a label that is a list leaves out fields with the same value in all rows, except the first field
    same = [field for field in rows if len(_list_values(rows[field])) < 2 and field != label[0]]
    groups = []
    # without fields that tell lines apart, every row is a line
    by = entry.get("line") or list(range(len(rows)))
    # label and source of a line are those of its first row
    lines = rows.groupby(by, sort=False) if len(rows) else ()
    for _, line in lines:
        cells = tuple(_fill_value(column, line) for column in columns)
        row = line.iloc[0].to_dict()
        text = _fill_label(label, row, same)
        groups.append(Group(text, (Line("", cells),), source=row.get("source", "")))
    not_run = Group("This run", (Line("", (), note=Difference.NOT_RUN),))
    headings = []
    for column in columns:
        # a repeated column without a label is named by the values of `each`
        text = _fill_label(column["label"] or column["each"], column)
        headings.append(Heading(text, _fill_label(column["meaning"], column)))
    return Grid(
        name=name,
        title=fill_template(entry["title"], **facts),
        stage=entry["stage"],
        first=entry["first"],
        headings=tuple(headings),
        groups=tuple(groups) or (not_run,),
        notes=_write_notes(entry.get("notes", ()), rows, facts),
        measured=bool(groups),
        kind=entry.get("kind", "table"),
        csv=read(entry["csv"]) if "csv" in entry else csv,
    )


def _list_columns(listed: list[dict], rows: pd.DataFrame, facts: dict) -> list[dict]:
    """Lists the columns with the keys of `default` and `form` filled in, and repeats columns with `each`."""
    forms = read_content("tables")["forms"]
    columns = []
    for keys in listed:
        # from the weakest to the strongest: later keys replace earlier keys
        column = {**forms["default"], **facts, **forms.get(keys.get("form"), {}), **keys}
        combinations = [{}]
        if column["each"]:
            selected = select_rows(rows, **column["where"]).reindex(columns=column["each"])
            combinations = selected.drop_duplicates().to_dict("records")
        # such as {"protocol": "courtois2024"}
        for values in combinations:
            # the values select the rows of the column, and the texts of the column may name the values
            columns.append({**column, **values, "where": {**column["where"], **values}})
    return columns


def _fill_label(label: str | list[str], values: dict, hidden: Iterable[str] = ()) -> str:
    """Fills a template, or joins the values of fields: `[size operator, task]` gives `BERT-tiny original, QQP`.

    `hidden` lists fields that are left out.
    """
    if isinstance(label, str):
        return fill_template(label, **values)
    parts = [name_fields(part, values) for part in label if part not in hidden]
    return ", ".join(filter(None, parts))


def _fill_value(column: dict, line: pd.DataFrame) -> Value:
    """Fills the cell of a column from the first row of the line that the column's `where` selects."""
    rows = select_rows(line, **column["where"])
    kind = column["kind"]
    if rows.empty:
        return Value(column["missing"], kind=kind)
    # texts may name the keys of the column and the fields of the row
    values = {**column, **rows.iloc[0].to_dict()}
    value = values.get(column["field"])
    values["shown"] = name_fields(column["field"], values)
    if isinstance(value, (int, float)):
        values["shown"] = format_number(value * column["scale"], column["decimals"])
    elif value:
        kind = "text"
    verdict = values["verdict"]
    values["significant"] = verdict in (Difference.HIGHER, Difference.LOWER)
    # a reason may end with a check, as in `...; joint sign flips disagree (p = 0.061)`
    values["remark"] = values["reason"].partition("; ")[2]
    if verdict in (Difference.TOO_FEW, Difference.BUSY):
        values["remark"] = values["reason"]
    parts = {part: fill_template(column[part], **values) for part in ("text", "spread", "detail", "because")}
    parts["text"] = parts["text"] or MISSING
    # of a ledger: checks, symbol and tone
    marks = {field: values[field] for field in column["marks"]}
    return Value(kind=kind, **parts, **marks)


def _write_notes(notes: Iterable[str | dict], rows: pd.DataFrame, facts: dict) -> tuple[str, ...]:
    """Fills the notes: texts, or mappings with `text`, `of` and `where`."""
    written = []
    for note in notes:
        if isinstance(note, str):
            note = {"text": note, "of": []}
        selected = select_rows(rows, **note.get("where", {})).reindex(columns=note["of"], fill_value="")
        values = {field: " or ".join(_list_values(selected[field])) for field in selected}
        # a note is left out if a field has no values
        if all(values.values()):
            written.append(fill_template(note["text"], **facts, **values))
    return tuple(written)


def _list_values(column: pd.Series) -> list[str]:
    """Lists the distinct values of a field as texts, without gaps and zeros."""
    # a field with gaps has whole numbers such as 3.0
    texts = column[column.astype(bool)].astype(str).str.removesuffix(".0")
    return list(texts.unique())
