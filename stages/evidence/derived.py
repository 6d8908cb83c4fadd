"""Quantities made from other measurements: savings, gains over another operator, averages, time ratios.

Differences and ratios are taken between runs of equal size, task and seeds, so that each is one number per run, and the
mean of the differences is the difference of the means.

Measurements have the form of observations (see files/observations.py) and the columns FIELDS; they are rows as
observed, or made of these. `value` is the number, for one run; the other fields say what it is of, or are missing. A
function that takes `rows` takes either, and returns FIELDS unless it says otherwise.
"""

import numpy as np
import pandas as pd

from stages.benchmarks.glue import TASK_OF
from stages.evidence.scores import MISMATCHED
from stages.schema.settings import REFERENCE

TEXTS = ["stage", "protocol", "operator", "size", "task", "evaluated_on", "condition", "metric"]
FIELDS = [*TEXTS, "pretraining_seed", "finetuning_seed", "value"]
SAVINGS = {  # new metric: (metric of the operator's count, of the original's that it is set against)
    "saved_percent": ("masked_lm_parameters", "masked_lm_parameters"),
    "classifier_saved_percent": ("classifier_parameters", "classifier_parameters"),
    "mixed_saved_percent": ("classifier_parameters", "masked_lm_parameters"),  # as Kowsher et al., Table 4
    "attention_saved_percent": ("attention_parameters", "attention_parameters"),
    "weights_saved_percent": ("attention_weights", "attention_weights"),
    "layer_saved_percent": ("layer_parameters", "layer_parameters"),
    "block_saved_percent": ("attention_block_parameters", "attention_block_parameters"),
}
LOUDEST = 0.4  # of the mean norm of embeddings: the strongest noise of Kowsher et al.
NOISE = {"lost": "accuracy_lost", "area": "accuracy_under_noise"}  # metrics by their names in curve_measures
REFERENCES = (REFERENCE, "symmetric", "pairwise")  # Kowsher et al. state gains over each of them
QA_TASKS = {"squad1": "single", "squad2": "single", "squad1_triviaqa": "triviaqa", "squad2_triviaqa": "triviaqa"}
STOCK = r"implementation=trainer precision=(\w+) round=\d+"  # condition of the times of stock BERT
TIME_KEYS = ["size", "operator", "stock", "metric", "task"]


def matching(rows: pd.DataFrame, select: dict[str, str]) -> pd.DataFrame:
    """Selects the rows that have these values in these fields; the value None selects rows whose field is missing."""
    mask = np.ones(len(rows), dtype=bool)
    for field, value in select.items():
        agrees = rows[field].isna() if value is None else (rows[field] == value).fillna(False)
        mask &= agrees.to_numpy(bool)
    return rows[mask]


def with_reference(
    rows: pd.DataFrame, reference: str = REFERENCE, metric: str | None = None, reference_metric: str | None = None
) -> pd.DataFrame:
    """Adds to every row the value of a reference operator that agrees with it in all other FIELDS, also missing ones.

    Args:
        rows: measurements or observations; those without such a value of the reference are left out.
        reference: the operator.
        metric, reference_metric: the metric of the rows kept, None for all; that of the reference, None for the same.

    Returns:
        FIELDS and the value of the reference as a column `reference`; the rows of the reference itself are included.
    """
    rows = rows.reindex(columns=FIELDS)
    keys = [field for field in FIELDS if field not in ("operator", "value")]
    references = rows[rows["operator"] == reference]
    if metric is not None:
        references = references[references["metric"] == (reference_metric or metric)].assign(metric=metric)
        rows = rows[rows["metric"] == metric]
    return rows.merge(references[[*keys, "value"]].rename(columns={"value": "reference"}), on=keys)


def savings(counts: pd.DataFrame) -> pd.DataFrame:
    """Compares the counts of every operator with those of the original.

    The metrics are those of SAVINGS, in per cent, and `block_factor`: parameters of an attention block, the original's
    divided by the operator's.
    """
    parts = [
        saved(with_reference(counts, metric=count, reference_metric=count_of_original), metric)
        for metric, (count, count_of_original) in SAVINGS.items()
    ]
    blocks = with_reference(counts, metric="attention_block_parameters")
    parts.append(blocks.assign(metric="block_factor", value=blocks["reference"] / blocks["value"]))
    return pd.concat(parts)[FIELDS]


