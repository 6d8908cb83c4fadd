"""The papers' tables. A row has up to three lines: published, recomputed from the released raw results, reproduced.

They are made from the cells that analysis filled (stages/evidence/cells.py). The two editions of a paper's table are
one table here: one published line where both print the same, two with the differences marked where they do not.

A row here is a list of cells, one for every column of the table, None where it has none. A cell is a named tuple with
the fields that `fill` of stages/evidence/cells.py describes; NaN or None stands for what it lacks. The verdict NO_MODEL
marks the rows of baselines, such as a constant answer.
"""

import re
from collections.abc import Iterable
from math import isnan

import pandas as pd

from stages.evidence import specifications
from stages.evidence.cell_verdicts import NO_MODEL, NOT_IN_PAPER, NOT_JUDGED, NOT_MEASURED, NOT_RUN
from stages.evidence.cells import PAPER_SIZES
from stages.evidence.published import EDITIONS
from stages.evidence.specifications import Table
from stages.evidence.statistics import EXACT
from stages.report import names
from stages.report.tables import MISSING, Grid, Group, Heading, Line, Value, command, number, spread
from stages.report.words import sentence

LINKS = {  # where a source can be read, by the beginning of a table's name
    "courtois2024": ("ACL Anthology", "https://aclanthology.org/2024.findings-acl.476/"),
    "kowsher2024_arxiv": ("arXiv", "https://arxiv.org/abs/2412.00359v1"),
    "kowsher2025_naacl": ("ACL Anthology", "https://aclanthology.org/2025.naacl-industry.44/"),
}
CSV = ["edition", "row_key", "column_key", "metric", "printed", "published", "released", "reproduced", "reproduced_sd"]
CSV += ["reproduced_n", "interval_low", "interval_high", "at_chance", "verdict"]
CALLED = {"row_key": "row", "column_key": "column", "reproduced": "reproduced_mean"}  # of CSV, in the file
CHANGED = "†"  # a cell that the paper's other edition prints otherwise
CHANCE = "°"  # a score that is not above the interval of a constant answer's
FORMULA = re.compile(r"[\w()+\-/^=., ]+")  # what can be set as a formula, `^` before a power and `_` before an index
Editions = dict[str, pd.DataFrame]  # the cells of a table by edition, the later one last


def paper_table(tables: tuple[Table, ...], cells: pd.DataFrame, sizes: Iterable[str]) -> Grid:
    """Builds a published table from its cells as analysis filled them; that of both editions of a paper as one.

    Args:
        tables: the table, or that of each edition, the earlier one first.
        cells: of these tables, and maybe of others; columns as in stages/evidence/cells.py.
        sizes: those of this run; what was counted for sizes that neither this run nor the paper has is left out.

    Returns:
        The table; that of both editions is named without the edition, and its CSV tells cells apart by `edition`.
    """
    merged, table = len(tables) > 1, tables[-1]
    labels = list(EDITIONS.values()) if merged else [""]
    by_edition = {
        label: _asked_for(table, cells[cells["table"] == table.name], sizes)
        for label, table in zip(labels, tables, strict=True)
    }
    groups, headings, labelled = (_list if table.is_list else _matrix)(by_edition)
    everything = pd.concat([cells.assign(edition=edition) for edition, cells in by_edition.items()])
    csv = everything[CSV].rename(columns=CALLED).assign(command=command(table.stage))
    latest = by_edition[labels[-1]]
    changed = int(latest["other_edition"].notna().sum())
    notes = [note for table in tables for note in table.notes]
    notes += [sentence("edition_note", changed=changed)] if table.edition else []
    notes += _notes(latest)
    measured = everything.loc[everything["verdict"] != NO_MODEL, ["reproduced", "released"]].notna()
    numbers = " or ".join(dict.fromkeys(table.number for table in tables))
    return Grid(
        name=merged_name(table.name) if merged else table.name,
        place=f"{'Kowsher et al.' if merged else table.source}, {numbers}",
        title=table.title,
        stage=table.stage,
        first=table.first,
        headings=headings,
        groups=groups,
        notes=tuple(dict.fromkeys(notes)),
        labelled=labelled,
        measured=bool(measured.any(axis=None)),
        links=tuple(link for label, table in zip(labels, tables, strict=True) for link in _links(table.name, label)),
        parts=tuple(table.name for table in tables) if merged else (),
        csv=csv if merged else csv.drop(columns="edition"),
    )


