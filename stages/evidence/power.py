"""How often a rule would find what is claimed, given as many runs as there were and the spread that they had.

All are for the rule as it is applied: two-sided at alpha for directions, two one-sided tests at alpha for equivalence.
Shares are of repetitions of the whole experiment, with all of its runs. The spread is itself estimated, from few runs
mostly, so these are orders of magnitude.
"""

from math import isnan, nan

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import brentq

OFTEN = 0.8  # share of repetitions in which the smallest effect that is stated would be found


def direction(effect: float, error: float, freedom: float, alpha: float) -> float:
    """Computes the share of repetitions in which a two-sided t test finds an effect, with the right sign.

    The statistic has a noncentral t distribution; its upper tail alone counts, since the sign has to be right.

    Args:
        effect: true distance from the bound of the claim, at least 0.
        error, freedom: standard error, in the unit of the effect, and degrees of freedom of the t distribution.
        alpha: the level of the two-sided test.
    """
    return float(stats.nct.sf(stats.t.isf(alpha / 2, freedom), freedom, effect / error))


def inside(below: float, above: float, error: float, freedom: float, alpha: float) -> float:
    """Computes the share of repetitions in which two one-sided t tests show that an effect lies inside a range.

    This is a lower bound: any of the two fails in at most the sum of the shares in which each does (Bonferroni).

    Args:
        below, above: true distances to the lower and the upper end of the range.
        error, freedom: as for `direction`, in the unit of the distances.
        alpha: the level of either test.
    """
    critical = stats.t.isf(alpha, freedom)
    parts = (stats.nct.sf(critical, freedom, distance / error) for distance in (below, above))
    return max(0.0, float(sum(parts)) - 1)


def smallest_effect(error: float, freedom: float, alpha: float) -> float:
    """Computes the effect that a t test finds in 80 % of repetitions; NaN without a standard error.

    Args:
        error, freedom, alpha: as for `direction`; the error, unless it is NaN, is above 0.
    """
    if isnan(error):
        return nan
    return brentq(lambda size: direction(size, error, freedom, alpha) - OFTEN, 0, 1e4 * error)  # the end is ample


def smallest_effects(family: pd.DataFrame, alpha: float) -> list[float]:
    """Computes the effect that each test of a family finds in 80 % of repetitions, at the first step of Holm's method.

    family: a row for each test: `p` (NaN for one that is not made, and is no member), `error` and `freedom`. alpha: of
    all tests of the family together; the first step divides it by the number of members.
    """
    first_step = alpha / max(family["p"].notna().sum(), 1)
    return [smallest_effect(row.error, row.freedom, first_step) for row in family.itertuples()]


def smallest_spread(freedom: tuple[int, int], alpha: float) -> float:
    """The ratio of deviations, below 1, that a two-sided F test (freedom: a pair) finds in 80 % of repetitions."""
    return float(np.sqrt(stats.f.ppf(alpha / 2, *freedom) / stats.f.ppf(OFTEN, *freedom)))  # (measured / true)^2 has F
