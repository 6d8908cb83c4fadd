"""The tables and figures of the study of the plateau. words.yaml says what stands in them and beside them."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from stages.plumbing.documents import read_yaml
from stages.report import names, own_tables
from stages.report.drawing import INK, WIDTH, Drawing, curve, drawing, steps_axis, style
from stages.report.tables import Grid
from stages.studies.plateau.comparisons import RATE, SCALED, SOURCE

MARKERS = {SCALED: "o", SOURCE: "D", RATE: "s"}
STROKES = ((0, (1, 1.5)), (0, (3, 1.5)), "dashdot", "dashed", "solid")  # by spread; solid: the widest, and the 5th on
APART = 1.05  # factor between operators on the axis of spreads, so that intervals stand side by side
PROBES = {  # by metric
    "score_spread": "Spread of the scores",
    "attention_entropy": "Entropy, share of uniform",
    "self_weight": "Weight on itself",
}


@cache
def words() -> dict[str, dict]:
    """Reads words.yaml: title and notes of every table and figure, and columns of every table, by name."""
    return read_yaml(Path(__file__).with_name("words.yaml"))


def grids(tests: pd.DataFrame, arms: pd.DataFrame, confidence: float, alpha: float) -> list[Grid]:
    """Makes plateau_tests, averaged over what is held equal, plateau_places, at single ones, and plateau_arms.

    Args:
        tests, arms: as `comparisons.tests` returns them; columns `study.ARMS`.
        confidence, alpha: of the intervals of `tests`, in (0, 1), and the level at which they were judged.
    """
    averages = tests["place"] == ""
    # words.yaml names the frame of each table, and the facts that its texts have in addition
    read = {"averages": tests[averages], "places": tests[~averages], "arms": arms}.__getitem__
    facts = {"confidence": f"{confidence:.0%}", "alpha": f"{alpha:g}", "scaled": SCALED, "departed": departed}
    shown = ("plateau_tests", "plateau_places", "plateau_arms")
    return [own_tables.table(name, read, words()[name], **facts) for name in shown]


def departed(never: int, runs: int) -> str:
    """Says how many of all runs left the plateau, as in `3 of 5` where 2 of 5 never did."""
    return f"{runs - never} of {runs}"


def drawings(arms: pd.DataFrame, waiting: pd.DataFrame, probes: pd.DataFrame) -> list[Drawing]:
    """Draws plateau_time, plateau_waiting (a panel per operator) and plateau_probes (a panel per probe and spread).

    Args:
        arms, waiting: columns `study.ARMS`, of one size; their Kaplan-Meier curves, `study.ARM` and `survival.CURVE`.
        probes: columns `study.LINES`; without rows there is no figure of them.
    """
    waiting = waiting.merge(arms[["arm", "horizon"]], on="arm")
    by_operator = [(names.operator(operator), rows) for operator, rows in waiting.groupby("operator", sort=False)]
    waiting = pd.concat([rows for _, rows in by_operator])
    by_size = [(f"BERT-{arms['size'].iloc[0]}", arms)]
    drawings = [
        _figure("plateau_time", by_size, time_to_leave, _times, (2 * WIDTH, 3.4), arms),
        _figure("plateau_waiting", by_operator, still_waiting, _shares, (WIDTH, 2.5), waiting),
    ]
    if len(probes):
        drawings.append(_figure("plateau_probes", _chosen(probes), along_training, _changes, (WIDTH, 2.3), probes))
    return drawings


def _figure(
    name: str, groups: list, draw: Callable, describe: Callable, size: tuple[float, float], csv: pd.DataFrame
) -> Drawing:
    """Makes a figure, with its title and notes from words.yaml; all other arguments are those of `drawing`."""
    text = words()[name]
    return drawing(name, text["title"], "", groups, draw, describe, size, csv, notes=tuple(text["notes"]))


def _times(arms: pd.DataFrame) -> str:
    """Says in words what `time_to_leave` draws."""
    return ", ".join(
        f"{names.operator(row.operator)} {row.mean:.0f} steps at {row.spread:.3g} ({row.kind}), "
        f"{departed(row.never, row.runs)} left"
        for row in arms[arms["kind"].isin(MARKERS)].itertuples()
    )


def time_to_leave(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws, from columns `study.ARMS`, a line per operator over its scaled arms, and a mark and interval per arm."""
    operators, last = list(dict.fromkeys(frame["operator"])), frame["horizon"].max()
    axes.axhline(last, color=INK, linewidth=0.6, linestyle=":")
    for place, operator in enumerate(operators):
        colour, stroke = style(operator)
        shift = APART ** (place - (len(operators) - 1) / 2)
        arms = frame[(frame["operator"] == operator) & frame["kind"].isin(MARKERS)]
        scaled = arms[arms["kind"] == SCALED].sort_values("spread")
        line = scaled["mean"].where(scaled["never"] < scaled["runs"])
        axes.plot(scaled["spread"] * shift, line, color=colour, linestyle=stroke, linewidth=1.2)
        for row in arms.itertuples():
            x, look = row.spread * shift, {"color": colour, "markersize": 5, "linestyle": "none"}
            if row.never == row.runs:  # hollow marks above the last step, at a height per operator, RATE between two
                above = last * (1.03 + 0.03 * place + (0.015 if row.kind == RATE else 0))
                axes.plot(x, above, marker=MARKERS[row.kind], markerfacecolor="none", **look)
                continue
            face = "none" if row.never else colour
            axes.vlines(x, row.low, min(row.high, last), color=colour, linewidth=1)
            axes.plot(x, row.mean, marker=MARKERS[row.kind], markerfacecolor=face, **look)
            if row.never:
                shown = f"{row.runs - row.never}/{row.runs}"
                beside = (3, 4 + 5 * (place % 3))  # marks of several operators may meet: their counts stand apart
                axes.annotate(shown, (x, row.mean), beside, "data", "offset points", fontsize=6.5, color=colour)
        axes.plot([], [], color=colour, linestyle=stroke, marker="o", markersize=5, label=names.operator(operator))
    axes.set_xscale("log")
    ticks = sorted(frame.loc[frame["kind"] == SCALED, "spread"].unique())
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks([tick for tick in axes.get_yticks() if tick <= last])
    if (frame["never"] == frame["runs"]).any():
        middle, beside = last * (1.03 + 0.03 * (len(operators) - 1) / 2), axes.get_yaxis_transform()
        axes.text(-0.015, middle, "no run\nleaves", transform=beside, ha="right", va="center", fontsize=7)
    axes.set_xlabel("spread of the first scores")
    axes.set_ylabel("steps before leaving")


