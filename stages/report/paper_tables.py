"""The papers' tables. A row has up to three lines: published, recomputed from the released raw results, reproduced.

The tables are made from the cells that analysis filled (stages/evidence/cells.py). The two editions of a paper's table
are one table: one published line if both print the same, otherwise two lines with the differences marked. The verdict
on a cell is shown on hover, and in the CSV.

A row in this file is a list of cells, one for every column, None for a missing cell.
"""

import re
from dataclasses import replace
from itertools import product
from math import isnan

import pandas as pd

from stages.evidence.cells import BASELINE, MEASURED, PAPER_SIZES
from stages.evidence.published import EDITIONS
from stages.evidence.specifications import Table
from stages.evidence.statistics import EXACT, FEWEST, FINETUNING, ROUNDS
from stages.report import names
from stages.report.tables import (
    MISSING,
    Grid,
    Group,
    Heading,
    Line,
    Value,
    format_interval,
    format_number,
    format_spread,
    write_command,
)
from stages.report.text_templates import fill_sentence

# columns of the CSV: names in the cells, and names in the file
CSV = {
    "edition": "edition",
    "row_key": "row",
    "column_key": "column",
    "metric": "metric",
    "printed": "printed",
    "published": "published",
    "released": "released",
    "reproduced": "reproduced_mean",
    "reproduced_sd": "reproduced_sd",
    "reproduced_n": "reproduced_n",
    "interval_low": "interval_low",
    "interval_high": "interval_high",
    "at_chance": "at_chance",
    "verdict": "verdict",
}
# a cell that the other edition prints differently, and a score that is not above the interval of a constant answer
CHANGED = "†"
CHANCE = "°"
# texts that can be set as a formula, with `^` before a power and `_` before an index
FORMULA = re.compile(r"[\w()+\-/^=., ]+")
# the cells of a table by edition, the later one last
Editions = dict[str, pd.DataFrame]


def build_paper_table(tables: tuple[Table, ...], cells: pd.DataFrame, left_out: set[str]) -> Grid:
    """Builds a published table from the cells; the tables of two editions, the earlier first, become one.

    Counts of the sizes `left_out` are not shown, unless the paper prints them. The CSV of both editions has a column
    `edition`.
    """
    merged = len(tables) > 1
    table = tables[-1]
    labels = list(EDITIONS.values()) if merged else [""]
    by_edition = {}
    for label, part in zip(labels, tables, strict=True):
        by_edition[label] = _drop_sizes(cells[cells["table"] == part.name], left_out)
    everything = pd.concat([part.assign(edition=edition) for edition, part in by_edition.items()])
    headings, groups = _build_groups(table, by_edition)
    csv = everything[list(CSV)].rename(columns=CSV).assign(command=write_command(table.stage))
    if not merged:
        csv = csv.drop(columns="edition")
    # baselines are no results of this run
    measured = everything.loc[~everything["row_key"].str.startswith(BASELINE), ["reproduced", "released"]].notna()
    numbers = " or ".join(dict.fromkeys(part.number for part in tables))
    source = "Kowsher et al." if merged else table.source
    return Grid(
        name=merge_name(table.name) if merged else table.name,
        place=f"{source}, {numbers}",
        title=table.title,
        stage=table.stage,
        first=table.first,
        headings=tuple(headings),
        groups=tuple(groups),
        notes=_write_notes(tables, by_edition[labels[-1]]),
        labelled=True,
        measured=bool(measured.any(axis=None)),
        parts=tuple(part.name for part in tables) if merged else (),
        csv=csv,
    )


def merge_name(name: str) -> str:
    """Names a table of both editions: `kowsher2025_naacl_table1_glue` -> `kowsher_table1_glue`; other names stay."""
    for edition in EDITIONS:
        if name.startswith(edition):
            return f"kowsher{name.removeprefix(edition)}"
    return name


def _drop_sizes(cells: pd.DataFrame, sizes: set[str]) -> pd.DataFrame:
    """Leaves out rows and columns of sizes, unless the paper prints them; columns of BERT-base always stay."""
    printed = cells["printed"].notna()
    # a row begins with the size, as in `base.shared`, and a column ends with the size, as in `counted.base`
    for axis, place, dropped in (("row_key", 0, sizes), ("column_key", -1, sizes - {PAPER_SIZES[-1]})):
        keys = cells[axis]
        kept = keys.isin(keys[printed]) | ~keys.str.split(".").str[place].isin(dropped)
        cells, printed = cells[kept], printed[kept]
    return cells


def _build_groups(table: Table, by_edition: Editions) -> tuple[list[Heading], list[Group]]:
    """Builds headings, which are of the last edition, and rows of a table; a row of a list has a single cell."""
    placed = {}
    for edition, cells in by_edition.items():
        placed[edition] = {(cell.row_key, cell.column_key): cell for cell in cells.itertuples()}
    everything = pd.concat(by_edition.values())
    latest_first = list(by_edition.values())[::-1]
    columns = pd.concat(latest_first).drop_duplicates("column_key")
    headings = [Heading(names.replace_keys(column.column), column.metric) for column in columns.itertuples()]
    keys_of_rows = [list(product([row], columns["column_key"])) for row in everything["row_key"].unique()]
    if table.is_list:
        headings = [Heading("Value")]
        cells = zip(everything["row_key"], everything["column_key"], strict=True)
        keys_of_rows = [[key] for key in dict.fromkeys(cells)]
    # an edition may lack a row
    groups = []
    for keys in keys_of_rows:
        rows = {}
        for edition, found in placed.items():
            row = [found.get(key) for key in keys]
            if any(row):
                rows[edition] = row
        group = _build_group(table, rows)
        if group.lines:
            groups.append(group)
    return headings, groups


