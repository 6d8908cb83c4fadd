"""Times that may never come: the step of an event that some runs do not reach before the last step.

A run that ends before the event is right-censored. To leave such runs out would favour the operator that fails most
often, so an operator has a mean time only if all runs reach the event. An event table has a row for every run:
`operator`, the `step` of the event, and whether the event was `reached`; if not, `step` is the last step of the run.
"""

from math import nan

import numpy as np
import pandas as pd

from stages.evidence.statistics import compute_mean_interval

MEANS = [
    "mean",
    "sd",
    "low",
    "high",
    "runs",
    "never",
]


def find_crossing(
    steps: np.ndarray,
    values: np.ndarray,
    level: float,
    rising: bool = False,
) -> tuple[float, bool]:
    """Finds the step at which the values of a run first cross a level, interpolated linearly between evaluations.

    Losses of 6 and 5 nats at steps 100 and 200 cross 5.5 at step 150. A run that begins beyond the level crosses the
    level at the first evaluation.

    Args:
        steps: steps of the evaluations, in increasing order [evaluations].
        values: losses or scores [evaluations]; NaN is never beyond the level.
        level: in the unit of the values.
        rising: whether values cross the level upwards, as scores do.

    Returns:
        The step of the crossing and True; the last step and False without a crossing.
    """
    # np.interp takes rising values.
    if not rising:
        values, level = -values, -level
    places = np.flatnonzero(values >= level)
    if len(places) == 0:
        return float(steps[-1]), False
    first = places[0]
    # Without a value before, there is nothing to interpolate.
    if first == 0 or np.isnan(values[first - 1]):
        return float(steps[first]), True
    around = slice(first - 1, first + 1)
    return float(np.interp(level, values[around], steps[around])), True


def estimate_mean_time(runs: pd.DataFrame, confidence: float) -> tuple[float, float, float, float, int, int]:
    """Estimates the mean time to the event of an operator, with a t interval of a confidence such as 0.95.

    Returns:
        The numbers of MEANS: `mean`, `sd`, `low` and `high`, in steps, NaN if a run ends before the event; `runs`, the
        number of runs; `never`, the number of runs that end before the event.
    """
    never = int((~runs["reached"]).sum())
    estimate = (nan, nan, nan, nan)
    if not never:
        estimate = compute_mean_interval(runs["step"].to_numpy(float), confidence)
    return *estimate, len(runs), never
