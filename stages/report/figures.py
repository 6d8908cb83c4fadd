"""Figures by matplotlib, as SVG and PDF of equal bytes for equal numbers, and SVG for use inside a page.

Inside a page the colours are CSS variables, so that light and dark schemes both read; the text stays text.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stages.common.evidence import specifications
from stages.report import names
from stages.report.tables import command, number, signed

INK = "#24292f"
GRID = "#d5dade"
HEAT = "#3d5a98"  # of heat maps, by its opacity
STYLES = {  # colour-blind safe (Okabe and Ito), and told apart in print by their strokes
    "original": ("#5b6570", "solid"),
    "symmetric": ("#0072b2", "dashed"),
    "pairwise": ("#d55e00", "dashdot"),
    "shared": ("#009e73", (0, (1, 1))),
    "partial_qk": ("#cc79a7", "solid"),
    "hadamard": ("#b58900", "dashed"),
    "fixed": ("#7a68c8", "dashdot"),
    "over_parameters": ("#3aa0a0", "solid"),
    "over_parameters_wide": ("#3aa0a0", "dashed"),
    "tied_qkv": ("#b07d62", (0, (5, 1, 1, 1))),
}
SOURCES = {"released": "released", "published": "published", "reproduced": "this run"}
OTHER = ("#999999", "solid")  # controls, which a plot of runs names on its axis
WIDTH, HEIGHT, ROW = 3.3, 2.7, 2  # inches a panel, panels a row of a printed page
NAMES = 6  # names in a row of the legend
DASHED, CONSTANT = (0, (4, 3)), "most frequent answer"  # the line of a constant answer
GOAL = 0.95  # share of the final score of pairwise, which Courtois et al. draw in their Figure 3
LATE = 0.5  # of the steps: the inset of a curve shows what follows
SETTINGS = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 9.5,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.fonttype": "none",
    "svg.hashsalt": "figures",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Drawing:
    """alternative: in words, what the figure shows. notes: what a reader must know of it.

    files: its bytes by format. pieces: every panel as an SVG by itself, for pages of any width. csv: the numbers drawn.
    measured: whether this run, or what the authors released, has a number in it.
    """

    name: str
    place: str
    title: str
    stage: str
    alternative: str
    notes: tuple[str, ...]
    files: dict[str, bytes]
    pieces: tuple[bytes, ...]
    csv: pd.DataFrame
    measured: bool = True
    links: tuple[tuple[str, str], ...] = ()

    @property
    def command(self) -> str:
        return command(self.stage)


def style(operator: str) -> tuple:
    """Colour and stroke of an operator, the same in every figure."""
    return STYLES.get(operator, OTHER)


def panels(
    groups: list[tuple[str, pd.DataFrame]], draw: Callable[[Axes, pd.DataFrame], None], width: float, height: float
) -> dict:
    """One panel of this size in inches a group (title, rows), drawn by `draw`, and one legend.

    Returns:
        `files`: all panels together, by format; `pieces`: every panel as an SVG by itself.
    """
    whole = _figure(groups, draw, width, height)
    pieces = tuple(_saved(_figure([group], draw, width, height), "svg") for group in groups)
    return {"files": {form: _saved(whole, form) for form in ("svg", "pdf")}, "pieces": pieces}


def _figure(
    groups: list[tuple[str, pd.DataFrame]], draw: Callable[[Axes, pd.DataFrame], None], width: float, height: float
) -> Figure:
    columns = min(ROW, len(groups))
    rows = -(-len(groups) // columns)
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(width * columns, height * rows + 0.35), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).flat
        for axes, (title, frame) in zip(grid, groups, strict=False):
            axes.set_title(title, loc="left")
            axes.grid(axis="y", linewidth=0.6)
            axes.set_axisbelow(True)
            draw(axes, frame)
        for axes in grid[len(groups) :]:
            axes.set_axis_off()
        handles = {
            label: handle
            for axes in figure.axes
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        if handles:
            names_a_row = min(len(handles), NAMES, 2 * columns)
            figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=names_a_row)
        return figure


def _saved(figure: Figure, form: str) -> bytes:
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    buffer = BytesIO()
    with mpl.rc_context(SETTINGS):
        figure.savefig(buffer, format=form, metadata=dates[form], transparent=True)
    return buffer.getvalue()


def losses(axes: Axes, frame: pd.DataFrame) -> None:
    """Curves of a loss, with an inset of the last half of the steps, where they part; two points are two marks."""
    if (frame.groupby("operator").size() == 2).all():  # a beginning and an end that a text states: nothing between
        for operator, rows in frame.groupby("operator", sort=False):
            axes.plot(rows["step"], rows["mean"], "o", color=style(operator)[0], label=names.operator(operator))
        axes.margins(0.15)
        steps_axis(axes)
        return
    curves(axes, frame)
    late = frame[frame["step"] >= LATE * frame["step"].max()]
    if frame["operator"].nunique() < 2 or late.groupby("operator").size().min() < 2:
        return
    inset = axes.inset_axes((0.45, 0.45, 0.53, 0.5))
    curves(inset, late)
    inset.set_xlabel("")
    inset.tick_params(labelsize=7.5)
    inset.xaxis.set_major_locator(mpl.ticker.MaxNLocator(2))


def scores(axes: Axes, frame: pd.DataFrame) -> None:
    """Curves of a score, and a line at 95 % of what pairwise reaches in the end."""
    curves(axes, frame)
    last = frame[frame["operator"] == "pairwise"].nlargest(1, "step")
    if len(last):
        goal = GOAL * float(last["mean"].iloc[0])
        axes.axhline(goal, color=INK, linewidth=0.8, linestyle=DASHED, label=f"{GOAL:.0%} of pairwise's last")


def curves(axes: Axes, frame: pd.DataFrame) -> None:
    """Mean by step, a line an operator; a band from minimum to maximum where there are several runs."""
    for operator, rows in frame.groupby("operator", sort=False):
        colour, stroke = style(operator)
        if (rows["n"] > 1).any():
            axes.fill_between(rows["step"], rows["minimum"], rows["maximum"], color=colour, alpha=0.18, linewidth=0)
        name = names.operator(operator)
        axes.plot(rows["step"], rows["mean"], color=colour, linestyle=stroke, linewidth=1.4, label=name)
    steps_axis(axes)


def steps_axis(axes: Axes) -> None:
    """An axis of training steps, with few ticks and separators."""
    axes.set_xlabel("training step")
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(4))
    axes.xaxis.set_major_formatter(mpl.ticker.StrMethodFormatter("{x:,.0f}"))


def dots(axes: Axes, frame: pd.DataFrame) -> None:
    """Every run a dot, those of one pre-training seed in one column; a bar at the operator's mean."""
    operators = list(dict.fromkeys(frame["operator"]))
    for place, operator in enumerate(operators):
        colour, _ = style(operator)
        rows = frame[frame["operator"] == operator]
        seeds = sorted(rows["pretraining_seed"].unique())
        offsets = (np.arange(len(seeds)) - (len(seeds) - 1) / 2) * 0.5 / max(len(seeds), 1)
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
    """Draws horizontal bars with their values beside them, grouped by label, operators side by side.

    Args:
        axes: to draw into.
        frame: a row a bar, with `label`, `operator` and `value`; labels stand in the order of the rows.
    """
    labels = list(dict.fromkeys(frame["label"]))
    operators = list(dict.fromkeys(frame["operator"]))
    height = 0.8 / len(operators)
    for place, operator in enumerate(operators):
        rows = frame[frame["operator"] == operator]
        across = [labels.index(label) + (place - (len(operators) - 1) / 2) * height for label in rows["label"]]
        drawn = axes.barh(across, rows["value"], height, color=style(operator)[0], label=operator or None)
        axes.bar_label(drawn, fmt="%.3g", padding=3)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.grid(visible=False)


