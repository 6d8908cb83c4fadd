"""When each operator gets somewhere: out of the plateau, to given losses, to 95 % of a GLUE score; with uncertainty.

A milestone lies between two evaluations, and its mean has an interval over pre-training seeds; both are reported.
A run that never gets there counts as one that does not before its end (stages.evidence.survival).
"""

import numpy as np
import pandas as pd

from stages.evidence import convergence, survival
from stages.evidence.derived import matching

COLUMNS = ["size", "operator", "milestone", *survival.MEANS, "after", "before"]


def table(measured: pd.DataFrame, curves: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Estimates when each operator reaches each milestone.

    Args:
        measured: measurements, among them those of `convergence.events`.
        curves: as `convergence.curves` returns them, for the steps of the evaluations.
        confidence: of the intervals.

    Returns:
        COLUMNS, one row for every size, operator and milestone that at least one run of that size reaches. mean, sd,
        low, high: of the times restricted to the step `horizon`; of `runs` runs, `never` do not get there before they
        end. after, before: as `bracket` returns them for the runs that do get there, missing where none does.
    """
    events = convergence.milestone_events(measured)
    means = survival.restricted_means(events, ["size", "milestone"], confidence)
    ends = []
    for row in means.itertuples():
        place = {"size": row.size, "operator": row.operator}
        arrivals = matching(events, place | {"milestone": row.milestone, "reached": True})
        quantity = "loss" if row.milestone.startswith(("loss=", "plateau")) else "glue_score"
        evaluated = np.sort(matching(curves, place | {"quantity": quantity})["step"].to_numpy())
        steps = arrivals["step"].to_numpy(float)
        ends.append(bracket(evaluated, steps) if len(steps) else (np.nan, np.nan))
    ends = pd.DataFrame(ends, columns=["after", "before"], dtype="Int64")
    return pd.concat([means, ends], axis=1)[COLUMNS]


def bracket(evaluated: np.ndarray, values: np.ndarray) -> tuple[int, int]:
    """The last evaluation before the lowest of `values`, 0 without one, and the first that is not before the highest.

    evaluated: steps, in increasing order. values: steps [runs], none of them beyond the last evaluation.
    """
    earlier = evaluated[evaluated < values.min()]
    return int(earlier[-1]) if len(earlier) else 0, int(evaluated[np.searchsorted(evaluated, values.max())])
