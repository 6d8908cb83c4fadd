"""From observations to the papers' quantities: counts, savings, losses, scores, gains, times.

The cells of every table and the evidence of every claim are selected from measurements (fields.py).
"""

from collections.abc import Sequence

import pandas as pd

from stages.evidence import convergence, derived, scores, translation
from stages.evidence.fields import FIELDS, TEXTS, select_rows, stack_frames


def compute_measurements(rows: pd.DataFrame, levels: Sequence[float] = convergence.LEVELS) -> pd.DataFrame:
    """Computes all quantities of the papers that the observations allow, such as scores, savings and steps to a loss.

    Args:
        rows: observations (such as the accuracy on a split), each run's in order of steps.
        levels: of the validation loss, in nats; the steps to each level are measured.

    Returns:
        Measurements (such as the GLUE score): a row per number, with the columns of fields.py; fields that do not apply
        are missing.
    """
    rows = rows.reindex(columns=FIELDS).astype(dict.fromkeys(TEXTS, "str"))
    counts = select_rows(rows, stage=["parameters", "tasks"])
    columns = scores.compute_column_scores(rows)
    mean_scores = scores.compute_mean_scores(columns)
    raw = select_rows(rows, stage="finetuning", evaluated_on=scores.COLUMNS)
    answers = derived.select_question_answering(rows)
    parts = [
        counts,
        derived.compute_savings(counts),
        convergence.measure_losses(rows, levels),
        mean_scores,
        columns,
        raw.assign(metric="raw_" + raw["metric"]),
        convergence.measure_steps_to_scores(mean_scores),
        derived.compute_gains(mean_scores),
        derived.compute_gains(columns),
        answers,
        derived.compute_gains(answers),
        select_rows(rows, stage=["noise", "cross_domain", "timing"]),
        derived.measure_noise(rows),
        derived.measure_times(rows),
        translation.select_measures(rows),
    ]
    frames = [part.reindex(columns=FIELDS) for part in parts]
    return stack_frames(frames).reset_index(drop=True).astype({"value": float})
