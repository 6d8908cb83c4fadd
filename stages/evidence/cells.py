"""Fills the cells of a table: published, recomputed from the released raw results, reproduced in this run.

One row per cell, for the paper's rows and for rows that only this run has (a size or an operator outside the paper).
cell_verdicts.py judges them. Cells select measurements by their fields (see derived.py). Lists: see specifications.py.
"""

from dataclasses import dataclass, replace
from math import isnan

import pandas as pd

from stages.evidence import baselines, cell_verdicts, published, specifications
from stages.evidence.cell_verdicts import NO_MODEL, NOT_MEASURED, NOT_RUN
from stages.evidence.convergence import selected
from stages.evidence.derived import matching
from stages.evidence.specifications import Column, Row, Table
from stages.evidence.statistics import summarise
from stages.schema.sections import Analysis

PAPER_SIZES = ("small", "base")
TYPES = {  # of pandas, by the columns of a filled table, which `fill` explains
    **dict.fromkeys(("table", "row_key", "column_key", "row", "column", "metric"), "str"),
    "decimals": "int64",
    **dict.fromkeys(("printed", "other_edition"), "str"),
    **dict.fromkeys(("published", "published_sd", "released", "released_sd"), "float64"),
    "released_n": "Int64",
    **dict.fromkeys(("reproduced", "reproduced_sd"), "float64"),
    "reproduced_n": "Int64",
    **dict.fromkeys(("interval_low", "interval_high"), "float64"),
    "unit_of_inference": "str",
    "runs": "Int64",
    **dict.fromkeys(("within_sd", "p_difference"), "float64"),
    **dict.fromkeys(("status", "verdict"), "str"),
    **dict.fromkeys(("most_frequent", "words_and_overlap"), "float64"),
    "at_chance": "boolean",
}


@dataclass(frozen=True)
class Evidence:
    """Measurements of this run and of the released raw results (columns of measurements.FIELDS).

    operators: those of params.yaml, which alone get rows that the paper lacks: parameters are counted of others, too.
    sizes: of the run. options: of the analysis. comparable: whether the run's data are of the papers' kind; scores on
    generated data are not compared. without_model: of `baselines.without_model`; baselines have rows of their own.
    """

    run: pd.DataFrame
    released: pd.DataFrame
    operators: tuple[str, ...]
    sizes: tuple[str, ...]
    options: Analysis
    comparable: bool
    without_model: baselines.WithoutModel


def fill(table: Table, evidence: Evidence) -> pd.DataFrame:
    """Fills all cells of a table, row by row; values in the printed unit. Columns: TYPES.

    row_key, column_key: as published, or their like; row, column: labels; metric: what the cell holds; decimals: of
    measured values; printed: the paper's text. published, released, reproduced: the means printed, of the released
    results and of this run; with `_sd` their sample standard deviations, with `_n` the number of units of inference.
    interval_low, interval_high, unit_of_inference, runs, within_sd: of this run, as `Summary` has them. most_frequent,
    words_and_overlap: what these baselines score; at_chance: whether this run scores no more than the upper end of the
    first one's interval. p_difference: adjusted by `cell_verdicts.of_families`. other_edition: what the
    paper's other edition prints, where it differs. status: `reproduced`, `not run at this scale`, or an empty text
    where nothing measures the cell. verdict: of cell_verdicts.py, or how many runs never reached a milestone. Whatever
    a cell lacks is missing. Raises ValueError for a published cell without a row or column in the specification, and
    for an entry of a list without a published cell.
    """
    released = matching(evidence.released, table.select | table.released)
    evidence = replace(evidence, run=matching(evidence.run, table.select), released=released)
    make = _list if table.is_list else _matrix
    cells = pd.DataFrame(make(table, published.table(table.name), evidence), columns=list(TYPES))
    frame = cell_verdicts.of_families(cells, table.is_list, evidence.options.alpha).astype(TYPES)
    if table.edition:
        other, keys = published.table(table.edition), ["row_key", "column_key"]
        elsewhere = frame[keys].merge(other[[*keys, "printed"]], how="left", on=keys)["printed"]
        frame["other_edition"] = elsewhere.where(frame["printed"].notna() & (elsewhere != frame["printed"]))
    return frame


