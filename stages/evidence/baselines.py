"""Baseline scores that a model must exceed: a constant answer, with an interval, and other simple predictors.

The constant answer is the most frequent training answer; for F1, always the positive class; for STS-B, the mean. A
model's score is at chance if the score is not above the upper end of the constant answer's interval. The interval, of a
confidence such as 0.95, describes a new draw of as many examples:

- accuracy, exact match and F1 of answers: Wilson's interval for a share;
- F1 of always positive, `2p / (1 + p)` for a share p of positives: the values at the ends of Wilson's interval of p;
- Matthews, Pearson and Spearman correlation: Fisher's interval for a correlation of zero;
- mean of two metrics on the same examples: the means of the ends; of accuracy and F1, for the better of always positive
  and always negative;
- mean over columns or tasks: the errors are added in squares;
- accuracy on another task than the task of the training: Wilson's interval for the more frequent of yes and no.

The argument `baselines` has the scores of all baselines (`collect_baselines`). Scores are fractions, NaN if unknown.
"""

from math import isnan, nan, sqrt, tanh

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from stages.benchmarks.glue import TASK_OF
from stages.evidence import scores
from stages.evidence.fields import select_rows, stack_frames
from stages.files.observations import NOT_PRETRAINED

MOST_FREQUENT = "most_frequent"
WORDS_AND_OVERLAP = "words_and_overlap"
# Labels in the report.
LABELS = {
    MOST_FREQUENT: "constant answer",
    "bag_of_words": "bag of words",
    "bigrams": "words and bigrams",
    WORDS_AND_OVERLAP: "words and their overlap",
    NOT_PRETRAINED: "not pre-trained",
}
# Prefix of the question sets in `evaluated_on`.
ANSWERS = "squad"
# Accuracy of the more frequent of yes and no on a split to which models are transferred.
TRANSFERRED = "transferred_accuracy"
CORRELATIONS = ("matthews_correlation", "pearson", "spearmanr")
KEYS = ["operator", "protocol", "evaluated_on", "metric"]
COLUMNS = [*KEYS, "value", "low", "high"]


def compute_interval(
    metric: str,
    value: float,
    n: int,
    confidence: float,
) -> tuple[float, float]:
    """Computes the confidence interval of a constant answer's score, as fractions.

    Args:
        metric: `accuracy`, `f1`, `matthews_correlation`, `pearson` or `spearmanr`; for both metrics of question
            answering, `exact_match`.
        value: the score of the constant answer; not used for correlations.
        n: number of examples, 1 or more; a correlation of three or fewer has the interval from -1 to 1.
        confidence: of the interval, such as 0.95.
    """
    if metric in CORRELATIONS:
        if n <= 3:
            return -1.0, 1.0
        # Fisher's interval around a correlation of 0. A confidence of 0.95 gives 1.96 standard errors.
        standard_errors = stats.norm.ppf((1 + confidence) / 2)
        end = tanh(standard_errors / sqrt(n - 3))
        return -end, end
    if metric == "f1":
        # The interval of the share p of positive examples; F1 of always positive is 2p / (1 + p).
        low, high = _compute_wilson_interval(_compute_positive_share(value), n, confidence)
        return 2 * low / (1 + low), 2 * high / (1 + high)
    # Accuracy and exact match are shares. For the F1 of answers, a mean of fractions, the interval is rather too wide.
    return _compute_wilson_interval(value, n, confidence)


def _compute_positive_share(f1: float) -> float:
    # F1 of always positive is 2p / (1 + p) for a share p of positive examples: 2/3 gives 1/2.
    return f1 / (2 - f1)


def _compute_wilson_interval(share: float, n: int, confidence: float) -> tuple[float, float]:
    return proportion_confint(
        count=round(share * n),
        nobs=n,
        alpha=1 - confidence,
        method="wilson",
    )


