"""Draws the figure of a study of pre-training: curves of the validation loss, and a step for every run, by operator."""

import textwrap

import pandas as pd
from matplotlib.axes import Axes

from stages.evidence import convergence
from stages.evidence.statistics import compute_bands
from stages.report import names
from stages.report.drawing import draw_curve, label_rows, label_steps_axis, render_panels, separate_rows
from stages.report.looks import GRID, INK, PAPER, find_style

# Width and height of a panel, in inches.
SIZE = 5.8, 2.8
# Of the figure of costs, which fills the width of a page and less than half of a screen.
COST_SIZE = 8.7, 3.7
# Short names below the figure of costs.
COST_LABELS = {
    "identity_query": "Q = I",
    "shared_kv": "K = V",
    "symmetric": "symmetric, Q\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}K",
    "pairwise_scaled": "pairwise, scaled",
}
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


def draw_costs(finals: pd.DataFrame, contrasts: pd.DataFrame, saved: dict[str, float]) -> bytes:
    """Draws what each operator costs in final loss, by the share of attention weights that the operator saves, as SVG.

    Args:
        finals: the final loss of every run: `operator`, `pretraining_seed` and `value`, in nats.
        contrasts: rows of contrasts.csv on the final loss against the original: `arm`, `estimate`, `low`, `high`.
        saved: the share of the weights of BERT-base's attention that each operator saves, in per cent.
    """
    losses = finals.pivot(index="pretraining_seed", columns="operator", values="value")
    costs = losses.sub(losses["original"], axis=0)
    compared = contrasts.assign(saved=[saved[arm] for arm in contrasts["arm"]]).sort_values(["saved", "estimate"])

    def draw_panel(axes: Axes, rows: pd.DataFrame) -> None:
        for place, row in enumerate(rows.itertuples()):
            colour, _ = find_style(row.arm)
            fill = PAPER if row.arm.endswith("_masked") else colour
            dots = costs[row.arm]
            axes.plot([place - 0.12] * len(dots), dots, "o", markersize=5, color=colour, markerfacecolor=fill)
            axes.plot([place + 0.12] * 2, [row.low, row.high], color=colour, linewidth=1.6)
            axes.plot(place + 0.12, row.estimate, "_", markersize=9, color=colour)
        labels = [textwrap.fill(COST_LABELS.get(arm, names.name_operator(arm)), 12) for arm in rows["arm"]]
        axes.set_xticks(range(len(rows)), labels, linespacing=1)
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set_ylabel("nats above the original")
        axes.set_xlim(-0.6, len(rows) - 0.4)
        label_groups(axes, rows["saved"].tolist())

    return render_panels([("", compared)], draw_panel, *COST_SIZE)["svg"]


def label_groups(axes: Axes, saved: list[float]) -> None:
    """Names the share of saved weights above the operators that have it, and separates the shares by lines."""
    for share in dict.fromkeys(saved):
        places = [place for place, other in enumerate(saved) if other == share]
        middle = (places[0] + places[-1]) / 2
        axes.text(middle, 1.02, f"saves {share:.0f} %", ha="center", transform=axes.get_xaxis_transform(), fontsize=8)
        if places[0]:
            axes.axvline(places[0] - 0.5, color=GRID, linewidth=0.8)


def draw_self_weights(rows: pd.DataFrame, arms: list[str]) -> bytes:
    """Draws the weight of a token on itself by training step, as SVG: means over runs, with bands to the extremes.

    Args:
        rows: the observations of a study with `pretraining.probes`.
        arms: the operators to draw.
    """
    probed = convergence.add_steps(rows[rows["metric"] == "self_weight"])

    def draw_panel(axes: Axes, rows: pd.DataFrame) -> None:
        for arm in arms:
            draw_curve(axes, compute_bands(rows[rows["operator"] == arm], ["step"]), arm)
        axes.set_ylabel("weight of a token on itself")
        label_steps_axis(axes)

    return render_panels([("", probed)], draw_panel, *SIZE)["svg"]
