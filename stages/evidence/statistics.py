"""Means and intervals over seeds, with the unit of inference named; estimate.py compares two arms.

Five fine-tuning seeds on one pre-training run speak for that checkpoint; only several pre-training seeds speak for the
operator. With several, fine-tuning seeds are first averaged within each pre-training seed, so n counts pre-training
runs. What counts as independent is called a unit of inference. A cell is what the runs of one operator show of one
quantity, one row a run; as a side of a comparison these runs are an arm.
"""

from dataclasses import asdict, dataclass, fields
from math import comb, nan

import numpy as np
import pandas as pd
from scipy import stats

NOT_TESTED = "not tested"
EXACT = "exact"  # of values without seeds, which are known without error, such as counts
PRETRAINING = "pre-training seeds"
TRAINING = "training seeds"  # of models that are trained on their task from new weights, as those of translation are
FINETUNING = "fine-tuning seeds"  # of one pre-training run
REPEATS = "timed repeats"  # of one time on one machine
ROUNDING = 1e-9  # of a value; means of equal runs differ by less, measured scores and losses by more
DIFFERENT, INCONCLUSIVE = "different", "inconclusive"
ONE_CHECKPOINT = "one checkpoint per arm"
TOO_FEW = "too few seeds"
# With two, Welch's test rejects up to twice as often as its level says where the spreads of the sides are unequal.
FEWEST = 3  # pre-training seeds per side for a verdict


@dataclass(frozen=True)
class Summary:
    """Statistics of one cell over its units of inference. sd, low and high are NaN where n < 2.

    mean, sd (of the sample), minimum, maximum: of the values of the units; low, high: the t interval of the mean.
    n: number of units; unit: what they are; runs: all runs behind them. within_sd: as `within_sd` returns it.
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


def units(rows: pd.DataFrame) -> tuple[np.ndarray, pd.Index, str]:
    """Finds the units of inference of one cell, with what pairs each of them with a unit of another arm, as a seed.

    rows: value, pretraining_seed and finetuning_seed (NaN where there is none) of every run of one cell; stage, where
    they are times or translations; condition, which names the round of a timed repeat. Returns one value for every unit
    [n], what pairs it [n], and the name of the unit. With several pre-training seeds, or without fine-tuning: the mean
    of each pre-training seed, that seed, and PRETRAINING (TRAINING for translations). With one: each run, its
    fine-tuning seed, and FINETUNING. Of rows without a pre-training seed, each value: of times with the round, and
    REPEATS; otherwise with the index of its row, and EXACT.
    """
    values = rows["value"].to_numpy(float)
    if rows["pretraining_seed"].isna().all():
        if "stage" in rows and (rows["stage"] == "timing").any():
            return values, pd.Index(rows.get("condition", rows.index)), REPEATS
        return values, rows.index, EXACT
    _, _, means, seeds = _by_pretraining_seed(rows)
    if len(means) > 1 or rows["finetuning_seed"].isna().all():
        translated = "stage" in rows and (rows["stage"] == "translation").all()
        return means, seeds, TRAINING if translated else PRETRAINING
    return values, pd.Index(rows["finetuning_seed"]), FINETUNING


def summarise(rows: pd.DataFrame, confidence: float) -> Summary:
    """Computes the statistics of one cell from its runs, as for `units`. Raises ValueError where there are no rows."""
    if rows.empty:
        raise ValueError("no runs: nothing to summarise")
    values, _, unit = units(rows)
    mean, sd, low, high = mean_interval(values, confidence)
    ends = float(values.min()), float(values.max())
    return Summary(mean, sd, len(values), low, high, unit, len(rows), within_sd(rows), *ends)


def summaries(rows: pd.DataFrame, keys: list[str], confidence: float) -> pd.DataFrame:
    """Summarises every group of runs in one row, with the columns `keys` and the fields of Summary.

    Args:
        rows, confidence: as for `units`; of the intervals.
        keys: the columns that the runs of one group agree in.
    """
    groups = rows.groupby(keys, dropna=False, sort=False)
    cells = [dict(zip(keys, values, strict=True)) | asdict(summarise(runs, confidence)) for values, runs in groups]
    return pd.DataFrame(cells, columns=[*keys, *(field.name for field in fields(Summary))])


def bands(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Computes mean, minimum, maximum and number n of the column `value` by `keys`. Columns: `keys`, then these."""
    values = rows.groupby(keys, sort=False)["value"]
    return values.agg(mean="mean", minimum="min", maximum="max", n="count").reset_index()


