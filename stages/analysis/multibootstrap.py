"""The Multi-Bootstrap of Sellam et al. 2022 (The MultiBERTs, section 4): over pre-training seeds and test examples.

Every resample draws pre-training seeds with replacement, and test examples with replacement, the same for both
operators: runs of equal seeds share their batches. Where the operators have different seeds, those of each are drawn by
themselves. Runs of one pre-training seed, which differ in the fine-tuning seed, are averaged and not resampled. Metrics
are computed from the weight that an example has in the resample; Spearman's ranks are those of the whole set.

It needs several pre-training seeds: its 95 % intervals cover about 67 % with two of them and 80 % with three, so
nothing is returned below FEWEST.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from stages.evidence.scores import COLUMNS, GLUE_SCORE, METRICS
from stages.plumbing.settings import REFERENCE

FEWEST = 5  # pre-training seeds of either operator
KEYS = ["protocol", "size"]
RESULT = [*KEYS, "operator", "column", "estimate", "low", "high", "share_above", "pretraining", "runs", "examples"]
CHUNK = 4_000_000  # weights of examples in memory at a time


def against_original(
    predictions: pd.DataFrame, labels: dict[str, pd.Series], resamples: int, seed: int, confidence: float
) -> pd.DataFrame:
    """Compares every operator with the original by resampling pre-training seeds and examples.

    Args:
        predictions: protocol, size, operator, evaluated_on, pretraining_seed, finetuning_seed, example_id, prediction.
        labels: by column, the true label of every example_id.
        resamples: how many are drawn.
        seed: of all draws.
        confidence: of the percentile intervals.

    Returns:
        RESULT, one row for every operator but the original and every column that both have predictions for, and for
        GLUE_SCORE, their mean, if both have all. estimate, low, high: operator minus original, in points. share_above:
        of resamples, those above zero. pretraining, runs: the operator's numbers of pre-training seeds and of runs.
        Operators with fewer than FEWEST pre-training seeds have no row; if the original has fewer, none has.

    Raises:
        ValueError: predictions are not of the examples of `labels`.
    """
    differences = []
    seeds = predictions.groupby([*KEYS, "operator"])["pretraining_seed"].transform("nunique")
    for (protocol, size), rows in predictions[seeds >= FEWEST].groupby(KEYS, sort=False):
        columns = [column for column in COLUMNS if column in set(rows["evaluated_on"])]
        scores = _resampled_scores(rows, columns, labels, METRICS[protocol], resamples, seed)
        for operator in rows.loc[rows["operator"] != REFERENCE, "operator"].drop_duplicates():
            runs = rows.loc[rows["operator"] == operator, ["pretraining_seed", "finetuning_seed"]].drop_duplicates()
            arm = {"protocol": protocol, "size": size, "operator": operator}
            arm |= {"pretraining": runs["pretraining_seed"].nunique(), "runs": len(runs)}
            by_column = {
                column: 100 * (scores[operator, column] - scores[REFERENCE, column])
                for column in columns
                if {(operator, column), (REFERENCE, column)} <= scores.keys()
            }
            if len(by_column) == len(COLUMNS):
                by_column = {GLUE_SCORE: np.mean([*by_column.values()], axis=0)} | by_column
            for column, values in by_column.items():
                examples = sum(len(labels[name]) for name in (COLUMNS if column == GLUE_SCORE else [column]))
                differences.append(arm | {"column": column, "examples": examples} | _summary(values, confidence))
    return pd.DataFrame(differences, columns=RESULT)


def _summary(values: np.ndarray, confidence: float) -> dict:
    """The columns `estimate`, `low`, `high` and `share_above`, to which a resample at zero, a tie, adds half.

    values: the difference over all runs and, after it, that in every resample [1 + resamples].
    """
    difference, resampled = values[0], values[1:]
    low, high = np.quantile(resampled, ((1 - confidence) / 2, (1 + confidence) / 2))
    share = float(np.mean(resampled > 0) + np.mean(resampled == 0) / 2)
    return {"estimate": difference, "low": low, "high": high, "share_above": share}


def _resampled_scores(
    rows: pd.DataFrame, columns: list[str], labels: dict, metrics: dict, resamples: int, seed: int
) -> dict[tuple[str, str], np.ndarray]:
    """By operator and column: the score over all runs, a fraction, and after it that in every resample [1 + resamples].

    rows: predictions of one protocol and size. metrics: by column, the raw metrics whose mean is the score.
    """
    scores = {}
    for place, column in enumerate(columns):
        truth, n = labels[column].to_numpy(float), len(labels[column])
        for operator, runs in rows[rows["evaluated_on"] == column].groupby("operator", sort=False):
            table = runs.pivot(index=["pretraining_seed", "finetuning_seed"], columns="example_id", values="prediction")
            values = table.reindex(columns=labels[column].index).to_numpy(float)
            if np.isnan(values).any():
                raise ValueError(
                    f"{column} of {operator}: predictions are not of the examples in data/tasks; run again"
                )
            examples = np.random.default_rng([seed, place])  # the same examples for every operator
            drawn = sorted({int(name) for name in table.index.get_level_values(0)})  # equal seeds, equal draws
            seeds = seed_weights(table.index, resamples, np.random.default_rng([seed, *drawn]))
            score = _score(metrics[column], values, truth, np.ones((1, n)))
            parts = [[seed_mean_weights(table.index) @ score[:, 0]]]
            step = max(1, CHUNK // n)
            for start in range(0, resamples, step):
                chunk = seeds[start : start + step].T
                # how often a resample has each example: n draws of n with replacement are one multinomial draw
                weights = examples.multinomial(n, np.full(n, 1 / n), size=chunk.shape[1]).astype(float)
                parts.append((_score(metrics[column], values, truth, weights) * chunk).sum(axis=0))
            scores[operator, column] = np.concatenate(parts)
    return scores


def seed_mean_weights(runs: pd.MultiIndex) -> np.ndarray:
    """The weight of every run [runs] in the mean over pre-training seeds of the means over fine-tuning seeds."""
    outer = runs.get_level_values(0)
    return np.array([1 / (outer.nunique() * np.sum(outer == p)) for p in outer])


def seed_weights(runs: pd.MultiIndex, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Resamples pre-training seeds; the runs of one seed stay together.

    Args:
        runs: the seed of pre-training and that of fine-tuning of every run [runs].
        resamples, generator: how many are drawn, and what draws them.

    Returns:
        The weights of `seed_mean_weights`, times how often each resample has the seed of the run [resamples, runs].
    """
    outer = runs.get_level_values(0)
    seeds = outer.unique()
    drawn = generator.multinomial(len(seeds), np.full(len(seeds), 1 / len(seeds)), size=resamples)
    return drawn[:, seeds.get_indexer(outer)] * seed_mean_weights(runs)


