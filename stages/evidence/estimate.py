"""An estimate: a value with its interval, and how sure it is that the true value lies above a bound, or below.

Made of two arms by Welch's t, of pairs of runs by Student's t, or of two spreads: the one place where two arms are
compared, for tables, claims and studies. statistics.py says what an arm is, and a unit of inference.
"""

from dataclasses import dataclass, field, replace
from math import exp, inf, isinf, isnan, log, nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

from stages.evidence.statistics import (
    EXACT,
    FEWEST,
    FINETUNING,
    PRETRAINING,
    REPEATS,
    mean_interval,
    permutation_p,
    units,
    varies,
)

WITHIN = "fine-tuning seeds within pre-training seeds"


@dataclass(frozen=True)
class Estimate:
    """A value with its interval, `low` to `high` (NaN where there is none), and what it was made of.

    The value is a mean, a difference of two arms, a ratio of their geometric means (`log`) or a ratio of spreads. unit:
    what n counts. n: one number for each arm. error, freedom: standard error and degrees of freedom of the t
    distribution (of a ratio by `log`, those of its logarithm); of a ratio of spreads, freedom is the pair of the F
    distribution, and error NaN. at_least, at_most: the true value may only be larger, or only smaller, since runs ended
    before they reached a milestone. Callers add the next three. never: the number of these runs in each arm.
    checkpoints: pre-training runs of the arm that has fewer; None where no model was pre-trained, as in counts and
    times. at_chance: there is nothing to compare, as `baselines.nothing_to_compare` says. paired: whether runs of equal
    seed were compared, or times of equal rounds. sides: the values of both arms (with `log`, the logarithms) where
    there is a permutation test in place of an interval, as those of one arm are all equal.
    """

    value: float
    low: float = nan
    high: float = nan
    unit: str = EXACT
    n: tuple[int, ...] = ()
    checkpoints: int | None = None
    error: float = nan
    freedom: float | tuple[int, int] = nan
    log: bool = False
    at_least: bool = False
    at_most: bool = False
    never: tuple[int, ...] = ()
    at_chance: bool = False
    paired: bool = False
    sides: tuple[np.ndarray, np.ndarray] | None = field(default=None, compare=False)

    @property
    def exact(self) -> bool:
        """Whether the value is known without error."""
        return self.unit == EXACT

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval."""
        return not isnan(self.low)

    @property
    def tested(self) -> bool:
        """Whether there is a test, with an interval or without."""
        return self.has_interval or self.sides is not None

    @property
    def p(self) -> float:
        """Two-sided p that a difference is not 0, or a ratio by `log` not 1; NaN without a test or if `sides` overlap.

        0 if the value is exact.
        """
        equal = 1.0 if self.log else 0.0
        p = 2 * min(self.p_above(equal), self.p_below(equal))
        return p if p <= 1 else nan

    def p_within(self, margin: float) -> float:
        """p of two one-sided tests that a difference is closer to zero than a margin; NaN without an interval."""
        return max(self.p_above(-margin), self.p_below(margin)) if self.has_interval else nan

    def p_above(self, bound: float) -> float:
        """p of the one-sided test that the true value lies above a bound, small if it does; NaN without a test.

        0 for -inf, 1 for inf; otherwise 1 if the estimate is `at_most`, 0 or 1 if `exact`. A ratio has bounds above 0.
        """
        if isinf(bound):
            return float(bound > 0)
        return 1.0 if self.at_most else self._tail(bound, upper=True)

    def p_below(self, bound: float) -> float:
        """p of the one-sided test that the true value lies below a bound: the mirror image of `p_above`."""
        if isinf(bound):
            return float(bound < 0)
        return 1.0 if self.at_least else self._tail(bound, upper=False)

    def _tail(self, bound: float, upper: bool) -> float:
        """One-sided p that the true value lies above (`upper`) or below a bound, by the test that the estimate has."""
        if self.exact:  # known without error
            return float(self.value < bound if upper else self.value > bound)
        if self.sides is not None:
            arm, reference = (
                self.sides[0] - (log(bound) if self.log else bound),
                self.sides[1],
            )
            return permutation_p(arm, reference) if upper else permutation_p(reference, arm)
        if not self.has_interval:
            return nan
        if isinstance(self.freedom, tuple):  # of a ratio of standard deviations: squared, over the bound, it has F
            tail = stats.f.sf if upper else stats.f.cdf
            return float(tail((self.value / bound) ** 2, *self.freedom))
        distance = log(self.value / bound) if self.log else self.value - bound
        return float((stats.t.sf if upper else stats.t.cdf)(distance / self.error, self.freedom))


def between(
    arm: pd.DataFrame,
    reference: pd.DataFrame,
    confidence: float,
    ratio: bool = False,
    at_least: bool = False,
    at_most: bool = False,
) -> Estimate:
    """Compares two arms over their units of inference: arm minus reference or, with `ratio`, arm over reference.

    Pre-training runs of equal seed share batches and masks, and times of one round share the state of the machine. Arms
    that have the same seeds or rounds are therefore compared by `paired`. Fine-tuning seeds of two checkpoints are not
    pairs: in the released results of Courtois et al. their mean correlation is 0.07 over 36 columns. Such arms, arms
    with different seeds, and arms that do not vary are compared by `welch`.

    Args:
        arm, reference: the runs of either, as `statistics.units` takes them.
        confidence: of the interval.
        ratio: whether logarithms are compared, which gives the ratio of geometric means; all values are then above 0.
        at_least, at_most: as `Estimate` has them; the interval then ends at inf, or begins at -inf (of a ratio, at 0).

    Returns:
        The estimate of `paired` or `welch`. Its unit is that of both arms; where these differ, one arm has a single
        checkpoint, and the unit is FINETUNING. If an arm has fewer units than FEWEST and these are no timed repeats, it
        is the value alone, without an interval and, unless it is exact, without a test.
    """
    (values, draws, unit), (other_values, other_draws, other_unit) = (
        units(arm),
        units(reference),
    )
    unit = unit if unit == other_unit else FINETUNING
    shared = unit == other_unit and unit != FINETUNING  # seeds or rounds that mean the same in both arms
    same = shared and draws.is_unique and len(draws) == len(other_draws) and set(draws) == set(other_draws)
    if same and varies(values) and varies(other_values):
        effect = paired(values, other_values[other_draws.get_indexer(draws)], confidence, ratio)
    else:
        effect = welch(values, other_values, confidence, ratio)
    if unit != REPEATS and min(effect.n) < FEWEST:
        effect = replace(effect, low=nan, high=nan, error=nan, freedom=nan, sides=None)
    if effect.has_interval:
        low = (0.0 if ratio else -inf) if at_most else effect.low
        effect = replace(effect, low=low, high=inf if at_least else effect.high)
    return replace(effect, unit=unit, at_least=at_least, at_most=at_most)


def welch(arm: np.ndarray, reference: np.ndarray, confidence: float, ratio: bool = False) -> Estimate:
    """Compares two arms, or their logarithms, by Welch's t.

    An arm whose runs are all equal, such as models that all give one answer, would count as known without error: there
    is no interval then, and the test is an exact permutation test.

    Args:
        arm, reference: one number for every unit of inference, [n] and [m].
        confidence, ratio: as for `between`.

    Returns:
        The difference of the means or the ratio of the geometric means, without an interval or a test where an arm has
        one unit alone. The unit is given as pre-training seeds; a caller with other units replaces it.
    """
    n = len(arm), len(reference)
    arm, reference = (np.log(side) if ratio else side for side in (arm, reference))
    if not (varies(arm) and varies(reference)):
        difference = float(np.mean(arm) - np.mean(reference))
        sides = (arm, reference) if min(n) > 1 else None
        value = exp(difference) if ratio else difference
        return Estimate(value, unit=PRETRAINING, n=n, log=ratio, sides=sides)
    means = of_means(
        *((np.mean(side), np.var(side, ddof=1), len(side)) for side in (arm, reference)),
        confidence,
    )
    if not ratio:
        return means
    return replace(
        means,
        value=exp(means.value),
        low=exp(means.low),
        high=exp(means.high),
        log=True,
    )


def of_means(
    arm: tuple[float, float, int],
    reference: tuple[float, float, int],
    confidence: float,
) -> Estimate:
    """Computes the difference of two means by Welch's t from means and variances alone; its unit is that of `welch`.

    Args:
        arm, reference: mean, sample variance and number of units of either; two units at least, not both variances 0.
        confidence: of the interval.
    """
    (mean, variance, n), (reference_mean, reference_variance, m) = arm, reference
    squares = variance / n, reference_variance / m
    # Welch and Satterthwaite: the degrees of freedom of a sum of two variances that may differ
    freedom = float(sum(squares) ** 2 / (squares[0] ** 2 / (n - 1) + squares[1] ** 2 / (m - 1)))
    value, error = float(mean - reference_mean), sqrt(sum(squares))
    half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * error
    return Estimate(
        value,
        value - half,
        value + half,
        PRETRAINING,
        (n, m),
        error=error,
        freedom=freedom,
    )


def paired(arm: np.ndarray, reference: np.ndarray, confidence: float, ratio: bool = False) -> Estimate:
    """Compares two arms that have a run of every seed each, by Student's t of their differences.

    Args:
        arm, reference: one number for every seed, in the same order [n].
        confidence, ratio: as for `between`.

    Returns:
        The mean difference or the ratio of the geometric means, whose `error` stays that of the logarithm; without an
        interval or a test where all differences are equal. The unit is given as for `welch`.
    """
    differences = np.log(arm / reference) if ratio else arm - reference
    mean, sd, low, high = mean_interval(differences, confidence)
    back, n = exp if ratio else float, len(differences)
    effect = Estimate(back(mean), unit=PRETRAINING, n=(n, n), log=ratio, paired=True)
    if not varies(differences):
        return effect
    return replace(effect, low=back(low), high=back(high), error=sd / sqrt(n), freedom=n - 1)


def spreads(sd: float, reference_sd: float, freedom: tuple[int, int], confidence: float) -> Estimate:
    """Estimates the ratio of two standard deviations, `sd` over `reference_sd`, taking what varies to be normal.

    Args:
        sd, reference_sd, freedom: the standard deviations of the arms, above 0, and the degrees of freedom of either.
        confidence: of the interval, which is that of the F distribution.

    Returns:
        The ratio, its unit as WITHIN; `n` is left to the caller.
    """
    ratio = sd / reference_sd
    low, high = (ratio / sqrt(stats.f.ppf(q, *freedom)) for q in ((1 + confidence) / 2, (1 - confidence) / 2))
    return Estimate(ratio, low, high, WITHIN, freedom=freedom)
