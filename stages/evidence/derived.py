"""Quantities made from other measurements: savings, gains over another operator, averages, time ratios.

Differences and ratios are taken between runs of equal size, task and seeds, so that each run has a number, and the mean
of the differences is the difference of the means. `rows` are observations or measurements, a row per number; results
are measurements (fields.py) unless stated.
"""

import numpy as np
import pandas as pd

from stages.benchmarks.glue import TASK_OF
from stages.evidence.fields import FIELDS, list_other_fields, select_numbered, select_rows
from stages.evidence.scores import MISMATCHED, average_columns
from stages.schema.settings import REFERENCE

# By metric: the count of the operator, and the count of the original with which the saving compares.
SAVINGS = {
    "saved_percent": ("masked_lm_parameters", "masked_lm_parameters"),
    "classifier_saved_percent": ("classifier_parameters", "classifier_parameters"),
    # Kowsher et al., Table 4, compare different models.
    "mixed_saved_percent": ("classifier_parameters", "masked_lm_parameters"),
    "attention_saved_percent": ("attention_parameters", "attention_parameters"),
    "weights_saved_percent": ("attention_weights", "attention_weights"),
    "layer_saved_percent": ("layer_parameters", "layer_parameters"),
    "block_saved_percent": ("attention_block_parameters", "attention_block_parameters"),
}
# Strongest noise of Kowsher et al., as a share of the mean norm of embeddings.
LOUDEST = 0.4
# Metrics by their names in `measure_curves`.
NOISE = {"lost": "accuracy_lost", "area": "accuracy_under_noise"}
QA_TASKS = {
    "squad1": "single",
    "squad2": "single",
    "squad1_triviaqa": "triviaqa",
    "squad2_triviaqa": "triviaqa",
}


def pair_with_reference(rows: pd.DataFrame, references: pd.DataFrame) -> pd.DataFrame:
    """Adds to every row a column `reference`, the value of another operator under equal conditions.

    All fields but `operator` and `value` are equal. Rows without a reference are left out.
    """
    references = references.reindex(columns=FIELDS).rename(columns={"value": "reference"})
    return rows.reindex(columns=FIELDS).merge(
        references.drop(columns="operator"),
        on=list_other_fields("operator", "value"),
    )


