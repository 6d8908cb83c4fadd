"""Fills the cells of a table: published, recomputed from the released raw results, reproduced in this run.

One row a cell, for the paper's rows and for rows that only this run has (a size or an operator outside the
paper).
"""

from dataclasses import dataclass, replace

import pandas as pd

from stages.evidence import specifications
from stages.evidence.specifications import Column, Table
from stages.evidence.statistics import summarise

NOT_RUN = "not run at this scale"
TYPES = {
    "table": "str",
    "row_key": "str",
    "column_key": "str",
    "row": "str",
    "column": "str",
    "metric": "str",
    "decimals": "int64",
    "printed": "str",
    "published": "float64",
    "published_sd": "float64",
    "released": "float64",
    "released_sd": "float64",
    "released_n": "Int64",
    "reproduced": "float64",
    "reproduced_sd": "float64",
    "reproduced_n": "Int64",
    "interval_low": "float64",
    "interval_high": "float64",
    "unit_of_inference": "str",
    "runs": "Int64",
    "within_sd": "float64",
    "status": "str",
}


@dataclass(frozen=True)
class Evidence:
    """Measurements of this run and of the released raw results (columns of measurements.FIELDS).

    operators: those of the run, which have rows beside the paper's; parameters are counted for more.
    """

    run: pd.DataFrame
    released: pd.DataFrame
    operators: tuple[str, ...]
    confidence: float


def fill(table: Table, published: pd.DataFrame, evidence: Evidence) -> pd.DataFrame:
    """All cells of a table, row by row; values in the printed unit. Columns: TYPES.

    status: `reproduced`, `not run at this scale`, or empty where nothing measures the column.
    ValueError for a published cell that the specification has no row or column for.
    """
    columns = _expand(table, evidence.run)
    printed = {(cell.row_key, cell.column_key): cell for cell in published.itertuples()}
    run = evidence.run[evidence.run["operator"].isin(evidence.operators)]
    rows = list(dict.fromkeys([*published["row_key"], *_run_rows(table, columns, run)]))
    known = {(row, column.key) for row in rows for column in columns}
    strange = [key for key in printed if key not in known or specifications.fields(table.row_key, key[0]) is None]
    if strange:
        raise ValueError(f"{table.name}: the specification has no place for the published cell {strange[0]}")
    cells = [_cell(table, row, column, printed.get((row, column.key)), evidence) for row in rows for column in columns]
    return pd.DataFrame(cells, columns=list(TYPES)).astype(TYPES)


def _expand(table: Table, run: pd.DataFrame) -> list[Column]:
    """A column whose key holds `{size}` becomes one column for every size that was measured."""
    columns = []
    for column in table.columns:
        fields = specifications.names(column.key)
        if not fields:
            columns.append(column)
            continue
        for values in _matching(run, table.select | column.select)[fields].drop_duplicates().to_dict("records"):
            texts = {part: getattr(column, part).format(**values) for part in ("key", "label")}
            columns.append(replace(column, select=column.select | values, **texts))
    return columns


def _run_rows(table: Table, columns: list[Column], run: pd.DataFrame) -> list[str]:
    """Row keys that this run has measurements for, in the run's order."""
    parts = [_matching(run, table.select | column.select) for column in columns if column.select is not None]
    fields = specifications.names(table.row_key)
    keys = pd.concat(parts)[fields].drop_duplicates() if parts else pd.DataFrame(columns=fields)
    return [table.row_key.format(**values) for values in keys.to_dict("records")]


def _matching(rows: pd.DataFrame, select: dict[str, str]) -> pd.DataFrame:
    mask = pd.Series(True, index=rows.index)
    for field, value in select.items():
        mask &= rows[field] == value
    return rows[mask]


def _cell(table: Table, row: str, column: Column, printed, evidence: Evidence) -> dict:
    fields = specifications.fields(table.row_key, row)
    cell = dict.fromkeys(TYPES) | {
        "table": table.name,
        "row_key": row,
        "column_key": column.key,
        "row": table.row_label.format(**fields),
        "column": column.label,
        "metric": column.meaning,
        "decimals": column.decimals,
        "status": "",
    }
    if printed is not None:
        cell |= {"printed": printed.printed, "published": printed.value, "published_sd": printed.std}
    if column.select is None:
        return cell
    select = table.select | column.select | fields
    released = _measured(evidence.released, select, column, evidence.confidence)
    if released:
        cell |= {"released": released.mean, "released_sd": released.sd, "released_n": released.n}
    run = _measured(evidence.run, select, column, evidence.confidence)
    if run is None:
        return cell | {"status": NOT_RUN}
    return cell | {
        "reproduced": run.mean,
        "reproduced_sd": run.sd,
        "reproduced_n": run.n,
        "interval_low": run.low,
        "interval_high": run.high,
        "unit_of_inference": run.unit,
        "runs": run.runs,
        "within_sd": run.within_sd,
        "status": "reproduced",
    }


def _measured(measurements: pd.DataFrame, select: dict[str, str], column: Column, confidence: float):
    rows = _matching(measurements, select)
    if rows.empty:
        return None
    return summarise(rows.assign(value=rows["value"] * column.scale), confidence)
