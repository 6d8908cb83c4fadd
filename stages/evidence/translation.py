"""Quantities of stage translation: what a run reaches at its best and at its end, and its curves by epoch.

The stage trains Transformers by protocols (recipes of two sources) and, as the protocol `sequences`, on sequence tasks.
"""

import pandas as pd

from stages.evidence import statistics

STAGE = "translation"
STEPS = ("seconds_per_step", "longer_step_percent")  # as the stage `timing` measures them, by protocol
SIZES = ("blog", "draft", "sequences")  # of these models: their protocols
BY_EPOCH = r"epoch=(\d+)"  # condition of what is measured after every epoch
PEAK = "training_accuracy"  # the blog post prints the best of all epochs
# accuracy_ceiling: what training_accuracy would be if all real tokens were right, as it counts padding as wrong
CURVES = ("training_accuracy", "accuracy_ceiling", "accuracy", "perplexity")
SUMMARY = ["protocol", "operator", "metric", "n", "mean", "sd", "low", "high"]


def measures(rows: pd.DataFrame) -> pd.DataFrame:
    """Makes, from observations, the quantities of translation of which every run has one number.

    The rows returned have no condition: for every metric by epoch `final_METRIC`, of the last epoch of protocol and
    operator; `peak_training_accuracy`, a run's highest; and what is measured once (BLEU; the error of a sequence task).
    """
    rows = rows[rows["stage"] == STAGE]
    by_epoch = with_epochs(rows)
    once = rows[rows["condition"].isna()]
    if by_epoch.empty:
        return once
    last = by_epoch[by_epoch["epoch"] == by_epoch.groupby(["protocol", "operator"])["epoch"].transform("max")]
    run = ["protocol", "operator", "pretraining_seed"]
    peaks = by_epoch[by_epoch["metric"] == PEAK].sort_values("value", kind="stable").groupby(run, sort=False).tail(1)
    parts = [last.assign(metric="final_" + last["metric"]), peaks.assign(metric=f"peak_{PEAK}")]
    ends = pd.concat(parts).assign(condition=None).drop(columns="epoch")
    return pd.concat([ends, once])[list(rows.columns)]


def with_epochs(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of stage translation that belong to an epoch, with its number as a column `epoch`."""
    epochs = rows["condition"].str.extract(BY_EPOCH, expand=False)
    kept = (rows["stage"] == STAGE) & epochs.notna()
    return rows[kept].assign(epoch=epochs[kept].astype(int))


def model(size: str) -> str:
    """Names a model by its size: a Transformer by one of the stage translation (SIZES), BERT by any other."""
    return f"Transformer, {size}" if size in SIZES else f"BERT-{size}"


def curves(rows: pd.DataFrame) -> pd.DataFrame:
    """Averages CURVES over the n seeds. Columns: protocol, operator, metric, epoch, mean, minimum, maximum and n."""
    by_epoch = with_epochs(rows)
    by_epoch = by_epoch[by_epoch["metric"].isin(CURVES)]
    return statistics.bands(by_epoch, ["protocol", "operator", "metric", "epoch"])


def summaries(measured: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Summarises measurements of the stage translation and times per step (STEPS) over seeds or rounds.

    Columns: SUMMARY. protocol: of errors of sequence tasks, the task. sd, low, high: as in `Summary`, NaN for one run.
    """
    measured = measured[(measured["stage"] == STAGE) | measured["metric"].isin(STEPS)]
    names = measured["protocol"].where(measured["metric"] != "error", measured["task"])
    return statistics.summaries(measured.assign(protocol=names), SUMMARY[:3], confidence)[SUMMARY]
