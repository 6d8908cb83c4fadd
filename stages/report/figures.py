"""The papers' figures, and those like them: curves over training steps, single runs as dots, and bars."""

from functools import partial

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from stages.evidence import specifications
from stages.report import names
from stages.report.drawing import CONSTANT, DASHED, HEIGHT, INK, ROW, WIDTH, Drawing, curve, drawing, steps_axis, style
from stages.report.inputs import select
from stages.report.words import alternative

SOURCES = {"released": "released", "published": "published", "reproduced": "this run"}  # and what a title says of it
GOAL = 0.95  # share of the final score of pairwise, which Courtois et al. draw in their Figure 3
LATE = 0.5  # of the steps: the inset of a panel of losses shows what follows
CORNER = 0.45, 0.45  # the lower left corner of the inset, as shares of the panel's width and height


def losses(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws curves of a loss with an inset of the last half of the steps; only marks where all have two points.

    No inset stands beside a single operator, or one with a single point there, or over a curve. frame: as for `curves`.
    """
    if (frame.groupby("operator").size() == 2).all():  # a beginning and an end that a text states: nothing between
        for operator, rows in frame.groupby("operator", sort=False):
            axes.plot(rows["step"], rows["mean"], "o", color=style(operator)[0], label=names.operator(operator))
        axes.margins(0.15)
        steps_axis(axes)
        return
    curves(axes, frame)
    late = frame[frame["step"] >= LATE * frame["step"].max()]
    low, high = axes.get_ylim()
    hidden = late["mean"].max() > low + CORNER[1] * (high - low)
    if frame["operator"].nunique() < 2 or late.groupby("operator").size().min() < 2 or hidden:
        return
    inset = axes.inset_axes((*CORNER, 0.53, 0.5))  # and its width and height, up to near the upper right corner
    curves(inset, late)
    inset.set_xlabel("")
    inset.tick_params(labelsize=7.5)
    inset.xaxis.set_major_locator(mpl.ticker.MaxNLocator(2))


def scores(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws curves of a score, and a line at 95 % of what pairwise reaches in the end; frame as for `curves`."""
    curves(axes, frame)
    last = frame[frame["operator"] == "pairwise"].nlargest(1, "step")
    if len(last):
        goal = GOAL * float(last["mean"].iloc[0])
        axes.axhline(goal, color=INK, linewidth=0.8, linestyle=DASHED, label=f"{GOAL:.0%} of pairwise's last")


def curves(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws a curve per operator; frame: operator, step (increasing), mean, minimum, maximum and n (number of runs)."""
    for operator, rows in frame.groupby("operator", sort=False):
        curve(axes, rows, operator)
    steps_axis(axes)


def dots(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws runs as dots, a column per pre-training seed, and a line at the operator's mean over these seeds' means.

    frame: operator, pretraining_seed and score of every run, and constant, the score of a constant answer or NaN.
    """
    operators = list(dict.fromkeys(frame["operator"]))
    for place, operator in enumerate(operators):
        colour, _ = style(operator)
        rows = frame[frame["operator"] == operator]
        seeds = sorted(rows["pretraining_seed"].unique())
        offsets = (np.arange(len(seeds)) - (len(seeds) - 1) / 2) * 0.5 / len(seeds)
        across = rows["pretraining_seed"].map(dict(zip(seeds, offsets, strict=True)))
        axes.plot(place + across, rows["score"], "o", color=colour, markersize=4, alpha=0.75)
        mean = rows.groupby("pretraining_seed")["score"].mean().mean()
        axes.hlines(mean, place - 0.36, place + 0.36, color=colour, linewidth=1.6)
    if frame["constant"].notna().any():
        axes.axhline(frame["constant"].max(), color=INK, linewidth=0.8, linestyle=DASHED, label=CONSTANT)
    named = [names.operator(operator).replace(" ", "\n") for operator in operators]
    axes.set_xticks(range(len(operators)), named, fontsize=6.5 if len(operators) > 4 else None)
    axes.set_xlim(-0.6, len(operators) - 0.4)


def bars(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws a bar of `value` per row, by `label`, in the colour of `operator`, which the legend has if not empty."""
    labels = list(dict.fromkeys(frame["label"]))
    operators = list(dict.fromkeys(frame["operator"]))
    height = 0.8 / len(operators)
    for place, operator in enumerate(operators):
        rows = frame[frame["operator"] == operator]
        across = [labels.index(label) + (place - (len(operators) - 1) / 2) * height for label in rows["label"]]
        drawn = axes.barh(across, rows["value"], height, color=style(operator)[0], label=operator or None)
        axes.bar_label(drawn, fmt="%.3g", padding=3)
    axes.set_yticks(range(len(labels)), [names.label(label) for label in labels])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.grid(visible=False)


def shares(corpus: pd.DataFrame) -> pd.DataFrame:
    """Computes, as bars for `draw`, the per cent of documents that each reason is first to drop (`frames.corpus`)."""
    dropped = select(corpus[corpus["documents"] > 0], fate="dropped")
    everything = select(corpus, fate="in")["documents"].sum()
    labels = (dropped["rule"] + ": " + dropped["reason"]).str.replace("_", " ")
    frame = pd.DataFrame({"label": labels, "value": 100 * dropped["documents"] / max(everything, 1)})
    return frame.assign(source="reproduced", quantity="dropped", operator="", size="")


def _by_protocol(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Splits rows by `protocol`, if any: (end of a title, rows); the end is empty unless there are several."""
    if rows.empty:
        return []
    if "protocol" not in rows or rows["protocol"].nunique() < 2:
        return [("", rows)]
    return [(f", {names.protocol(name)}", of_recipe) for name, of_recipe in rows.groupby("protocol", sort=False)]


def draw(figure: specifications.Figure, frame: pd.DataFrame) -> Drawing:
    """Draws the figure of a specification: panels of other sources, then one for every size and recipe of this run.

    frame: a row per point, dot or bar: source (of SOURCES), operator, quantity, size (empty for a panel without title),
    protocol if there are several, and what `curves`, `dots` or `bars` takes. The figure's rows are selected from it.
    """
    of_curves = {"loss": losses, "glue_score": scores}.get(figure.quantity, curves)
    painter = {"curves": of_curves, "dots": dots, "bars": bars}[figure.kind]
    frame = frame[frame["quantity"] == figure.quantity]
    if figure.operators:
        frame = frame[frame["operator"].isin(figure.operators)]
    run = frame.loc[frame["source"] == "reproduced", "size"].drop_duplicates()
    places = [*figure.beside, *(("reproduced", size) for size in run)]
    groups = [
        (f"BERT-{size}, {SOURCES[source]}{recipe}" if size else "", rows)
        for source, size in places
        for recipe, rows in _by_protocol(frame[(frame["source"] == source) & (frame["size"] == size)])
    ]

    def paint(axes: Axes, rows: pd.DataFrame) -> None:
        painter(axes, rows)
        (axes.set_xlabel if figure.kind == "bars" else axes.set_ylabel)(figure.axis)

    return drawing(
        figure.name,
        figure.title,
        figure.stage,
        groups,
        paint,
        partial(alternative, figure.kind),
        _panel(figure.kind, groups),
        pd.concat([rows for _, rows in groups]).drop(columns="quantity") if groups else frame,
        place=f"{figure.source}, {figure.number}" if figure.source else "",
        notes=figure.notes,
        measured=any((rows["source"] != "published").any() for _, rows in groups),
    )


def _panel(kind: str, groups: list[tuple[str, pd.DataFrame]]) -> tuple[float, float]:
    """Returns width and height of a panel, in inches: bars need room for every label; a single panel fills the line."""
    if kind != "bars" or not groups:
        return WIDTH, HEIGHT
    bars = max(len(rows) for _, rows in groups)
    return ROW * WIDTH / min(ROW, len(groups)), 1.1 + 0.2 * bars
