"""Fills the cells of a table: published, recomputed from the released results, and reproduced in this run.

A filled table has a row per cell, for the rows of the paper and for rows that only this run has. Cells select
measurements by fields (fields.py); cell_verdicts.py judges the cells.
"""

from dataclasses import dataclass, replace
from itertools import product
from math import isnan
from pathlib import Path

import pandas as pd

from stages.evidence import baselines, cell_verdicts, specifications
from stages.evidence.convergence import select_measurements
from stages.evidence.fields import select_rows
from stages.evidence.published import PAPER_SIZES, read_table
from stages.evidence.specifications import Column, Row, Table
from stages.evidence.statistics import compute_error_of_difference, find_units, summarise_cell
from stages.evidence.verdicts import Difference
from stages.files.yaml_files import read_yaml
from stages.schema.sections import Analysis

MEASURED = "measured"
# `row_key` of a row of baseline scores begins with this text.
BASELINE = "baseline."
# Types of the columns of a filled table; the docstring of `fill_cells` says what each column means.
TYPES = read_yaml(Path(__file__).with_suffix(".yaml"))


# Columns of this run by the field of statistics.Summary, if the names differ.
RENAMED = {
    "mean": "reproduced",
    "sd": "reproduced_sd",
    "n": "reproduced_n",
    "low": "interval_low",
    "high": "interval_high",
    "unit": "unit_of_inference",
}


@dataclass(frozen=True)
class CellSources:
    """Measurements that fill the tables.

    Attributes:
        run: measurements of this run.
        released: measurements of the released results.
        operators: of the run; other operators get no rows that the paper lacks.
        sizes: of the run, such as `base`.
        options: section `analysis` of params.yaml.
        comparable: whether the data of the run are of the papers' kind, and not generated.
        baselines: scores of baselines, from `baselines.collect_baselines`.
    """

    run: pd.DataFrame
    released: pd.DataFrame
    operators: tuple[str, ...]
    sizes: tuple[str, ...]
    options: Analysis
    comparable: bool
    baselines: pd.DataFrame


def fill_tables(sources: CellSources) -> pd.DataFrame:
    """Fills the cells of all tables of the papers, in the columns of `fill_cells`."""
    return pd.concat([fill_cells(table, sources) for table in specifications.load().values()])


def fill_cells(table: Table, sources: CellSources) -> pd.DataFrame:
    """Fills all cells of a table of the papers, with values in the printed unit.

    Returns:
        A row per cell; missing values where a cell has no such number. Columns:

        - `table`; `row_key`, `column_key`: keys in data/published; `row`, `column`: labels; `metric`: the quantity;
          `decimals`: of measured values; `printed`: the text of the paper; `other_edition`: a different text of the
          other edition.
        - `published`, `released`, `reproduced`: the mean printed, of the released results and of this run; with `_sd`
          the sample standard deviation, with `_n` the number of independent values.
        - `interval_low`, `interval_high`: of the mean of this run; `unit_of_inference`, `runs`, `within_sd`: see
          statistics.Summary.
        - `difference_low`, `difference_high`: of this run's mean minus the printed number, which counts as a further
          run; simultaneous over the tested cells of a family. `difference_error`: the standard error.
        - `most_frequent`, `words_and_overlap`: scores of baselines; `at_chance`: whether a constant answer is as good.
        - `status`: MEASURED, NOT_RUN (of Difference), or an empty text if nothing measures the cell; `verdict`: of
          Statement for a count, else of Difference, or an empty text if nothing is judged.
    """
    paper = read_table(table.name)
    run = select_rows(sources.run, **table.select)
    # The measurements of this table only.
    sources = replace(
        sources,
        run=baselines.add_baselines(run, sources.baselines),
        released=select_rows(sources.released, **(table.select | table.released)),
    )
    columns = _expand_columns(table, run)
    if table.is_list:
        places = _list_single_cells(table, paper, sources)
    else:
        places = product(_list_rows(table, columns, paper, sources), columns)
    printed = {(cell.row_key, cell.column_key): cell for cell in paper.itertuples()}
    cells = []
    for row, column in places:
        cells.append(_fill_cell(table, row, column, printed.get((row.key, column.key)), sources))
    cells += _fill_baselines(table, columns, sources.baselines)
    frame = pd.DataFrame(cells).rename(columns=RENAMED).reindex(columns=list(TYPES)).astype(TYPES)
    frame = cell_verdicts.judge_families(frame, table.is_list, sources.options.alpha)
    if table.edition:
        keys = ["row_key", "column_key"]
        other = read_table(table.edition)[[*keys, "printed"]]
        other_text = frame[keys].merge(other, how="left", on=keys)["printed"]
        differs = frame["printed"].notna() & (other_text != frame["printed"])
        frame["other_edition"] = other_text.where(differs)
    return frame


