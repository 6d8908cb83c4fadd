"""Figures that no paper has: what share of the runs waits for a milestone, and the accuracy of translation by epoch."""

from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from stages.report import frames, names
from stages.report.drawing import HEIGHT, WIDTH, Drawing, curve, drawing, steps_axis, style
from stages.report.inputs import select
from stages.report.words import alternative, content

ACCURACIES = {  # metric: title of its panels
    "training_accuracy": "training accuracy of all positions (%)",
    "accuracy": "accuracy of held-out tokens (%)",
}
CEILING = "accuracy_ceiling"  # metric: the most that the training accuracy can reach, as it counts padding as errors


def waiting(curves: pd.DataFrame) -> list[Drawing]:
    """Draws Kaplan-Meier curves of this run's operators, a panel for each size and milestone that `_differs_by_run`.

    curves: a row for step 0 and each step at which a run gets there: source, size, milestone, operator, step, waiting
    (the share of runs that are not there after it) and at_risk (how many were known not to be there before it).
    """
    panels = select(curves, source="reproduced").groupby(["size", "milestone"], sort=False)
    run = panels.filter(_differs_by_run)
    groups = [
        (f"{names.milestone(name)}, BERT-{size}", rows)
        for (size, name), rows in frames.in_order(run).groupby(["size", "milestone"], sort=False)
    ]
    if not groups:
        return []
    title = "Share of this run's pre-training runs that have not yet got to a milestone (Kaplan-Meier curves)"
    notes = tuple(content("sentences")["notes"]["waiting"])
    describe, size = partial(alternative, "waiting"), (WIDTH, 2.3)  # inches
    return [drawing("waiting", title, "analysis", groups, _still_waiting, describe, size, run, notes=notes)]


def _differs_by_run(panel: pd.DataFrame) -> bool:
    """Whether an operator has several runs, and not all runs reach the milestone at one evaluation."""
    at_once = (
        panel.loc[panel["step"] > 0, "step"].nunique() == 1 and panel.groupby("operator")["waiting"].min().eq(0).all()
    )
    return panel["at_risk"].max() > 1 and not at_once


def translation(frame: pd.DataFrame) -> list[Drawing]:
    """Draws one figure with a panel per protocol and accuracy, or none where frame is empty.

    frame: protocol, operator, metric (of ACCURACIES, or CEILING), epoch; mean, minimum, maximum of n runs: fractions.
    """
    groups = [
        (f"{protocol}: {label}", rows[rows["metric"].isin((metric, CEILING))].assign(shown=metric))
        for protocol, rows in frame.groupby("protocol", sort=False)
        for metric, label in ACCURACIES.items()
    ]
    if not groups:
        return []
    name, title, size = "translation_curves", "Accuracy of translation by epoch", (WIDTH, HEIGHT)
    notes = tuple(content("sentences")["notes"][name])
    describe = partial(alternative, name)
    return [drawing(name, title, "translation", groups, _accuracies, describe, size, frame, notes=notes)]


def _still_waiting(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws a step curve per operator, each up to the last step of the panel."""
    last = frame["step"].max()
    for operator, rows in frame.groupby("operator", sort=False):
        colour, stroke = style(operator)
        step, share = [*rows["step"], last], [*rows["waiting"], rows["waiting"].iloc[-1]]
        axes.step(step, share, where="post", color=colour, linestyle=stroke, label=names.operator(operator))
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("share not there yet")
    steps_axis(axes)


def _accuracies(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws the accuracy `shown`, in per cent, as a line per operator; for training also the ceiling, a dotted line."""
    metric, parts = frame["shown"].iloc[0], ["mean", "minimum", "maximum"]
    frame = frame.assign(**{part: 100 * frame[part] for part in parts})
    for operator, rows in frame[frame["metric"] == metric].groupby("operator", sort=False):
        curve(axes, rows, operator, "epoch")
    if metric == "training_accuracy":
        ceiling = frame.loc[frame["metric"] == CEILING, "mean"].mean()
        axes.axhline(ceiling, color=style("original")[0], linestyle=":", label="ceiling")
    axes.set_xlabel("epoch")
    axes.xaxis.get_major_locator().set_params(integer=True)
