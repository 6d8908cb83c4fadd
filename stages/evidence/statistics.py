"""Means and intervals over seeds, with the unit of inference named; estimate.py compares two arms.

A unit of inference is an independent value. Five fine-tuning seeds of a single pre-training run describe that
checkpoint; only several pre-training seeds describe the operator. With several pre-training seeds, fine-tuning runs are
averaged within each. A cell is the runs of an operator for a quantity, a row for each run.
"""

from itertools import product
from math import nan, sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

# Units of inference. Values without seeds are known without error, such as counts.
EXACT = "exact"
PRETRAINING = "pre-training seeds"
# Models that are trained on their task from new weights, such as translation models.
TRAINING = "training seeds"
# Runs of one pre-training checkpoint.
FINETUNING = "fine-tuning seeds"
# Times of the same work on one machine.
ROUNDS = "rounds"
# Relative rounding error: means of equal runs differ by less, measured scores and losses by more.
ROUNDING = 1e-9
# Pre-training seeds, or rounds, per arm for an interval. With two, Welch's test rejects up to twice as often as its
# level says if the spreads of the arms differ.
FEWEST = 3
# Seeds for which joint sign flips check a verdict. With five seeds no p value is below 0.05 (2 of 32 flips); above 14,
# the flips are too many to list.
FLIPPED = range(6, 15)


class Summary(NamedTuple):
    """Statistics over the units of inference (independent values).

    sd is NaN for a single unit, low and high are NaN below three units.

    Attributes:
        mean: mean over the units.
        sd: sample standard deviation over the units.
        n: number of units.
        low: lower end of the t interval of the mean.
        high: upper end of the t interval of the mean.
        unit: the unit of inference, such as `pre-training seeds`.
        runs: number of runs behind the units.
        within_sd: standard deviation over fine-tuning seeds, pooled within pre-training seeds.
        minimum: lowest unit.
        maximum: highest unit.
    """

    mean: float
    sd: float
    n: int
    low: float
    high: float
    unit: str
    runs: int
    within_sd: float
    minimum: float
    maximum: float


def find_units(rows: pd.DataFrame) -> tuple[np.ndarray, pd.Index, str]:
    """Finds the independent values (units of inference) among the runs of an operator.

    Runs that share a pre-training seed are not independent: each pre-training seed counts once, with its mean. With a
    single pre-training seed and fine-tuning, each fine-tuning run is a unit, and a comparison only concerns this
    checkpoint. Without a pre-training seed, each value is a unit.

    Args:
        rows: the runs: `value`, `pretraining_seed`, `finetuning_seed` (NaN without fine-tuning), and `stage` for times
            and translations; `condition` is the round of a time.

    Returns:
        The values of the units [n]; the seed or round of each unit, which pairs units of two operators [n]; the kind of
        unit, such as `fine-tuning seeds`, or `exact` for counts.
    """
    values = rows["value"].to_numpy(float)
    stages = set(rows.get("stage", ()))
    if rows["pretraining_seed"].isna().all():
        if "timing" in stages:
            return values, pd.Index(rows.get("condition", rows.index)), ROUNDS
        return values, rows.index, EXACT
    _, _, means, seeds = _average_by_pretraining_seed(rows)
    if len(means) == 1 and rows["finetuning_seed"].notna().any():
        return values, pd.Index(rows["finetuning_seed"]), FINETUNING
    if stages == {"translation"}:
        return means, seeds, TRAINING
    return means, seeds, PRETRAINING


def summarise_cell(rows: pd.DataFrame, confidence: float) -> Summary:
    """Computes mean, spread and interval, of a confidence such as 0.95, over the runs of an operator for a quantity.

    Raises:
        ValueError: there are no runs.
    """
    if rows.empty:
        raise ValueError("no runs: nothing to summarise")
    values, _, unit = find_units(rows)
    mean, sd, low, high = compute_mean_interval(values, confidence)
    return Summary(
        mean=mean,
        sd=sd,
        n=len(values),
        low=low,
        high=high,
        unit=unit,
        runs=len(rows),
        within_sd=compute_within_sd(rows),
        minimum=float(values.min()),
        maximum=float(values.max()),
    )


def summarise_groups(rows: pd.DataFrame, keys: list[str], confidence: float) -> pd.DataFrame:
    """Summarises every group of runs by mean, spread and interval, of a confidence such as 0.95.

    Returns:
        A row per group of equal `keys` (columns of the runs): `keys` and the fields of Summary, such as `mean`, `sd`
        and `n`.
    """
    cells = []
    for values, runs in rows.groupby(keys, dropna=False, sort=False):
        cells.append((*values, *summarise_cell(runs, confidence)))
    return pd.DataFrame(cells, columns=[*keys, *Summary._fields])


