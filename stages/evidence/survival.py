"""Times that may never come: steps to an event that some runs do not reach before their end.

Such a run is right-censored: its time is longer than the run, and to leave it out would favour whatever fails most
often. An event table has one row for every run: its arm (such as the operator), the `step` of the event, and whether it
was `reached`; where it was not, `step` is the last one of the run. Further columns may group runs or describe them.

One rule holds wherever such times are compared: every run counts with the time that it spends before the event, up to
the common horizon of the arms (`restrict_times`). A restricted mean is a mean of these. Of the time itself, with no
horizon, it is only a bound where a run never got there: a claim about it has an interval that is open at that end, and
a number that is printed for it is not judged.
"""

import numpy as np
import pandas as pd
from statsmodels.duration.survfunc import SurvfuncRight

from stages.evidence.statistics import mean_interval

CURVE = ["step", "waiting", "at_risk", "reached"]  # see `curves`
MEANS = ["mean", "sd", "low", "high", "runs", "never", "horizon"]


def first_below(steps: pd.Series, losses: pd.Series, threshold: float) -> tuple[int, bool]:
    """Returns the step of the first evaluation of a run below a threshold and True, or its last step and False.

    Args:
        steps, losses: of its evaluations, one or more, in increasing order, with one index; NaN is not below.
        threshold: in the unit of the losses.
    """
    below = steps[losses < threshold]
    return (int(below.iloc[0]), True) if len(below) else (int(steps.iloc[-1]), False)


def crossing(steps: pd.Series, losses: pd.Series, level: float) -> tuple[float, bool]:
    """Returns the step at which a run first crosses a level, and True; or its last step and False.

    The step is interpolated linearly between the first evaluation at or below the level and the evaluation before:
    losses of 6 and 5 nats at steps 100 and 200 cross 5.5 at step 150. A run that begins below crosses at its first
    evaluation.

    Args:
        steps, losses: of the evaluations of a run, one or more, in increasing order; NaN is not below.
        level: in the unit of the losses.
    """
    step, loss = steps.to_numpy(float), losses.to_numpy(float)
    below = np.flatnonzero(loss <= level)
    if not len(below):
        return float(step[-1]), False
    first = below[0]
    if first == 0 or np.isnan(loss[first - 1]):
        return float(step[first]), True
    around = [first, first - 1]
    return float(np.interp(level, loss[around], step[around])), True


def horizon(events: pd.DataFrame) -> float:
    """The last step up to which all runs are known: the end of the shortest that never got there, or the last event."""
    never = events.loc[~events["reached"], "step"]
    return float(never.min() if len(never) else events["step"].max())


def restrict_times(arms: list[pd.DataFrame]) -> tuple[list[pd.DataFrame], float]:
    """Cuts the times of arms (column `value`, with `reached`) at their common horizon; returns arms and horizon."""
    both = pd.concat(arms)
    until = horizon(both.assign(step=both["value"]))
    return [arm.assign(value=arm["value"].clip(upper=until)) for arm in arms], until


def curves(events: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Kaplan-Meier curves: the share of runs still `waiting` after each step with an event, for every group of `by`.

    Columns: `by` and CURVE. at_risk: the runs known to wait until that step; reached: those with their event at it.
    Each curve begins at step 0 with all of its runs waiting.
    """
    points = []
    for keys, runs in events.groupby(by, sort=False, dropna=False):
        fit = SurvfuncRight(runs["step"].to_numpy(float), runs["reached"].to_numpy(int))
        points.append((*keys, 0.0, 1.0, len(runs), 0))
        steps = zip(fit.surv_times, fit.surv_prob, fit.n_risk, fit.n_events, strict=True)
        points += [(*keys, *step) for step in steps]
    return pd.DataFrame(points, columns=[*by, *CURVE])


def restricted_means(events: pd.DataFrame, by: list[str], confidence: float, arm: str = "operator") -> pd.DataFrame:
    """Estimates the restricted mean of every arm, with its t interval; arms of one group share a horizon.

    Args:
        events: an event table, as the head of this file describes it.
        by, arm: the columns that the rows of one group agree in; the column that tells its arms apart.
        confidence: of the intervals.

    Returns:
        `by`, the arm and MEANS, one row for each arm of a group. mean, sd, low, high: of the restricted times, in
        steps. never: how many of the `runs` end before the event; horizon: the step at which the group's times are cut.
    """
    means = []
    for keys, group in events.groupby(by, sort=False):
        until = horizon(group)
        for name, runs in group.groupby(arm, sort=False):
            interval = mean_interval(runs["step"].clip(upper=until).to_numpy(float), confidence)
            means.append((*keys, name, *interval, len(runs), int((~runs["reached"]).sum()), until))
    return pd.DataFrame(means, columns=[*by, arm, *MEANS])
