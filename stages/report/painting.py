"""Paints the panels of a figure with matplotlib: intervals, curves, bars or a heat map.

Rows have `panel` (the title), `row` (the label of a line of the panel), `mark` (the name in the legend), source,
operator, colour and alpha (of bars), `estimate`, `low` and `high` (the ends of an interval or band, or NaN), `zero`
(whether the axis of intervals holds zero), `reference` (the place of a dashed line `reference_label`, or NaN), `text`
(beside a mark or on a bar), `words` (on hover), `x` (of curves and heat maps), `xlabel` and `ylabel`. figures.py adds
the columns.
"""

import textwrap

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from stages.report.looks import GREY, GRID, HEAT, INK, PAPER, SETTINGS, find_mark, find_style
from stages.report.svg import save_figure
from stages.schema.settings import REFERENCE

# inches: the width of a panel, and the height of its title and axis
WIDTH = 2.9
FRAME = 0.7
# letters in an inch
INCH = 9
# the size of small texts in points
SMALL = 8


@mpl.rc_context(SETTINGS)
def render_panels(kind: str, rows: pd.DataFrame, across: int, share: bool) -> dict[str, bytes]:
    """Paints a panel for every title in `panel`, at most `across` side by side; returns the bytes by format.

    `kind` is a key of PAINTERS, and the index of `rows` counts from 0. With `share`, all panels have equal axes.
    """
    panels = list(rows.groupby("panel", sort=False))
    columns = min(across, len(panels))
    heights = [find_height(kind, of_panel) for _, of_panel in panels]
    # panels side by side are equally high
    row_heights = [max(heights[start : start + columns]) for start in range(0, len(heights), columns)]
    width = WIDTH * max(columns, 2)
    # texts need room beside the marks; a single column of such panels is made for narrow screens
    if kind == "interval" and rows["text"].any():
        width = max((WIDTH + 0.6) * columns, 4.5)
    figure = Figure(figsize=(width, sum(row_heights)))
    grid = figure.subplots(
        len(row_heights),
        columns,
        squeeze=False,
        height_ratios=row_heights,
        sharex=share,
        sharey=share and kind == "curve",
    )
    free = iter(grid.flat)
    for (title, of_panel), axes in zip(panels, free, strict=False):
        letters = int(INCH * width / columns)
        axes.set_title(textwrap.fill(title, letters, break_on_hyphens=False))
        axes.set(**of_panel.iloc[0][["xlabel", "ylabel"]])
        PAINTERS[kind](axes, of_panel)
        # with shared axes, matplotlib hides the numbers of panels above others
        axes.tick_params(labelbottom=True)
    # axes that no panel took, at the end of the last row
    for axes in free:
        axes.set_axis_off()
    add_legend(figure)
    return save_figure(figure, rows["words"])


def find_height(kind: str, rows: pd.DataFrame) -> float:
    """Finds the height of a panel in inches, which follows from the number of its rows and marks."""
    if kind == "curve":
        return FRAME + 1.3
    # bars and heat maps
    if kind != "interval":
        return FRAME + 0.2 * rows["row"].nunique()
    # marks by row; all rows are as high as the row with the most marks
    marks = rows[["row", "mark", "text"]].drop_duplicates().groupby("row").size()
    return FRAME + len(marks) * (0.1 + 0.13 * marks.max())


def add_legend(figure: Figure) -> None:
    """Adds a legend below the panels, which makes the figure higher when it is saved."""
    handles = {}
    for axes in figure.axes:
        drawn, labels = axes.get_legend_handles_labels()
        handles.update(zip(labels, drawn, strict=True))
    if not handles:
        return
    # a sample takes as much room as four letters
    letters = 4 + max(map(len, handles))
    columns = int(1.5 * INCH * figure.get_figwidth() / letters)
    figure.legend(
        handles.values(),
        handles.keys(),
        ncols=max(columns, 1),
        bbox_to_anchor=(0.5, 0),
    )