def _score(metrics: tuple[str, ...], values: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean of the metrics [runs, resamples] of predictions [runs, n] under weights [resamples, n]; truth: [n]."""
    return np.mean([METRIC[name](values, truth, weights.T) for name in metrics], axis=0)


def accuracy(values: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The share of examples that are right [runs, resamples].

    Args:
        values: predictions [runs, examples].
        truth: labels [examples].
        weights: how often each resample drew each example [examples, resamples].
    """
    return (values == truth) @ weights / weights.sum(axis=0)


def f1(values: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """F1 of class 1; 0 where no example is of it or said to be. Arguments and result as those of `accuracy`."""
    yes, right = values == 1, truth == 1
    return _ratio(2 * (yes & right) @ weights, yes @ weights + right @ weights)


def pearson(values: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Pearson's correlation, Matthews' for classes 0 and 1; 0, up to rounding, if undefined. As `accuracy`."""
    total = weights.sum(axis=0)
    x, y = values @ weights / total, truth @ weights / total
    covariance = (values * truth) @ weights / total - x * y
    spread = np.maximum((values**2) @ weights / total - x**2, 0) * np.maximum((truth**2) @ weights / total - y**2, 0)
    return _ratio(covariance, np.sqrt(spread))


def spearman(values: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Spearman's correlation, with the ranks among all examples. Arguments and result as those of `accuracy`."""
    ranks = pd.DataFrame(values.T).rank().to_numpy().T
    return pearson(ranks, pd.Series(truth).rank().to_numpy(), weights)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Divides; 0 where `below` is 0 but for rounding, as a metric that constant predictions leave undefined is zero."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 1e-12)


METRIC: dict[str, Callable] = {
    "accuracy": accuracy,
    "f1": f1,
    "matthews_correlation": pearson,
    "pearson": pearson,
    "spearmanr": spearman,
}
