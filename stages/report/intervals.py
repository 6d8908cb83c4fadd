"""Interval plots: a row per operator, in it a mark with its interval for every source, and a line at no difference."""

from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from stages.report.drawing import FULL, ROW, Drawing, Groups, draw_figure, label_rows, separate_rows
from stages.report.figures import SOURCES
from stages.report.looks import INK, PAPER, find_style
from stages.report.text_templates import read_content

# sources with their marks: released results are filled circles, this run hollow circles, own studies diamonds
SHAPES = {"released": "o", "published": "o", "reproduced": "o", "study": "D"}
HOLLOW = ("reproduced",)
# size of the mark of the largest model of a source, and the step to the next smaller, in points
LARGEST, STEP = 6, 2
# beyond the marks, an axis shows this share of their range, or the median half of an interval
BEYOND = 0.6
# inches of a row with one mark, of every further mark, and of title and axis
ROW_HEIGHT, MARK_HEIGHT, FRAME = 0.25, 0.06, 0.75
CSV = ["source", "protocol", "size", "at", "operator", "estimate", "low", "high"]


@dataclass(frozen=True)
class Mark:
    """The mark of a source: shape, as matplotlib names it, size in points, and whether the mark is hollow."""

    shape: str
    size: float
    hollow: bool

    def describe_look(self, colour: str) -> dict:
        """Returns the properties of the mark in a colour."""
        fill = PAPER if self.hollow else colour
        return {"marker": self.shape, "markersize": self.size, "color": colour, "markerfacecolor": fill}


def draw_intervals(
    name: str,
    title: str,
    stage: str,
    groups: Groups,
    *,
    kind: str = "intervals",
    marks: dict[str, Mark] | None = None,
    **more,
) -> Drawing:
    """Draws an interval plot with a panel per (title, rows) of `groups`.

    Rows have operator (the colour), row (the label), mark (the name in the legend), estimate, low and high (NaN: no
    interval), axis (the label), scale (equal scales, equal axes), and other columns of CSV. The kind `intervals` has a
    line at zero; `marks` are by default chosen by source and size.
    """
    nothing = pd.DataFrame(columns=[*CSV, "mark", "scale"])
    everything = pd.concat([rows for _, rows in groups]) if groups else nothing
    chosen = marks or choose_marks(everything)
    limits = {key: find_scale(rows, kind == "intervals") for key, rows in everything.groupby("scale")}

    def paint_panel(axes: Axes, rows: pd.DataFrame) -> None:
        """Draws the rows of a panel, a line at zero for differences, and samples of the marks for the legend."""
        for label in chosen:
            axes.plot([], [], linestyle="none", label=label, **chosen[label].describe_look(INK))
        paint_rows(axes, rows, chosen, limits[rows["scale"].iloc[0]])
        if kind == "intervals":
            axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_xlabel(rows["axis"].iloc[0])

    width = FULL / min(ROW, max(len(groups), 1))
    columns = [column for column in CSV if column in everything]
    note = read_content("sentences")["notes"][kind]
    return draw_figure(
        name,
        title,
        stage,
        groups,
        paint_panel,
        kind,
        (width, find_height(groups)),
        everything[columns],
        notes=(note,) if everything["low"].notna().any() else (),
        **more,
    )


def choose_marks(rows: pd.DataFrame) -> dict[str, Mark]:
    """Chooses the mark of every source and size; in each source, the largest model, the last, has the largest."""
    marks = {}
    for source, of_source in rows.groupby("source", sort=False):
        found = list(dict.fromkeys(of_source["mark"]))
        for number, mark in enumerate(reversed(found)):
            marks[mark] = Mark(SHAPES[source], max(LARGEST - STEP * number, 2.5), source in HOLLOW)
    return marks


def find_height(groups: Groups) -> float:
    """Finds the height of a panel, in inches, in which the fullest panel has room."""
    heights = [FRAME]
    for _, rows in groups:
        counts = rows.groupby("row", sort=False).size()
        heights.append(FRAME + float((ROW_HEIGHT + MARK_HEIGHT * (counts - 1)).sum()))
    return max(heights)


def find_scale(rows: pd.DataFrame, zero: bool) -> tuple[float, float]:
    """Finds the limits of an axis, which holds every estimate, and zero if asked, but may cut a long interval."""
    estimates = [*rows["estimate"], 0.0] if zero else list(rows["estimate"])
    first, last = min(estimates), max(estimates)
    half = ((rows["high"] - rows["low"]) / 2).fillna(0).median()
    room = max(BEYOND * (last - first), half, 1e-9)
    ends = [first, last, *rows["low"].dropna(), *rows["high"].dropna()]
    low, high = max(min(ends), first - room), min(max(ends), last + room)
    # marks at the end have room
    margin = 0.06 * (high - low)
    return low - margin, high + margin


def paint_rows(axes: Axes, rows: pd.DataFrame, marks: dict[str, Mark], limits: tuple[float, float]) -> None:
    """Draws the labelled rows of a panel, from the top, with the marks of each row below each other."""
    labels = list(dict.fromkeys(rows["row"]))
    for place, label in enumerate(labels):
        of_row = rows[rows["row"] == label]
        of_row = of_row.sort_values("mark", key=lambda found: found.map(list(marks).index))
        for number, row in enumerate(of_row.itertuples()):
            shift = 0.7 * ((number + 0.5) / len(of_row) - 0.5)
            paint_interval(axes, place + shift, row, marks[row.mark], limits)
    label_rows(axes, labels)
    separate_rows(axes, len(labels))
    axes.set_xlim(*limits)
    axes.grid(visible=True, axis="x", linewidth=0.6)
    axes.locator_params(axis="x", nbins=5)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))


def paint_interval(axes: Axes, height: float, row, mark: Mark, limits: tuple[float, float]) -> None:
    """Draws a mark with its interval, if any; an arrow at the edge continues an interval beyond the limits."""
    colour, _ = find_style(row.operator)
    if pd.notna(row.low):
        low, high = limits
        inside = [max(row.low, low), min(row.high, high)]
        axes.plot(inside, [height, height], color=colour, linewidth=1.4, clip_on=False)
        arrow = {"color": colour, "markersize": 4, "clip_on": False}
        if row.low < low:
            axes.plot(low, height, "<", **arrow)
        if row.high > high:
            axes.plot(high, height, ">", **arrow)
    axes.plot(row.estimate, height, linestyle="none", clip_on=False, **mark.describe_look(colour))


def name_marks(rows: pd.DataFrame) -> pd.Series:
    """Names the mark of every row by source and size, as in `released, BERT-base`."""
    return rows["source"].map(SOURCES) + ", BERT-" + rows["size"]