def merged_name(name: str) -> str:
    """Names a table of both editions: `kowsher2025_naacl_table1_glue` -> `kowsher_table1_glue`; other names stay."""
    return re.sub(rf"^({'|'.join(EDITIONS)})", "kowsher", name)


def _links(name: str, label: str) -> tuple[tuple[str, str], ...]:
    """(text, address) of where a table's paper can be read; a label that is not empty replaces the text."""
    return tuple((label or text, address) for start, (text, address) in LINKS.items() if name.startswith(start))


def _asked_for(table: Table, cells: pd.DataFrame, sizes: Iterable[str]) -> pd.DataFrame:
    """Leaves out the rows and columns of sizes that neither the paper nor this run has; columns of BERT-base stay."""
    printed = cells["printed"].notna()
    # the rows of baselines stay: their keys, `baseline.NAME`, read as if `baseline` were a size
    rows = _wanted(cells["row_key"], [table.row_key], printed | (cells["verdict"] == NO_MODEL), {*sizes})
    patterns = [column.key for column in table.columns if "{size}" in column.key]
    return cells[rows & _wanted(cells["column_key"], patterns, printed, {*sizes, PAPER_SIZES[-1]})]


def _wanted(keys: pd.Series, patterns: list[str], kept: pd.Series, sizes: set[str]) -> pd.Series:
    """Marks keys [cells] that by patterns (`{size}.{operator}`) have no size or one of `sizes`, or of a cell kept."""
    size_of = {}
    for key in keys.unique():
        fields = [specifications.fields(pattern, key) or {} for pattern in patterns if pattern]
        size_of[key] = next((found["size"] for found in fields if found.get("size")), None)
    of_size = keys.map(lambda key: size_of[key] is None or size_of[key] in sizes)
    return of_size | keys.isin(keys[kept])


def _placed(by_edition: Editions) -> dict[str, dict]:
    """The cells of every edition, as named tuples, by their keys of row and column."""
    return {
        edition: {(cell.row_key, cell.column_key): cell for cell in cells.itertuples()}
        for edition, cells in by_edition.items()
    }


def _matrix(by_edition: Editions) -> tuple[tuple[Group, ...], tuple[Heading, ...], bool]:
    """Makes groups of up to three lines for every row of the paper, four where its editions differ; and the headings.

    Headings, and cells of all lines below the published ones, are of the last edition. True: lines have labels.
    """
    columns = pd.concat(list(by_edition.values())[::-1]).drop_duplicates("column_key")
    keys = list(columns["column_key"])
    placed, groups = _placed(by_edition), []
    for key in dict.fromkeys(row for cells in by_edition.values() for row in cells["row_key"]):
        rows = {edition: [cells.get((key, column)) for column in keys] for edition, cells in placed.items()}
        rows = {edition: row for edition, row in rows.items() if any(row)}
        latest = list(rows.values())[-1]
        printed = any(pd.notna(cell.printed) for row in rows.values() for cell in row if cell)
        lines = [
            *(_published(rows) if printed else ()),
            _recomputed(latest) if printed else None,
            _reproduced(latest),
        ]
        label = names.label(next(cell.row for cell in latest if cell))
        remark = NO_MODEL if any(cell.verdict == NO_MODEL for cell in latest if cell) else NOT_IN_PAPER
        groups.append(Group(label, tuple(filter(None, lines)), "" if printed else remark))
    headings = tuple(
        Heading(names.label(pair[0]), pair[1]) for pair in zip(columns["column"], columns["metric"], strict=True)
    )
    return tuple(group for group in groups if group.lines), headings, True


def _list(by_edition: Editions) -> tuple[tuple[Group, ...], tuple[Heading, ...], bool]:
    """Makes a group of one unlabelled line for every number, with a column per edition; returns what `_matrix` does."""
    latest = list(by_edition.values())[-1]
    columns = ["Where", *(f"Published{', ' + edition if edition else ''}" for edition in by_edition)]
    columns += ["Recomputed"] if latest["released"].notna().any() else []
    columns += ["Reproduced or counted"] if latest["reproduced"].notna().any() else []
    placed, groups = _placed(by_edition).values(), []  # the later edition last, as everywhere here
    for key in dict.fromkeys(key for cells in placed for key in cells):
        cells = [cells.get(key) for cells in placed]
        cell = [cell for cell in cells if cell][-1]
        values = [Value(cell.column, kind="text"), *map(_printed, cells)]
        values += [Value(number(cell.released, cell.decimals))] if "Recomputed" in columns else []
        values += [_measured(cell)] if "Reproduced or counted" in columns else []
        groups.append(Group(names.prose(names.label(cell.row)), (Line("", tuple(values)),)))
    return tuple(groups), tuple(Heading(label) for label in columns), False


