"""Paints the panels of a figure with matplotlib: intervals, curves, bars or a heat map.

Rows have `panel` (the title), `row` (the label of a line of the panel), `mark` (the name in the legend), source,
operator, `estimate`, `low` and `high` (the ends of an interval or band, or NaN), `unit` (the label of the axis; panels
of equal unit have equal axes), `text` (beside the mark), `words` (on hover), `x` (of curves and heat maps), `across`
(the label of that axis) and `zero` (whether an axis of intervals holds zero, marked by a line). figures.py adds them.
A painter gets the rows of a panel, and `alike`, the rows of all panels with equal axes.
"""

import textwrap

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from stages.report.looks import GRID, HEAT, INK, PAPER, SETTINGS, find_mark, find_style
from stages.report.svg import save_figure
from stages.schema.settings import REFERENCE

# inches: a panel, texts beside marks, a narrow figure, title and axis of a panel, a row of intervals without marks, a
# mark of a row, a curve's panel, and a line of bars, of a matrix or of the legend
WIDTH, TEXTS, NARROW, FRAME, ROW, MARK, CURVE, LINE = 2.9, 0.6, 4.5, 0.75, 0.1, 0.14, 1.4, 0.2
# letters in an inch, in a line of the label of a row, and in a line of the name of a curve
INCH, LABEL, NAME = 9, 22, 18
# the size of small texts in points, and the distance of the names of two curves, a share of the panel
SMALL, LEADING = 8, 0.085
# curves of a panel that are named at their ends, at most
MOST = 6
# beyond the marks, an axis shows this share of their range, or the median half of an interval
BEYOND = 0.6
MARGIN = 0.06
# a part of a bar that is shorter, as a share of the longest bar, has no room for a number
THIN = 0.04
# the opacity below which a bar has dark numbers
FAINT = 0.65
REFERENCE_LINE = {"color": INK, "linewidth": 0.8, "linestyle": (0, (4, 3))}
# per cent without colour and with full opacity, on which no number would be readable: 100 has half the opacity
LOW, HIGH = 50.0, 150.0


