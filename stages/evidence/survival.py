"""Times that may never come: steps to an event that some runs do not reach before their end.

Such a run is right-censored: its time is longer than the run, and to leave it out would favour whatever fails most
often. An event table has one row for every run: its arm (such as the operator), the `step` of the event, and whether it
was `reached`; where it was not, `step` is the last one of the run. Further columns may group runs or describe them.

Kaplan-Meier curves and the log-rank statistic are those of statsmodels. The restricted mean is the mean of the time
spent before the event, up to a common horizon; a run that never gets there counts with the whole of it.
"""

from itertools import combinations
from math import comb, nan

import numpy as np
import pandas as pd
from statsmodels.duration.survfunc import SurvfuncRight, survdiff

from stages.evidence.statistics import holm, mean_interval, welch

CURVE = ["step", "waiting", "at_risk", "reached"]
MEANS = ["mean", "sd", "low", "high", "runs", "never", "horizon"]
COMPARED = [
    *("difference", "low", "high", "p", "p_log_rank", "p_holm"),
    *("runs", "runs_reference", "never", "never_reference", "horizon"),
]
EXACT_UP_TO = 1_000  # ways to divide the runs among two arms; beyond, the log-rank test takes its chi-square


def horizon(events: pd.DataFrame) -> float:
    """The last step up to which every run is known: the shortest run that never got there, or else the last event."""
    never = events.loc[~events["reached"], "step"]
    return float(never.min() if len(never) else events["step"].max())


def restricted(events: pd.DataFrame, until: float) -> np.ndarray:
    """The time [runs] that each run spends before its event, up to the horizon `until`."""
    return np.minimum(events["step"].to_numpy(float), until)


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


def compared(
    events: pd.DataFrame, by: list[str], confidence: float, arm: str = "operator", reference: str = "original"
) -> pd.DataFrame:
    """Every arm against the reference, in every group of `by`: restricted means by Welch's t, curves by log-rank.

    Columns: `by`, the arm, and COMPARED. difference: steps that the arm spends more than the reference, up to the
    horizon of both. p: of that difference; p_holm: the same, adjusted over all rows returned.
    """
    made = []
    for keys, group in events.groupby(by, sort=False):
        other = group[group[arm] == reference]
        for name, own in group[group[arm] != reference].groupby(arm, sort=False):
            if other.empty:
                continue
            both = pd.concat([own, other])
            until = horizon(both)
            test = welch(restricted(own, until), restricted(other, until), confidence)
            tests = test.difference, test.low, test.high, test.p, log_rank(own, other), nan
            never = [int((~side["reached"]).sum()) for side in (own, other)]
            made.append((*keys, name, *tests, len(own), len(other), *never, until))
    frame = pd.DataFrame(made, columns=[*by, arm, *COMPARED])
    return frame.assign(p_holm=holm(frame["p"].to_numpy(float)))


def log_rank(own: pd.DataFrame, other: pd.DataFrame) -> float:
    """p of the log-rank test between two arms; NaN with fewer than two runs in one, or without any event.

    Of few runs it is exact: the share of all ways to divide the runs among the arms that give a statistic as large, as
    the chi-square of so few rejects too often. Three runs against three never fall below p = 0.1.
    """
    both = pd.concat([own, other])
    step, reached = both["step"].to_numpy(float), both["reached"].to_numpy(int)
    if min(len(own), len(other)) < 2 or not reached.any():
        return nan
    group = np.r_[np.ones(len(own)), np.zeros(len(other))]
    statistic, p = _log_rank(step, reached, group)
    if comb(len(both), len(own)) > EXACT_UP_TO:
        return p
    divisions = [np.isin(np.arange(len(both)), chosen) for chosen in combinations(range(len(both)), len(own))]
    return float(np.mean([_log_rank(step, reached, division)[0] >= statistic - 1e-9 for division in divisions]))


def _log_rank(step: np.ndarray, reached: np.ndarray, group: np.ndarray) -> tuple[float, float]:
    """Statistic and p; 0 and 1 where all events come at one step, which orders no run before another."""
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic, p = survdiff(step, reached, group.astype(float))
    except np.linalg.LinAlgError:
        return 0.0, 1.0
    return (float(statistic), float(p)) if np.isfinite(statistic) else (0.0, 1.0)
