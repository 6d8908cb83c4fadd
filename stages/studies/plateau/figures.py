"""The figures of the study of the plateau: time to leave by spread, waiting curves, and probes along training."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from stages.report import names
from stages.report.drawing import INK, WIDTH, Drawing, panels, steps_axis, style
from stages.studies.plateau.comparisons import RATE, SCALED, SOURCE
from stages.studies.plateau.tables import left, words

MARKERS = {SCALED: "o", SOURCE: "D", RATE: "s"}
STROKES = ((0, (1, 1.5)), (0, (3, 1.5)), "dashdot", "dashed", "solid")  # of spreads, the widest one solid
APART = 1.05  # factor between operators on the axis of spreads, so that intervals stand side by side
PROBES = {
    "score_spread": "Spread of the scores",
    "attention_entropy": "Entropy, share of uniform",
    "self_weight": "Weight on itself",
}


def drawings(arms: pd.DataFrame, waiting: pd.DataFrame, probes: pd.DataFrame) -> list[Drawing]:
    """All figures of the study. Frames as study.py gives them."""
    waiting = waiting.merge(arms[["size", "arm", "horizon"]], on=["size", "arm"])
    return [_time(arms), _waiting(waiting), *([_probes(probes)] if len(probes) else [])]


def _time(arms: pd.DataFrame) -> Drawing:
    groups = [(f"BERT-{size}", rows) for size, rows in arms.groupby("size", sort=False)]
    width = 2 * WIDTH if len(groups) == 1 else WIDTH
    return _drawing(
        "plateau_time",
        groups,
        panels(groups, time_to_leave, width, 3.4),
        lambda rows: ", ".join(
            f"{names.operator(row.operator)} {row.mean:.0f} steps at {row.spread:.3g} ({row.kind}), "
            f"{left(row.never, row.runs)} left"
            for row in rows.itertuples()
        ),
    )


def time_to_leave(axes: Axes, frame: pd.DataFrame) -> None:
    """One line an operator over its scaled arms, and a mark for each of its other arms; those that stay, on top."""
    operators, last = list(dict.fromkeys(frame["operator"])), frame["horizon"].max()
    axes.axhline(last, color=INK, linewidth=0.6, linestyle=":")
    for place, operator in enumerate(operators):
        colour, stroke = style(operator)
        shift = APART ** (place - (len(operators) - 1) / 2)
        own = frame[(frame["operator"] == operator) & frame["kind"].isin(MARKERS)]
        scaled = own[own["kind"] == SCALED].sort_values("spread")
        line = scaled["mean"].where(scaled["never"] < scaled["runs"])
        axes.plot(scaled["spread"] * shift, line, color=colour, linestyle=stroke, linewidth=1.2)
        for row in own.itertuples():
            x, look = row.spread * shift, {"color": colour, "markersize": 5, "linestyle": "none"}
            if row.never == row.runs:  # a column of marks above the last step, one an operator
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


def _waiting(waiting: pd.DataFrame) -> Drawing:
    groups = [(names.operator(operator), rows) for operator, rows in waiting.groupby("operator", sort=False)]
    return _drawing(
        "plateau_waiting",
        groups,
        panels(groups, still_waiting, WIDTH, 2.5),
        lambda rows: ", ".join(
            f"spread {spread:.3g} ({kind}) {curve['waiting'].iloc[-1]:.0%} in the end"
            for (_, kind, spread), curve in _curves(rows)
        ),
    )


def _curves(rows: pd.DataFrame):
    """The curves that are drawn, those of given spreads from the narrowest on, and then the source's."""
    drawn = rows[rows["kind"].isin((SCALED, SOURCE))].sort_values(["kind", "spread"], ascending=[False, True])
    return drawn.groupby(["arm", "kind", "spread"], sort=False, dropna=False)


def still_waiting(axes: Axes, frame: pd.DataFrame) -> None:
    """One step curve per arm of one operator; the wider the first scores, the fuller and wider its line."""
    colour, _ = style(frame["operator"].iloc[0])
    spreads = sorted(frame.loc[frame["kind"] == SCALED, "spread"].unique())
    for above, ((_, kind, spread), own) in enumerate(_curves(frame)):
        step = [*own["step"], own["horizon"].iloc[0]]
        share = np.array([*own["waiting"], own["waiting"].iloc[-1]]) + 0.01 * above
        look = {"color": INK, "linewidth": 0.8, "label": SOURCE + " starts it"}
        if kind == SCALED:
            place = spreads.index(spread) + len(STROKES) - min(len(spreads), len(STROKES))
            look = {"color": colour, "linestyle": STROKES[min(place, len(STROKES) - 1)], "label": f"spread {spread:g}"}
            look |= {"linewidth": 1 + 0.25 * spreads.index(spread)}
        axes.step(step, share, where="post", **look)
    axes.set_ylim(-0.03, 1.08)
    steps_axis(axes)
    axes.set_ylabel("share on the plateau")


def _probes(probes: pd.DataFrame) -> Drawing:
    scaled = probes[probes["kind"] == SCALED]
    spreads = np.sort(scaled["spread"].unique())
    chosen = dict.fromkeys([spreads[0], spreads[len(spreads) // 2], spreads[-1]])
    groups = [
        (f"{title}, start {spread:g}", own)
        for metric, title in PROBES.items()
        for spread in chosen
        if len(own := scaled[(scaled["metric"] == metric) & (scaled["spread"] == spread)])
    ]
    drawing = _drawing(
        "plateau_probes",
        groups,
        panels(groups, along_training, WIDTH, 2.3),
        lambda rows: ", ".join(
            f"{names.operator(operator)} from {line['mean'].iloc[0]:.2f} to {line['mean'].iloc[-1]:.2f}"
            for operator, line in rows.groupby("operator", sort=False)
        ),
    )
    return replace(drawing, csv=probes)


def along_training(axes: Axes, frame: pd.DataFrame) -> None:
    """A probe by step, one line an operator."""
    for operator, own in frame.groupby("operator", sort=False):
        colour, stroke = style(operator)
        axes.fill_between(own["step"], own["minimum"], own["maximum"], color=colour, alpha=0.15, linewidth=0)
        axes.plot(own["step"], own["mean"], color=colour, linestyle=stroke, label=names.operator(operator))
    steps_axis(axes)


def _drawing(name: str, groups: list, painted: dict, describe: Callable[[pd.DataFrame], str]) -> Drawing:
    """A figure with its title and notes of words.yaml.

    Args:
        name: of the figure.
        groups: the label and the rows of each panel; the rows of all are its CSV.
        painted: what `panels` made of them.
        describe: what the rows of a panel show, for those who do not see it.
    """
    alternative = " ".join(f"{label}: {describe(rows)}." for label, rows in groups)
    said = {"title": words()[name]["title"], "notes": tuple(words()[name]["notes"]), "alternative": alternative}
    return Drawing(name=name, place="", stage="", **said, **painted, csv=pd.concat([rows for _, rows in groups]))
