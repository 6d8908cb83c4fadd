"""The papers' tables. A row has up to three lines: published, recomputed from the released raw results, reproduced.

The tables are made from the cells that analysis filled (stages/evidence/cells.py). The two editions of a paper's table
are one table: one published line if both print the same, otherwise two lines with the differences marked. The verdict
on a cell is shown on hover, and in the CSV.

A row in this file is a frame of cells, one for every column of the table; a missing cell has only gaps.
"""

import re
from math import isnan

import pandas as pd

from stages.evidence.cells import BASELINE
from stages.evidence.fields import select_rows
from stages.evidence.published import EDITIONS, PAPER_SIZES
from stages.evidence.specifications import Table
from stages.evidence.statistics import EXACT, FEWEST, FINETUNING, ROUNDS
from stages.report.names import replace_keys, write_names
from stages.report.tables import MISSING, Grid, Group, Heading, Line, Value, format_number, format_spread, write_command
from stages.report.text_templates import fill_sentence

# columns of the CSV
CSV = [
    "edition",
    "row_key",
    "column_key",
    "metric",
    "printed",
    "published",
    "released",
    "reproduced",
    "reproduced_sd",
    "reproduced_n",
    "interval_low",
    "interval_high",
    "at_chance",
    "verdict",
]
# texts that can be set as a formula, with `^` before a power and `_` before an index
FORMULA = r"[\w()+\-/^=., ]+"


def build_paper_table(tables: tuple[Table, ...], cells: pd.DataFrame, left_out: set[str]) -> Grid:
    """Builds a published table from the cells; the tables of two editions, the earlier first, become one.

    Counts of the sizes `left_out` are not shown, unless the paper prints them. If there are two tables, the CSV has a
    column `edition`.
    """
    # title, headings and so on are of the later edition
    table = tables[-1]
    parts = [part.name for part in tables]
    # names of editions by table; a single table gets the first name, which is not shown
    editions = dict(zip(parts, EDITIONS.values(), strict=False))
    cells = select_rows(cells, table=parts).sort_values("table", kind="stable")
    cells = _drop_sizes(cells.assign(edition=cells["table"].map(editions)), left_out)
    # baselines are no results of this run
    models = cells[~cells["row_key"].str.startswith(BASELINE)]
    headings, groups = _build_groups(table, cells)
    csv = cells[CSV].rename(columns={"row_key": "row", "column_key": "column", "reproduced": "reproduced_mean"})
    # such as `Table 4`
    numbers = " or ".join(dict.fromkeys(part.number for part in tables))
    name, source = merge_name(table.name), "Kowsher et al."
    if len(tables) == 1:
        name, source, parts = table.name, table.source, []
        csv = csv.drop(columns="edition")
    return Grid(
        name=name,
        place=f"{source}, {numbers}",
        title=table.title,
        stage=table.stage,
        first=table.first,
        headings=tuple(headings),
        groups=tuple(groups),
        notes=_write_notes(tables, select_rows(cells, table=table.name)),
        labelled=True,
        parts=tuple(parts),
        measured=bool(models[["reproduced", "released"]].notna().any(axis=None)),
        csv=csv.assign(command=write_command(table.stage)),
    )


def merge_name(name: str) -> str:
    """Names a table of both editions: `kowsher2025_naacl_table1_glue` -> `kowsher_table1_glue`; other names stay."""
    return re.sub("|".join(EDITIONS), "kowsher", name)


def _drop_sizes(cells: pd.DataFrame, sizes: set[str]) -> pd.DataFrame:
    """Leaves out rows and columns of sizes, unless the paper prints them; columns of BERT-base always stay."""
    # the key of a row begins with the size, as in `base.shared`; the key of a column ends with it, as in `counted.base`
    for key, part, dropped in (("row_key", 0, sizes), ("column_key", -1, sizes - {PAPER_SIZES[-1]})):
        printed = cells.loc[cells["printed"].notna(), key]
        is_dropped = cells[key].str.split(".").str[part].isin(dropped)
        cells = cells[cells[key].isin(printed) | ~is_dropped]
    return cells


def _build_groups(table: Table, cells: pd.DataFrame) -> tuple[list[Heading], list[Group]]:
    """Builds the headings, as in the latest edition, and the rows of a table; a list has a row per cell."""
    latest_first = cells.sort_values("table", ascending=False, kind="stable")
    columns = latest_first.drop_duplicates("column_key")
    headings = [Heading(replace_keys(column.column), column.metric) for column in columns.itertuples()]
    by = ["row_key"]
    if table.is_list:
        headings = [Heading("Value")]
        by = ["row_key", "column_key"]
    groups = []
    for _, found in cells.groupby(by, sort=False):
        keys = found["column_key"].unique() if table.is_list else columns["column_key"]
        # by edition: the row with a cell for every key; a missing cell has only gaps
        rows = {}
        for edition, part in found.groupby("edition", sort=False):
            rows[edition] = part.set_index("column_key").reindex(keys)
        latest = list(rows.values())[-1]
        # any cell of the latest edition has the label of the row
        cell = found.iloc[-1]
        label = replace_keys(cell["row"])
        if table.is_list:
            label = write_names(f"{label}: {cell['column']}")
        if found["printed"].notna().any():
            remark = ""
            lines = _publish(rows) + _recompute(latest)
        else:
            # a row that the paper does not have
            remark = "no model" if cell["row_key"].startswith(BASELINE) else "not in the paper"
            lines = []
        lines += _reproduce(latest)
        if lines:
            groups.append(Group(label, tuple(lines), remark))
    return headings, groups


