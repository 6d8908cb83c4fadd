"""Cox's model of when runs leave the plateau, with standard errors clustered by seed, as equal seeds share batches."""

from math import nan
from warnings import catch_warnings

import numpy as np
import pandas as pd
from statsmodels.duration.hazard_regression import PHReg

HAZARDS = ["hazard_ratio", "hazard_low", "hazard_high", "hazard_p"]  # with the ends of its interval, two-sided p
# A standard error of the log hazard ratio, from the likelihood, not clustered, at which the ratio counts as infinite.
DIVERGED = 10.0  # the ratio would be known to no better than a factor of e^10


def ratio(both: pd.DataFrame, factor: str, confidence: float) -> dict[str, float]:
    """Estimates the hazard ratio of one arm against another, at an equal value of a factor.

    Args:
        both: one row per run of the two arms: `step`, whether the event was `reached` there, `seed`, the factor, and
            `of_term`: True for the arm that is judged, False for the one that it is compared with.
        factor: the column of the strata, each of which has a baseline hazard of its own.
        confidence: of the interval, in (0, 1).

    Returns:
        HAZARDS; above 1, the event comes sooner. All NaN where the model has no finite answer, as where an arm always
        gets there before the other, or never does.
    """
    unknown = dict.fromkeys(HAZARDS, nan)
    runs = both[both.groupby(factor)["reached"].transform("any").astype(bool)]  # the others tell nothing
    if runs.empty:
        return unknown
    design = runs["of_term"].to_numpy(float)[:, None]
    strata, clusters = (runs.groupby(key).ngroup().to_numpy() for key in (factor, "seed"))
    reached = runs["reached"].to_numpy(int)
    model = PHReg(runs["step"].to_numpy(float), design, status=reached, strata=strata, ties="efron")
    try:
        with np.errstate(all="ignore"), catch_warnings(action="ignore"):
            fit = model.fit(groups=clusters, disp=0)
            error = float(np.sqrt(np.linalg.inv(-model.hessian(fit.params))[0, 0]))
            estimates = [*np.exp(fit.params), *np.exp(fit.conf_int(1 - confidence))[0], *fit.pvalues]
    except np.linalg.LinAlgError:
        return unknown
    return dict(zip(HAZARDS, map(float, estimates), strict=True)) if error < DIVERGED else unknown
