"""From raw metrics to the columns of the papers' GLUE tables, by Courtois et al. 2024, section 3.4 and Table 3.

The paper calls the column QQP accuracy; the authors' released results show the mean of accuracy and F1.
"""

from collections.abc import Sequence

import pandas as pd

from stages.benchmarks.glue import TASK_OF, TASKS
from stages.evidence.fields import select_rows

COLUMNS = ("mrpc", "cola", "mnli_m", "mnli_mm", "qqp", "rte", "stsb", "qnli", "sst2")
# The second split of MNLI; for a task with one column, the first split is used.
MISMATCHED = "mnli_mm"
GLUE_SCORE = "glue_score"
# The second mean has one split of MNLI, which fits the averages of Kowsher et al., arXiv, Table 1.
MEANS = {
    GLUE_SCORE: COLUMNS,
    "glue_matched": tuple(column for column in COLUMNS if column != MISMATCHED),
}
RUN_KEYS = [
    "stage",
    "protocol",
    "operator",
    "size",
    "condition",
    "pretraining_seed",
    "finetuning_seed",
]

_ALL = {column: TASKS[TASK_OF[column]].metrics for column in COLUMNS}
# The raw metrics whose mean is a column, by protocol: the paper whose recipe fine-tuning follows.
METRICS = {
    "courtois2024": _ALL,
    # The caption of Table 1 of Kowsher et al.
    "kowsher2025": {**_ALL, "mrpc": ("accuracy",), "qqp": ("accuracy",)},
}


def list_metrics() -> pd.DataFrame:
    """Lists which raw metrics are averaged into each column of the GLUE tables.

    Returns:
        A row per `protocol` (the paper whose recipe is followed), column (`evaluated_on`) and `metric`.
    """
    # The cells of the frame are tuples of metrics.
    metrics = pd.DataFrame(METRICS).unstack().explode()
    return metrics.rename_axis(["protocol", "evaluated_on"]).reset_index(name="metric").astype("str")


def compute_column_scores(rows: pd.DataFrame) -> pd.DataFrame:
    """Computes the score of every run in every column of the papers' GLUE tables.

    Observations of models fine-tuned after pre-training, or from intermediate checkpoints, are used.

    Returns:
        A row per run and column (`evaluated_on`), with `value`, the mean of the column's metrics (a fraction), and
        `metric`, always `score`.
    """
    # Merging keeps only the metrics that the protocol of a run averages.
    rows = select_rows(rows, stage=["finetuning", "convergence"]).merge(list_metrics())
    groups = rows.groupby([*RUN_KEYS, "evaluated_on"], dropna=False, sort=False)
    return groups["value"].mean().reset_index().assign(metric="score")


def compute_mean_scores(columns: pd.DataFrame) -> pd.DataFrame:
    """Averages the scores of columns for every run that has all columns, such as the GLUE score over nine columns.

    Returns:
        A row per run and mean; `evaluated_on` is `glue_score` or, without the mismatched split of MNLI, `glue_matched`.
    """
    return pd.concat([average_columns(columns, wanted, name) for name, wanted in MEANS.items()])


def average_columns(rows: pd.DataFrame, wanted: Sequence[str], name: str) -> pd.DataFrame:
    """Averages the `wanted` columns for each run that has all of these columns; `name` names the mean."""
    # All other fields together identify a run.
    keys = list(rows.columns.drop(["evaluated_on", "value"]))
    values = select_rows(rows, evaluated_on=wanted).groupby(keys, dropna=False, sort=False)["value"]
    complete = values.size() == len(wanted)
    return values.mean()[complete].reset_index().assign(evaluated_on=name)