def draw(figure: specifications.Figure, frame: pd.DataFrame) -> Drawing:
    """The figure of a specification: panels of other sources, then one for every size of this run.

    frame: source, operator, size, protocol where there are several, quantity, and what the kind of figure draws.
    """
    painter, describe = KINDS[figure.kind]
    painter = PAINTERS.get(figure.quantity, painter) if figure.kind == "curves" else painter
    frame = frame[frame["quantity"] == figure.quantity]
    if figure.operators:
        frame = frame[frame["operator"].isin(figure.operators)]
    run = frame.loc[frame["source"] == "reproduced", "size"].drop_duplicates()
    places = [*figure.beside, *(("reproduced", size) for size in run)]
    groups = [
        (
            f"BERT-{size}, {SOURCES[source]}" if size else "",
            frame[(frame["source"] == source) & (frame["size"] == size)],
        )
        for source, size in places
    ]
    groups = [(title, rows) for title, rows in groups if len(rows)]

    def paint(axes: Axes, rows: pd.DataFrame) -> None:
        painter(axes, rows)
        (axes.set_xlabel if figure.kind == "bars" else axes.set_ylabel)(figure.axis)

    return Drawing(
        name=figure.name,
        place=f"{figure.source}, {figure.number}" if figure.source else "",
        title=figure.title,
        stage=figure.stage,
        alternative=" ".join(f"{title + ': ' if title else ''}{describe(rows)}." for title, rows in groups),
        notes=figure.notes,
        **(panels(groups, paint, *_panel(figure.kind, groups)) if groups else {"files": {}, "pieces": ()}),
        csv=pd.concat([rows for _, rows in groups]).drop(columns="quantity") if groups else frame,
        measured=any((rows["source"] != "published").any() for _, rows in groups),
    )


def _panel(kind: str, groups: list[tuple[str, pd.DataFrame]]) -> tuple[float, float]:
    """Width and height of a panel: bars need room for every label."""
    if kind != "bars":
        return WIDTH, HEIGHT
    bars = max(len(rows) for _, rows in groups)
    return 2 * WIDTH / min(2, len(groups)), 0.8 + 0.2 * bars


