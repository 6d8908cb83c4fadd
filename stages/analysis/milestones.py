"""When each operator gets somewhere: out of the plateau, to given losses, to 95 % of a GLUE score; with uncertainty.

A milestone lies between two evaluations, and there is an interval over pre-training seeds besides; both are reported.
A run that never gets there counts as one that does not before its end (stages.evidence.survival).
"""

import numpy as np
import pandas as pd

from stages.evidence import convergence, survival

COLUMNS = ["size", "operator", "milestone", *survival.MEANS, "after", "before"]


def reached(measured: pd.DataFrame, curves: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """One row for every size, operator and milestone that at least one run of that size reaches. Columns: COLUMNS.

    measured: quantities, among them those of convergence.events. curves: as convergence.curves returns them, for the
    steps of the evaluations. mean, sd, low, high: of the restricted mean, in steps; of `runs` runs `never` do not get
    there by the step `horizon`. after, before: the evaluations between which all steps of those that do lie.
    """
    events = convergence.milestone_events(measured)
    means = survival.restricted_means(events, ["size", "milestone"], confidence)
    ends = []
    for row in means.itertuples():
        own = events[(events["size"] == row.size) & (events["operator"] == row.operator)]
        own = own[(own["milestone"] == row.milestone) & own["reached"]]
        quantity = "loss" if row.milestone.startswith(("loss=", "plateau")) else "glue_score"
        evaluated = curves[(curves["size"] == row.size) & (curves["operator"] == row.operator)]
        evaluated = np.sort(evaluated.loc[evaluated["quantity"] == quantity, "step"].to_numpy())
        ends.append(bracket(evaluated, own["step"].to_numpy(float)) if len(own) else (np.nan, np.nan))
    ends = pd.DataFrame(ends, columns=["after", "before"], dtype="Int64")
    return pd.concat([means, ends], axis=1)[COLUMNS]


def waiting(measured: pd.DataFrame) -> pd.DataFrame:
    """Kaplan-Meier curves of every operator and milestone: the share of runs that have not got there."""
    return survival.curves(convergence.milestone_events(measured), ["size", "milestone", "operator"])


def bracket(evaluated: np.ndarray, values: np.ndarray) -> tuple[int, int]:
    """The last evaluation before the lowest of `values` and the first one that is not before the highest."""
    earlier = evaluated[evaluated < values.min()]
    return int(earlier[-1]) if len(earlier) else 0, int(evaluated[np.searchsorted(evaluated, values.max())])
