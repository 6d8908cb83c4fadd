"""What a score must exceed to be a result: a constant answer, with its interval; and what other baselines score.

Rows are observations (see files/observations.py); the `operator` of a baseline is its name in LABELS. Scores are
fractions. The constant answer is the one that training examples have most often; for F1, always the positive class; for
STS-B, their mean. The rule: a score is at chance where it is not above the upper end of that answer's interval, at the
confidence of the report. The interval is that of drawing so many examples anew:

- accuracy, of two classes or more: Wilson's interval for the share of the most frequent class;
- F1 of always positive: 2p / (1 + p), which grows with p, at the ends of Wilson's interval for the positives' share p;
- Matthews, Pearson and Spearman correlation: Fisher's interval for a correlation of zero;
- exact match and F1 of answers: Wilson's interval, which for F1, a mean of fractions, is rather too wide;
- a column that is the mean of two metrics on the same examples: the means of their ends, as if both erred together. Of
  accuracy and F1, one constant answer must give both: the better of always positive and always negative, whose F1 is 0;
- a mean over columns, which have different examples: their errors added in squares;
- accuracy under noise: that of accuracy; of a model tested on another task than its own: Wilson's interval for the more
  frequent of yes and no, which is not that of the task's own classes; its mean over pairs of tasks: errors in squares.

The model's own spread over seeds is left out: it says how sure a mean is, not whether it is a result.
"""

from collections.abc import Iterable, Mapping
from math import isnan, nan, sqrt, tanh

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from stages.benchmarks.glue import TASK_OF
from stages.evidence import scores
from stages.files.observations import NOT_PRETRAINED

STAGE = "baselines"  # the one that measures all baselines but those of transfer
MOST_FREQUENT = "most_frequent"
WORDS_AND_OVERLAP = "words_and_overlap"
LABELS = {  # of baselines in the report, by their names
    MOST_FREQUENT: "constant answer",
    "best_rule": "best rule on one property",
    "bag_of_words": "bag of words",
    "bigrams": "words and bigrams",
    WORDS_AND_OVERLAP: "words and their overlap",
    NOT_PRETRAINED: "not pre-trained",
}
AT_CHANCE = "at chance"
TRANSFERRED = "transferred_accuracy"  # of a constant yes or no
ELSEWHERE = "off_diagonal_accuracy"  # the mean over pairs of differing tasks, trained and tested on
CORRELATIONS = ("matthews_correlation", "pearson", "spearmanr")
COLUMNS = ("operator", "protocol", "evaluated_on", "metric", "value", "low", "high")
# by operator, protocol ("" for none), evaluated_on, metric: value and its interval's upper end (NaN: no interval)
WithoutModel = Mapping[tuple[str, str, str, str], tuple[float, float]]


def interval(metric: str, value: float, n: int, confidence: float) -> tuple[float, float]:
    """Computes the interval of a constant answer's score, by the rule at the head of this file.

    Args:
        metric: `accuracy`, `f1` or one of CORRELATIONS; for both metrics of question answering, `exact_match`.
        value: the score of the constant answer, a fraction; for a correlation it is taken to be 0, whatever it is.
        n: number of examples behind it, 1 or more.
        confidence: of the interval, such as 0.95.

    Returns:
        The lower and the upper end, fractions; -1 and 1 for a correlation of three examples or fewer.
    """
    if metric in CORRELATIONS:
        end = tanh(stats.norm.ppf((1 + confidence) / 2) / sqrt(n - 3)) if n > 3 else 1.0
        return -end, end
    share = value / (2 - value) if metric == "f1" else value  # p, as F1 = 2p / (1 + p)
    low, high = proportion_confint(round(share * n), n, 1 - confidence, method="wilson")
    return (2 * low / (1 + low), 2 * high / (1 + high)) if metric == "f1" else (low, high)


