"""The Multi-Bootstrap of Sellam et al. 2022 (The MultiBERTs, section 4): over pre-training seeds and test examples.

Every resample draws pre-training seeds, and examples of the validation sets, with replacement, the same for both
operators: runs of equal seeds share their batches. Where their sets of seeds differ, these are drawn independently.
Runs of one pre-training seed, which differ in the fine-tuning seed, are averaged and not resampled. A metric counts an
example as often as the resample has it; Spearman's ranks are those of the whole set.

It needs FEWEST pre-training seeds: in simulations of normal scores without noise from examples, a 95 % interval covers
the truth with two, three and five shared seeds in 49, 74 and 83 %, and with seeds of their own in 67, 81 and 87 %.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from stages.evidence.scores import COLUMNS, GLUE_SCORE, METRICS
from stages.schema.settings import REFERENCE

FEWEST = 5  # pre-training seeds of either operator
KEYS = ["protocol", "size"]
RESULT = [*KEYS, "operator", "column", "estimate", "low", "high", "share_above", "pretraining", "runs", "examples"]
CHUNK = 4_000_000  # weights of examples in memory at a time: 32 MB


def against_original(
    predictions: pd.DataFrame, labels: dict[str, pd.Series], resamples: int, seed: int, confidence: float
) -> pd.DataFrame:
    """Compares every operator with the original by resampling pre-training seeds and examples.

    Args:
        predictions: protocol, size, operator, evaluated_on, pretraining_seed, finetuning_seed, example_id, prediction;
            a prediction is the number of a class, or for STS-B a similarity.
        labels: by column (`evaluated_on`), the true label of every example, indexed by example_id.
        resamples, seed: how many are drawn, and the seed of all draws.
        confidence: of the percentile intervals, such as 0.95.

    Returns:
        RESULT, one row for every operator but the original and every column that both have predictions for, and before
        these for GLUE_SCORE, their mean, if both have all nine. estimate, low, high: operator minus original, in
        points. share_above: of resamples, those above zero, and half of those at zero. pretraining, runs: how many
        the operator has; examples: the column. Without FEWEST pre-training seeds, an operator has no row, and without
        those of the original, none has.

    Raises:
        ValueError: a run lacks the prediction of an example of `labels`.
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
    """Returns `estimate` to `share_above` of RESULT; values: over all runs, then in every resample [1 + resamples]."""
    difference, resampled = values[0], values[1:]
    low, high = np.quantile(resampled, ((1 - confidence) / 2, (1 + confidence) / 2))
    share = float(np.mean(resampled > 0) + np.mean(resampled == 0) / 2)
    return {"estimate": difference, "low": low, "high": high, "share_above": share}


def _resampled_scores(
    rows: pd.DataFrame, columns: list[str], labels: dict, metrics: dict, resamples: int, seed: int
) -> dict[tuple[str, str], np.ndarray]:
    """By operator and column: the score over all runs, a fraction, and after it that in every resample [1 + resamples].

    rows: predictions of one protocol and size. metrics: by column, the names in METRIC whose mean is the score.
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
    """The weight of each of `runs` (pre-training, fine-tuning seed) in the mean of the means of pre-training seeds."""
    outer = runs.get_level_values(0)
    return np.array([1 / (outer.nunique() * np.sum(outer == p)) for p in outer])


def seed_weights(runs: pd.MultiIndex, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Resamples pre-training seeds; the runs of one seed stay together.

    Args:
        runs: as for `seed_mean_weights`.
        resamples, generator: how many are drawn, and what draws them.

    Returns:
        `seed_mean_weights`, times how often a resample has the run's seed [resamples, runs]; each row sums to one.
    """
    outer = runs.get_level_values(0)
    seeds = outer.unique()
    drawn = generator.multinomial(len(seeds), np.full(len(seeds), 1 / len(seeds)), size=resamples)
    return drawn[:, seeds.get_indexer(outer)] * seed_mean_weights(runs)


def _score(metrics: tuple[str, ...], values: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean of the named metrics [runs, resamples] of predictions [runs, n] under weights [resamples, n]; truth: [n]."""
    return np.mean([METRIC[name](values, truth, weights.T) for name in metrics], axis=0)


def accuracy(values: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The share of examples whose prediction equals the label [runs, resamples].

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
    """Pearson's correlation, which of classes 0 and 1 is Matthews'; 0, up to rounding, where predictions or labels are
    constant. Arguments and result as those of `accuracy`.
    """
    total = weights.sum(axis=0)
    x, y = values @ weights / total, truth @ weights / total
    covariance = (values * truth) @ weights / total - x * y
    # both variances, which rounding can put below 0
    spread = np.maximum((values**2) @ weights / total - x**2, 0) * np.maximum((truth**2) @ weights / total - y**2, 0)
    return _ratio(covariance, np.sqrt(spread))


def spearman(values: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Spearman's correlation of the ranks among all examples, ties at their mean. Otherwise as `accuracy`."""
    ranks = pd.DataFrame(values.T).rank().to_numpy().T
    return pearson(ranks, pd.Series(truth).rank().to_numpy(), weights)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Divides; 0 where `below` is at most 1e-12, as a metric that constant predictions leave undefined is zero."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 1e-12)


METRIC: dict[str, Callable] = {  # by the names of the raw metrics
    "accuracy": accuracy,
    "f1": f1,
    "matthews_correlation": pearson,
    "pearson": pearson,
    "spearmanr": spearman,
}
