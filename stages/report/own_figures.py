"""The figure that no paper has: the accuracy of translation by epoch."""

import pandas as pd
from matplotlib.axes import Axes

from stages.report.drawing import HEIGHT, WIDTH, Drawing, curve, draw_figure, style
from stages.report.read_results import select
from stages.report.text_templates import content

# metrics, and the titles of their panels
ACCURACIES = {
    "training_accuracy": "training accuracy of all positions (%)",
    "accuracy": "accuracy of held-out tokens (%)",
}
# the highest possible training accuracy, which counts padding as errors
CEILING = "accuracy_ceiling"


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
