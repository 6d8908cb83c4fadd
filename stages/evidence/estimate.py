"""Compares two arms by a difference with a standard error; the analysis makes simultaneous intervals of a family.

An arm is a side of a comparison, such as all runs of an operator. statistics.py explains units of inference.
"""

from dataclasses import dataclass, field, replace
from math import nan

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.weightstats import CompareMeans

from stages.evidence.statistics import (
    FEWEST,
    FINETUNING,
    PRETRAINING,
    compute_critical_value,
    find_units,
    varies,
)


@dataclass(frozen=True)
class Estimate:
    """A difference of two arms; numbers that are unknown are NaN.

    Attributes:
        value: mean of the arm minus mean of the reference.
        n: number of units of inference (independent values) of both.
        unit: the unit of inference, such as `pre-training seeds`.
        low: lower end of the interval.
        high: upper end of the interval.
        error: standard error.
        freedom: degrees of freedom of the t distribution.
        p: two-sided p value.
        paired: whether runs of equal seed, or times of equal rounds, were compared.
        differences: the paired differences by seed.
    """

    value: float
    n: tuple[int, int]
    unit: str = PRETRAINING
    low: float = nan
    high: float = nan
    error: float = nan
    freedom: float = nan
    p: float = nan
    paired: bool = False
    differences: pd.Series = field(default_factory=lambda: pd.Series(dtype=float))


def compare_arms(arm: pd.DataFrame, reference: pd.DataFrame, confidence: float) -> Estimate:
    """Compares the runs of two sides, such as two operators, by the difference of the means.

    Arms with equal pre-training seeds share batches and masks, and times of one round share the state of the machine:
    such arms are compared by paired differences, all other arms by Welch's test.

    Args:
        arm: the runs: `value`, `pretraining_seed`, `finetuning_seed` and, if known, `stage` and `condition`.
        reference: the runs of the second side.
        confidence: of the interval, such as 0.95.

    Returns:
        The difference with its interval and p value. If the units of the arms differ, the unit is a fine-tuning seed.
        There is no interval with too few units, if all paired differences are equal, or if all runs of an unpaired arm
        are equal.
    """
    # For times, the seeds are rounds.
    values, seeds, unit = find_units(arm)
    other_values, other_seeds, other_unit = find_units(reference)
    # One of the arms has a single checkpoint.
    if unit != other_unit:
        unit = FINETUNING
    same_seeds = seeds.is_unique and sorted(seeds) == sorted(other_seeds)
    # Fine-tuning seeds of two checkpoints are no pairs: in the released results of Courtois et al., the mean
    # correlation of scores of equal seed is 0.07 over 36 columns.
    if unit != FINETUNING and same_seeds:
        # The position of every seed of the arm among the seeds of the reference.
        order = other_seeds.get_indexer(seeds)
        differences = pd.Series(values - other_values[order], index=seeds)
        effect = compare_paired(differences, confidence)
    else:
        effect = compare_by_welch(values, other_values, confidence)
    if min(effect.n) < FEWEST:
        effect = Estimate(effect.value, effect.n, paired=effect.paired)
    return replace(effect, unit=unit)


def compare_by_welch(arm: np.ndarray, reference: np.ndarray, confidence: float) -> Estimate:
    """Compares two arms, a number for every unit, by Welch's t test.

    There is no interval and no test if the runs of an arm are all equal.
    """
    n = len(arm), len(reference)
    value = float(np.mean(arm) - np.mean(reference))
    # An arm whose runs are all equal, such as models that all give the same answer, would count as known without error.
    if not (varies(arm) and varies(reference)):
        return Estimate(value, n)
    both = CompareMeans.from_data(arm, reference)
    # Welch and Satterthwaite: the degrees of freedom of a sum of two variances that may differ.
    return _make_estimate(value, n, float(both.std_meandiff_separatevar), float(both.dof_satt()), confidence)


def compare_paired(differences: pd.Series, confidence: float) -> Estimate:
    """Compares two arms of equal seeds by Student's t test of the differences, a number for every seed.

    There is no interval and no test if all differences are equal.
    """
    values = differences.to_numpy()
    n = len(values)
    mean = float(np.mean(values))
    if not varies(values):
        return Estimate(mean, (n, n), paired=True)
    error = float(stats.sem(values))
    return replace(_make_estimate(mean, (n, n), error, n - 1, confidence), paired=True, differences=differences)


def _make_estimate(value: float, n: tuple[int, int], error: float, freedom: float, confidence: float) -> Estimate:
    """Adds the t interval and the p value to a difference `value` with a standard error."""
    # Half the width of the interval.
    half = compute_critical_value(1 - confidence, 1, freedom) * error
    return Estimate(
        value=value,
        n=n,
        low=value - half,
        high=value + half,
        error=error,
        freedom=freedom,
        p=float(2 * stats.t.sf(abs(value / error), freedom)),
    )
