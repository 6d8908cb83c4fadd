"""The rows that figures select from, where no table of the stage analysis has them.

`estimate` is the number, and `low` and `high` are the ends of an interval or of a band, unless the entry of the figure
names other columns. Published numbers stand first.
"""

import pandas as pd

from stages.benchmarks.glue import COLUMN_OF
from stages.evidence.fields import THIS_RUN, select_rows, stack_frames
from stages.evidence.scores import MISMATCHED
from stages.report import names, read_results


def list_answers() -> pd.DataFrame:
    """Lists the scores of question answering in per cent: F1 and exact match, published and of this run."""
    cells = select_rows(read_results.read_cells(), table="kowsher2025_naacl_table2_squad")
    # keys of rows and columns look like `base.shared.single` and `squad1_f1`
    models = cells["row_key"].str.extract(r"^(?P<size>\w+)\.(?P<operator>\w+)\.(?P<trained>\w+)$")
    scores = cells["column_key"].str.extract(r"^(?P<questions>squad\d)_(?P<measure>\w+)$")
    # averages and answers without a model are left out
    keys = models.join(scores).dropna()
    printed = keys.assign(source="published", estimate=cells["published"])
    run = keys.assign(
        source=THIS_RUN,
        estimate=cells["reproduced"],
        low=cells["interval_low"],
        high=cells["interval_high"],
    )
    return pd.concat([printed, run]).dropna(subset="estimate")


def read_printed(table: str) -> pd.DataFrame:
    """Reads the numbers of a published table of BERT-base; `row` is a level of noise or a task, and `column` a task."""
    cells = select_rows(read_results.read_cells(), table=table).dropna(subset="published")
    # keys of rows and columns look like `noise_5` and `mnli.shared`, or `row_mnli` and `col_mnli.shared`
    parts = cells["column_key"].str.extract(r"^(?:col_)?(?P<column>\w+)\.(?P<operator>\w+)$")
    row = cells["row_key"].str.removeprefix("noise_").str.removeprefix("row_")
    return parts.assign(
        source="published",
        size="base",
        protocol="",
        row=row,
        estimate=cells["published"],
    )


def build_noise() -> pd.DataFrame:
    """Builds the accuracies (%) by level of noise (%), published and of this run.

    `low` and `high` are the extremes over runs, and `reference` is the accuracy of a constant answer.
    """
    printed = read_printed("kowsher2025_naacl_table5_noise")
    printed = printed.assign(
        level=printed["row"].astype(float),
        evaluated_on=printed["column"].replace(COLUMN_OF),
    )
    run = read_results.read_table("noise_curves").assign(source=THIS_RUN)
    columns = {"mean": "estimate", "minimum": "low", "maximum": "high", "most_frequent": "reference"}
    run = run[["source", "protocol", "size", "operator", "evaluated_on", "level", *columns]].rename(columns=columns)
    run[["level", *columns.values()]] *= 100
    rows = stack_frames([printed.drop(columns=["row", "column"]), run])
    return rows[rows["evaluated_on"] != MISMATCHED].sort_values("level", kind="stable")


def build_transfer() -> pd.DataFrame:
    """Builds the accuracies (%) by task of training and of testing, published and of this run.

    The last row of a matrix of this run has the accuracy of always giving the more frequent answer.
    """
    printed = read_printed("kowsher2025_naacl_table6_cross_domain")
    # columns of the table are read as tasks of training; the paper does not say
    printed = printed.assign(trained=printed["column"], evaluated_on=printed["row"].replace(COLUMN_OF))
    run = read_results.read_table("transfer").rename(columns={"task": "trained"})
    run = run.assign(source=THIS_RUN, estimate=100 * run["mean"])
    # transfer.csv repeats the accuracy for every task of training
    majority = select_rows(run, metric="majority_accuracy").assign(trained="majority")
    majority = majority.drop_duplicates(["operator", "size", "protocol", "evaluated_on"])
    rows = stack_frames([printed, select_rows(run, metric="accuracy"), majority])
    columns = ["source", "protocol", "size", "operator", "trained", "evaluated_on", "estimate"]
    # of MNLI's two test sets, only the matched one, MNLI-m, under the name of the task, MNLI
    rows = rows.loc[rows["evaluated_on"] != MISMATCHED, columns]
    rows["trained"] = rows["trained"].map(names.name_key)
    rows["tested"] = rows["evaluated_on"].map(names.name_key).str.removesuffix("-m")
    # equal order in both directions, so that a task tested on itself stands on the diagonal
    order = {name: rank for rank, name in enumerate(rows["trained"].unique())}
    return rows.sort_values(["trained", "tested"], key=lambda tasks: tasks.map(order))
