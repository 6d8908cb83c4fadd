"""The figure of waiting: the share of this run's pre-training runs that have not got to a milestone, step by step."""

import pandas as pd
from matplotlib.axes import Axes

from stages.report import frames, names
from stages.report.drawing import WIDTH, Drawing, panels, steps_axis, style


def drawings(curves: pd.DataFrame) -> list[Drawing]:
    """Kaplan-Meier curves of this run's operators, a panel for each milestone that tells runs apart.

    None where every operator has one run, and none of a milestone that all runs reach at one evaluation.
    """
    own = curves[curves["source"] == "reproduced"]
    panel = own.groupby(["size", "milestone"])
    one_step = own["step"].where(own["step"] > 0).groupby([own["size"], own["milestone"]]).transform("nunique") == 1
    all_there = own.groupby(["size", "milestone", "operator"])["waiting"].transform("min").eq(0)
    at_once = one_step & all_there.groupby([own["size"], own["milestone"]]).transform("all")
    own = own[(panel["at_risk"].transform("max") > 1) & ~at_once]
    groups = [
        (f"{names.milestone(name)}, BERT-{size}", rows)
        for (size, name), rows in frames.in_order(own).groupby(["size", "milestone"], sort=False)
    ]
    if not groups:
        return []
    drawing = Drawing(
        name="waiting",
        place="",
        title="Share of this run's pre-training runs that have not reached it yet (Kaplan-Meier)",
        stage="analysis",
        alternative=" ".join(f"{title}: {_ends(rows)}." for title, rows in groups),
        notes=("A curve that does not reach zero has runs that never got there; it is drawn as far as it is known.",),
        **panels(groups, still_waiting, WIDTH, 2.3),
        csv=own,
    )
    return [drawing]


def still_waiting(axes: Axes, frame: pd.DataFrame) -> None:
    """One step curve an operator."""
    last = frame["step"].max()
    for operator, rows in frame.groupby("operator", sort=False):
        colour, stroke = style(operator)
        step, share = [*rows["step"], last], [*rows["waiting"], rows["waiting"].iloc[-1]]
        axes.step(step, share, where="post", color=colour, linestyle=stroke, label=names.operator(operator))
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("share not there yet")
    steps_axis(axes)


def _ends(frame: pd.DataFrame) -> str:
    """Of every operator, the share that is left in the end, and when the last run that got there did."""
    return ", ".join(
        f"{names.operator(operator)} {rows['waiting'].iloc[-1]:.0%} left after step {rows['step'].iloc[-1]:,.0f}"
        for operator, rows in frame.groupby("operator", sort=False)
    )
