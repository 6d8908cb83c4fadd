"""From raw metrics to the columns of the papers' GLUE tables.

Works on observations and on released rows alike, by Courtois et al. 2024, section 3.4 and Table 3; that QQP is
the mean of accuracy and F1, where the paper says accuracy, follows from the authors' released results.
"""

import pandas as pd

from stages.benchmarks.glue import TASK_OF, TASKS

COLUMNS = ("mrpc", "cola", "mnli_m", "mnli_mm", "qqp", "rte", "stsb", "qnli", "sst2")
MISMATCHED = "mnli_mm"  # the second split of MNLI; where a task has one column, the first stands for it
GLUE_SCORE = "glue_score"
MEANS = {  # the second is of one split of MNLI alone, which fits the averages of Kowsher et al., arXiv, Table 1
    GLUE_SCORE: COLUMNS,
    "glue_matched": tuple(column for column in COLUMNS if column != MISMATCHED),
}
STAGES = ("finetuning", "convergence")
RUN = ["stage", "protocol", "operator", "size", "condition", "pretraining_seed", "finetuning_seed"]  # condition: step=N

_ALL = {column: TASKS[TASK_OF[column]].metrics for column in COLUMNS}
METRICS = {  # the raw metrics whose mean is a column, by protocol: the paper whose recipe fine-tuning follows
    "courtois2024": _ALL,
    "kowsher2025": _ALL | {"mrpc": ("accuracy",), "qqp": ("accuracy",)},  # the caption of their Table 1
}


def column_scores(rows: pd.DataFrame) -> pd.DataFrame:
    """Computes one score, a fraction, for every run and column: RUN, evaluated_on, metric="score", value.

    rows: observations, of which STAGES count. Raises ValueError for a run with only a part of a column's raw metrics.
    """
    wanted = pd.DataFrame(
        [
            (protocol, column, metric, len(metrics))
            for protocol, columns in METRICS.items()
            for column, metrics in columns.items()
            for metric in metrics
        ],
        columns=["protocol", "evaluated_on", "metric", "needed"],
    )
    keys = [*RUN, "evaluated_on"]
    rows = rows[rows["stage"].isin(STAGES)].merge(wanted, on=["protocol", "evaluated_on", "metric"])
    groups = rows.groupby(keys, dropna=False, sort=False)
    scores = groups.agg(value=("value", "mean"), metrics=("metric", "nunique"), needed=("needed", "first"))
    scores = scores.reset_index()
    short = scores[scores["metrics"] < scores["needed"]]
    if len(short):
        run = short.iloc[0]
        raise ValueError(
            f"{run['evaluated_on']} of {run['operator']} at {run['size']}, seeds {run['pretraining_seed']} "
            f"and {run['finetuning_seed']}: needs {METRICS[run['protocol']][run['evaluated_on']]}, "
            f"found {run['metrics']} of them; run the stage `finetuning` again"
        )
    return scores[[*keys, "value"]].assign(metric="score")


def mean_scores(columns: pd.DataFrame) -> pd.DataFrame:
    """The means of columns (MEANS) for every run that has all of them, in the form of `column_scores`."""
    frames = []
    for name, wanted in MEANS.items():
        groups = columns[columns["evaluated_on"].isin(wanted)].groupby(RUN, dropna=False, sort=False)
        means = groups.agg(value=("value", "mean"), columns=("evaluated_on", "nunique")).reset_index()
        means = means[means["columns"] == len(wanted)].drop(columns="columns")
        frames.append(means.assign(metric="score", evaluated_on=name))
    return pd.concat(frames)