@mpl.rc_context(SETTINGS)
def render_panels(kind: str, rows: pd.DataFrame, across: int) -> dict[str, bytes]:
    """Paints a panel for every title in `panel`, at most `across` side by side; returns the bytes by format.

    `kind` is a key of PAINTERS, and the index of `rows` counts from 0.
    """
    panels = list(rows.groupby("panel", sort=False))
    columns = min(across, len(panels))
    # rounded up
    lines = -(-len(panels) // columns)
    with_texts = kind == "interval" and rows["text"].any()
    width = (WIDTH + TEXTS * with_texts) * columns
    # a single column of panels with texts is made for narrow screens
    width = max(width, NARROW if with_texts else 2 * WIDTH)
    heights = [find_height(kind, of_panel) for _, of_panel in panels]
    of_lines = [max(heights[start : start + columns]) for start in range(0, len(heights), columns)]
    figure = Figure(figsize=(width, sum(of_lines)), layout="constrained")
    places = list(figure.subplots(lines, columns, squeeze=False, height_ratios=of_lines).flat)
    for axes, (title, of_panel) in zip(places, panels, strict=False):
        letters = int(INCH * width / columns)
        axes.set_title("\n".join(textwrap.wrap(title, letters, break_on_hyphens=False)), loc="left")
        axes.grid(axis="y", linewidth=0.6)
        axes.set_axisbelow(True)
        alike = rows[rows["unit"] == of_panel["unit"].iloc[0]]
        PAINTERS[kind](axes, of_panel, alike)
    # the last line may have places without a panel
    for axes in places[len(panels) :]:
        axes.set_axis_off()
    label_first_column(places, columns)
    if kind == "curve" and rows["row"].nunique() <= MOST:
        for axes in places[: len(panels)]:
            name_ends(axes)
    else:
        add_legend(figure)
    return save_figure(figure, rows["words"])


def find_height(kind: str, rows: pd.DataFrame) -> float:
    """Finds the height of a panel in inches, which follows from the number of its rows and marks."""
    if kind == "curve":
        return FRAME + CURVE
    if kind != "interval":
        return FRAME + LINE * rows["row"].nunique()
    marks = rows[["row", "mark", "text"]].drop_duplicates().groupby("row").size()
    return FRAME + len(marks) * (ROW + MARK * marks.max())


def label_first_column(places: list[Axes], columns: int) -> None:
    """Drops the labels of rows of a panel whose left neighbour has the same labels."""
    before = []
    for place, axes in enumerate(places):
        texts = [label.get_text() for label in axes.get_yticklabels()]
        if place % columns and texts == before:
            axes.tick_params(labelleft=False)
        before = texts


def name_ends(axes: Axes) -> None:
    """Writes the name of every line right of the panel, in its colour, at the line's end or above a lower name."""
    bottom, top = axes.get_ylim()
    leading = LEADING * (top - bottom)
    lines, labels = axes.get_legend_handles_labels()
    ends = [(line.get_ydata()[-1], label, line.get_color()) for line, label in zip(lines, labels, strict=True)]
    free = bottom
    for height, label, colour in sorted(ends):
        name = "\n".join(textwrap.wrap(label, NAME))
        size = leading * (1 + name.count("\n"))
        place = max(height, free + size / 2)
        write_beside(axes, place, name, color=colour)
        free = place + size / 2


def write_beside(axes: Axes, height: float, text: str, **look: object) -> None:
    """Writes a text right of a panel."""
    place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
    axes.annotate(text, (1, height), (5, 0), fontsize=SMALL, linespacing=1, **place, **look)


def add_legend(figure: Figure) -> None:
    """Adds a legend below the panels; the figure grows by its lines."""
    handles = {}
    for axes in figure.axes:
        drawn, labels = axes.get_legend_handles_labels()
        handles.update(zip(labels, drawn, strict=True))
    if not handles:
        return
    # a sample takes as much room as four letters
    letters = 4 + max(map(len, handles))
    columns = max(int(1.5 * INCH * figure.get_figwidth() / letters), 1)
    lines = -(-len(handles) // columns)
    figure.set_figheight(figure.get_figheight() + LINE * lines)
    figure.legend(handles.values(), handles.keys(), ncols=columns, loc="outside lower center")


def find_limits(rows: pd.DataFrame) -> tuple[float, float]:
    """Finds the limits of an axis, which holds every estimate, and zero if asked, but may cut a long interval."""
    estimates = [*rows["estimate"].dropna(), *rows["reference"].dropna()]
    if rows["zero"].iloc[0]:
        estimates.append(0.0)
    first, last = min(estimates), max(estimates)
    half = ((rows["high"] - rows["low"]) / 2).fillna(0).median()
    room = max(BEYOND * (last - first), half, 1e-9)
    ends = [first, last, *rows["low"].dropna(), *rows["high"].dropna()]
    low, high = max(min(ends), first - room), min(max(ends), last + room)
    # marks at the end have room; a single value has some, too
    margin = max(MARGIN * (high - low), 1e-3 * abs(high), 1e-9)
    return low - margin, high + margin


def paint_intervals(axes: Axes, rows: pd.DataFrame, alike: pd.DataFrame) -> None:
    """Paints labelled rows from the top, with the marks of a row below each other."""
    limits = find_limits(alike)
    # marks with texts need a height each; all rows of a panel have equal distances
    kinds = rows.groupby(["mark", "text"], sort=False).ngroup()
    heights = kinds.groupby(rows["row"]).transform(lambda found: pd.factorize(found)[0])
    pitch = 0.9 / (heights.max() + 1)
    for place, (_, of_row) in enumerate(rows.groupby("row", sort=False)):
        middle = heights[of_row.index].max() / 2
        for row in of_row.itertuples():
            paint_mark(axes, row, place + pitch * (heights[row.Index] - middle), limits)
    # samples for the legend
    for row in rows.drop_duplicates("mark").itertuples():
        axes.plot([], [], linestyle="none", label=row.mark, **find_mark(row.source, REFERENCE, row.size_rank))
    if rows["zero"].iloc[0]:
        axes.axvline(0, color=INK, linewidth=0.8)
    for label, place in rows.groupby("reference_label")["reference"].first().items():
        axes.axvline(place, label=label, **REFERENCE_LINE)
    label_rows(axes, rows)
    axes.set_xlim(*limits)


def paint_mark(axes: Axes, row, height: float, limits: tuple[float, float]) -> None:
    """Paints a mark with its interval and text; an arrow continues an interval beyond the limits."""
    look = find_mark(row.source, row.operator, row.size_rank)
    low, high = limits
    across, marked = [row.estimate], [0]
    if not np.isnan(row.low):
        across, marked = [max(row.low, low), row.estimate, min(row.high, high)], [1]
    # the identifier connects the mark with the hover text
    identity = {"gid": f"mark{row.Index}", "markevery": marked, "linewidth": 1.4, "clip_on": False}
    axes.plot(across, [height] * len(across), **identity, **look)
    for beyond, place, shape in ((row.low < low, low, "<"), (row.high > high, high, ">")):
        if beyond:
            axes.plot(place, height, shape, color=look["color"], markersize=4, clip_on=False)
    if row.text:
        write_beside(axes, height, row.text, color=look["color"], fontweight=row.weight)


def paint_curves(axes: Axes, rows: pd.DataFrame, alike: pd.DataFrame) -> None:
    """Paints a line and a band for every operator; numbers that a paper prints are hollow marks without a line."""
    for (source, operator), curve in rows.groupby(["source", "operator"], sort=False):
        colour, stroke = find_style(operator)
        look = {"color": colour, "label": curve["row"].iloc[0], "clip_on": False}
        if source == "published":
            axes.plot(curve["x"], curve["estimate"], "o", markersize=4, markerfacecolor="none", **look)
            continue
        if (curve["high"] > curve["low"]).any():
            axes.fill_between(curve["x"], curve["low"], curve["high"], color=colour, alpha=0.18, linewidth=0)
        axes.plot(curve["x"], curve["estimate"], linestyle=stroke, linewidth=1.4, **look)
    for label, height in rows.groupby("reference_label")["reference"].first().items():
        axes.axhline(height, label=label, **REFERENCE_LINE)
    values = alike[["estimate", "low", "high", "reference"]].astype(float).stack()
    margin = MARGIN * (values.max() - values.min())
    axes.set_ylim(values.min() - margin, values.max() + margin)
    axes.set_ylabel(rows["unit"].iloc[0])
    axes.set_xlabel(rows["across"].iloc[0])
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def paint_bars(axes: Axes, rows: pd.DataFrame, alike: pd.DataFrame) -> None:
    """Paints a bar for every label; the bars of a label follow each other, with numbers inside if there is room."""
    totals = alike.groupby(["panel", "row"])["estimate"].sum()
    for place, (_, of_row) in enumerate(rows.groupby("row", sort=False)):
        starts = of_row["estimate"].cumsum() - of_row["estimate"]
        for row, start in zip(of_row.itertuples(), starts, strict=True):
            look = {"color": row.colour, "edgecolor": PAPER, "alpha": row.alpha, "label": row.mark}
            drawn = axes.barh(place, row.estimate, 0.7, start, **look)
            if len(of_row) == 1:
                axes.bar_label(drawn, [row.text], padding=3, fontsize=SMALL)
            elif row.estimate > THIN * totals.max():
                colour = INK if row.alpha < FAINT else PAPER
                axes.bar_label(drawn, [row.text], label_type="center", fontsize=SMALL, color=colour)
    label_rows(axes, rows)
    axes.set_xlim(min(1.15 * totals.min(), 0), 1.15 * max(totals.max(), 0))


def paint_heat(axes: Axes, rows: pd.DataFrame, _: pd.DataFrame) -> None:
    """Paints a matrix of per cent, whose fields are the darker, the higher the number."""
    matrix = rows.pivot_table("estimate", "row", "x", sort=False)
    opacity = ((matrix - LOW) / (HIGH - LOW)).clip(0, 1).fillna(0)
    axes.pcolormesh(matrix, cmap=ListedColormap([HEAT]), alpha=opacity.to_numpy())
    for (y, place), value in np.ndenumerate(matrix.to_numpy()):
        if not np.isnan(value):
            axes.text(place + 0.5, y + 0.5, f"{value:.1f}", ha="center", va="center", fontsize=SMALL)
    axes.invert_yaxis()
    axes.set_xticks(np.arange(len(matrix.columns)) + 0.5, matrix.columns)
    axes.set_yticks(np.arange(len(matrix.index)) + 0.5, matrix.index)
    axes.set_xlabel(rows["across"].iloc[0])
    axes.set_ylabel(rows["unit"].iloc[0])
    axes.grid(visible=False)


def label_rows(axes: Axes, rows: pd.DataFrame) -> None:
    """Labels rows from the top, at the heights 0, 1, ..., with lines between the rows, and the horizontal axis."""
    labels = ["\n".join(textwrap.wrap(label, LABEL)) for label in rows["row"].unique()]
    axes.set_yticks(range(len(labels)), labels, linespacing=1)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    for place in range(1, len(labels)):
        axes.axhline(place - 0.5, color=GRID, linewidth=0.6, clip_on=False)
    axes.set_xlabel(rows["unit"].iloc[0])
    axes.grid(visible=True, axis="x", linewidth=0.6)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))


PAINTERS = {
    "interval": paint_intervals,
    "curve": paint_curves,
    "bar": paint_bars,
    "heat": paint_heat,
}
