"""Figures that no paper has: the steps at which runs reach a milestone, and the accuracy of translation by epoch."""

import pandas as pd
from matplotlib.axes import Axes

from stages.evidence.fields import select
from stages.report import names
from stages.report.drawing import GRID, HEIGHT, WIDTH, Drawing, curve, draw_figure, steps_axis, style
from stages.report.figures import SOURCES
from stages.report.text_templates import content

# metrics, and the titles of their panels
ACCURACIES = {
    "training_accuracy": "training accuracy of all positions (%)",
    "accuracy": "accuracy of held-out tokens (%)",
}
# the highest possible training accuracy, which counts padding as errors
CEILING = "accuracy_ceiling"


def draw_waiting(frame: pd.DataFrame) -> list[Drawing]:
    """Draws the step at which each run reaches a milestone, a panel per source and size; no figure without rows.

    Args:
        frame: waiting of analysis: source (of SOURCES), size, milestone, operator, step; at_risk, the number of runs
            that wait until the step, and reached, the number of runs that get there at the step. Every operator has a
            row for step 0.
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
        # inches; every operator has a line in every milestone
        (WIDTH, 1 + 0.1 * max(lines)),
        frame,
        notes=tuple(content("sentences")["notes"]["waiting"]),
    )
    return [drawing]


def draw_translation(frame: pd.DataFrame) -> list[Drawing]:
    """Draws one figure with a panel per protocol and accuracy, or none without rows.

    Args:
        frame: protocol, operator, metric (of ACCURACIES, or CEILING), epoch; mean, minimum, maximum of n runs, which
            are fractions.
    """
    groups = []
    for protocol, rows in frame.groupby("protocol", sort=False):
        for metric, label in ACCURACIES.items():
            shown = select(rows, metric=(metric, CEILING)).assign(shown=metric)
            groups.append((f"{protocol}: {label}", shown))
    if not groups:
        return []
    drawing = draw_figure(
        "translation_curves",
        "Accuracy of translation by epoch",
        "translation",
        groups,
        _paint_accuracies,
        "translation_curves",
        (WIDTH, HEIGHT),
        frame,
        notes=tuple(content("sentences")["notes"]["translation_curves"]),
    )
    return [drawing]


def _paint_waiting(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws a dot per run, a line of dots per operator in every milestone, and an open mark for runs that never end."""
    milestones = list(dict.fromkeys(frame["milestone"]))
    operators = list(dict.fromkeys(frame["operator"]))
    end = 1.08 * frame["step"].max()
    for place, operator in enumerate(operators):
        colour, _ = style(operator)
        rows = select(frame, operator=operator)
        shift = 0.8 * ((place + 0.5) / len(operators) - 0.5)
        rows = rows.assign(height=rows["milestone"].map(milestones.index) + shift)
        dots = rows.loc[rows.index.repeat(rows["reached"])]
        look = {"marker": "o", "markersize": 4, "color": colour, "linestyle": "none"}
        axes.plot(dots["step"], dots["height"], alpha=0.7, label=names.operator(operator), **look)
        missing = rows[(rows["step"] == 0) & (rows["never"] > 0)]
        axes.plot([end] * len(missing), missing["height"], markerfacecolor="none", **look)
        for row in missing.itertuples():
            axes.annotate(row.never, (end, row.height), (4, 0), textcoords="offset points", va="center", fontsize=7)
    for place in range(1, len(milestones)):
        axes.axhline(place - 0.5, color=GRID, linewidth=0.6)
    axes.grid(visible=False)
    axes.set_yticks(range(len(milestones)), [names.milestone(key) for key in milestones])
    axes.set_ylabel("milestone (losses in nats)")
    axes.invert_yaxis()
    steps_axis(axes)
    axes.locator_params(axis="x", nbins=3)
    # room for the number behind an open mark
    axes.set_xlim(right=1.1 * end)


def _paint_accuracies(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws the accuracy `shown`, in per cent, as a line per operator; for training also the ceiling, a dotted line."""
    metric = frame["shown"].iloc[0]
    frame = frame.copy()
    frame[["mean", "minimum", "maximum"]] *= 100
    for operator, rows in select(frame, metric=metric).groupby("operator", sort=False):
        curve(axes, rows, operator, "epoch")
    if metric == "training_accuracy":
        ceiling = select(frame, metric=CEILING)["mean"].mean()
        colour, _ = style("original")
        axes.axhline(ceiling, color=colour, linestyle=":", label="ceiling")
    axes.set_xlabel("epoch")
    axes.xaxis.get_major_locator().set_params(integer=True)
