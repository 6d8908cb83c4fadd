"""Times that may never come: steps to an event that some runs do not reach before their end.

Such a run is right-censored: its time is longer than the run, and to leave it out would favour whatever fails most
often. An event table has one row for every run: its arm (such as the operator), the `step` of the event, and whether it
was `reached`; where it was not, `step` is the last one of the run. Further columns may group runs or describe them.

One rule holds wherever such times are compared: every run counts with the time that it spends before the event, up to
the common horizon of the arms (`timed`). A restricted mean is a mean of these. Of the time itself, with no horizon, it
is only a bound where a run never got there: a claim about it has an interval that is open at that end, and a number
that is printed for it is not judged.

Kaplan-Meier curves are those of statsmodels. The restricted mean is the mean of the time
spent before the event, up to a common horizon; a run that never gets there counts with the whole of it.
"""

import numpy as np
import pandas as pd
from statsmodels.duration.survfunc import SurvfuncRight

from stages.evidence.statistics import mean_interval

CURVE = ["step", "waiting", "at_risk", "reached"]
MEANS = ["mean", "sd", "low", "high", "runs", "never", "horizon"]


def first_below(steps: pd.Series, losses: pd.Series, threshold: float) -> tuple[int, bool]:
    """The step at which a run first falls below a threshold, and whether it does.

    Args:
        steps: of its evaluations, increasing.
        losses: at these steps.
        threshold: in the unit of the losses.

    Returns:
        The step of the first evaluation below the threshold and True, or the last step and False.
    """
    below = steps[losses < threshold]
    return (int(below.iloc[0]), True) if len(below) else (int(steps.iloc[-1]), False)


def horizon(events: pd.DataFrame) -> float:
    """The last step up to which every run is known: the shortest run that never got there, or else the last event."""
    never = events.loc[~events["reached"], "step"]
    return float(never.min() if len(never) else events["step"].max())


def restricted(events: pd.DataFrame, until: float) -> np.ndarray:
    """The time [runs] that each run spends before its event, up to the horizon `until`."""
    return np.minimum(events["step"].to_numpy(float), until)


def timed(arms: list[pd.DataFrame]) -> tuple[list[pd.DataFrame], float]:
    """Restricts the times of arms, a column `value` beside `reached`, and returns the arms and their horizon."""
    both = pd.concat(arms)
    until = horizon(both.assign(step=both["value"]))
    return [arm.assign(value=arm["value"].clip(upper=until)) for arm in arms], until


def curves(events: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Kaplan-Meier curves: the share of runs still `waiting` after each step with an event, for every group of `by`.

    Columns: `by` and CURVE. Each curve begins at step 0 with all of its runs waiting.
    """
    made = []
    for keys, own in events.groupby(by, sort=False, dropna=False):
        fit = SurvfuncRight(own["step"].to_numpy(float), own["reached"].to_numpy(int))
        points = zip(
            [0.0, *fit.surv_times], [1.0, *fit.surv_prob], [len(own), *fit.n_risk], [0, *fit.n_events], strict=True
        )
        made += [(*keys, *point) for point in points]
    return pd.DataFrame(made, columns=[*by, *CURVE])


def restricted_means(events: pd.DataFrame, by: list[str], confidence: float, arm: str = "operator") -> pd.DataFrame:
    """The restricted mean of every arm, with its t interval; arms of one group of `by` share a horizon.

    Columns: `by`, the arm, and MEANS. never: runs that do not reach the event before they end.
    """
    made = []
    for keys, group in events.groupby(by, sort=False):
        until = horizon(group)
        for name, own in group.groupby(arm, sort=False):
            found = mean_interval(restricted(own, until), confidence)
            made.append((*keys, name, *found, len(own), int((~own["reached"]).sum()), until))
    return pd.DataFrame(made, columns=[*by, arm, *MEANS])
