"""The effect that a two-sided t test would often find, given the number of runs and the spread of these runs.

The spread is estimated, mostly from few runs, so the effects are orders of magnitude. `freedom` are the degrees of
freedom, `alpha` the level of the test.
"""

from math import isnan, nan

from scipy import stats
from scipy.optimize import brentq

# The share of repetitions in which the smallest reported effect would be found.
OFTEN = 0.8


def compute_power(effect: float, error: float, freedom: float, alpha: float) -> float:
    """Computes the share of repetitions in which a two-sided t test finds an effect, with the right sign.

    The effect is at least 0, in the unit of the standard error.
    """
    # The statistic has a noncentral t distribution. Only the upper tail counts, because the sign has to be right.
    critical = stats.t.isf(alpha / 2, freedom)
    return float(stats.nct.sf(critical, freedom, effect / error))


def compute_smallest_effect(error: float, freedom: float, alpha: float) -> float:
    """Computes the smallest effect that a t test finds in 80 % of repetitions; NaN if the standard error is NaN."""
    if isnan(error):
        return nan

    def compute_excess(effect: float) -> float:
        return compute_power(effect, error, freedom, alpha) - OFTEN

    # Every test finds an effect of 10,000 standard errors.
    return brentq(compute_excess, 0, 1e4 * error)