def paint_intervals(axes: Axes, rows: pd.DataFrame) -> None:
    """Paints labelled rows from the top, with the marks of a row below each other."""
    # number the distinct marks of each row: 0, 1, ...
    marks = (rows["mark"] + rows["text"]).groupby(rows["row"])
    numbers = marks.transform(number_texts)
    # spread the marks around the height of the row, at the same distance in all rows
    middles = numbers.groupby(rows["row"]).transform("max") / 2
    distance = 0.9 / (numbers.max() + 1)
    heights = number_texts(rows["row"]) + distance * (numbers - middles)
    for row, height in zip(rows.itertuples(), heights, strict=True):
        look = find_mark(row.source, row.operator)
        axes.plot(
            [row.low, row.estimate, row.high],
            [height, height, height],
            markevery=[1],
            clip_on=False,
            # the identifier connects the mark with the hover text
            gid=f"mark{row.Index}",
            **look,
        )
        axes.annotate(
            row.text,
            (1, height),
            (5, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            verticalalignment="center",
            fontsize=SMALL,
            # colours of operators are too bright for small texts
            color=GREY if look["color"] == GREY else INK,
        )
    # plots without a point, for the legend
    for mark, source in rows.groupby("mark", sort=False)["source"].first().items():
        axes.plot([], [], linestyle="none", label=mark, **find_mark(source, REFERENCE))
    if rows["zero"].iloc[0]:
        axes.axvline(0, color=INK, linewidth=0.8)
    label_rows(axes, rows)


def paint_curves(axes: Axes, rows: pd.DataFrame) -> None:
    """Paints a line and a band for every operator; numbers that a paper prints are hollow marks without a line."""
    for (source, operator), curve in rows.groupby(["source", "operator"], sort=False):
        colour, stroke = find_style(operator)
        # a single evaluation is no line
        marker = "o" if len(curve) == 1 else ""
        marks = {"linestyle": stroke, "marker": marker}
        if source == "published":
            marks = {"linestyle": "none", "marker": "o", "markersize": 4, "markerfacecolor": "none"}
        # a single run has no band
        if (curve["high"] > curve["low"]).any():
            axes.fill_between(curve["x"], curve["low"], curve["high"], color=colour, alpha=0.18, linewidth=0)
        axes.plot(
            curve["x"],
            curve["estimate"],
            color=colour,
            label=curve["row"].iloc[0],
            clip_on=False,
            **marks,
        )
    label = rows["reference_label"].iloc[0]
    for height in rows["reference"].dropna().unique():
        axes.axhline(height, label=label, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    set_ticks(axes, MaxNLocator(4, integer=True))


def paint_bars(axes: Axes, rows: pd.DataFrame) -> None:
    """Paints a bar with its number for every row; several bars of a row follow each other, with the numbers inside."""
    # a bar starts where the bar before it in the row ends
    starts = rows.groupby("row")["estimate"].cumsum() - rows["estimate"]
    stacked = rows["row"].duplicated().any()
    for row, start, y in zip(rows.itertuples(), starts, number_texts(rows["row"]), strict=True):
        drawn = axes.barh(
            y,
            row.estimate,
            height=0.7,
            left=start,
            color=row.colour,
            edgecolor=PAPER,
            alpha=row.alpha,
            label=row.mark,
        )
        axes.bar_label(
            drawn,
            [row.text],
            label_type="center" if stacked else "edge",
            padding=0 if stacked else 3,
            fontsize=SMALL,
            # dark numbers on faint bars
            color=PAPER if stacked and row.alpha > 0.65 else INK,
        )
    label_rows(axes, rows)


def paint_heat(axes: Axes, rows: pd.DataFrame) -> None:
    """Paints a matrix of per cent, whose fields are the darker, the higher the number."""
    matrix = rows.pivot_table("estimate", "row", "x", sort=False)
    # 50 % has no colour, and 100 % half the opacity, because no number would be readable on the full colour
    opacity = ((matrix - 50) / 100).clip(0, 1).fillna(0)
    axes.pcolormesh(matrix, cmap=ListedColormap([HEAT]), alpha=opacity.to_numpy())
    for (y, x), value in np.ndenumerate(matrix.to_numpy()):
        if not np.isnan(value):
            axes.text(
                x + 0.5,
                y + 0.5,
                f"{value:.1f}",
                horizontalalignment="center",
                verticalalignment="center",
                fontsize=SMALL,
            )
    axes.invert_yaxis()
    axes.set_xticks(np.arange(len(matrix.columns)) + 0.5, matrix.columns)
    axes.set_yticks(np.arange(len(matrix.index)) + 0.5, matrix.index)
    axes.grid(visible=False)


def number_texts(texts: pd.Series) -> np.ndarray:
    """Numbers equal texts equally, in the order of appearance: `b`, `a`, `b` give 0, 1, 0."""
    numbers, _ = pd.factorize(texts)
    return numbers


def label_rows(axes: Axes, rows: pd.DataFrame) -> None:
    """Labels rows from the top, at the heights 0, 1, ..., with lines between the rows, and the horizontal axis."""
    # at most 26 letters in a line
    labels = [textwrap.fill(label, 26) for label in rows["row"].unique()]
    heights = range(len(labels))
    axes.set_yticks(heights, labels, linespacing=1)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    for height in heights:
        axes.axhline(height - 0.5, color=GRID, linewidth=0.6, clip_on=False)
    set_ticks(axes, MaxNLocator(4))


def set_ticks(axes: Axes, locator: MaxNLocator) -> None:
    """Sets the ticks of the horizontal axis, with numbers such as 1,000."""
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter("{x:,.10g}")


PAINTERS = {
    "interval": paint_intervals,
    "curve": paint_curves,
    "bar": paint_bars,
    "heat": paint_heat,
}
