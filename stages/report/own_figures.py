"""Figures of our own beside the differences: parameters saved, and translation."""

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
)
from stages.report.figures import draw_bars
from stages.report.text_templates import read_content
from stages.schema.settings import REFERENCE

# metrics, titles of their panels, and the tokens that each counts
ACCURACIES = {
    "training_accuracy": ("training", "accuracy of all positions (%)"),
    "accuracy": ("held out", "accuracy of tokens (%)"),
}
# the highest possible training accuracy, which counts padding as errors
CEILING = "accuracy_ceiling"
# inches of title and axis
FRAME = 0.75


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
