"""Means and intervals over seeds, with the unit of inference named; estimate.py compares two arms.

A unit of inference is an independent value. Five fine-tuning seeds of a single pre-training run describe that
checkpoint; only several pre-training seeds describe the operator. With several pre-training seeds, fine-tuning runs are
averaged within each. A cell is the runs of an operator for a quantity, a row for each run.
"""

from dataclasses import asdict, dataclass, fields
from math import comb, nan, sqrt

import numpy as np
import pandas as pd
from scipy import stats

NOT_TESTED = "not tested"
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
DIFFERENT = "different"
INCONCLUSIVE = "inconclusive"
ONE_CHECKPOINT = "one checkpoint per arm"
TOO_FEW = "too few seeds"
TOO_FEW_ROUNDS = "too few rounds"
# Pre-training seeds, or rounds, per arm for a verdict. With two, Welch's test rejects up to twice as often as its level
# says if the spreads of the arms differ.
FEWEST = 3


@dataclass(frozen=True)
class Summary:
    """Statistics over the units of inference (independent values); sd, low and high are NaN for a single unit.

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
    """Computes mean, spread and interval over the runs of an operator for a quantity.

    Args:
        rows: the runs: `value`, `pretraining_seed`, `finetuning_seed`.
        confidence: of the interval, such as 0.95.

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
    """Summarises every group of runs by mean, spread and interval.

    Args:
        rows: runs (`value`, `pretraining_seed`, `finetuning_seed`) with the columns `keys`.
        keys: the columns that the runs of a group agree in.
        confidence: of the intervals, such as 0.95.

    Returns:
        A row per group, with the columns `keys` and the fields of Summary, such as `mean`, `sd` and `n`.
    """
    cells = []
    for values, runs in rows.groupby(keys, dropna=False, sort=False):
        cell = dict(zip(keys, values, strict=True))
        cell.update(asdict(summarise_cell(runs, confidence)))
        cells.append(cell)
    statistics = [field.name for field in fields(Summary)]
    return pd.DataFrame(cells, columns=[*keys, *statistics])


def compute_bands(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Computes `mean`, `minimum`, `maximum` and number `n` of the column `value` for every group of `keys`."""
    values = rows.groupby(keys, sort=False)["value"]
    return values.agg(mean="mean", minimum="min", maximum="max", n="count").reset_index()


def compute_mean_interval(values: np.ndarray, confidence: float) -> tuple[float, float, float, float]:
    """Computes mean, sample standard deviation, lower and upper end of the t interval of values [n].

    Args:
        values: independent values; a single value has a mean and three NaN.
        confidence: of the interval, such as 0.95.
    """
    n = len(values)
    mean = float(np.mean(values))
    if n == 1:
        return mean, nan, nan, nan
    sd = float(np.std(values, ddof=1))
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * sd / np.sqrt(n)
    return mean, sd, mean - half, mean + half


def compute_within_sd(rows: pd.DataFrame) -> float:
    """Computes the standard deviation over fine-tuning seeds, pooled within pre-training seeds; NaN without repeats."""
    tuned = rows[rows["finetuning_seed"].notna()]
    values, places, means, _ = _average_by_pretraining_seed(tuned)
    freedom = len(values) - len(means)
    if freedom == 0:
        return nan
    squares = (values - means[places]) ** 2
    return float(np.sqrt(squares.sum() / freedom))


def _average_by_pretraining_seed(
    rows: pd.DataFrame,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, pd.Index]:
    """Averages runs by pre-training seed; runs without a seed are left out.

    Returns:
        The values of the runs [n], the place of each run's seed [n], the mean of each seed [seeds], the sorted seeds.
    """
    places, seeds = pd.factorize(rows["pretraining_seed"], sort=True)
    seeded = places >= 0
    places = places[seeded]
    values = rows["value"].to_numpy(float)[seeded]
    # np.bincount takes a tenth of the time of a pandas group.
    sums = np.bincount(places, weights=values, minlength=len(seeds))
    counts = np.bincount(places, minlength=len(seeds))
    return values, places, sums / counts, pd.Index(seeds)


def explain_too_few(unit: str, *counts: int) -> str:
    """Explains why a comparison has no verdict, such as `too few seeds`; an empty text if there can be a verdict.

    A verdict on an operator needs three pre-training seeds (or rounds of timing). Any number of fine-tuning seeds is
    too few, because these share one checkpoint.

    Args:
        unit: the unit of inference, such as `pre-training seeds`.
        counts: number of units of each side of the comparison.
    """
    fewest = min(counts)
    if unit == ROUNDS:
        return TOO_FEW_ROUNDS if fewest < FEWEST else ""
    if unit == FINETUNING or fewest < 2:
        return ONE_CHECKPOINT
    if fewest < FEWEST:
        return TOO_FEW
    return ""


def varies(values: np.ndarray) -> bool:
    """Checks whether values [n] differ by more than rounding; equal values allow no t test."""
    return len(values) > 1 and bool(np.ptp(values) > ROUNDING * max(1.0, np.abs(values).max()))


def compute_permutation_p(first: np.ndarray, second: np.ndarray) -> float:
    """Computes the p value of an exact permutation test that all of `first` [n] lies above `second` [m].

    Used in place of a t test if a side does not vary.

    Returns:
        `1 / C(n + m, n)` if all of `first` lies above `second` by more than rounding; 1 in all other cases, and if a
        side is a single value.
    """
    gap = first.min() - second.max()
    if min(len(first), len(second)) < 2 or gap <= ROUNDING * max(1.0, abs(second.max())):
        return 1.0
    return 1 / comb(len(first) + len(second), len(first))


def adjust_by_holm(p_values: np.ndarray) -> np.ndarray:
    """Adjusts the p values of a family of tests by Holm's method (1979): (0.01, 0.04, NaN) gives (0.02, 0.04, NaN).

    Args:
        p_values: [tests]; NaN for a test that was not made, which is no member of the family.
    """
    adjusted = np.full(len(p_values), nan)
    members = np.count_nonzero(~np.isnan(p_values))
    # NaN is sorted last.
    order = np.argsort(p_values)[:members]
    # The smallest p value is multiplied by n, the next by n - 1, and no p value becomes smaller than the one before.
    factors = np.arange(members, 0, -1)
    multiplied = np.maximum.accumulate(factors * p_values[order])
    adjusted[order] = np.minimum(multiplied, 1.0)
    return adjusted


def compute_p_of_difference(values: np.ndarray, other: float) -> float:
    """Computes the two-sided p value that a mean differs from a published number, which counts as a further unit.

    Args:
        values: independent values of this run [n].
        other: the published number, in the unit of the values.

    Returns:
        The p value; NaN if the values do not vary, or are fewer than two.
    """
    if not varies(values):
        return nan
    n = len(values)
    # A published score comes from a single pre-training run. The spread of such runs is taken to be the spread of the
    # values.
    error = float(np.std(values, ddof=1)) * sqrt(1 + 1 / n)
    distance = abs(float(np.mean(values)) - other)
    return float(2 * stats.t.sf(distance / error, n - 1))