def _list_single_cells(table: Table, paper: pd.DataFrame, sources: CellSources) -> list[tuple[Row, Column]]:
    """Lists the row and the column of each cell of a list: the cells of the paper, then the cells of other sizes."""
    in_paper, other_sizes = [], []
    own_sizes = [size for size in sources.sizes if size not in PAPER_SIZES]
    for printed in paper.itertuples():
        # tables.yaml says how the cell is measured, if at all.
        specified = table.cells.get(f"{printed.row_key} / {printed.column_key}", Column())
        fields = specified.select or {}
        label = specified.label or f"{printed.row}: {printed.column_key.replace('_', ' ')}"
        row = Row(key=printed.row_key, label=label.format(**fields), select={})
        column = replace(specified, key=printed.column_key, label=printed.column, meaning=printed.unit)
        in_paper.append((row, column))
        # Each cell of the papers' sizes is repeated for every other size at which this run measured pre-trained models.
        if fields.get("size") not in PAPER_SIZES:
            continue
        for size in own_sizes:
            own_column = replace(column, select={**fields, "size": size})
            if select_rows(sources.run, **own_column.select)["pretraining_seed"].notna().any():
                own_row = replace(row, key=f"{size}.{row.key}", label=label.format(size=size))
                other_sizes.append((own_row, own_column))
    return in_paper + other_sizes


def _list_rows(table: Table, columns: list[Column], paper: pd.DataFrame, sources: CellSources) -> list[Row]:
    """Lists the rows of the paper, then the rows that only this run measured, such as further operators."""
    rows = []
    for key in paper["row_key"].drop_duplicates():
        # The specification lists only the rows whose key does not fit the pattern.
        row = table.rows.get(key) or _make_row(table, specifications.match_fields(table.row_key, key))
        rows.append(row)
    names = specifications.list_field_names(table.row_key)
    # Without a pattern, such as `{size}.{operator}`, this run adds no rows.
    if not names:
        return rows
    in_paper = [row.select for row in rows]
    run = select_rows(sources.run, operator=sources.operators)
    # An empty frame, because a table may have no measured column.
    parts = [run.iloc[:0]]
    for column in columns:
        if column.select is not None:
            parts.append(select_rows(run, **column.select))
    found = pd.concat(parts)[names].drop_duplicates().to_dict("records")
    return rows + [_make_row(table, fields) for fields in found if fields not in in_paper]


def _make_row(table: Table, fields: dict[str, str]) -> Row:
    """Makes a row from values of fields: size base and operator shared give the key `base.shared`."""
    return Row(
        key=table.row_key.format(**fields),
        label=table.row_label.format(**fields),
        select=fields,
    )