def _publish(rows: dict[str, pd.DataFrame]) -> list[Line]:
    """Builds the published lines from the row of each edition: one line, or two if the editions differ."""
    lines = []
    for edition, row in rows.items():
        lines.append(Line(f"published, {edition}", tuple(map(_format_printed, row.itertuples()))))
    if len({line.values for line in lines}) == 1:
        return [Line("published", lines[0].values)]
    return lines


def _format_printed(cell) -> Value:
    """Formats a cell as printed in the paper, with a † if the other edition prints another text."""
    if pd.isna(cell.printed):
        return Value(MISSING)
    # a text that is no number, such as `h^2`
    is_formula = isnan(cell.published) and re.fullmatch(FORMULA, cell.printed)
    kind = "formula" if is_formula else "number"
    text, detail = cell.printed, ""
    if pd.notna(cell.other_edition):
        text += " †"
        detail = f"the other edition: {cell.other_edition}"
    return Value(text, detail=detail, kind=kind)


def _recompute(row: pd.DataFrame) -> list[Line]:
    """Builds the line recomputed from the released results, if any, labelled as in `recomputed, n = 5`."""
    counts = row.loc[row["released"].notna(), "released_n"]
    if counts.empty:
        return []
    values = []
    for cell in row.itertuples():
        spread = format_spread(cell.released_sd, cell.decimals)
        values.append(Value(format_number(cell.released, cell.decimals), spread))
    return [Line(_add_n("recomputed", counts), tuple(values))]


def _reproduce(row: pd.DataFrame) -> list[Line]:
    """Builds the line of this run, if any, labelled `counted`, `reproduced, n = 3` or `computed`."""
    found = row[row["reproduced"].notna()]
    if found.empty:
        return []
    # a count, such as of parameters, is exact
    counted = found["unit_of_inference"] == EXACT
    labels = []
    if counted.any():
        labels.append("counted")
    if not counted.all():
        labels.append(_add_n("reproduced", found.loc[~counted, "reproduced_n"]))
    # a baseline, such as a constant answer, is no model of this run
    if found["row_key"].iloc[0].startswith(BASELINE):
        labels = ["computed"]
    return [Line(" and ".join(labels), tuple(map(_format_measured, row.itertuples())))]


def _format_measured(cell) -> Value:
    """Formats the number of this run: mean and spread, with interval, runs and verdict on hover."""
    if isnan(cell.reproduced):
        return Value(MISSING)
    text = format_number(cell.reproduced, cell.decimals)
    # the sentence leaves out fields without a value
    known = {name: value for name, value in cell._asdict().items() if pd.notna(value)}
    if known.get("at_chance"):
        text += "°"
    detail = fill_sentence("cell_detail", **known).rstrip("; ")
    return Value(text, format_spread(cell.reproduced_sd, cell.decimals), detail)


def _write_notes(tables: tuple[Table, ...], latest: pd.DataFrame) -> tuple[str, ...]:
    """Writes the notes of the tables, and notes on editions, scores at chance and numbers of runs.

    `latest` has the cells of the latest edition.
    """
    notes = []
    for table in tables:
        notes += table.notes
    if tables[-1].edition:
        notes.append(fill_sentence("edition_note", changed=latest["other_edition"].count()))
    if latest["at_chance"].any():
        notes.append(fill_sentence("chance_note"))
    # by unit: where the numbers are valid
    limits = {ROUNDS: "valid for this machine only", FINETUNING: "valid for this checkpoint only"}
    trained = latest[latest["unit_of_inference"] != EXACT]
    for (unit, n, runs), _ in trained.groupby(["unit_of_inference", "reproduced_n", "runs"]):
        too_few = f"too few {unit} for a verdict" if n < FEWEST else ""
        limit = limits.get(unit, too_few)
        # fine-tuning runs that are averaged within a unit
        each = runs // n if runs > n else 0
        notes.append(fill_sentence("unit_note", unit=unit, n=n, each=each, limit=limit))
    return tuple(dict.fromkeys(notes))


def _add_n(label: str, counts: pd.Series) -> str:
    """Appends the numbers of units behind a line to the label, as in `reproduced, n = 3 or 5`."""
    numbers = counts.dropna().astype(str).unique()
    return f"{label}, n = {' or '.join(numbers)}" if len(numbers) else label
