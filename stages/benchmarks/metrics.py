"""The GLUE metrics, as fractions in [-1, 1], by scikit-learn and scipy.

Raw metrics only; what a paper makes of several (means of accuracy and F1, say) is made where its tables are.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from stages.benchmarks.glue import TASKS


def scores(task: str, predictions: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Computes every metric of the task, by name; F1 is that of class 1.

    The correlation of a model that gives one answer to everything is not defined; the model gets 0.0, like one that
    knows nothing, and an F1 of 0.0 where it predicts no positive.

    Args:
        task: a name in TASKS.
        predictions: [examples], classes, or for stsb real numbers, on whose scale no correlation depends.
        labels: [examples], classes, or for stsb real numbers.

    Raises:
        ValueError: the task is unknown, the shapes differ or are empty, or a value is not finite.
    """
    if task not in TASKS:
        raise ValueError(f"task {task}: unknown; known are {', '.join(TASKS)}")
    predictions, labels = np.asarray(predictions), np.asarray(labels)
    if predictions.shape != labels.shape or predictions.ndim != 1 or not len(labels):
        raise ValueError(f"task {task}: predictions {predictions.shape} and labels {labels.shape} must be [examples]")
    if not (np.isfinite(predictions).all() and np.isfinite(labels).all()):
        raise ValueError(f"task {task}: predictions or labels hold NaN or infinity; did the training diverge?")
    return {metric: float(METRICS[metric](labels, predictions)) for metric in TASKS[task].metrics}


def _correlation(measure: Callable, labels: np.ndarray, predictions: np.ndarray) -> float:
    """Computes a correlation, 0.0 where it is not defined. measure: a function of scipy.stats."""
    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    value = measure(labels, predictions).statistic
    return value if np.isfinite(value) else 0.0  # spreads too small for the precision


METRICS = {
    "accuracy": accuracy_score,
    "f1": partial(f1_score, pos_label=1, zero_division=0.0),
    "matthews_correlation": matthews_corrcoef,
    "pearson": partial(_correlation, stats.pearsonr),
    "spearmanr": partial(_correlation, stats.spearmanr),
}
