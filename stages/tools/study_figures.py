"""Draws the figure of a study of pre-training: curves of the validation loss, and the step of every run, by arm."""

import pandas as pd
from matplotlib.axes import Axes

from stages.evidence import convergence
from stages.evidence.statistics import bands
from stages.report import names
from stages.report.drawing import INK, curve, panels, steps_axis, style

# Width and height of a panel, in inches.
SIZE = 4.4, 3.0
# The axis leaves out the first fall of the loss, nats.
HIGHEST = 7.0
# Strokes of the arms of one operator, in their order in params.yaml.
STROKES = ("solid", "dashed", "dotted", "dashdot")


def draw(rows: pd.DataFrame, params: dict, level: float, curves: tuple[str, ...]) -> bytes:
    """Draws the figure of a study as SVG, with equal bytes for equal numbers.

    Args:
        rows: the observations of the study.
        params: the params.yaml of the study.
        level: of the validation loss, in nats, whose steps are drawn for all arms.
        curves: the arms whose losses are drawn.
    """
    arms = params["operators"]
    looks = choose_looks(arms, params["variants"])
    losses = convergence.validation_loss(rows)
    times = convergence.crossings(rows, level)

    def draw_panel(axes: Axes, rows: pd.DataFrame) -> None:
        if "reached" in rows:
            draw_steps(axes, rows, arms, looks)
        else:
            draw_curves(axes, rows, curves, looks)
            axes.axhline(level, color=INK, linewidth=0.6, linestyle=":")
        steps_axis(axes)

    groups = [("Validation loss, nats", losses), (f"Step at which the loss falls below {level:g} nats", times)]
    return panels(groups, draw_panel, *SIZE)["files"]["svg"]


def draw_curves(axes: Axes, losses: pd.DataFrame, curves: tuple[str, ...], looks: dict[str, tuple]) -> None:
    """Draws the mean loss of each arm over the runs, with a band from the lowest run to the highest."""
    for arm in curves:
        of_arm = losses[losses["operator"] == arm]
        curve(axes, bands(of_arm, ["step"]), arm, stroked=looks[arm])
    axes.set_ylim(top=HIGHEST)


def draw_steps(axes: Axes, times: pd.DataFrame, arms: list[str], looks: dict[str, tuple]) -> None:
    """Draws a dot for every run, in a row for each arm; a hollow dot is a run that never falls below the level."""
    for row in times.itertuples():
        colour, _ = looks[row.operator]
        axes.plot(
            row.step,
            arms.index(row.operator),
            marker="o",
            markersize=5,
            color=colour,
            markerfacecolor=colour if row.reached else "none",
        )
    labels = [names.operator(arm) for arm in arms]
    axes.set_yticks(range(len(arms)), labels)
    axes.invert_yaxis()
    axes.set_xlim(left=0)


def choose_looks(operators: list[str], variants: dict) -> dict[str, tuple]:
    """Chooses colour and stroke of every arm: a variant has the colour of the operator, and another stroke."""
    looks: dict[str, tuple] = {}
    for arm in operators:
        operator = variants.get(arm, {}).get("operator", arm)
        colour, _ = style(operator)
        drawn = [look for look in looks.values() if look[0] == colour]
        looks[arm] = colour, STROKES[len(drawn) % len(STROKES)]
    return looks
