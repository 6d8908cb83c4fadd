"""Quantities of stage translation: the best and the last value of a run, and curves by epoch.

The stage trains Transformers by protocols (recipes of two sources) and, as the protocol `sequences`, on sequence tasks.
"""

import pandas as pd

from stages.evidence import statistics
from stages.evidence.fields import select_numbered, select_rows

STAGE = "translation"
# The blog post prints the best of all epochs.
PEAK = "training_accuracy"


def select_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """Reduces the observations of translation to one number per run and metric.

    Returns:
        The columns of `rows`, with an empty `condition`. Metrics: `final_METRIC`, at the last epoch of protocol and
        operator; `peak_training_accuracy`, a run's highest; metrics measured once, such as BLEU and the error of a
        sequence task.
    """
    once = select_rows(rows, stage=STAGE, condition=None)
    by_epoch = select_epochs(rows)
    last_epochs = by_epoch.groupby(["protocol", "operator"])["epoch"].transform("max")
    last = by_epoch[by_epoch["epoch"] == last_epochs]
    peaks = select_rows(by_epoch, metric=PEAK).sort_values("value", kind="stable")
    peaks = peaks.drop_duplicates(["protocol", "operator", "pretraining_seed"], keep="last")
    parts = [
        last.assign(metric="final_" + last["metric"], condition=None),
        peaks.assign(metric=f"peak_{PEAK}", condition=None),
        once,
    ]
    return pd.concat(parts)[list(rows.columns)]


def select_epochs(rows: pd.DataFrame) -> pd.DataFrame:
    """Selects the observations of translation that belong to an epoch, with a number `epoch`: `epoch=3` gives 3."""
    return select_numbered(select_rows(rows, stage=STAGE), "epoch", int)


def name_model(size: str) -> str:
    """Names the model of a size for readers: `blog` gives `Transformer, blog`, and `tiny` gives `BERT-tiny`."""
    # The sizes of translation models are their protocols.
    if size in ("blog", "draft", "sequences"):
        return f"Transformer, {size}"
    return f"BERT-{size}"


def average_curves(rows: pd.DataFrame) -> pd.DataFrame:
    """Averages accuracies and perplexity of translation by epoch, over seeds.

    Returns:
        A row per `protocol`, `operator`, `metric` and `epoch`: `mean`, `minimum`, `maximum`, and `n`, the number of
        seeds.
    """
    # accuracy_ceiling is the training_accuracy with all real tokens right; training_accuracy counts padding as wrong.
    metrics = ["training_accuracy", "accuracy_ceiling", "accuracy", "perplexity"]
    by_epoch = select_rows(select_epochs(rows), metric=metrics)
    return statistics.compute_bands(by_epoch, ["protocol", "operator", "metric", "epoch"])


def summarise_measurements(measured: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Summarises measurements of translation over seeds, and times per training step over rounds.

    Returns:
        A row per `protocol` (for sequence tasks, the name of the task), `operator` and `metric`: `n`, `mean`, `sd`,
        `low` and `high`.
    """
    # Metrics of the stage `timing` for translation models.
    timed = measured["metric"].isin(["seconds_per_step", "longer_step_percent"])
    measured = measured[timed | (measured["stage"] == STAGE)]
    # All sequence tasks, whose metric is `error`, share one protocol. The name of the task replaces the protocol.
    is_error = measured["metric"] == "error"
    names = measured["protocol"].mask(is_error, measured["task"])
    measured = measured.assign(protocol=names)
    keys = ["protocol", "operator", "metric"]
    summary = statistics.summarise_groups(measured, keys, confidence)
    return summary[[*keys, "n", "mean", "sd", "low", "high"]]