def _published(rows: dict[str, list]) -> list[Line]:
    """Gives a line per edition, or one where all print the same. rows: cells of a row by edition, the later last."""
    texts = {edition: [cell.printed if cell else None for cell in row] for edition, row in rows.items()}
    same = len({tuple(map(str, line)) for line in texts.values()}) == 1
    shown = dict(list(rows.items())[-1:]) if same else rows
    return [
        Line("published" if same else f"published, {edition}", tuple(map(_printed, row)))
        for edition, row in shown.items()
    ]


def _printed(cell) -> Value:
    """Formats one cell as the paper prints it, marked where its other edition has something else."""
    if cell is None or pd.isna(cell.printed):
        return Value(MISSING)
    kind = "formula" if isnan(cell.published) and FORMULA.fullmatch(cell.printed) else "number"
    if pd.notna(cell.other_edition):
        return Value(f"{cell.printed} {CHANGED}", detail=f"the other edition: {cell.other_edition}", kind=kind)
    return Value(cell.printed, kind=kind)


def _recomputed(row: list) -> Line | None:
    """Gives what follows from the results that the authors released; None where they say nothing on any cell."""
    counts = [cell.released_n for cell in row if cell and pd.notna(cell.released)]
    values = [
        Value(number(cell.released, cell.decimals), spread(cell.released_sd, cell.decimals)) if cell else Value(MISSING)
        for cell in row
    ]
    return Line(_with_n("recomputed", counts), tuple(values)) if counts else None


def _reproduced(row: list) -> Line | None:
    """Gives what this run counted, measured or, for a baseline, computed; None where it has no number of the row."""
    cells = [cell for cell in row if cell and pd.notna(cell.reproduced)]
    if not cells:
        return None
    trained = [cell.reproduced_n for cell in cells if cell.unit_of_inference != EXACT]
    counted = "counted" if len(trained) < len(cells) else ""
    label = " and ".join(part for part in (counted, _with_n("reproduced", trained) if trained else "") if part)
    computed = any(cell.verdict == NO_MODEL for cell in cells)
    return Line("computed" if computed else label, tuple(map(_measured, row)))


def _measured(cell) -> Value:
    """Formats one cell of this run: mean and spread; as their detail the interval, the runs and the verdict."""
    if cell is None or isnan(cell.reproduced):
        return Value(MISSING)
    mark = CHANCE if pd.notna(cell.at_chance) and cell.at_chance else ""
    judged = cell.verdict not in (NOT_MEASURED, NOT_JUDGED, NOT_IN_PAPER, NOT_RUN, NO_MODEL)
    detail = sentence("cell_detail", cell=cell, judged=judged)
    return Value(number(cell.reproduced, cell.decimals) + mark, spread(cell.reproduced_sd, cell.decimals), detail)


def _notes(cells: pd.DataFrame) -> list[str]:
    """Says what CHANCE means, where a cell has it, and what n and ± are in the reproduced lines: a note for each n."""
    trained = cells[(cells["status"] == "reproduced") & cells["unit_of_inference"].notna()]
    trained = trained[trained["unit_of_inference"] != EXACT]
    texts = [sentence("chance_note")] if cells["at_chance"].eq(True).any() else []
    for (unit, n, runs), _ in trained.groupby(["unit_of_inference", "reproduced_n", "runs"]):
        texts.append(sentence("unit_note", unit=unit, n=n, runs=runs))
    return texts


def _with_n(label: str, counts: list) -> str:
    """Appends the numbers of units behind a line to its label, as in `reproduced, n = 3 or 5`."""
    numbers = [str(n) for n in dict.fromkeys(counts) if pd.notna(n)]
    return f"{label}, n = {' or '.join(numbers)}" if numbers else label