def pair_with_original(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Adds a column `reference` to the rows of a metric: the value of the original under equal conditions."""
    rows = select_rows(rows, metric=metric)
    return pair_with_reference(rows, select_rows(rows, operator=REFERENCE))


def compute_savings(counts: pd.DataFrame) -> pd.DataFrame:
    """Compares the numbers of parameters of every operator with the numbers of the original.

    Returns:
        Saved parameters in per cent, such as `saved_percent`, and `block_factor`, the parameters of the original's
        attention block divided by the parameters of the operator's.
    """
    parts = []
    for metric, (count, count_of_original) in SAVINGS.items():
        # Only rows of one metric are paired, so both sides take the name of the saving.
        counted = select_rows(counts, metric=count).assign(metric=metric)
        original = select_rows(counts, metric=count_of_original, operator=REFERENCE).assign(metric=metric)
        pairs = pair_with_reference(counted, original)
        parts.append(pairs.assign(value=100 * (1 - pairs["value"] / pairs["reference"])))
    blocks = pair_with_original(counts, "attention_block_parameters")
    factors = blocks["reference"] / blocks["value"]
    parts.append(blocks.assign(metric="block_factor", value=factors))
    return pd.concat(parts)[FIELDS]


def compute_gains(rows: pd.DataFrame) -> pd.DataFrame:
    """Subtracts the value of a reference operator from the value of every other operator, run by run.

    The metric `score` gives `score_over_original`, `score_over_symmetric` and `score_over_pairwise`.
    """
    parts = []
    # Kowsher et al. state gains over each of these operators.
    for reference in (REFERENCE, "symmetric", "pairwise"):
        is_reference = rows["operator"] == reference
        pairs = pair_with_reference(rows[~is_reference], rows[is_reference])
        gains = pairs["value"] - pairs["reference"]
        parts.append(pairs.assign(metric=pairs["metric"] + f"_over_{reference}", value=gains))
    return pd.concat(parts)[FIELDS]


def select_question_answering(rows: pd.DataFrame) -> pd.DataFrame:
    """Selects exact match and F1, fractions, on `squad1` and `squad2`, and averages both sets as `squad`.

    The `condition` is `single` for models fine-tuned on SQuAD directly, `triviaqa` for models fine-tuned on TriviaQA
    first.
    """
    rows = select_rows(rows, stage="question_answering", task=list(QA_TASKS), metric=["exact_match", "f1"])
    rows = rows.assign(
        condition=rows["task"].map(QA_TASKS),
        task=None,
        evaluated_on=rows["task"].str.removesuffix("_triviaqa"),
    )
    both = average_columns(rows, ("squad1", "squad2"), "squad")
    return pd.concat([rows, both])[FIELDS]


def select_elsewhere(rows: pd.DataFrame) -> pd.DataFrame:
    """Selects the balanced accuracies (stage `cross_domain`) on tasks that the models were not fine-tuned on.

    Only the matched split of MNLI is selected.
    """
    balanced = select_rows(rows, metric="balanced_accuracy")
    other_task = balanced["task"] != balanced["evaluated_on"].map(TASK_OF)
    # the mismatched split would count MNLI twice
    matched = balanced["evaluated_on"] != MISMATCHED
    return balanced[other_task & matched]


def select_noise_levels(rows: pd.DataFrame) -> pd.DataFrame:
    """Selects accuracies under noise from observations, with the `level` as a column: 0.4 of `noise=0.4`."""
    rows = select_numbered(select_rows(rows, stage="noise", metric="accuracy"), "noise", float)
    return rows.assign(level=rows["noise"]).reset_index(drop=True)


def measure_curves(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Summarises every curve of scores under rising noise by the loss, the mean score and the slope.

    A row is a score, `value`, at a `level` of the noise; the rows of a curve agree in `keys`, including the seeds.

    Returns:
        `keys`, `measure` and `value`, with three rows for every curve of two levels or more:
        lost: the score at the lowest level minus the score at the highest.
        area: the mean score over the levels, by trapezoids.
        slope: of the least-squares line, score per level.
    """
    measures = []
    for key_values, curve in rows.groupby(keys, dropna=False, sort=False):
        if len(curve) < 2:
            continue
        curve = curve.sort_values("level")
        levels = curve["level"].to_numpy(float)
        scores = curve["value"].to_numpy(float)
        of_curve = {
            "lost": scores[0] - scores[-1],
            "area": np.trapezoid(scores, levels) / (levels[-1] - levels[0]),
            "slope": np.polyfit(levels, scores, 1)[0],
        }
        for measure, value in of_curve.items():
            measures.append((*key_values, measure, value))
    return pd.DataFrame(measures, columns=[*keys, "measure", "value"])


def measure_noise(rows: pd.DataFrame) -> pd.DataFrame:
    """Measures `accuracy_lost` from no noise to level 0.4, and the mean `accuracy_under_noise` over these levels.

    Runs without level 0 or 0.4, the highest level of Kowsher et al., are left out.
    """
    rows = select_noise_levels(rows)
    rows = rows[rows["level"] <= LOUDEST]
    keys = list_other_fields("condition", "value")
    levels = rows.groupby(keys, dropna=False)["level"]
    # Curves are comparable over the same range of levels only.
    whole = (levels.transform("min") == 0) & (levels.transform("max") == LOUDEST)
    measures = measure_curves(rows[whole], keys)
    measures = measures.assign(
        metric=measures["measure"].map(NOISE),
        condition=None,
    )
    # The slope has no metric in NOISE, and is left out.
    return measures.dropna(subset="metric").reindex(columns=FIELDS)


def measure_times(rows: pd.DataFrame) -> pd.DataFrame:
    """Compares times with the times of the original operator in the same round (`condition`), in per cent.

    With t for the time of an operator and t0 for the original, the metrics are

    - `time_saved_percent`: `100 (1 - t/t0)`, for an epoch of fine-tuning.
    - `faster_percent`: `100 (t0/t - 1)`, for an epoch of fine-tuning.
    - `longer_step_percent`: `100 (t/t0 - 1)`, for a step of translation, except for the original.
    """
    # A round times all operators one after another, so that a drift of the machine affects all operators alike.
    epochs = pair_with_original(rows, "seconds_per_epoch")
    saved = 100 * (1 - epochs["value"] / epochs["reference"])
    faster = 100 * (epochs["reference"] / epochs["value"] - 1)
    steps = pair_with_original(rows, "seconds_per_step").query("operator != @REFERENCE")
    longer = 100 * (steps["value"] / steps["reference"] - 1)
    parts = [
        epochs.assign(metric="time_saved_percent", value=saved),
        epochs.assign(metric="faster_percent", value=faster),
        steps.assign(metric="longer_step_percent", value=longer),
    ]
    return pd.concat(parts)[FIELDS]


def summarise_times(rows: pd.DataFrame) -> pd.DataFrame:
    """Summarises the times of the stage `timing` over rounds.

    Returns:
        A row per `operator`, `size`, `metric` and `task` (empty for pre-training), with `mean` and sample standard
        deviation `sd`.
    """
    rows = select_rows(rows, stage="timing").fillna({"task": ""})
    groups = rows.groupby(["size", "operator", "metric", "task"], sort=False)["value"]
    return groups.agg(mean="mean", sd="std").reset_index()