def _ends(frame: pd.DataFrame) -> str:
    """The first and the last value of every curve, in words."""
    ends = frame.groupby("operator", sort=False).agg(
        first=("mean", "first"), last=("mean", "last"), step=("step", "last")
    )
    return ", ".join(
        f"{row.Index} from {row.first:.2f} to {row.last:.2f} at step {row.step:,}" for row in ends.itertuples()
    )


def _means(frame: pd.DataFrame) -> str:
    """The mean and the number of runs of every operator, in words."""
    means = frame.groupby("operator", sort=False)["score"].agg(["mean", "count"])
    return ", ".join(f"{row.Index} {row.mean:.2f} over {row.count} runs" for row in means.itertuples())


def _bars(frame: pd.DataFrame) -> str:
    """Every bar, in words."""
    rows = frame[["operator", "label", "value"]].itertuples(index=False)
    return ", ".join(" ".join(part for part in (row.operator, f"{row.label} {row.value:.3g}") if part) for row in rows)


def answer(axes: Axes, frame: pd.DataFrame) -> None:
    """Differences with their intervals, one below the other; a row without one says so at its end.

    The released differences give the scale: an interval of a small run that goes beyond it ends in a triangle, and an
    estimate beyond it stands there as a number.
    """
    scale = frame[frame["source"] == "released"]
    reach = 2 * np.nanmax(np.abs((scale if len(scale) else frame)[["low", "high"]].to_numpy(dtype=float)), initial=0.5)
    axes.set_xlim(-reach, reach)
    for place, row in enumerate(frame.itertuples()):
        colour, _ = style(row.operator)
        if np.isnan(row.difference):
            axes.text(0.97 * reach, place, "no results released", ha="right", va="center", fontsize=8.5, style="italic")
            continue
        own = row.source == "reproduced"
        axes.hlines(place, row.low, row.high, color=colour, linewidth=2)
        if abs(row.difference) > reach:
            side = "right" if row.difference > 0 else "left"
            edge = np.copysign(0.97 * reach, row.difference)
            axes.text(edge, place - 0.17, signed(row.difference, 1), ha=side, va="bottom", fontsize=8.5, color=colour)
        else:
            axes.plot(row.difference, place, "o", color=colour, markersize=6, markerfacecolor="none" if own else colour)
        for end, marker in ((row.low, "<"), (row.high, ">")):
            if abs(end) > reach:
                axes.plot(np.copysign(0.97 * reach, end), place, marker, color=colour, markersize=5)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(frame)), [_answer_label(row) for row in frame.itertuples()])
    axes.set_ylim(len(frame) - 0.5, -0.5)
    axes.set_xlabel("GLUE score against original, points")
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x", linewidth=0.6)


def _answer_label(row) -> str:
    saved = "" if np.isnan(row.saved_percent) else f" (saves {row.saved_percent:.1f} %)"
    own = ", this run" if row.source == "reproduced" else ""
    return f"{names.operator(row.operator)},\nBERT-{row.size}{own}{saved}"


def draw_answer(frame: pd.DataFrame, notes: tuple[str, ...]) -> Drawing:
    """The figure of the first screen.

    frame: operator, size, source, difference, low, high, saved_percent; one row a mark, without numbers where nothing
    is known.
    """
    parts = [
        f"{_answer_label(row).replace(chr(10), ' ')} "
        + (
            "no results released"
            if np.isnan(row.difference)
            else f"{signed(row.difference, 2)}, {number(row.low, 2)} to {number(row.high, 2)}"
        )
        for row in frame.itertuples()
    ]
    return Drawing(
        name="answer",
        place="",
        title="What it costs in GLUE score: the difference to the original operator",
        stage="analysis",
        alternative="; ".join(parts) + ".",
        notes=notes,
        **panels([("", frame)], answer, 4.4, 0.6 + 0.44 * len(frame)),
        csv=frame,
    )


KINDS = {"curves": (curves, _ends), "dots": (dots, _means), "bars": (bars, _bars)}
PAINTERS = {"loss": losses, "glue_score": scores}  # of curves, by what they show


def inline(svg: bytes, name: str) -> str:
    """The SVG element alone, for use inside a page: identifiers of its own, and colours as CSS variables."""
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', text)[1])
    size = f"--wide: {width:.0f}"  # points on paper; style.css makes of it what fits a screen
    text = re.sub(
        r'<svg [^>]*?(viewBox="[^"]*")[^>]*>',
        rf'<svg \1 aria-hidden="true" focusable="false" style="{size}">',
        text,
        count=1,
    )
    colours = {INK: "currentColor", GRID: "var(--rule)", HEAT: f"var(--heat, {HEAT})"}
    colours |= {colour: f"var(--{operator}, {colour})" for operator, (colour, _) in STYLES.items()}
    for colour, variable in colours.items():
        text = re.sub(rf"(: ?){colour}\b", rf"\g<1>{variable}", text)
    return text
