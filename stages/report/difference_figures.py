"""The differences of operators from the original, as interval plots: scores, losses, noise, speed, and own studies."""

from dataclasses import replace

import pandas as pd

from stages.evidence.fields import select_rows
from stages.evidence.scores import COLUMNS, GLUE_SCORE, MISMATCHED
from stages.report import names
from stages.report.drawing import Drawing, Groups
from stages.report.intervals import draw_intervals, name_marks
from stages.report.text_templates import read_content

NOISE = "lost_"
# released results stand first, and sizes in the order of the analysis
RANK = {"released": 0, "reproduced": 1}
# units of the axes by quantity; quantities that start with NOISE share one
AXES = {"score": "points; right is better", "loss": "nats; left is better", "speed": "%; right is better"}
LOST = "points lost; left is better"
UNITS = {"%": "% more steps; left is better", "nats": AXES["loss"]}
STUDY = "study of this repository"
# titles of panels by the question of a study
QUESTIONS = {"learns": "steps to learn", "loss": "final loss"}


def draw_differences(contrasts: pd.DataFrame) -> list[Drawing]:
    """Draws the differences from the original (rows of contrasts.csv): scores, losses, noise and speed."""
    rows = contrasts.assign(
        operator=contrasts["arm"],
        row=contrasts["arm"].map(names.name_operator),
        mark=name_marks(contrasts),
        axis=contrasts["quantity"].map(AXES).fillna(LOST),
        scale="",
    )
    rows = rows.sort_values("source", key=lambda sources: sources.map(RANK), kind="stable")
    scores = select_rows(rows, quantity="score")
    whole = scores["at"] == GLUE_SCORE
    lost = rows[rows["quantity"].str.startswith(NOISE) & (rows["at"] != MISMATCHED)]
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
            split_kinds(lost),
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


def split_kinds(rows: pd.DataFrame) -> Groups:
    """Splits the losses to noise into a panel per kind of noise and task."""
    groups = []
    keys = ["protocol", "quantity", "at"]
    for (protocol, quantity, at), of_task in rows.groupby(keys, sort=False):
        kind = quantity.removeprefix(NOISE).replace("_", " ")
        place = "noise on embeddings" if kind == "noise" else kind
        title = f"{names.name_task(at).removesuffix('-m')}, {place}"
        groups.append((title + _name_recipe(rows, protocol), of_task))
    return groups


def _name_recipe(rows: pd.DataFrame, protocol: str) -> str:
    """Ends a panel's title: `, Courtois et al.` if the rows have several fine-tuning protocols."""
    return f", {names.name_protocol(protocol)}" if rows["protocol"].nunique() > 1 else ""


def draw_studies(studies: pd.DataFrame) -> Drawing:
    """Draws the differences in studies.csv, a panel per study and unit, each with its own scale."""
    rows = studies.assign(
        source="study",
        mark=STUDY,
        at=studies["study"],
        scale=studies["study"] + " " + studies["unit"],
        row=studies["operator"].map(names.name_operator),
        axis=studies["unit"].map(UNITS),
    )
    groups = []
    for (study, question), of_study in rows.groupby(["study", "question"], sort=False):
        groups.append((f"{study.replace('_', ' ')}: {QUESTIONS[question]}", of_study))
    drawing = draw_intervals("study_differences", "What this repository's studies found", "report", groups)
    return replace(drawing, notes=(read_content("sentences")["notes"]["studies"],))
