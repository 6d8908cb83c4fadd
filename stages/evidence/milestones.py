"""When each operator gets somewhere: out of the plateau, to given losses, to 95 % of a GLUE score; with uncertainty.

A milestone lies between two evaluations; with several pre-training seeds there is an interval over them besides. Both
are told, since with few checkpoints the first is the wider one (Courtois et al. 2024, Figures 2 and 3).
"""

import numpy as np
import pandas as pd

from stages.evidence import statistics

LOSS, SCORE = "loss", "glue_score"  # quantities of convergence.curves
OF = {
    "plateau_end_step": LOSS,
    "steps_to_loss": LOSS,
    "steps_to_95_percent": SCORE,
    "steps_to_95_percent_of_own": SCORE,
}
COLUMNS = ["size", "operator", "milestone", "mean", "sd", "low", "high", "n", "runs", "unit", "after", "before"]


def reached(measured: pd.DataFrame, curves: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """One row a size, operator and milestone that at least one run reaches.

    measured: quantities, among them those of OF. curves: as convergence.curves gives them, for the steps of the
    evaluations. mean, sd, low, high: steps, over n units of inference of `runs` runs that reach it. after, before: the
    evaluations between which all of them lie; the same number for a milestone that is an evaluation itself.
    """
    rows = measured[measured["metric"].isin(OF)]
    rows = rows.assign(milestone=rows["condition"].where(rows["metric"] == "steps_to_loss", rows["metric"]))
    found = []
    for (size, operator, milestone), group in rows.groupby(["size", "operator", "milestone"], sort=False):
        summary = statistics.summarise(group, confidence)
        quantity = OF[group["metric"].iloc[0]]
        own = curves[(curves["size"] == size) & (curves["operator"] == operator) & (curves["quantity"] == quantity)]
        after, before = bracket(np.sort(own["step"].to_numpy()), group["value"].to_numpy(float))
        values = (summary.mean, summary.sd, summary.low, summary.high, summary.n, summary.runs, summary.unit)
        found.append((size, operator, milestone, *values, after, before))
    return pd.DataFrame(found, columns=COLUMNS)


def bracket(evaluated: np.ndarray, values: np.ndarray) -> tuple[int, int]:
    """The last evaluation before the lowest of `values` and the first one that is not before the highest."""
    earlier = evaluated[evaluated < values.min()]
    return int(earlier[-1]) if len(earlier) else 0, int(evaluated[np.searchsorted(evaluated, values.max())])
