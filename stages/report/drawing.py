"""The parts that every figure shares: panels side by side, limits of axes, curves, and the axis of steps."""

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stages.files.storage import make_temporary_sibling, write_atomically
from stages.report import names
from stages.report.figure_files import save_figure
from stages.report.line_names import name_lines
from stages.report.looks import GRID, INK, SETTINGS, find_style
from stages.report.tables import Shown, write_csv
from stages.report.text_templates import describe_panel

# inches per panel, which stay legible on a page of 500 pixels; panels per row
WIDTH, HEIGHT, ROW = 2.9, 2.2, 2
# the width of a panel that fills the row
FULL = ROW * WIDTH
# letters of a title in an inch
TITLE = 9
# letters in a line of the label of a row
ROW_LETTERS = 22
# the stroke of reference lines, and the label of the score of a constant answer
DASHED = (0, (4, 3))
CONSTANT = "constant answer"

# title and rows of every panel, and a function that draws the rows of one panel
Groups = list[tuple[str, pd.DataFrame]]
Painter = Callable[[Axes, pd.DataFrame], None]


@dataclass(frozen=True, kw_only=True)
class Drawing(Shown):
    """A figure: `alternative` is the figure in words, and `files` has the bytes by format, empty without panels."""

    alternative: str
    files: dict[str, bytes]
    kind: ClassVar[str] = "figure"

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self.files


def draw_figure(
    name: str,
    title: str,
    stage: str,
    groups: Groups,
    painter: Painter,
    kind: str,
    size: tuple[float, float],
    csv: pd.DataFrame,
    **more,
) -> Drawing:
    """Draws a figure with a panel, drawn by `painter`, for each (title, rows) of `groups`; without groups it is empty.

    `size` of a panel is in inches, and the template `kind` in `alternatives` of sentences.yaml describes a panel in
    words. `more` has further fields of Drawing.
    """
    files = render_panels(groups, painter, *size) if groups else {}
    sentences = []
    for label, rows in groups:
        start = f"{label}: " if label else ""
        sentences.append(f"{start}{describe_panel(kind, rows)}.")
    return Drawing(name=name, title=title, stage=stage, alternative=" ".join(sentences), files=files, csv=csv, **more)


@mpl.rc_context(SETTINGS)
def render_panels(groups: Groups, draw: Painter, width: float, height: float) -> dict[str, bytes]:
    """Draws panels of one size (inches), as many side by side as fit; returns the bytes by format, svg and pdf."""
    columns = min(ROW, len(groups), round(FULL / width))
    # rounded up
    rows = -(-len(groups) // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    places = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, (title, frame) in zip(places, groups, strict=False):
        # names of operators may be long
        axes.set_title("\n".join(textwrap.wrap(title, int(TITLE * width), break_on_hyphens=False)), loc="left")
        axes.grid(axis="y", linewidth=0.6)
        axes.set_axisbelow(True)
        draw(axes, frame)
    # the last row may have places without a panel
    for axes in places[len(groups) :]:
        axes.set_axis_off()
    name_lines(figure)
    return save_figure(figure)


def find_limits(values: Iterable[float], margin: float = 0.05) -> tuple[float, float]:
    """Finds the limits of an axis that all panels share; margin: a share of the range, on both sides."""
    known = pd.Series(list(values), dtype=float).dropna()
    room = margin * (known.max() - known.min())
    return float(known.min() - room), float(known.max() + room)


def draw_reference(axes: Axes, height: float, label: str) -> None:
    """Draws a dashed horizontal line, which is named like a curve."""
    axes.axhline(height, color=INK, linewidth=0.8, linestyle=DASHED, label=label)


def write_figures(folder: Path, drawings: Iterable[Drawing]) -> None:
    """Writes numbers and files of all figures into a folder, which is replaced."""
    with make_temporary_sibling(folder) as new:
        # also without any figure
        new.mkdir()
        for drawing in drawings:
            write_atomically(new / f"{drawing.name}.csv", write_csv(drawing.csv))
            for form, content in drawing.files.items():
                write_atomically(new / f"{drawing.name}.{form}", content)


def draw_curve(axes: Axes, rows: pd.DataFrame, operator: str, across: str = "step", **look) -> None:
    """Draws the mean over an operator's runs as a line, and a band between the extremes of several runs."""
    colour, stroke = find_style(operator)
    if (rows["n"] > 1).any():
        axes.fill_between(rows[across], rows["minimum"], rows["maximum"], color=colour, alpha=0.18, linewidth=0)
    name = names.name_operator(operator)
    axes.plot(rows[across], rows["mean"], color=colour, linestyle=stroke, linewidth=1.4, label=name, **look)


def label_steps_axis(axes: Axes) -> None:
    """Labels the horizontal axis as training steps."""
    axes.set_xlabel("training step")
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(3))
    axes.xaxis.set_major_formatter(mpl.ticker.StrMethodFormatter("{x:,.0f}"))


def label_rows(axes: Axes, labels: list[str]) -> None:
    """Labels the rows of a panel, from the top, at the heights 0, 1, ..."""
    wrapped = ["\n".join(textwrap.wrap(label, ROW_LETTERS)) for label in labels]
    axes.set_yticks(range(len(labels)), wrapped, linespacing=1)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def separate_rows(axes: Axes, rows: int) -> None:
    """Draws lines between the rows of a panel."""
    for place in range(1, rows):
        axes.axhline(place - 0.5, color=GRID, linewidth=0.6, clip_on=False)