def _build_group(table: Table, rows: dict[str, list]) -> Group:
    """Builds the lines of a row: as published (two if the editions differ), recomputed, and reproduced."""
    latest = list(rows.values())[-1]
    present = [cell for cell in latest if cell]
    printed = any(cell and pd.notna(cell.printed) for row in rows.values() for cell in row)
    lines = []
    remark = ""
    if printed:
        values = {edition: tuple(map(_format_printed, row)) for edition, row in rows.items()}
        lines = [Line(f"published, {edition}", found) for edition, found in values.items()]
        if len(set(values.values())) == 1:
            lines = [replace(lines[0], label="published")]
        lines.append(_recompute_line(latest))
    else:
        remark = "no model" if present[0].row_key.startswith(BASELINE) else "not in the paper"
    lines.append(_reproduce_line(latest))
    label = names.replace_keys(present[0].row)
    if table.is_list:
        label = names.write_names(f"{label}: {present[0].column}")
    return Group(label, tuple(line for line in lines if line), remark)


def _format_printed(cell) -> Value:
    """Formats a cell as printed in the paper, marked if the other edition has something else."""
    if cell is None or pd.isna(cell.printed):
        return Value(MISSING)
    is_formula = isnan(cell.published) and FORMULA.fullmatch(cell.printed)
    kind = "formula" if is_formula else "number"
    if pd.notna(cell.other_edition):
        return Value(f"{cell.printed} {CHANGED}", detail=f"the other edition: {cell.other_edition}", kind=kind)
    return Value(cell.printed, kind=kind)


def _recompute_line(row: list) -> Line | None:
    """Builds the line of the released results; None if there is no released result for any cell."""
    counts = []
    values = []
    for cell in row:
        if cell is None:
            values.append(Value(MISSING))
            continue
        if pd.notna(cell.released):
            counts.append(cell.released_n)
        values.append(
            Value(format_number(cell.released, cell.decimals), format_spread(cell.released_sd, cell.decimals))
        )
    if not counts:
        return None
    return Line(_add_n("recomputed", counts), tuple(values))


def _reproduce_line(row: list) -> Line | None:
    """Builds the line of this run, labelled `counted`, `reproduced, n = 3` or `computed`; None without a number."""
    cells = [cell for cell in row if cell and pd.notna(cell.reproduced)]
    if not cells:
        return None
    # counts have no units of inference
    trained = [cell.reproduced_n for cell in cells if cell.unit_of_inference != EXACT]
    labels = []
    if len(trained) < len(cells):
        labels.append("counted")
    if trained:
        labels.append(_add_n("reproduced", trained))
    if cells[0].row_key.startswith(BASELINE):
        labels = ["computed"]
    return Line(" and ".join(labels), tuple(_format_measured(cell) for cell in row))


def _format_measured(cell) -> Value:
    """Formats the number of this run: mean and spread; as a detail interval, runs and verdict."""
    if cell is None or isnan(cell.reproduced):
        return Value(MISSING)
    text = format_number(cell.reproduced, cell.decimals)
    if pd.notna(cell.at_chance) and cell.at_chance:
        text += CHANCE
    interval, units = "", ""
    if pd.notna(cell.interval_low):
        interval = format_interval(cell.interval_low, cell.interval_high, cell.decimals)
    if pd.notna(cell.reproduced_sd):
        units = f"n = {cell.reproduced_n} {cell.unit_of_inference}, {cell.runs} runs"
    verdict = "" if pd.isna(cell.verdict) else cell.verdict
    detail = fill_sentence("cell_detail", interval=interval, units=units, verdict=verdict).rstrip("; ")
    return Value(text, format_spread(cell.reproduced_sd, cell.decimals), detail)


def _write_notes(tables: tuple[Table, ...], latest: pd.DataFrame) -> tuple[str, ...]:
    """Writes the notes below a published table: its own, and on editions, scores at chance and numbers of runs."""
    notes = []
    for table in tables:
        notes += table.notes
    if tables[-1].edition:
        changed = int(latest["other_edition"].notna().sum())
        notes.append(fill_sentence("edition_note", changed=changed))
    if latest["at_chance"].eq(True).any():
        notes.append(fill_sentence("chance_note"))
    trained = latest[(latest["status"] == MEASURED) & latest["unit_of_inference"].notna()]
    trained = trained[trained["unit_of_inference"] != EXACT]
    for (unit, n, runs), _ in trained.groupby(["unit_of_inference", "reproduced_n", "runs"]):
        each = runs // n if runs > n else 0
        notes.append(fill_sentence("unit_note", unit=unit, n=n, each=each, limit=describe_limit(unit, n)))
    return tuple(dict.fromkeys(notes))


def describe_limit(unit: str, n: int) -> str:
    """Describes for what numbers over n units are valid; an empty text from three seeds on."""
    if unit == ROUNDS:
        return "valid for this machine only"
    if unit == FINETUNING or n == 1:
        return "valid for this checkpoint only"
    if n < FEWEST:
        return f"too few {unit} for a verdict"
    return ""


def _add_n(label: str, counts: list) -> str:
    """Appends the numbers of units behind a line to the label, as in `reproduced, n = 3 or 5`."""
    numbers = [str(n) for n in counts if pd.notna(n)]
    if not numbers:
        return label
    return f"{label}, n = {' or '.join(dict.fromkeys(numbers))}"
