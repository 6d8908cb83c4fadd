"""Draws the figure of a study of pre-training: curves of the validation loss, and a step for every run, by operator."""

import pandas as pd
from matplotlib.axes import Axes

from stages.evidence import convergence
from stages.evidence.statistics import compute_bands
from stages.report import names
from stages.report.drawing import draw_curve, label_rows, label_steps_axis, render_panels, separate_rows
from stages.report.looks import INK, PAPER, find_style

# Width and height of a panel, in inches.
SIZE = 5.8, 2.8
# The axis leaves out the first fall of the loss, nats.
HIGHEST = 7.0


def draw(rows: pd.DataFrame, arms: list[str], level: float, curves: tuple[str, ...]) -> bytes:
    """Draws the figure of a study as SVG, with equal bytes for equal numbers.

    Args:
        rows: the observations of the study.
        arms: all operators of the study, in the order of the rows of dots.
        level: a validation loss, in nats; a dot is the step at which a run falls below the level.
        curves: the operators whose losses are drawn.
    """
    losses = convergence.select_validation_loss(rows)
    times = convergence.find_crossings(rows, level)
    # The rows of dots have the order of the plan.
    times = times.sort_values("operator", key=lambda operators: operators.map(arms.index))

    def draw_panel(axes: Axes, rows: pd.DataFrame) -> None:
        """Draws a panel: dots for steps, curves for losses."""
        # Only the frame of steps says whether a run reached the level.
        if "reached" in rows:
            draw_dots(axes, rows, "step")
            axes.set_xlim(left=0)
        else:
            draw_curves(axes, rows, curves)
            axes.axhline(level, color=INK, linewidth=0.6, linestyle=":")
            axes.set_ylabel("validation loss (nats)")
        label_steps_axis(axes)

    groups = [("Validation loss", losses), (f"Step at which the loss falls below {level:g} nats", times)]
    return render_panels(groups, draw_panel, *SIZE)["svg"]


def draw_curves(axes: Axes, losses: pd.DataFrame, curves: tuple[str, ...]) -> None:
    """Draws the mean loss of each operator over the runs, with a band from the lowest run to the highest."""
    for arm in curves:
        of_arm = losses[losses["operator"] == arm]
        draw_curve(axes, compute_bands(of_arm, ["step"]), arm)
    axes.set_ylim(top=HIGHEST)


def draw_dots(axes: Axes, runs: pd.DataFrame, column: str) -> None:
    """Draws a dot for every run, in a row for each operator; a hollow dot is a run that never falls below the level.

    Args:
        axes: the panel.
        runs: the runs, by operator in the order of the rows: `operator`, `reached`, and the value to draw.
        column: the column of the value.
    """
    arms = runs["operator"].drop_duplicates().tolist()
    for run in runs.to_dict("records"):
        colour, _ = find_style(run["operator"])
        axes.plot(
            run[column],
            arms.index(run["operator"]),
            marker="o",
            markersize=5,
            color=colour,
            # A run that never reaches the level stands at the last step, hollow.
            markerfacecolor=colour if run["reached"] else PAPER,
        )
    label_rows(axes, [names.name_operator(arm) for arm in arms])
    separate_rows(axes, len(arms))


def draw_final_losses(runs: pd.DataFrame, title: str) -> bytes:
    """Draws the final loss of every run as SVG, the operators with the lowest losses on top.

    Args:
        runs: `operator` and `final_loss`, in nats.
        title: the title of the figure.
    """
    means = runs.groupby("operator")["final_loss"].mean()
    runs = runs.sort_values("operator", key=lambda operators: operators.map(means))

    def draw_panel(axes: Axes, rows: pd.DataFrame) -> None:
        draw_dots(axes, rows, "final_loss")
        axes.set_xlabel("validation loss (nats)")

    return render_panels([(title, runs.assign(reached=True))], draw_panel, *SIZE)["svg"]