def collect_baselines(rows: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Collects the scores of all baselines from the observations of stages `baselines` and `cross_domain`.

    Returns:
        A row for every baseline, protocol, `evaluated_on` and metric: value, low and high. The interval is NaN except
        for the constant answer.

        - Rows without a protocol have raw metrics, of GLUE, of both question sets and their mean (`squad`), and of the
          splits of stage `cross_domain`.
        - Rows with a protocol have the metric `score` of every column of the GLUE tables, and of means of columns. The
          protocol fixes the raw metrics behind each column.
    """
    # Every model repeats the accuracy of the more frequent of yes and no on a split: one row is enough.
    splits = select_rows(rows, stage="cross_domain", metric="majority_accuracy").drop_duplicates("evaluated_on")
    transferred = splits.assign(operator=MOST_FREQUENT, protocol=None, metric=TRANSFERRED)
    # Stage `baselines` measures all other baselines.
    rows = stack_frames([select_rows(rows, stage="baselines"), transferred])
    # A trained baseline has a row for every seed; the mean over seeds takes the place of these rows.
    means = rows.groupby(KEYS, dropna=False)["value"].transform("mean")
    raw = _add_intervals(rows.assign(value=means).drop_duplicates(KEYS), confidence)
    # Raw metrics. Only models without pre-training have a protocol, the recipe of the training, and are left out.
    parts = [raw[raw["protocol"].isna()]]
    # Raw metrics of question answering, averaged over both sets.
    answers = raw["evaluated_on"].str.startswith(ANSWERS)
    for metric, answered in raw[answers].groupby("metric", sort=False):
        parts.append(_average_columns(answered, ("squad1", "squad2"), "squad").assign(metric=metric))
    # Scores. A trained baseline counts only under the protocol of the training, any other under every protocol.
    wanted = raw.rename(columns={"protocol": "recipe"}).merge(scores.list_metrics(), on=["evaluated_on", "metric"])
    recipes = wanted["recipe"]
    wanted = wanted[recipes.isna() | (recipes == wanted["protocol"])]
    for protocol, metrics in wanted.groupby("protocol"):
        groups = metrics.groupby(["operator", "evaluated_on"], sort=False)
        columns = groups[["metric", "value", "low", "high"]].apply(_combine_metrics).reset_index()
        averages = [_average_columns(columns, names, name) for name, names in scores.MEANS.items()]
        for part in (columns, *averages):
            parts.append(part.assign(protocol=protocol, metric="score"))
    return stack_frames(parts).reindex(columns=COLUMNS).reset_index(drop=True)


def _add_intervals(rows: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Adds the interval (`low`, `high`) of each constant answer; other baselines get NaN."""
    intervals = []
    for row in rows.itertuples():
        metric = row.metric
        # The F1 of answers is not the F1 of a class: the interval is made as for exact match.
        if row.evaluated_on.startswith(ANSWERS):
            metric = "exact_match"
        interval = (nan, nan)
        if row.operator == MOST_FREQUENT:
            interval = compute_interval(metric, row.value, int(row.n), confidence)
        intervals.append(interval)
    added = pd.DataFrame(
        intervals,
        columns=["low", "high"],
        index=rows.index,
        dtype=float,
    )
    return pd.concat([rows, added], axis=1)


def _combine_metrics(metrics: pd.DataFrame) -> pd.Series:
    """Averages the metrics of a baseline behind a column of the GLUE tables: `value`, `low` and `high`."""
    numbers = metrics.set_index("metric")[["value", "low", "high"]]
    # Only the constant answer has an interval. All other baselines give the same answers for both metrics.
    if set(numbers.index) != {"accuracy", "f1"} or numbers["low"].isna().any():
        return numbers.mean()
    # For F1, the constant answer is positive; for accuracy, the more frequent class. The mean takes one answer for
    # both. Always positive has the share of positives as accuracy; always negative has an F1 of 0.
    f1 = numbers.loc["f1"]
    always_positive = (_compute_positive_share(f1) + f1) / 2
    always_negative = numbers.loc["accuracy"] / 2
    if always_positive["value"] >= always_negative["value"]:
        return always_positive
    return always_negative


def _average_columns(columns: pd.DataFrame, wanted: tuple[str, ...], name: str) -> pd.DataFrame:
    """Averages the `wanted` columns for each baseline that has all of these columns; `name` names the mean."""
    means = []
    for operator, rows in select_rows(columns, evaluated_on=wanted).groupby("operator", sort=False):
        if len(rows) < len(wanted):
            continue
        mean = rows["value"].mean()
        # The columns count as independent: the distances of the ends from the scores add in squares.
        errors = rows[["low", "high"]].sub(rows["value"], axis=0)
        below, above = np.sqrt((errors**2).sum(skipna=False)) / len(rows)
        means.append((operator, name, mean, mean - below, mean + above))
    return pd.DataFrame(means, columns=["operator", "evaluated_on", "value", "low", "high"])


def look_up_scores(name: str, rows: pd.DataFrame, baselines: pd.DataFrame) -> pd.DataFrame:
    """Looks up the score of a baseline, such as `most_frequent`, on the same data and metric as each score of a model.

    `rows` has `protocol`, `evaluated_on` and `metric` of each score of a model; for `cross_domain` also `stage` and
    `task`, the task of fine-tuning.

    Returns:
        For each of the rows the `value` of the baseline, and `high`, the upper end of the interval; NaN if unknown.
    """
    wanted = rows.reindex(columns=["stage", "task", *KEYS]).astype("str").assign(operator=name)
    # The baseline of `raw_accuracy` and of `accuracy_under_noise` is `accuracy`.
    metric = wanted["metric"].str.removeprefix("raw_").str.removesuffix("_under_noise")
    # On another task than the task of fine-tuning, a model answers yes or no. Only the constant answer is known there.
    other_task = wanted["task"] != wanted["evaluated_on"].map(TASK_OF)
    elsewhere = (wanted["stage"] == "cross_domain") & other_task & (metric == "accuracy")
    wanted = wanted.assign(
        # Baselines of raw metrics have no protocol.
        protocol=wanted["protocol"].where(metric == "score"),
        metric=metric.mask(elsewhere, TRANSFERRED),
    )
    found = wanted[KEYS].merge(baselines, how="left", on=KEYS)
    return found.set_index(rows.index)[["value", "high"]]


def is_at_chance(score: float, high: float) -> bool | None:
    """Checks whether a score is at most the upper end of the constant answer's interval; None if either is NaN."""
    if isnan(score) or isnan(high):
        return None
    return score <= high


def is_contrast_at_chance(runs: pd.DataFrame, lost: bool) -> bool:
    """Checks whether a comparison of operators means nothing, because scores are at chance.

    Args:
        runs: the runs of all operators: `score`, and `most_frequent_high`, the upper end of chance, equal in all runs.
        lost: whether the compared number is a loss of score, such as under noise. Losses mean nothing if the mean score
            of any operator is at chance; scores, only if all operators are at chance.
    """
    operators = runs.groupby("operator").agg({"score": "mean", "most_frequent_high": "first"})
    # False if the upper end is NaN (unknown).
    at_chance = operators["score"] <= operators["most_frequent_high"]
    return bool(at_chance.any() if lost else at_chance.all())


def add_baselines(rows: pd.DataFrame, baselines: pd.DataFrame, value: str = "value") -> pd.DataFrame:
    """Adds the scores of two baselines, and whether the score is at chance, to every score of a model.

    Args:
        rows: scores of models, with the columns that `look_up_scores` needs.
        baselines: the scores of baselines.
        value: the name of the column of scores.

    Returns:
        The rows with `most_frequent`, the constant answer; `most_frequent_high`, the upper end of the interval;
        `words_and_overlap`, a linear model of words; and `at_chance`, in which `<NA>` is unknown.
    """
    constant = look_up_scores(MOST_FREQUENT, rows, baselines)
    overlap = look_up_scores(WORDS_AND_OVERLAP, rows, baselines)
    # A nullable type, in which a comparison with a missing number is missing.
    score = rows[value].astype("Float64")
    return rows.assign(
        most_frequent=constant["value"],
        most_frequent_high=constant["high"],
        words_and_overlap=overlap["value"],
        at_chance=score <= constant["high"].astype("Float64"),
    )
