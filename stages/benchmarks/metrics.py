"""The GLUE metrics, as fractions in [-1, 1], by scikit-learn and scipy.

The module has raw metrics only; a paper's mean of several metrics is computed in stages/evidence/scores.py.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from stages.benchmarks.glue import TASKS


def compute_metrics(task: str, predictions: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Computes every metric of a GLUE task, by name, as fractions: `{"accuracy": ..., "f1": ...}` for `mrpc`.

    F1 is of class 1. If all predictions are equal, a correlation is not defined, and counts as 0.0, like a model
    without knowledge. F1 is 0.0 if no prediction is positive.

    Args:
        task: the name of a task.
        predictions: [examples], classes, or for stsb real numbers of any scale.
        labels: [examples], classes, or for stsb real numbers.

    Raises:
        ValueError: the shapes differ or are empty, or a value is not finite.
    """
    # Imported here, because the imports take a second, and stages that only plan jobs need no metrics.
    from scipy import stats
    from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

    measures = {
        "accuracy": accuracy_score,
        "f1": partial(f1_score, pos_label=1, zero_division=0.0),
        "matthews_correlation": matthews_corrcoef,
        "pearson": partial(_correlate, stats.pearsonr),
        "spearmanr": partial(_correlate, stats.spearmanr),
    }
    predictions = np.asarray(predictions)
    labels = np.asarray(labels)
    if predictions.shape != labels.shape or predictions.ndim != 1 or not len(labels):
        raise ValueError(
            f"task {task}: predictions {predictions.shape} and labels {labels.shape} must be vectors of "
            "equal length with at least one example"
        )
    # A comparison with NaN would count as a wrong answer.
    if not (np.isfinite(predictions).all() and np.isfinite(labels).all()):
        raise ValueError(f"task {task}: predictions or labels hold NaN or infinity; check whether training diverged")
    return {metric: float(measures[metric](labels, predictions)) for metric in TASKS[task].metrics}


def _correlate(measure: Callable, labels: np.ndarray, predictions: np.ndarray) -> float:
    """Computes a correlation by a function of scipy.stats, or 0.0 if the correlation is not defined."""
    # Without any spread, scipy would warn and return NaN.
    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    value = measure(labels, predictions).statistic
    # The spread may be too small for the precision of floats.
    return value if np.isfinite(value) else 0.0
