"""Quantities made from other measurements: savings, gains over another operator, averages, time ratios.

Differences and ratios are taken between runs of equal size, task and seeds, so that their mean is the difference of
the means and every one stays one number a run.
"""

import numpy as np
import pandas as pd

from stages.benchmarks.glue import TASK_OF
from stages.evidence import noise as curve_of_noise
from stages.evidence.scores import MISMATCHED
from stages.plumbing.settings import REFERENCE

TEXTS = ["stage", "protocol", "operator", "size", "task", "evaluated_on", "condition", "metric"]
FIELDS = [*TEXTS, "pretraining_seed", "finetuning_seed", "value"]
SAVINGS = {  # new metric: (the operator's count, the count of the original that it is set against)
    "saved_percent": ("masked_lm_parameters", "masked_lm_parameters"),
    "classifier_saved_percent": ("classifier_parameters", "classifier_parameters"),
    "mixed_saved_percent": ("classifier_parameters", "masked_lm_parameters"),  # as Kowsher et al., Table 4
    "attention_saved_percent": ("attention_parameters", "attention_parameters"),
    "weights_saved_percent": ("attention_weights", "attention_weights"),
    "layer_saved_percent": ("layer_parameters", "layer_parameters"),
    "block_saved_percent": ("attention_block_parameters", "attention_block_parameters"),
}
LOUDEST = 0.4  # of the mean norm of embeddings: the strongest noise of Kowsher et al.
NOISE = {"lost": "accuracy_lost", "area": "accuracy_under_noise"}  # metrics by their names in noise.summary
REFERENCES = (REFERENCE, "symmetric", "pairwise")
QA_TASKS = {"squad1": "single", "squad2": "single", "squad1_triviaqa": "triviaqa", "squad2_triviaqa": "triviaqa"}
STOCK = r"implementation=trainer precision=(\w+) round=\d+"
TIME_KEYS = ["size", "operator", "stock", "metric", "task"]


def matching(rows: pd.DataFrame, select: dict[str, str]) -> pd.DataFrame:
    """Rows with these values in these fields; None selects empty fields."""
    mask = np.ones(len(rows), dtype=bool)
    for field, value in select.items():
        agrees = rows[field].isna() if value is None else (rows[field] == value).fillna(False)
        mask &= agrees.to_numpy(bool)
    return rows[mask]


def with_reference(
    rows: pd.DataFrame, reference: str = REFERENCE, metric: str | None = None, reference_metric: str | None = None
) -> pd.DataFrame:
    """Adds to rows the value that one operator has for the same size, task and seeds; rows without it are left out.

    Args:
        rows: measurements or observations.
        reference: the operator.
        metric: of the rows that are kept; None for all.
        reference_metric: what the operator's value is taken of; None for the metric of each row.

    Returns:
        FIELDS and the value of the operator as a column `reference`.
    """
    rows = rows.reindex(columns=FIELDS)
    keys = [field for field in FIELDS if field not in ("operator", "value")]
    references = rows[rows["operator"] == reference]
    if metric is not None:
        references = references[references["metric"] == (reference_metric or metric)].assign(metric=metric)
        rows = rows[rows["metric"] == metric]
    return rows.merge(references[[*keys, "value"]].rename(columns={"value": "reference"}), on=keys)


def savings(counts: pd.DataFrame) -> pd.DataFrame:
    """Per cent of parameters that an operator saves against the original, by what is counted; and the factor."""
    parts = [
        saved(with_reference(counts, metric=count, reference_metric=count_of_original), metric)
        for metric, (count, count_of_original) in SAVINGS.items()
    ]
    blocks = with_reference(counts, metric="attention_block_parameters")
    parts.append(blocks.assign(metric="block_factor", value=blocks["reference"] / blocks["value"]))
    return pd.concat(parts)[FIELDS]


