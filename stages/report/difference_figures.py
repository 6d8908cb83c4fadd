"""The differences of operators from the original, as interval plots: scores, losses, noise and speed."""

import pandas as pd

from stages.evidence.fields import select_rows
from stages.evidence.scores import COLUMNS, GLUE_SCORE, MISMATCHED
from stages.report import names
from stages.report.drawing import Drawing, Groups
from stages.report.intervals import draw_intervals, name_marks

NOISE = "lost_noise"
# released results stand first, and sizes in the order of the analysis
RANK = {"released": 0, "reproduced": 1}
# units of the axes by quantity
AXES = {
    "score": "points; right is better",
    "loss": "nats; left is better",
    "speed": "%; right is better",
    NOISE: "points lost; left is better",
}


def draw_differences(contrasts: pd.DataFrame) -> list[Drawing]:
    """Draws the differences from the original (rows of contrasts.csv): scores, losses, noise and speed."""
    rows = contrasts.assign(
        operator=contrasts["arm"],
        row=contrasts["arm"].map(names.name_operator),
        mark=name_marks(contrasts),
        axis=contrasts["quantity"].map(AXES).fillna(""),
        scale="",
    )
    rows = rows.sort_values("source", key=lambda sources: sources.map(RANK), kind="stable")
    scores = select_rows(rows, quantity="score")
    whole = scores["at"] == GLUE_SCORE
    lost = rows[(rows["quantity"] == NOISE) & (rows["at"] != MISMATCHED)]
    return [
        draw_intervals(
            "score_differences",
            "GLUE score compared with the original",
            "finetuning",
            split_protocols(scores[whole]),
        ),
        draw_intervals(
            "task_differences",
            "Scores of the tasks compared with the original",
            "finetuning",
            split_operators(scores[~whole]),
        ),
        draw_intervals(
            "loss_differences_plot",
            "Final validation loss compared with the original",
            "pretraining",
            split_protocols(select_rows(rows, quantity="loss")),
        ),
        draw_intervals(
            "noise_differences",
            "Accuracy lost to the strongest noise compared with the original",
            "noise",
            split_noise(lost),
        ),
        draw_intervals(
            "speed_differences",
            "Tokens per second in pre-training compared with the original",
            "timing",
            split_protocols(select_rows(rows, quantity="speed")),
        ),
    ]


def split_protocols(rows: pd.DataFrame) -> Groups:
    """Splits rows into a panel per fine-tuning protocol (a paper's recipe), named in the title if several."""
    groups = []
    for protocol, of_protocol in rows.groupby("protocol", sort=False):
        title = names.name_protocol(protocol) if rows["protocol"].nunique() > 1 else ""
        groups.append((title, of_protocol))
    return groups


def split_operators(rows: pd.DataFrame) -> Groups:
    """Splits the scores of tasks into a panel per source, protocol and operator; a row per task."""
    rows = rows.sort_values("at", key=lambda tasks: tasks.map(COLUMNS.index), kind="stable")
    rows = rows.sort_values("source", key=lambda sources: sources.map(RANK), kind="stable")
    rows = rows.assign(row=rows["at"].map(names.name_task), scale=rows["source"])
    groups = []
    for (source, protocol, operator), of_operator in rows.groupby(["source", "protocol", "operator"], sort=False):
        start = "released" if source == "released" else "this run"
        title = f"{names.name_operator(operator)}, {start}"
        groups.append((title + _name_recipe(rows, protocol), of_operator))
    return groups


def split_noise(rows: pd.DataFrame) -> Groups:
    """Splits the losses to noise into a panel per task."""
    groups = []
    for (protocol, at), of_task in rows.groupby(["protocol", "at"], sort=False):
        title = f"{names.name_task(at).removesuffix('-m')}, noise on embeddings"
        groups.append((title + _name_recipe(rows, protocol), of_task))
    return groups


def _name_recipe(rows: pd.DataFrame, protocol: str) -> str:
    """Ends a panel's title: `, Courtois et al.` if the rows have several fine-tuning protocols."""
    return f", {names.name_protocol(protocol)}" if rows["protocol"].nunique() > 1 else ""
