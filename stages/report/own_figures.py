"""Figures of our own beside the differences: parameters saved, steps to milestones, and translation."""

from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from stages.evidence.fields import select_rows
from stages.report import names
from stages.report.drawing import (
    FULL,
    HEIGHT,
    ROW,
    WIDTH,
    Drawing,
    draw_curve,
    draw_figure,
    draw_reference,
    find_limits,
    label_rows,
    label_steps_axis,
    separate_rows,
)
from stages.report.figures import SOURCES, draw_bars
from stages.report.line_names import SMALL
from stages.report.looks import PAPER, find_style
from stages.report.text_templates import read_content
from stages.schema.settings import REFERENCE

# metrics, titles of their panels, and the tokens that each counts
ACCURACIES = {
    "training_accuracy": ("training", "accuracy of all positions (%)"),
    "accuracy": ("held out", "accuracy of tokens (%)"),
}
# the highest possible training accuracy, which counts padding as errors
CEILING = "accuracy_ceiling"
# inches of an operator in the figure of milestones, and of title and axis
RUNS, FRAME = 0.1, 0.75


def draw_saved(summaries: pd.DataFrame, operators: list[str], sizes: list[str]) -> Drawing:
    """Draws the share of the parameters that operators save, as bars, a panel per size."""
    counted = select_rows(summaries, metric="saved_percent", size=sizes, operator=operators)
    rows = counted[counted["operator"] != REFERENCE].rename(columns={"mean": "value"})
    rows = rows.assign(source="reproduced", label=rows["operator"].map(names.name_operator))
    rows = rows[["source", "operator", "size", "label", "value"]]
    groups = []
    for size in sizes:
        of_size = select_rows(rows, size=size)
        if len(of_size):
            groups.append((f"BERT-{size}", of_size))

    def paint_panel(axes: Axes, frame: pd.DataFrame) -> None:
        draw_bars(axes, frame, rows)
        axes.set_xlabel("parameters saved (%)")

    return draw_figure(
        "saved_parameters",
        "Share of the parameters that an operator saves, counted on the models",
        "parameters",
        groups,
        paint_panel,
        "bars",
        (FULL / min(ROW, max(len(groups), 1)), FRAME + 0.25 * rows["operator"].nunique()),
        rows,
    )


def draw_waiting(frame: pd.DataFrame) -> list[Drawing]:
    """Draws for every run the step at which the run reaches a milestone, such as a level of the loss.

    There is a panel per source (released results or this run) and size, a row per milestone, and a triangle for runs
    that never get there.

    Args:
        frame: a row per source, size, milestone, operator and step. at_risk is the number of runs that have not reached
            the milestone before the step, and reached the number of runs that reach the milestone at the step. Every
            operator has a row for step 0.

    Returns:
        One figure, or an empty list for an empty frame.
    """
    if frame.empty:
        return []
    curves = frame.groupby(["source", "size", "milestone", "operator"])
    runs = curves["at_risk"].transform("max")
    counted = frame.assign(
        runs=runs,
        never=runs - curves["reached"].transform("sum"),
        last=curves["step"].transform("max"),
    )
    groups = []
    lines = []
    for (source, size), rows in counted.groupby(["source", "size"], sort=False):
        groups.append((f"BERT-{size}, {SOURCES[source]}", rows))
        lines.append(rows["milestone"].nunique() * rows["operator"].nunique())
    drawing = draw_figure(
        "waiting",
        "Training steps until each run reaches a milestone",
        "analysis",
        groups,
        _paint_waiting,
        "waiting",
        # every operator has a row in every milestone
        (WIDTH, FRAME + RUNS * max(lines)),
        frame,
        notes=tuple(read_content("sentences")["notes"]["waiting"]),
    )
    return [drawing]


def draw_translation(frame: pd.DataFrame) -> list[Drawing]:
    """Draws the accuracy (fractions) of translation by epoch, a panel per protocol and kind; a list of one, or none."""
    groups = []
    for protocol, rows in frame.groupby("protocol", sort=False):
        for metric, (label, _) in ACCURACIES.items():
            shown = select_rows(rows, metric=(metric, CEILING)).assign(shown=metric)
            groups.append((f"{protocol}: {label}", shown))
    if not groups:
        return []
    # both accuracies have one scale
    accuracies = select_rows(frame, metric=[*ACCURACIES, CEILING])
    limits = find_limits(100 * accuracies[["minimum", "maximum"]].stack())
    drawing = draw_figure(
        "translation_curves",
        "Accuracy of translation by epoch",
        "translation",
        groups,
        partial(_paint_accuracies, limits=limits),
        "translation_curves",
        (WIDTH, HEIGHT),
        frame,
        notes=tuple(read_content("sentences")["notes"]["translation_curves"]),
    )
    return [drawing]


def _paint_waiting(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws a panel: a row per milestone, a dot per run; a triangle counts the runs that never get there."""
    milestones = list(dict.fromkeys(frame["milestone"]))
    operators = list(dict.fromkeys(frame["operator"]))
    end = 1.08 * frame["step"].max()
    hollow = (frame["source"] == "reproduced").all()
    for place, operator in enumerate(operators):
        colour, _ = find_style(operator)
        look = {"linestyle": "none", "color": colour, "markersize": 4.5}
        axes.plot([], [], marker="o", label=names.name_operator(operator), **look)
        rows = select_rows(frame, operator=operator)
        shift = 0.85 * ((place + 0.5) / len(operators) - 0.5)
        rows = rows.assign(height=rows["milestone"].map(milestones.index) + shift)
        dots = rows.loc[rows.index.repeat(rows["reached"])]
        fill = PAPER if hollow else colour
        axes.plot(dots["step"], dots["height"], marker="o", markerfacecolor=fill, **look)
        missing = rows[(rows["step"] == 0) & (rows["never"] > 0)]
        axes.plot([end] * len(missing), missing["height"], marker=">", markerfacecolor=PAPER, **look)
        for row in missing.itertuples():
            place_right = {"textcoords": "offset points", "va": "center", "fontsize": SMALL}
            axes.annotate(row.never, (end, row.height), (5, 0), **place_right)
    label_rows(axes, [names.name_milestone(key) for key in milestones])
    separate_rows(axes, len(milestones))
    axes.set_ylabel("losses in nats")
    label_steps_axis(axes)
    axes.locator_params(axis="x", nbins=3)
    # room for the number behind a triangle
    axes.set_xlim(0, 1.1 * end)


def _paint_accuracies(axes: Axes, frame: pd.DataFrame, limits: tuple[float, float]) -> None:
    """Draws a panel: accuracy by epoch, in per cent; in training, with the highest possible accuracy."""
    metric = frame["shown"].iloc[0]
    frame = frame.copy()
    frame[["mean", "minimum", "maximum"]] *= 100
    for operator, rows in select_rows(frame, metric=metric).groupby("operator", sort=False):
        draw_curve(axes, rows, operator, "epoch")
    if metric == "training_accuracy":
        draw_reference(axes, select_rows(frame, metric=CEILING)["mean"].mean(), "ceiling")
    axes.set_xlabel("epoch")
    _, label = ACCURACIES[metric]
    axes.set_ylabel(label)
    axes.set_ylim(*limits)
    axes.xaxis.get_major_locator().set_params(integer=True)
