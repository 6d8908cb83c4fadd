"""The figures of the study of the plateau: time to leave by spread, waiting curves, and probes along training."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from stages.report import names
from stages.report.drawing import INK, WIDTH, Drawing, panels, steps_axis, style
from stages.studies.plateau.comparisons import RATE, SCALED, SOURCE

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
    groups = [(f"BERT-{size}", own) for size, own in arms.groupby("size", sort=False)]
    return _drawing(
        "plateau_time",
        "Time to leave the plateau by the spread of the first scores",
        groups,
        time_to_leave,
        2 * WIDTH if len(groups) == 1 else WIDTH,
        3.4,
        (
            "Restricted means with their intervals, up to the last step. Hollow: some runs of the arm did not leave, "
            "and how many of all did stands beside the mark. Above the last step: no run of the arm did; height there "
            "means nothing. Circles: started at a given spread; diamonds: only the operator's own matrices as in "
            "its source; squares: the same with a larger learning rate for the scores.",
        ),
        lambda rows: ", ".join(
            f"{names.operator(row.operator)} {row.mean:.0f} steps at {row.spread:.3g} ({row.kind}), "
            f"{row.runs - row.never} of {row.runs} left"
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
                left = f"{row.runs - row.never}/{row.runs}"
                beside = (3, 4 + 5 * (place % 3))  # marks of several operators may meet: their counts stand apart
                axes.annotate(left, (x, row.mean), beside, "data", "offset points", fontsize=6.5, color=colour)
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
    groups = [(names.operator(operator), own) for operator, own in waiting.groupby("operator", sort=False)]
    return _drawing(
        "plateau_waiting",
        "Share of runs still on the plateau, by operator and spread (Kaplan-Meier)",
        groups,
        still_waiting,
        WIDTH,
        2.5,
        (
            "The thin line is the operator as its source starts it. Curves of one panel stand a hundredth apart, so "
            "that equal ones can be told.",
        ),
        lambda rows: ", ".join(
            f"spread {spread:.3g} ({kind}) {own['waiting'].iloc[-1]:.0%} in the end"
            for (_, kind, spread), own in _drawn(rows).groupby(["arm", "kind", "spread"], sort=False, dropna=False)
        ),
    )


def _drawn(rows: pd.DataFrame) -> pd.DataFrame:
    """The arms whose curves are drawn, those of given spreads from the narrowest on, and then the source's."""
    own = rows[rows["kind"].isin((SCALED, SOURCE))]
    return own.sort_values(["kind", "spread"], ascending=[False, True])


def still_waiting(axes: Axes, frame: pd.DataFrame) -> None:
    """One step curve per arm of one operator; the wider the first scores, the fuller and wider its line."""
    colour, _ = style(frame["operator"].iloc[0])
    spreads = sorted(frame.loc[frame["kind"] == SCALED, "spread"].unique())
    curves = _drawn(frame).groupby(["arm", "kind", "spread"], sort=False, dropna=False)
    for above, ((_, kind, spread), own) in enumerate(curves):
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
    return _drawing(
        "plateau_probes",
        "Inside the attention along training, at the narrowest, the middle and the widest first spread",
        groups,
        along_training,
        WIDTH,
        2.3,
        ("Means over seeds; bands from the lowest to the highest. The CSV has every arm.",),
        lambda rows: ", ".join(
            f"{names.operator(operator)} from {own['mean'].iloc[0]:.2f} to {own['mean'].iloc[-1]:.2f}"
            for operator, own in rows.groupby("operator", sort=False)
        ),
        probes,
    )


def along_training(axes: Axes, frame: pd.DataFrame) -> None:
    """A probe by step, one line an operator."""
    for operator, own in frame.groupby("operator", sort=False):
        colour, stroke = style(operator)
        axes.fill_between(own["step"], own["minimum"], own["maximum"], color=colour, alpha=0.15, linewidth=0)
        axes.plot(own["step"], own["mean"], color=colour, linestyle=stroke, label=names.operator(operator))
    steps_axis(axes)


def _drawing(name, title, groups, paint, width, height, notes, describe, csv=None) -> Drawing:
    return Drawing(
        name=name,
        place="",
        title=title,
        stage="",
        alternative=" ".join(f"{label}: {describe(rows)}." for label, rows in groups),
        notes=notes,
        **panels(groups, paint, width, height),
        csv=pd.concat([rows for _, rows in groups]) if csv is None else csv,
    )
