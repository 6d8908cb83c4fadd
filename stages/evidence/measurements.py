"""From observations to the papers' quantities: counts, savings, losses, scores, gains, times.

Input: rows of observations (or released rows in the same form). Output: measurements (see derived.py), one number per
run, from which the cells of every table and the evidence of every claim are selected.
"""

from collections.abc import Sequence

import pandas as pd

from stages.evidence import convergence, derived, scores, translation

FIELDS = derived.FIELDS


def measurements(rows: pd.DataFrame, levels: Sequence[float] = convergence.LEVELS) -> pd.DataFrame:
    """Computes all quantities of the papers that the rows allow, as FIELDS; a field that the rows lack is missing.

    Args:
        rows: observations.
        levels: of the validation loss, in nats, at which steps are measured.
    """
    rows = rows.reindex(columns=FIELDS).astype(dict.fromkeys(derived.TEXTS, "str"))
    counts = rows[rows["stage"].isin(("parameters", "tasks"))]
    columns = scores.column_scores(rows)  # of GLUE, as the papers' tables have them; whole: the means of columns
    whole = scores.mean_scores(columns)
    raw = rows[(rows["stage"] == "finetuning") & rows["evaluated_on"].isin(scores.COLUMNS)]
    answers = derived.question_answering(rows)
    # noise on the embeddings, and not in the text; times of our operators, by round, and not of stock BERT
    noise = rows[(rows["stage"] == "noise") & rows["condition"].str.match(r"noise=[\d.]+$", na=False)]
    times = rows[(rows["stage"] == "timing") & rows["condition"].str.fullmatch(r"round=\d+").fillna(False)]
    transfer = rows[rows["stage"] == "cross_domain"]
    parts = [
        counts,
        derived.savings(counts),
        convergence.loss_measures(rows, levels),
        whole,
        columns,
        raw.assign(metric="raw_" + raw["metric"]),  # as observed, under another name
        convergence.steps_to_scores(whole),
        derived.gains(whole),
        derived.gains(columns),
        answers,
        derived.gains(answers),
        noise,
        derived.noise_measures(noise),
        transfer,
        derived.transfer_measures(transfer),
        times,
        derived.time_measures(times),
        translation.measures(rows),
    ]
    frames = [part.reindex(columns=FIELDS) for part in parts if len(part)]
    measures = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=FIELDS)
    return measures.astype({"value": float})