def compute_bands(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Computes `mean`, `minimum`, `maximum` and number `n` of the column `value` for every group of `keys`."""
    values = rows.groupby(keys, sort=False)["value"]
    return values.agg(mean="mean", minimum="min", maximum="max", n="count").reset_index()


def compute_mean_interval(values: np.ndarray, confidence: float) -> tuple[float, float, float, float]:
    """Computes mean, sample standard deviation, lower and upper end of the t interval of independent values [n].

    The ends are NaN for fewer than three values, and all but the mean for one value.
    """
    n = len(values)
    mean = float(np.mean(values))
    if n == 1:
        return mean, nan, nan, nan
    sd = float(np.std(values, ddof=1))
    if n < FEWEST:
        return mean, sd, nan, nan
    half = compute_critical_value(1 - confidence, 1, n - 1) * sd / sqrt(n)
    return mean, sd, mean - half, mean + half


def compute_within_sd(rows: pd.DataFrame) -> float:
    """Computes the standard deviation over fine-tuning seeds, pooled within pre-training seeds; NaN without repeats."""
    tuned = rows[rows["finetuning_seed"].notna()]
    values, places, means, _ = _average_by_pretraining_seed(tuned)
    freedom = len(values) - len(means)
    if freedom == 0:
        return nan
    # From each value, the mean of the same pre-training seed is subtracted.
    squares = (values - means[places]) ** 2
    return float(np.sqrt(squares.sum() / freedom))


def _average_by_pretraining_seed(
    rows: pd.DataFrame,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, pd.Index]:
    """Averages the values of each pre-training seed.

    Returns the values [n], the position of the seed of each value among the sorted seeds [n], and for these seeds
    [seeds] the means and the numbers of the seeds.
    """
    places, seeds = pd.factorize(rows["pretraining_seed"], sort=True)
    # Runs without a seed, with place -1, are left out.
    seeded = places >= 0
    places = places[seeded]
    values = rows["value"].to_numpy(float)[seeded]
    # np.bincount takes a tenth of the time of a pandas group.
    sums = np.bincount(places, weights=values, minlength=len(seeds))
    counts = np.bincount(places, minlength=len(seeds))
    return values, places, sums / counts, pd.Index(seeds)


def varies(values: np.ndarray) -> bool:
    """Checks whether values [n] differ by more than rounding; equal values allow no t test."""
    return len(values) > 1 and bool(np.ptp(values) > ROUNDING * max(1.0, np.abs(values).max()))


def flip_signs_jointly(differences: np.ndarray) -> np.ndarray:
    """Tests all contrasts of a family together by exact sign flips (single-step max T of Westfall and Young 1993).

    Args:
        differences: paired differences [seeds, contrasts]; every contrast varies over the seeds.

    Returns:
        Adjusted two-sided p values [contrasts]: the share of all 2^seeds flips in which the largest |t| of the family
        is at least the |t| of the contrast. With six seeds, no p value is below 2 / 64.
    """
    seeds = len(differences)
    # A flip changes the sign of all contrasts of a seed at once, so that the dependence between contrasts stays.
    signs = np.array(list(product((1.0, -1.0), repeat=seeds)))
    # The sum of squares does not change with a sign, so |t| grows with |mean| / root mean square.
    scaled = differences / np.sqrt((differences**2).mean(axis=0))
    # By flip and contrast [flips, contrasts].
    absolute_means = np.abs(signs @ scaled) / seeds
    largest = absolute_means.max(axis=1)
    # The first row of `signs` flips nothing. Equal sums may differ by rounding.
    observed = absolute_means[0] - ROUNDING
    return (largest[:, None] >= observed).mean(axis=0)


def compute_critical_value(alpha: float, tests: int, freedom: float) -> float:
    """Computes the t value of simultaneous two-sided intervals (Bonferroni): 2.57 for 0.05, one test and 5 degrees.

    Args:
        alpha: the share of families in which any interval misses the true value.
        tests: number of intervals of the family; 0 counts as 1.
        freedom: degrees of freedom of the t distribution; NaN gives NaN.
    """
    return float(stats.t.isf(alpha / max(tests, 1) / 2, freedom))


def compute_error_of_difference(values: np.ndarray) -> float:
    """Computes the standard error of the mean of values [n] minus a published number, which counts as a further unit.

    The error has n - 1 degrees of freedom, and is NaN if the values do not vary, or are fewer than two.
    """
    if not varies(values):
        return nan
    # A published score comes from a single pre-training run. The spread of such runs is taken to be the spread of the
    # values.
    return float(np.std(values, ddof=1)) * sqrt(1 + 1 / len(values))
