"""The papers' tables. A row has up to three lines: published, recomputed from the released raw results, reproduced.

They are made from the cells that analysis filled (stages/evidence/cells.py). The two editions of a paper's table are
one table here: one published line where both print the same, two with the differences marked where they do not.
"""

from collections.abc import Iterable

import pandas as pd

from stages.evidence import specifications
from stages.evidence.cell_verdicts import NO_MODEL, NOT_IN_PAPER
from stages.evidence.cells import PAPER_SIZES
from stages.evidence.published import EDITIONS
from stages.evidence.specifications import Table
from stages.report import names, paper_lines
from stages.report.tables import Grid, Group, Heading, Line, Value, command, number
from stages.report.words import sentence

LINKS = {  # where a source can be read, by the beginning of a table's name
    "courtois2024": ("ACL Anthology", "https://aclanthology.org/2024.findings-acl.476/"),
    "kowsher2024_arxiv": ("arXiv", "https://arxiv.org/abs/2412.00359v1"),
    "kowsher2025_naacl": ("ACL Anthology", "https://aclanthology.org/2025.naacl-industry.44/"),
}
CSV = ["edition", "row_key", "column_key", "metric", "printed", "published", "released", "reproduced", "reproduced_sd"]
CSV += ["reproduced_n", "interval_low", "interval_high", "at_chance", "verdict"]
CALLED = {"row_key": "row", "column_key": "column", "reproduced": "reproduced_mean"}  # of CSV, in the file
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
    labels = [EDITIONS[_edition(table.name)] if merged else "" for table in tables]
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
    notes += paper_lines.notes(latest)
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
    edition = _edition(name)
    return name.replace(edition, "kowsher", 1) if edition else name


def is_earlier(name: str) -> bool:
    """Whether a table is of the earlier one of two editions."""
    return _edition(name) == next(iter(EDITIONS))


def _edition(name: str) -> str:
    """The key of EDITIONS that a table's name begins with; empty where the paper has one edition."""
    return next((edition for edition in EDITIONS if name.startswith(edition)), "")


def _links(name: str, label: str = "") -> tuple[tuple[str, str], ...]:
    """(text, address) of where a table's paper can be read; a label replaces the text."""
    return tuple((label or text, address) for start, (text, address) in LINKS.items() if name.startswith(start))


def _asked_for(table: Table, cells: pd.DataFrame, sizes: Iterable[str]) -> pd.DataFrame:
    """Leaves out the rows and columns of sizes that neither the paper nor this run has; columns of BERT-base stay."""
    printed = cells["printed"].notna()
    # the rows of baselines stay: their keys, `baseline.NAME`, read as if `baseline` were a size
    rows = _wanted(cells["row_key"], [table.row_key], printed | (cells["verdict"] == NO_MODEL), {*sizes})
    patterns = [column.key for column in table.columns if "{size}" in column.key]
    return cells[rows & _wanted(cells["column_key"], patterns, printed, {*sizes, PAPER_SIZES[-1]})]


def _wanted(keys: pd.Series, patterns: list[str], kept: pd.Series, sizes: set[str]) -> pd.Series:
    """Marks keys [cells] that by patterns (`{size}.{operator}`) have no size, one of `sizes`, or any cell kept."""
    size_of = {key: next(filter(None, (_size(pattern, key) for pattern in patterns)), None) for key in keys.unique()}
    of_size = keys.map(lambda key: size_of[key] is None or size_of[key] in sizes)
    return of_size | keys.isin(keys[kept])


def _size(pattern: str, key: str) -> str | None:
    """The size in a key of this pattern; None where the key has none or is of another pattern."""
    return (specifications.fields(pattern, key) or {}).get("size") if pattern else None


def _matrix(by_edition: Editions) -> tuple[tuple[Group, ...], tuple[Heading, ...], bool]:
    """Makes groups of up to three lines for every row of the paper, four where its editions differ; and the headings.

    A column is headed as in the last edition, whose cells the lines below the published ones have. The third part of
    what is returned says whether lines have labels, here True.
    """
    columns = pd.concat(list(by_edition.values())[::-1]).drop_duplicates("column_key")
    keys = list(columns["column_key"])
    groups = []
    for key in dict.fromkeys(row for cells in by_edition.values() for row in cells["row_key"]):
        rows = {edition: _in_order(cells, key, keys) for edition, cells in by_edition.items()}
        rows = {edition: row for edition, row in rows.items() if any(row)}
        latest = list(rows.values())[-1]
        printed = any(pd.notna(cell.printed) for row in rows.values() for cell in row if cell)
        lines = [
            *(paper_lines.published(rows) if printed else ()),
            paper_lines.recomputed(latest) if printed else None,
            paper_lines.reproduced(latest),
        ]
        label = names.label(next(cell.row for cell in latest if cell))
        remark = NO_MODEL if any(cell.verdict == NO_MODEL for cell in latest if cell) else NOT_IN_PAPER
        groups.append(Group(label, tuple(filter(None, lines)), "" if printed else remark))
    headings = tuple(
        Heading(names.label(pair[0]), pair[1]) for pair in zip(columns["column"], columns["metric"], strict=True)
    )
    return tuple(group for group in groups if group.lines), headings, True


def _in_order(cells: pd.DataFrame, row: str, columns: list[str]) -> list:
    """The cells of a row, as named tuples, one for every column; None where it has none."""
    by_column = {cell.column_key: cell for cell in cells[cells["row_key"] == row].itertuples()}
    return [by_column.get(column) for column in columns]


def _list(by_edition: Editions) -> tuple[tuple[Group, ...], tuple[Heading, ...], bool]:
    """Makes a group of one unlabelled line for every number, with a column per edition; returns what `_matrix` does."""
    places = {
        edition: {(cell.row_key, cell.column_key): cell for cell in cells.itertuples()}
        for edition, cells in by_edition.items()
    }
    latest = list(by_edition.values())[-1]
    columns = {"Where": None} | {f"Published{', ' + edition if edition else ''}": None for edition in by_edition}
    columns |= {"Recomputed": None} if latest["released"].notna().any() else {}
    columns |= {"Reproduced or counted": None} if latest["reproduced"].notna().any() else {}
    groups = []
    for key in dict.fromkeys(key for cells in places.values() for key in cells):
        cells = [cells.get(key) for cells in places.values()]
        cell = [cell for cell in cells if cell][-1]
        values = [Value(cell.column, kind="text"), *map(paper_lines.printed, cells)]
        values += [Value(number(cell.released, cell.decimals))] if "Recomputed" in columns else []
        values += [paper_lines.measured(cell)] if "Reproduced or counted" in columns else []
        groups.append(Group(names.prose(names.label(cell.row)), (Line("", tuple(values)),)))
    return tuple(groups), tuple(Heading(label) for label in columns), False