def _expand_columns(table: Table, run: pd.DataFrame) -> list[Column]:
    """Replaces a column `counted.{size}` by `counted.small` and so on, for the values that this run has."""
    columns = {}
    for column in table.columns:
        fields = specifications.list_field_names(column.key)
        if not fields:
            columns[column.key] = column
            continue
        for values in select_rows(run, **column.select)[fields].drop_duplicates().to_dict("records"):
            key = column.key.format(**values)
            expanded = replace(column, key=key, label=column.label.format(**values), select=column.select | values)
            # A column that tables.yaml lists by the key itself has precedence.
            columns.setdefault(key, expanded)
    return list(columns.values())


def _fill_baselines(table: Table, columns: list[Column], baseline_scores: pd.DataFrame) -> list[dict]:
    """Makes a row of cells for each baseline that has a score in any of the columns."""
    cells = []
    # The fields of the scores in each column, such as the metric.
    fields = pd.DataFrame([table.select | (column.select or {}) for column in columns])
    for name, label in baselines.LABELS.items():
        found = baselines.look_up_scores(name, fields, baseline_scores)
        # Models without pre-training are in another table of the report.
        if name == baselines.NOT_PRETRAINED or found["value"].isna().all():
            continue
        row = Row(key=BASELINE + name, label=label)
        for column, score in zip(columns, found.itertuples(), strict=True):
            cell = _start_cell(table, row, column)
            if not isnan(score.value):
                # The upper end is the chance level of a constant answer.
                cell.update(
                    mean=column.scale * score.value,
                    high=column.scale * score.high,
                    status=MEASURED,
                )
            cells.append(cell)
    return cells


def _start_cell(table: Table, row: Row, column: Column) -> dict:
    """Makes a cell with keys and labels, but without numbers."""
    return {
        "table": table.name,
        "row_key": row.key,
        "column_key": column.key,
        "row": row.label,
        "column": column.label,
        "metric": column.meaning,
        "decimals": column.decimals if row.decimals is None else row.decimals,
        "status": "",
        "verdict": "",
    }


def _fill_cell(table: Table, row: Row, column: Column, printed, sources: CellSources) -> dict:
    """Fills a cell with the numbers of the paper (`printed`, or None), of the released results and of this run.

    The verdict is `None` if `judge_families` has to decide.
    """
    cell = _start_cell(table, row, column)
    if printed is not None:
        cell.update(printed=printed.printed, published=printed.value, published_sd=printed.std)
    # Nothing measures the cell.
    if column.select is None or row.select is None:
        return cell
    fields = row.select | column.select
    scale = column.scale if row.scale is None else row.scale
    released = _select_scaled(sources.released, fields, scale)
    # Steps to a milestone have no mean if a run never reaches the milestone; any other number is reached.
    if len(released) and released["reached"].all():
        summary = summarise_cell(released, sources.options.confidence)
        cell.update(released=summary.mean, released_sd=summary.sd, released_n=summary.n)
    runs = _select_scaled(sources.run, fields, scale)
    if runs.empty:
        cell.update(status=Difference.NOT_RUN, verdict=Difference.NOT_RUN)
        return cell
    cell["status"] = MEASURED
    if runs["reached"].all():
        summary = summarise_cell(runs, sources.options.confidence)
        # All runs of a cell are scored on the same data, so the first run has the baselines of all.
        baseline_scores = scale * runs[["most_frequent", "most_frequent_high", "words_and_overlap"]].iloc[0]
        cell.update(summary._asdict() | baseline_scores.to_dict())
        cell["at_chance"] = baselines.is_at_chance(summary.mean, baseline_scores["most_frequent_high"])
    verdict = cell_verdicts.judge_cell(printed, runs, column.tested, sources.comparable, cell.get("at_chance"))
    if verdict is None:
        values, _, _ = find_units(runs)
        cell["difference_error"] = compute_error_of_difference(values)
    cell["verdict"] = verdict
    return cell


def _select_scaled(measured: pd.DataFrame, fields: dict[str, str], scale: float) -> pd.DataFrame:
    rows = select_measurements(measured, fields)
    return rows.assign(value=rows["value"] * scale)