def _shares(waiting: pd.DataFrame) -> str:
    """Says in words what `still_waiting` draws."""
    return ", ".join(
        f"spread {spread:.3g} ({kind}) {curve['waiting'].iloc[-1]:.0%} in the end"
        for (_, kind, spread), curve in _curves(waiting)
    )


def _curves(rows: pd.DataFrame):
    """Groups rows by the curves that are drawn, keys (arm, kind, spread): SCALED by spread, and then the SOURCE's."""
    drawn = rows[rows["kind"].isin((SCALED, SOURCE))].sort_values(["kind", "spread"], ascending=[False, True])
    return drawn.groupby(["arm", "kind", "spread"], sort=False, dropna=False)  # `scaled` sorts after `as its source`


def still_waiting(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws one step curve, up to its `horizon`, per arm of one operator; the wider the first scores, the fuller."""
    colour, _ = style(frame["operator"].iloc[0])
    spreads = sorted(frame.loc[frame["kind"] == SCALED, "spread"].unique())
    for above, ((_, kind, spread), arm) in enumerate(_curves(frame)):
        step = [*arm["step"], arm["horizon"].iloc[0]]
        share = np.array([*arm["waiting"], arm["waiting"].iloc[-1]]) + 0.01 * above  # so that equal curves can be told
        look = {"color": INK, "linewidth": 0.8, "label": SOURCE + " starts it"}
        if kind == SCALED:
            place = spreads.index(spread) + len(STROKES) - min(len(spreads), len(STROKES))
            look = {"color": colour, "linestyle": STROKES[min(place, len(STROKES) - 1)], "label": f"spread {spread:g}"}
            look |= {"linewidth": 1 + 0.25 * spreads.index(spread)}
        axes.step(step, share, where="post", **look)
    axes.set_ylim(-0.03, 1.08)
    steps_axis(axes)
    axes.set_ylabel("share on the plateau")


def _chosen(probes: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Selects panels, title and rows: of each probe, one for the narrowest, the middle and the widest first spread."""
    scaled = probes[probes["kind"] == SCALED]
    spreads = np.sort(scaled["spread"].unique())
    chosen = dict.fromkeys([spreads[0], spreads[len(spreads) // 2], spreads[-1]])
    return [
        (f"{title}, start {spread:g}", rows)
        for metric, title in PROBES.items()
        for spread in chosen
        if len(rows := scaled[(scaled["metric"] == metric) & (scaled["spread"] == spread)])
    ]


def _changes(probes: pd.DataFrame) -> str:
    """Says in words what `along_training` draws."""
    return ", ".join(
        f"{names.operator(operator)} from {line['mean'].iloc[0]:.2f} to {line['mean'].iloc[-1]:.2f}"
        for operator, line in probes.groupby("operator", sort=False)
    )


def along_training(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws a probe by step, one line per operator. frame: rows of one panel, columns `study.LINES`."""
    for operator, rows in frame.groupby("operator", sort=False):
        curve(axes, rows, operator)
    steps_axis(axes)
