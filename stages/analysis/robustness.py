"""Robustness under noise, and transfer between tasks: statistics over the observations of both stages."""

import pandas as pd

from stages.evidence import baselines, derived
from stages.evidence.fields import select_rows
from stages.evidence.statistics import summarise_groups

CURVE = [
    "protocol",
    "size",
    "operator",
    "evaluated_on",
]
RUN_KEYS = [
    "pretraining_seed",
    "finetuning_seed",
]


def make_tables(rows: pd.DataFrame, baseline_scores: pd.DataFrame, confidence: float) -> dict[str, pd.DataFrame]:
    """Summarises noise and transfer between tasks over runs.

    Args:
        rows: observations: a row per measured number.
        baseline_scores: the scores of baselines, such as a constant answer.
        confidence: of the intervals, such as 0.95.

    Returns:
        A table by the name of the file, with the columns that group the runs, and `mean`, `sd`, `n` and interval.
    """
    noisy = derived.select_noise_levels(rows)
    curves = summarise_groups(noisy, [*CURVE, "level"], confidence)
    # `add_baselines` selects the score of a baseline by the metric.
    curves = baselines.add_baselines(curves.assign(metric="accuracy"), baseline_scores, "mean")
    measures = derived.measure_curves(noisy, [*CURVE, *RUN_KEYS])
    return {
        "noise_curves": curves.drop(columns="metric"),
        "noise_measures": summarise_groups(measures, [*CURVE, "measure"], confidence),
        "transfer": summarise_groups(
            select_rows(rows, stage="cross_domain"),
            ["protocol", "size", "operator", "task", "evaluated_on", "metric"],
            confidence,
        ),
    }
