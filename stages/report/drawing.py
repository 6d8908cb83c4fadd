"""The parts that every figure shares: panels as SVG and PDF, of equal bytes for equal numbers, and colours."""

import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import ClassVar

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stages.files.storage import temporary_sibling, write_atomically
from stages.report import names
from stages.report.tables import Shown, csv_of
from stages.report.text_templates import describe_panel
from stages.schema.operators import described

SETTINGS = mpl.rc_params_from_file(Path(__file__).with_name("figures.mplstyle"), use_default_template=False)
INK = SETTINGS["text.color"]
GRID = SETTINGS["grid.color"]
# of heat maps, in which the opacity stands for the number
HEAT = "#3d5a98"
# colours that colour-blind readers can tell apart (Okabe and Ito), with strokes that differ in print
STYLES = {name: operator.look for name, operator in described().items() if operator.look}
# strokes of operators without a look, all grey
OTHERS = ("solid", "dashed", "dashdot", (0, (1, 1)))
GREY = "#767676"
# inches per panel; panels per row, which fill a printed line of 170 mm
WIDTH, HEIGHT, ROW = 3.3, 2.7, 2
# names in a row of the legend, at most
NAMES = 6
# coordinates of an SVG's paths, and digits beyond the hundredth of a point
COORDINATES = re.compile(rb' d="[^"]*"')
DIGITS = re.compile(rb"(\.\d\d)\d+")
# the stroke of reference lines, and the label of the score of a constant answer
DASHED = (0, (4, 3))
CONSTANT = "constant answer"

# title and rows of every panel, and a function that draws the rows of one panel
Groups = list[tuple[str, pd.DataFrame]]
Painter = Callable[[Axes, pd.DataFrame], None]


@dataclass(frozen=True, kw_only=True)
class Drawing(Shown):
    """A figure.

    Args:
        alternative: the figure in words.
        files: by format, svg and pdf; none without panels.
    """

    alternative: str
    files: dict[str, bytes]
    kind: ClassVar[str] = "figure"

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self.files


def style(operator: str) -> tuple:
    """Returns colour and stroke of an operator, the same in every figure."""
    if operator in STYLES:
        return STYLES[operator]
    # a checksum, because `hash` differs between processes
    return GREY, OTHERS[zlib.crc32(operator.encode()) % len(OTHERS)]


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
    """Draws a figure with a panel for each group of rows.

    Args:
        name: the name of the files.
        title: the caption.
        stage: the stage of the pipeline that computes the numbers.
        groups: the panels; without panels the figure is empty.
        painter: draws a panel.
        kind: the template in `alternatives` of sentences.yaml that describes a panel.
        size: width and height of a panel, in inches.
        csv: the numbers drawn.
        more: further fields of Drawing.
    """
    files = render_panels(groups, painter, *size) if groups else {}
    sentences = []
    for label, rows in groups:
        start = f"{label}: " if label else ""
        sentences.append(f"{start}{describe_panel(kind, rows)}.")
    return Drawing(name=name, title=title, stage=stage, alternative=" ".join(sentences), files=files, csv=csv, **more)


@mpl.rc_context(SETTINGS)
def render_panels(groups: Groups, draw: Painter, width: float, height: float) -> dict[str, bytes]:
    """Draws a panel per group, at most ROW side by side, and one legend below.

    Args:
        groups: the panels.
        draw: draws a panel.
        width: of a panel, in inches.
        height: of a panel, in inches.

    Returns:
        The figure by format, svg and pdf.
    """
    columns = min(ROW, len(groups))
    # rounded up
    rows = -(-len(groups) // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    places = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, (title, frame) in zip(places, groups, strict=False):
        # names of operators may be long
        axes.set_title(title, loc="left", wrap=True)
        axes.grid(axis="y", linewidth=0.6)
        axes.set_axisbelow(True)
        draw(axes, frame)
    # the last row may have places without a panel
    for axes in places[len(groups) :]:
        axes.set_axis_off()
    add_legend(figure, 2 * columns)
    return {"svg": _save(figure, "svg"), "pdf": _save(figure, "pdf")}


def add_legend(figure: Figure, most: int) -> None:
    """Adds a legend below the panels, in the longest rows that fit; the figure grows by the height of the legend.

    Args:
        figure: a figure with panels.
        most: names in a row.
    """
    handles = {}
    for axes in figure.axes:
        drawn, labels = axes.get_legend_handles_labels()
        handles.update(zip(labels, drawn, strict=True))
    if not handles:
        return
    for number in range(min(len(handles), NAMES, most), 0, -1):
        legend = figure.legend(handles.values(), handles.keys(), ncols=number, loc="outside lower center")
        extent = legend.get_window_extent()
        if extent.width <= figure.bbox.width or number == 1:
            break
        legend.remove()
    # the panels keep their height
    figure.set_figheight(figure.get_figheight() + extent.height / figure.dpi)


def _save(figure: Figure, form: str) -> bytes:
    """Saves a figure as `svg` or `pdf`, without a date and with few digits in paths."""
    buffer = BytesIO()
    date = {"svg": "Date", "pdf": "CreationDate"}[form]
    figure.savefig(buffer, format=form, metadata={date: None})
    return COORDINATES.sub(_shorten_digits, buffer.getvalue())


def _shorten_digits(path: re.Match) -> bytes:
    """Cuts the coordinates of a path after the hundredth of a point: `1.23456` is `1.23`."""
    return DIGITS.sub(rb"\1", path[0])


def write_figures(folder: Path, drawings: Iterable[Drawing]) -> None:
    """Writes the numbers and the files of all figures into a folder, which is replaced as a whole."""
    with temporary_sibling(folder) as new:
        # also without any figure
        new.mkdir()
        for drawing in drawings:
            write_atomically(new / f"{drawing.name}.csv", csv_of(drawing.csv))
            for form, content in drawing.files.items():
                write_atomically(new / f"{drawing.name}.{form}", content)


def curve(
    axes: Axes, rows: pd.DataFrame, operator: str, across: str = "step", stroked: tuple | None = None, **look
) -> None:
    """Draws the mean over an operator's runs as a line, and a band between the extremes of several runs.

    Args:
        axes: the panel.
        rows: mean, minimum, maximum and n (the number of runs), in increasing order of `across`.
        operator: the operator, whose colour, stroke and name the line has.
        across: the column of the horizontal axis.
        stroked: colour and stroke, if not the operator's.
        look: further properties of the line.
    """
    colour, stroke = stroked or style(operator)
    if (rows["n"] > 1).any():
        axes.fill_between(rows[across], rows["minimum"], rows["maximum"], color=colour, alpha=0.18, linewidth=0)
    name = names.operator(operator)
    axes.plot(rows[across], rows["mean"], color=colour, linestyle=stroke, linewidth=1.4, label=name, **look)


def steps_axis(axes: Axes) -> None:
    """Labels the horizontal axis as training steps, with few ticks and thousands separated."""
    axes.set_xlabel("training step")
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(4))
    axes.xaxis.set_major_formatter(mpl.ticker.StrMethodFormatter("{x:,.0f}"))