def _matrix(table: Table, paper: pd.DataFrame, evidence: Evidence) -> list[dict]:
    """The cells of a table with common columns: the paper's rows, those that only this run has, and the baselines."""
    columns = _expand(table, evidence.run)
    printed = {(cell.row_key, cell.column_key): cell for cell in paper.itertuples()}
    rows = {key: _row(table, key) for key in dict.fromkeys(paper["row_key"])}
    column_keys = {column.key for column in columns}
    unplaced = [key for key in printed if rows[key[0]] is None or key[1] not in column_keys]
    if unplaced:
        raise ValueError(
            f"{specifications.PATH}, {table.name}: no row or column for the published cell {unplaced[0]}; add one"
        )
    of_operators = evidence.run[evidence.run["operator"].isin(evidence.operators)]
    rows |= {row.key: row for row in _run_rows(table, columns, of_operators, rows)}
    cells = [
        _cell(table, row, column, printed.get((row.key, column.key)), evidence)
        for row in rows.values()
        for column in columns
    ]
    return cells + _baseline_rows(table, columns, evidence)


def _baseline_rows(table: Table, columns: list[Column], evidence: Evidence) -> list[dict]:
    """The cells of a row per baseline with a score in the table; `interval_high` is the upper end of its interval."""
    cells = []
    for name, label in baselines.LABELS.items():
        if name == baselines.NOT_PRETRAINED:  # a trained model; another table of the report has it
            continue
        row, cells_of_row = Row(key=f"baseline.{name}", label=label, select={}), []
        for column in columns:
            cell = _empty(table, row, column) | {"verdict": NO_MODEL}
            score = {"protocol": None, "evaluated_on": None, "metric": None} | table.select | (column.select or {})
            value, high = (column.scale * number for number in baselines.score_of(name, score, evidence.without_model))
            if column.select is not None and not isnan(value):
                cell |= {"reproduced": value, "interval_high": high, "status": "reproduced"}
            cells_of_row.append(cell)
        cells += cells_of_row if any(cell["status"] for cell in cells_of_row) else []
    return cells


def _row(table: Table, key: str) -> Row | None:
    """The row of a published key, as listed in the specification or read by its pattern; None where neither fits."""
    if key in table.rows:
        return table.rows[key]
    fields = specifications.fields(table.row_key, key) if table.row_key else None
    return None if fields is None else _patterned(table, fields)


def _patterned(table: Table, fields: dict[str, str]) -> Row:
    """The row for values of the fields in the table's patterns: they fill its key and label, and are its `select`."""
    key, label = (pattern.format(**fields) for pattern in (table.row_key, table.row_label))
    return Row(key=key, label=label, select=fields)


def _list(table: Table, paper: pd.DataFrame, evidence: Evidence) -> list[dict]:
    """The paper's cells in its order, then those of PAPER_SIZES at each other size that this run pre-trained."""
    keys = set(zip(paper["row_key"], paper["column_key"], strict=True))
    unplaced = [key for key in table.entries if key not in keys]
    if unplaced:
        raise ValueError(
            f"{specifications.PATH}, {table.name}: the cell {unplaced[0]} is not in data/published; mend its name"
        )
    cells, more = [], []
    for cell in paper.itertuples():
        measure = table.entries.get((cell.row_key, cell.column_key), Column())
        size = (measure.select or {}).get("size")
        label = measure.label or f"{cell.row}: {cell.column_key.replace('_', ' ')}"
        row = Row(key=cell.row_key, label=label.format(size=size), select={})
        column = replace(measure, key=cell.column_key, label=cell.column, meaning=cell.unit or "")
        cells.append(_cell(table, row, column, cell, evidence))
        for other in evidence.sizes if size in PAPER_SIZES else ():
            at_size = replace(column, select=measure.select | {"size": other})
            if other not in PAPER_SIZES and matching(evidence.run, at_size.select)["pretraining_seed"].notna().any():
                row = replace(row, key=f"{other}.{cell.row_key}", label=label.format(size=other))
                more.append(_cell(table, row, at_size, None, evidence))
    return cells + more