def saved(pairs: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Gives `pairs` (of `with_reference`) a metric, and as value the per cent by which theirs is below `reference`."""
    return pairs.assign(metric=metric, value=100 * (1 - pairs["value"] / pairs["reference"]))


def gains(rows: pd.DataFrame) -> pd.DataFrame:
    """Subtracts the value of each of REFERENCES from every other operator's; metric as in `score_over_original`."""
    pairs = pd.concat([with_reference(rows, reference).assign(over=reference) for reference in REFERENCES])
    pairs = pairs[pairs["operator"] != pairs["over"]]
    metric, value = pairs["metric"] + "_over_" + pairs["over"], pairs["value"] - pairs["reference"]
    return pairs.assign(metric=metric, value=value)[FIELDS]


def question_answering(rows: pd.DataFrame) -> pd.DataFrame:
    """Exact match and F1, fractions, on `squad1` and `squad2`, and as `squad` their mean where a run has both.

    condition: `single` for models fine-tuned on SQuAD directly, `triviaqa` for those tuned on TriviaQA first.
    """
    rows = rows[(rows["stage"] == "question_answering") & rows["task"].isin(QA_TASKS)]
    rows = rows.assign(condition=rows["task"].map(QA_TASKS), task=None, evaluated_on=rows["task"].str[:6])
    rows = rows[rows["metric"].isin(("exact_match", "f1"))]
    keys = [field for field in FIELDS if field not in ("evaluated_on", "value")]
    groups = rows.groupby(keys, dropna=False, sort=False)["value"].agg(["mean", "count"]).reset_index()
    whole = groups[groups["count"] == 2].rename(columns={"mean": "value"}).assign(evaluated_on="squad")
    return pd.concat([rows[FIELDS], whole[FIELDS]])


def curve_measures(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Summarises every curve of scores under rising noise: the one definition, for tables and for claims.

    rows: one per score, with columns `level` (of the noise) and `value`. keys: the columns that the rows of one curve
    agree in, those of its run among them. Returns `keys`, `measure` and `value`: three rows for every curve of two
    levels or more. lost: the score at the lowest level minus that at the highest. area: the area under the curve, by
    trapezoids, over the range of levels, that is, the mean score. slope: of the least-squares line, score per level.
    """
    numbers = []
    for values, curve in rows.groupby(keys, dropna=False, sort=False):
        if len(curve) < 2:
            continue
        levels, scores = curve["level"].to_numpy(float), curve["value"].to_numpy(float)
        order = np.argsort(levels)
        x, y = levels[order], scores[order]
        numbers += [
            (*values, "lost", y[0] - y[-1]),
            (*values, "area", np.trapezoid(y, x) / (x[-1] - x[0])),
            (*values, "slope", np.polyfit(x, y, 1)[0]),
        ]
    return pd.DataFrame(numbers, columns=[*keys, "measure", "value"])


def noise_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """The accuracy that a run loses from no noise to LOUDEST, and its mean accuracy over that range; metrics: NOISE.

    rows: of noise on the embeddings (`noise=0.05`). A run without a row at both ends of the range is left out.
    """
    rows = rows[rows["metric"] == "accuracy"]
    rows = rows.assign(level=rows["condition"].str.removeprefix("noise=").astype(float))
    keys = [field for field in FIELDS if field not in ("condition", "value")]
    rows = rows[rows["level"] <= LOUDEST]
    level = rows.groupby(keys, dropna=False)["level"]
    rows = rows[(level.transform("min") == 0) & (level.transform("max") == LOUDEST)]
    measures = curve_measures(rows, keys)
    measures = measures.assign(metric=measures["measure"].map(NOISE)).dropna(subset="metric")  # drops the slopes
    return measures.reindex(columns=FIELDS).assign(condition=None)


def transfer_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean accuracy of a run of `cross_domain` over all pairs of differing tasks; of MNLI, on the matched split."""
    rows = rows[(rows["metric"] == "accuracy") & (rows["evaluated_on"] != MISMATCHED)]
    away = rows[rows["task"] != rows["evaluated_on"].map(TASK_OF)]
    keys = [field for field in FIELDS if field not in ("task", "evaluated_on", "value")]
    means = away.groupby(keys, dropna=False, sort=False)["value"].mean().reset_index()
    return means.assign(metric="off_diagonal_accuracy", task=None, evaluated_on=None)[FIELDS]


def time_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """Compares times with those of the original in the same round, in per cent.

    rows: of `seconds_per_epoch` and `seconds_per_step`; the condition is the round. With t for an operator's time and
    t0 for the original's, `time_saved_percent` is 100 (1 - t / t0) and `faster_percent` 100 (t0 / t - 1), for an epoch
    of fine-tuning; `longer_step_percent` is 100 (t / t0 - 1), for a step of translation, but not for the original.
    """
    pairs = with_reference(rows, metric="seconds_per_epoch")
    shorter = saved(pairs, "time_saved_percent")
    faster = pairs.assign(metric="faster_percent", value=100 * (pairs["reference"] / pairs["value"] - 1))
    steps = with_reference(rows, metric="seconds_per_step")
    steps = steps[steps["operator"] != REFERENCE]
    longer = steps.assign(metric="longer_step_percent", value=100 * (steps["value"] / steps["reference"] - 1))
    return pd.concat([shorter, faster, longer])[FIELDS]


def time_summaries(rows: pd.DataFrame) -> pd.DataFrame:
    """Summarises every metric of the stage `timing` over its rounds. Columns: TIME_KEYS, mean and (sample) sd.

    stock: the precision in which stock BERT was timed; an empty text for our operators. task: empty for pre-training.
    """
    rows = rows[rows["stage"] == "timing"]
    rows = rows.assign(
        stock=rows["condition"].str.extract(STOCK, expand=False).fillna(""), task=rows["task"].fillna("")
    )
    groups = rows.groupby(TIME_KEYS, sort=False)["value"].agg(["mean", "std"])
    return groups.rename(columns={"std": "sd"}).reset_index()