def saved(pairs: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Per cent that values are less than their `reference`, under the name of a metric. pairs: of `with_reference`."""
    return pairs.assign(metric=metric, value=100 * (1 - pairs["value"] / pairs["reference"]))


def gains(rows: pd.DataFrame) -> pd.DataFrame:
    """Value minus that of each of REFERENCES, run by run; metric `METRIC_over_REFERENCE`."""
    pairs = pd.concat([with_reference(rows, reference).assign(over=reference) for reference in REFERENCES])
    pairs = pairs[pairs["operator"] != pairs["over"]]
    metric, value = pairs["metric"] + "_over_" + pairs["over"], pairs["value"] - pairs["reference"]
    return pairs.assign(metric=metric, value=value)[FIELDS]


def question_answering(rows: pd.DataFrame) -> pd.DataFrame:
    """Exact match and F1 on both SQuAD sets and their average; condition: `single` or `triviaqa`."""
    rows = rows[(rows["stage"] == "question_answering") & rows["task"].isin(QA_TASKS)]
    rows = rows.assign(condition=rows["task"].map(QA_TASKS), task=None, evaluated_on=rows["task"].str[:6])
    rows = rows[rows["metric"].isin(("exact_match", "f1"))]
    keys = [field for field in FIELDS if field not in ("evaluated_on", "value")]
    groups = rows.groupby(keys, dropna=False, sort=False)["value"].agg(["mean", "count"]).reset_index()
    whole = groups[groups["count"] == 2].rename(columns={"mean": "value"}).assign(evaluated_on="squad")
    return pd.concat([rows[FIELDS], whole[FIELDS]])


def noise(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the stage `noise` on embeddings (`noise=0.05`)."""
    return rows[(rows["stage"] == "noise") & rows["condition"].str.match(r"noise=[\d.]+$", na=False)]


def noise_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """What a run loses from no noise to LOUDEST, and its mean accuracy over that range; none without both ends."""
    rows = rows[rows["metric"] == "accuracy"]
    rows = rows.assign(level=rows["condition"].str.removeprefix("noise=").astype(float))
    keys = [field for field in FIELDS if field not in ("condition", "value")]
    rows = rows[rows["level"] <= LOUDEST]
    level = rows.groupby(keys, dropna=False)["level"]
    rows = rows[(level.transform("min") == 0) & (level.transform("max") == LOUDEST)]
    measures = curve_of_noise.measures(rows, keys)
    measures = measures.assign(metric=measures["measure"].map(NOISE)).dropna(subset="metric")
    return measures.reindex(columns=FIELDS).assign(condition=None)


def transfer_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean accuracy of a run over all pairs of tasks that differ; matched MNLI stands for MNLI."""
    rows = rows[(rows["metric"] == "accuracy") & (rows["evaluated_on"] != MISMATCHED)]
    away = rows[rows["task"] != rows["evaluated_on"].map(TASK_OF)]
    keys = [field for field in FIELDS if field not in ("task", "evaluated_on", "value")]
    means = away.groupby(keys, dropna=False, sort=False)["value"].mean().reset_index()
    return means.assign(metric="off_diagonal_accuracy", task=None, evaluated_on=None)[FIELDS]


def time_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """Per cent of time that an operator saves an epoch against the original, that it is faster, and that a step of
    translation takes longer."""
    pairs = with_reference(rows, metric="seconds_per_epoch")
    shorter = saved(pairs, "time_saved_percent")
    faster = pairs.assign(metric="faster_percent", value=100 * (pairs["reference"] / pairs["value"] - 1))
    steps = with_reference(rows, metric="seconds_per_step")
    steps = steps[steps["operator"] != REFERENCE]
    longer = steps.assign(metric="longer_step_percent", value=100 * (steps["value"] / steps["reference"] - 1))
    return pd.concat([shorter, faster, longer])[FIELDS]


def our_times(rows: pd.DataFrame) -> pd.DataFrame:
    """Of all measurements, the times of our operators; their condition is the round, within which times compare."""
    return rows[(rows["stage"] == "timing") & rows["condition"].str.fullmatch(r"round=\d+").fillna(False)]


def time_summaries(rows: pd.DataFrame) -> pd.DataFrame:
    """TIME_KEYS, mean and sd over the rounds of every time; stock: the precision of stock BERT, empty for ours."""
    rows = rows[rows["stage"] == "timing"]
    rows = rows.assign(
        stock=rows["condition"].str.extract(STOCK, expand=False).fillna(""), task=rows["task"].fillna("")
    )
    groups = rows.groupby(TIME_KEYS, sort=False)["value"].agg(["mean", "std"])
    return groups.rename(columns={"std": "sd"}).reset_index()