def mean_interval(values: np.ndarray, confidence: float) -> tuple[float, float, float, float]:
    """Mean, sample standard deviation and ends of the t interval of values [n]; if n is 1, all but the mean are NaN."""
    n, mean = len(values), float(np.mean(values))
    sd = float(np.std(values, ddof=1)) if n > 1 else nan
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * sd / np.sqrt(n) if n > 1 else nan
    return mean, sd, mean - half, mean + half


def within_sd(rows: pd.DataFrame) -> float:
    """Standard deviation over fine-tuning seeds, pooled within pre-training seeds; NaN where none of these has two."""
    values, group, means, _ = _by_pretraining_seed(rows[rows["finetuning_seed"].notna()])
    freedom = len(values) - len(means)
    return float(np.sqrt(((values - means[group]) ** 2).sum() / freedom)) if freedom else nan


def _by_pretraining_seed(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray, pd.Index]:
    """Values with a pre-training seed and places of their seeds, both [n]; means of seeds and sorted seeds [seeds]."""
    place, seeds = pd.factorize(rows["pretraining_seed"], sort=True)
    values, place = rows["value"].to_numpy(float)[place >= 0], place[place >= 0]
    sums, counts = (np.bincount(place, weights, len(seeds)) for weights in (values, None))  # in 1/10 of groupby's time
    return values, place, sums / counts, pd.Index(seeds)


def too_few(unit: str, *counts: int) -> str:
    """Why so many units per side allow no verdict on an operator, ONE_CHECKPOINT or TOO_FEW; empty where they do."""
    if unit == FINETUNING or min(counts) < 2:
        return ONE_CHECKPOINT
    return TOO_FEW if min(counts) < FEWEST else ""


def varies(values: np.ndarray) -> bool:
    """Whether values [n] differ by more than rounding; where they do not, they allow no t test."""
    return len(values) > 1 and bool(np.ptp(values) > ROUNDING * max(1.0, np.abs(values).max()))


def permutation_p(first: np.ndarray, second: np.ndarray) -> float:
    """One-sided p of an exact permutation test that all of `first` [n] lies above all of `second` [m].

    1 / C(n + m, n) where it does, by more than rounding; 1 otherwise, and where a side is a single value.
    """
    gap = first.min() - second.max()
    if min(len(first), len(second)) < 2 or gap <= ROUNDING * max(1.0, abs(second.max())):
        return 1.0
    return 1 / comb(len(first) + len(second), len(first))


def holm(p_values: np.ndarray) -> np.ndarray:
    """Adjusts the p values of one family [tests]; tests without one (NaN) are no members of it, and keep NaN.

    The smallest of n is multiplied by n, the next by n - 1, and so on; none becomes smaller than one before it (Holm
    1979). statsmodels has the method too, but collects garbage at every call: 40 ms in a process of many objects.
    """
    adjusted = np.full(len(p_values), nan)
    order = np.argsort(p_values)[: np.count_nonzero(~np.isnan(p_values))]  # NaN is sorted last
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1.0)
    return adjusted


def p_of_difference(values: np.ndarray, other: float) -> float:
    """Computes the two-sided p value that a mean differs from a number, which counts as one more unit.

    The number, such as a published score, comes from one pre-training run: the test takes its spread to be that of the
    values (standard error s sqrt(1 + 1/n), n - 1 degrees of freedom).

    Args:
        values: [n], one for every unit of inference.
        other: the number, in the unit of the values.

    Returns:
        The p value; NaN where the values do not vary, or are fewer than two.
    """
    if not varies(values):
        return nan
    n = len(values)
    error = float(np.std(values, ddof=1)) * np.sqrt(1 + 1 / n)
    distance = abs(float(np.mean(values)) - other)
    return float(2 * stats.t.sf(distance / error, n - 1))