def _expand(table: Table, run: pd.DataFrame) -> list[Column]:
    """The columns; one with a field in its key, such as `{size}`, becomes one for every value that `run` has of it."""
    columns = {}
    for column in table.columns:
        fields = specifications.names(column.key)
        measured = matching(run, column.select)[fields].drop_duplicates().to_dict("records") if fields else [{}]
        for values in measured:
            texts = {part: getattr(column, part).format(**values) for part in ("key", "label")}
            select = None if column.select is None else column.select | values
            columns.setdefault(texts["key"], replace(column, select=select, **texts))  # listed ones before patterns
    return list(columns.values())


def _run_rows(table: Table, columns: list[Column], run: pd.DataFrame, printed: dict[str, Row]) -> list[Row]:
    """Rows that `run` has measurements for and `printed`, the paper's rows by key, lacks; in the order of the run."""
    fields = specifications.names(table.row_key)
    parts = [matching(run, column.select) for column in columns if column.select is not None] if fields else []
    keys = pd.concat(parts)[fields].drop_duplicates().to_dict("records") if parts else []
    of_paper = [row.select for row in printed.values()]
    return [_patterned(table, values) for values in keys if values not in of_paper]


def _empty(table: Table, row: Row, column: Column) -> dict:
    """A cell with all fields of TYPES, None in those that only a printed or measured value fills."""
    return dict.fromkeys(TYPES) | {
        "table": table.name,
        "row_key": row.key,
        "column_key": column.key,
        "row": row.label,
        "column": column.label,
        "metric": column.meaning,
        "decimals": column.decimals if row.decimals is None else row.decimals,
        "status": "",
        "verdict": NOT_MEASURED,
    }


def _cell(table: Table, row: Row, column: Column, printed, evidence: Evidence) -> dict:
    """One cell (TYPES): what the paper prints, the released results give and this run measured, and the verdict on it.

    printed: a row of `published.table`; None where the paper has no such cell. The p values are not adjusted yet.
    """
    cell = _empty(table, row, column)
    if printed is not None:
        cell |= {"printed": printed.printed, "published": printed.value, "published_sd": printed.std}
    if column.select is None or row.select is None:
        return cell
    select, scale = row.select | column.select, column.scale if row.scale is None else row.scale
    released, run = (selected(frame, select) for frame in (evidence.released, evidence.run))
    released, run = (rows.assign(value=rows["value"] * scale) for rows in (released, run))
    if len(released) and released["reached"].all():
        summary = summarise(released, evidence.options.confidence)
        cell |= {"released": summary.mean, "released_sd": summary.sd, "released_n": summary.n}
    if not run["reached"].all():  # some times are only known to be longer, and have no mean
        never = f"{(~run['reached']).sum()} of {len(run)} runs never got there"
        return cell | {"status": "reproduced", "verdict": never}
    if run.empty:
        return cell | {"status": NOT_RUN, "verdict": NOT_RUN}
    summary = summarise(run, evidence.options.confidence)
    without_model = baselines.baselines_of(run.iloc[0], evidence.without_model)
    chance = baselines.at_chance(summary.mean, scale * without_model["most_frequent_high"])
    cell |= {
        "most_frequent": scale * without_model["most_frequent"],
        "words_and_overlap": scale * without_model["words_and_overlap"],
        "at_chance": chance,
        "reproduced": summary.mean,
        "reproduced_sd": summary.sd,
        "reproduced_n": summary.n,
        "interval_low": summary.low,
        "interval_high": summary.high,
        "unit_of_inference": summary.unit,
        "runs": summary.runs,
        "within_sd": summary.within_sd,
        "status": "reproduced",
    }
    return cell | cell_verdicts.of_cell(printed, run, column.tested, evidence.comparable, chance)
