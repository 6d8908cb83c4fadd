"""The report's table of this run's times: every operator, and stock BERT with Hugging Face's Trainer."""

from dataclasses import replace

import pandas as pd

from stages.report import names
from stages.report.tables import Grid, Heading, mean_sd, plain

MEASURES = {  # heading, what it means, factor, decimals
    "tokens_per_second": ("Pre-training", "1,000 tokens a second", 1e-3, 1),
    "share_of_peak": ("Peak", "% of the measured matrix products", 100, 1),
}
OF_TRANSLATION = "seconds_per_step"  # which has a table of its own


def training_speed(summaries: pd.DataFrame) -> Grid:
    """A line an operator and implementation: speed of pre-training, share of the peak, seconds of an epoch by task."""
    summaries = summaries[summaries["metric"] != OF_TRANSLATION].fillna({"stock": "", "task": ""})
    tasks = [task for task in dict.fromkeys(summaries["task"]) if task]
    columns = {"label": (Heading("Model"), str)}
    columns |= {metric: (Heading(name, unit), mean_sd) for metric, (name, unit, _, _) in MEASURES.items()}
    columns |= {task: (Heading(names.task(task), "seconds an epoch"), mean_sd) for task in tasks}
    lines = []
    for (size, operator, stock), rows in summaries.groupby(["size", "operator", "stock"], sort=False):
        name = f"stock Hugging Face, {stock}" if stock else names.operator(operator)
        lines.append(
            {"label": f"BERT-{size} {name}"} | {row.task or row.metric: _scaled(row) for row in rows.itertuples()}
        )
    notes = (
        "Mean ± standard deviation over the rounds, in which everything is timed in turn. Stock BERT is trained by "
        "Trainer as run_mlm.py and run_glue.py do, with a head over all positions and padding to the maximum length; "
        "the share of the peak counts the operations of the head at masked positions for all, in products of the "
        "precision at hand.",
    )
    title = "Speed of training, this run"
    made = plain(
        pd.DataFrame(lines, columns=list(columns)),
        columns,
        name="training_speed",
        title=title,
        stage="timing",
        notes=notes,
    )
    return replace(made, csv=summaries)


def _scaled(row) -> tuple[float, float, int]:
    _, _, factor, decimals = MEASURES.get(row.metric, ("", "", 1, 2))
    return factor * row.mean, factor * row.sd, decimals
