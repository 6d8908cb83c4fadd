"""Figures that no paper has: the share of runs that wait for a milestone, and the accuracy of translation by epoch."""

import pandas as pd
from matplotlib.axes import Axes

from stages.report import names, table_rows
from stages.report.drawing import HEIGHT, WIDTH, Drawing, curve, draw_figure, steps_axis, style
from stages.report.read_results import select
from stages.report.text_templates import content

# metrics, and the titles of their panels
ACCURACIES = {
    "training_accuracy": "training accuracy of all positions (%)",
    "accuracy": "accuracy of held-out tokens (%)",
}
# the highest possible training accuracy, which counts padding as errors
CEILING = "accuracy_ceiling"


def draw_waiting(curves: pd.DataFrame) -> list[Drawing]:
    """Draws Kaplan-Meier curves of this run's operators, a panel for each size and milestone with differences.

    Args:
        curves: a row for step 0 and each step at which a run gets there: source, size, milestone, operator, step,
            waiting (the share of runs that are not there after the step) and at_risk (the number of runs that were
            known not to be there before the step).
    """
    run = table_rows.sort_milestones(select(curves, source="reproduced"))
    groups = []
    for (size, milestone), rows in run.groupby(["size", "milestone"], sort=False):
        if _differs_by_run(rows):
            groups.append((f"{names.milestone(milestone)}, BERT-{size}", rows))
    if not groups:
        return []
    drawing = draw_figure(
        "waiting",
        "Share of this run's pre-training runs that have not yet got to a milestone (Kaplan-Meier curves)",
        "analysis",
        groups,
        _paint_waiting,
        "waiting",
        (WIDTH, 2.3),
        # in the order of the file
        pd.concat([rows for _, rows in groups]).sort_index(),
        notes=tuple(content("sentences")["notes"]["waiting"]),
    )
    return [drawing]


def _differs_by_run(panel: pd.DataFrame) -> bool:
    """Whether an operator has several runs, and not all runs reach the milestone at one evaluation."""
    steps = panel.loc[panel["step"] > 0, "step"].nunique()
    all_arrive = panel.groupby("operator")["waiting"].min().eq(0).all()
    return panel["at_risk"].max() > 1 and not (steps == 1 and all_arrive)


def _paint_waiting(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws a step curve per operator, each up to the last step of the panel."""
    last = frame["step"].max()
    for operator, rows in frame.groupby("operator", sort=False):
        colour, stroke = style(operator)
        steps = [*rows["step"], last]
        shares = [*rows["waiting"], rows["waiting"].iloc[-1]]
        axes.step(steps, shares, where="post", color=colour, linestyle=stroke, label=names.operator(operator))
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("share not there yet")
    steps_axis(axes)


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
