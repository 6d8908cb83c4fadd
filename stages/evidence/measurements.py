"""From observations to the papers' quantities: counts, savings, losses, scores, gains, times.

Input: observations, or released rows in the same form. Output: measurements (see fields.py), one number for every run;
the cells of every table and the evidence of every claim are selected from measurements.
"""

from collections.abc import Sequence

import pandas as pd

from stages.evidence import convergence, derived, scores, translation
from stages.evidence.fields import FIELDS, TEXTS, select, stack


def measurements(rows: pd.DataFrame, levels: Sequence[float] = convergence.LEVELS) -> pd.DataFrame:
    """Computes all quantities of the papers that the rows allow.

    Args:
        rows: observations, each run's in order of steps.
        levels: of the validation loss, in nats, at which steps are measured.

    Returns:
        FIELDS; a field that the rows lack is missing.
    """
    rows = rows.reindex(columns=FIELDS).astype(dict.fromkeys(TEXTS, "str"))
    counts = rows[rows["stage"].isin(("parameters", "tasks"))]
    columns = scores.column_scores(rows)
    whole = scores.mean_scores(columns)
    tuned = select(rows, stage="finetuning")
    raw = tuned[tuned["evaluated_on"].isin(scores.COLUMNS)]
    answers = derived.question_answering(rows)
    # The papers put noise on the embeddings; this run also puts noise in the text.
    noise = select(rows, stage="noise")
    noise = noise[noise["condition"].str.match(r"noise=[\d.]+$", na=False)]
    transfer = select(rows, stage="cross_domain")
    # The conditions of stock BERT name more than the round.
    times = select(rows, stage="timing")
    times = times[times["condition"].str.fullmatch(r"round=\d+", na=False)]
    parts = [
        counts,
        derived.savings(counts),
        convergence.loss_measures(rows, levels),
        whole,
        columns,
        raw.assign(metric="raw_" + raw["metric"]),
        convergence.steps_to_scores(whole),
        derived.gains(whole),
        derived.gains(columns),
        answers,
        derived.gains(answers),
        noise,
        derived.noise_measures(noise),
        transfer,
        times,
        derived.time_measures(times),
        translation.measures(rows),
    ]
    frames = [part.reindex(columns=FIELDS) for part in parts]
    return stack(frames).reset_index(drop=True).astype({"value": float})