def references(rows: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Collects the scores of all baselines in every form in which models are scored.

    rows: observations; those of the stages `baselines` and `cross_domain` are used. confidence: of the intervals.
    Returns COLUMNS, one row for every `operator` (the baseline), `protocol`, `evaluated_on` and `metric`. Without a
    protocol: the raw metrics of GLUE; `exact_match` and `f1` of both question sets and of their mean, `squad`;
    TRANSFERRED of each split that the stage `cross_domain` tests on, and ELSEWHERE, their mean without mismatched MNLI,
    whose `evaluated_on` is an empty text. For each protocol the metric `score`: of every column of the papers' GLUE
    tables, of their mean `glue_score`, and of `glue_matched`, the mean without mismatched MNLI. low, high: the ends of
    the interval; NaN for all but MOST_FREQUENT.
    """
    away = _transferred(rows, confidence)
    rows = rows[rows["stage"] == STAGE]
    if rows.empty:
        return away
    # one row for every baseline, protocol, column and metric; where it was trained, with the mean over seeds
    keys = ["operator", "protocol", "evaluated_on", "metric"]
    rows = rows.assign(value=rows.groupby(keys, dropna=False)["value"].transform("mean")).drop_duplicates(keys)
    answers = rows["evaluated_on"].str.startswith("squad")
    kinds = rows["metric"].mask(answers, "exact_match")
    # only models without pre-training have a recipe; all other baselines count under every protocol
    raw = _with_ends(rows, kinds, confidence).rename(columns={"protocol": "recipe"}).assign(protocol=None)
    frames = [raw[raw["recipe"].isna()], away]
    for metric, answered in raw[answers].groupby("metric", sort=False):
        frames.append(_mean(answered, ("squad1", "squad2"), "squad").assign(metric=metric))
    for protocol, wanted in scores.METRICS.items():
        part_of = [
            row.metric in wanted.get(row.evaluated_on, ()) and (pd.isna(row.recipe) or row.recipe == protocol)
            for row in raw.itertuples()
        ]
        groups = raw[part_of].groupby(["operator", "evaluated_on"], sort=False)
        columns = groups[["metric", "value", "low", "high"]].apply(_column).reset_index()
        means = (_mean(columns, names, name) for name, names in scores.MEANS.items())
        frames.append(pd.concat([columns, *means]).assign(protocol=protocol, metric="score"))
    return pd.concat([frame.reindex(columns=list(COLUMNS)) for frame in frames if len(frame)], ignore_index=True)


def _transferred(rows: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Returns TRANSFERRED of the more frequent of yes and no on each split of `cross_domain`, and their ELSEWHERE."""
    splits = rows[(rows["stage"] == "cross_domain") & (rows["metric"] == "majority_accuracy")]
    # every model that is tested on a split has the same number there
    splits = splits.drop_duplicates("evaluated_on").assign(operator=MOST_FREQUENT, protocol=None, metric=TRANSFERRED)
    away = _with_ends(splits, pd.Series("accuracy", splits.index), confidence)
    mean = _mean(away, tuple(set(away["evaluated_on"]) - {scores.MISMATCHED}), "").assign(metric=ELSEWHERE)
    frames = [frame.reindex(columns=list(COLUMNS)) for frame in (away, mean) if len(frame)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(COLUMNS))


def _with_ends(rows: pd.DataFrame, metrics: pd.Series, confidence: float) -> pd.DataFrame:
    """Adds `low` and `high`, by the rule for each row's metric in `metrics` [rows]; NaN for all but MOST_FREQUENT."""
    ends = [
        interval(metric, row.value, int(row.n), confidence) if row.operator == MOST_FREQUENT else (nan, nan)
        for metric, row in zip(metrics, rows.itertuples(), strict=True)
    ]
    low, high = np.array(ends, dtype=float).reshape(-1, 2).T
    return rows.assign(low=low, high=high)


def without_model(scores: pd.DataFrame) -> WithoutModel:
    """Turns the rows that `references` returns into the mapping in which `score_of` looks scores up."""
    keys = ["operator", "protocol", "evaluated_on", "metric"]
    places = scores[keys].fillna({"protocol": ""}).itertuples(index=False, name=None)
    return dict(zip(places, zip(scores["value"], scores["high"], strict=True), strict=True))


def score_of(name: str, score: Mapping, baselines: WithoutModel) -> tuple[float, float]:
    """Looks up what a baseline scores where a model has a given score.

    Args:
        name, baselines: of the baseline; as `without_model` returns them.
        score: `protocol`, `evaluated_on` and `metric` of the model's score; of `cross_domain` also `stage` and `task`,
            the one fine-tuned on. `raw_` is taken off a metric, and `accuracy_under_noise` looked up as `accuracy`.

    Returns:
        The value of the baseline and the upper end of its interval, fractions; NaN for whichever is not known.
    """
    metric = str(score["metric"]).removeprefix("raw_")
    metric = "accuracy" if metric == "accuracy_under_noise" else metric
    if score.get("stage") == "cross_domain" and score["metric"] == "accuracy":
        # on another task than its own, a model's classes become yes and no
        metric = metric if score.get("task") == TASK_OF.get(str(score["evaluated_on"])) else TRANSFERRED
    protocol = score["protocol"] if metric == "score" else ""
    evaluated_on = "" if metric == ELSEWHERE else score["evaluated_on"]
    return baselines.get((name, protocol, evaluated_on, metric), (nan, nan))


def baselines_of(score: Mapping, baselines: WithoutModel) -> dict[str, float]:
    """Returns the numbers that `add_baselines` adds for a score (as in `score_of`), by the names of their columns."""
    value, high = score_of(MOST_FREQUENT, score, baselines)
    overlap, _ = score_of(WORDS_AND_OVERLAP, score, baselines)
    return {MOST_FREQUENT: value, f"{MOST_FREQUENT}_high": high, WORDS_AND_OVERLAP: overlap}


def at_chance(score: float, high: float) -> bool | None:
    """Whether a score is at most `high`, the upper end of the constant answer's interval; None where either is NaN."""
    return None if isnan(score) or isnan(high) else score <= high


def nothing_to_compare(arms: Iterable[pd.DataFrame], score: str, lost: bool) -> bool:
    """Whether arms score too low for a comparison of their scores, or of quantities made from these, to tell anything.

    Args:
        arms: the runs of each arm. `most_frequent_high`, equal in all of them, is the upper end of chance; an arm
            without runs, without this column, or with NaN in it, counts as above chance.
        score: the name of the column of scores. The mean over the runs of an arm is judged, by `at_chance`.
        lost: whether the accuracy that noise takes is compared. An arm at chance has nothing to lose, so that one such
            arm is enough to leave nothing to compare; otherwise all arms must be at chance.
    """
    at = [
        len(arm) > 0
        and "most_frequent_high" in arm
        and at_chance(float(arm[score].mean()), float(arm["most_frequent_high"].iloc[0])) is True
        for arm in arms
    ]
    return any(at) if lost else all(at)


def add_baselines(rows: pd.DataFrame, baselines: WithoutModel, value: str = "value") -> pd.DataFrame:
    """Adds to every score those of the baselines in its place, and whether it is at chance.

    Args:
        rows, value: scores, fractions in the column that `value` names, with what `score_of` needs of each.
        baselines: as `without_model` returns them.

    Returns:
        The rows, in their order and with their index, with `most_frequent`, `most_frequent_high` (the upper end of its
        interval) and `words_and_overlap`, NaN where there is none, and `at_chance`, `<NA>` where that is not known.
    """
    keys = [name for name in ("stage", "task", "protocol", "evaluated_on", "metric") if name in rows]
    names = [MOST_FREQUENT, f"{MOST_FREQUENT}_high", WORDS_AND_OVERLAP]
    scores = [baselines_of(row, baselines) for row in rows[keys].to_dict("records")]
    columns = pd.DataFrame(scores, columns=names, index=rows.index, dtype=float)
    highs = columns[f"{MOST_FREQUENT}_high"]
    columns["at_chance"] = pd.array([at_chance(*pair) for pair in zip(rows[value], highs, strict=True)], "boolean")
    return pd.concat([rows, columns], axis=1)


def _column(metrics: pd.DataFrame) -> pd.Series:
    """Returns `value`, `low` and `high` of one baseline in one column: the means over the column's metrics."""
    named = metrics.set_index("metric")[["value", "low", "high"]]
    # a fitted baseline, which has no interval, got both metrics by the same answers; the constant answer did not
    if set(named.index) != {"accuracy", "f1"} or named["low"].isna().any():
        return named.mean()
    positive = named.loc["f1"] / (2 - named.loc["f1"])  # the share p of positive examples, as F1 = 2p / (1 + p)
    always, never = (positive + named.loc["f1"]) / 2, named.loc["accuracy"] / 2
    return always if always["value"] >= never["value"] else never


def _mean(columns: pd.DataFrame, wanted: tuple[str, ...], name: str) -> pd.DataFrame:
    """The mean of the wanted columns, as a column `name`, of each baseline that has all; errors add in squares."""
    means = []
    for operator, rows in columns[columns["evaluated_on"].isin(wanted)].groupby("operator", sort=False):
        if set(rows["evaluated_on"]) == set(wanted):
            mean = rows["value"].mean()
            errors = rows[["low", "high"]].sub(rows["value"], axis=0)
            below, above = np.sqrt((errors**2).sum(skipna=False)) / len(rows)
            means.append((operator, name, mean, mean - below, mean + above))
    return pd.DataFrame(means, columns=["operator", "evaluated_on", "value", "low", "high"])
