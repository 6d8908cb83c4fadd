"""What every figure shares: panels as SVG and PDF, of equal bytes for equal numbers; colours; SVG for a page.

Inside a page the colours are CSS variables, so that a figure is legible in light and dark schemes; text stays text.
"""

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
from stages.schema.operators import described

SETTINGS = mpl.rc_params_from_file(Path(__file__).with_name("figures.mplstyle"), use_default_template=False)
INK, GRID = SETTINGS["text.color"], SETTINGS["grid.color"]
HEAT = "#3d5a98"  # of heat maps, whose values are its opacity
# colour-blind safe (Okabe and Ito), and told apart in print by their strokes
STYLES = {name: operator.look for name, operator in described().items() if operator.look}
OTHERS = tuple(("#767676", stroke) for stroke in ("solid", "dashed", "dashdot", (0, (1, 1))))  # of further operators
WIDTH, HEIGHT, ROW = 3.3, 2.7, 2  # inches per panel; panels per row, which fill a printed line of 170 mm
NAMES = 6  # in a row of the legend, at most
COORDINATES = re.compile(rb' d="[^"]*"')  # of an SVG's paths
DIGITS = re.compile(rb"(\.\d\d)\d+")  # more digits than the hundredth of a point has
DASHED, CONSTANT = (0, (4, 3)), "constant answer"  # a stroke, and the label of the line with a constant answer's score


@dataclass(frozen=True, kw_only=True)
class Drawing(Shown):
    """A figure. alternative: in words. files: by format (svg, pdf). pieces: each panel as SVG, and any legend last."""

    alternative: str
    files: dict[str, bytes]
    pieces: tuple[bytes, ...]
    kind: ClassVar[str] = "figure"

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self.pieces


def style(operator: str) -> tuple:
    """Returns colour and stroke of an operator, the same in every figure; one without a look gets one of OTHERS."""
    return STYLES.get(operator) or OTHERS[zlib.crc32(operator.encode()) % len(OTHERS)]  # as `hash` varies by process


@mpl.rc_context(SETTINGS)
def panels(
    groups: list[tuple[str, pd.DataFrame]], draw: Callable[[Axes, pd.DataFrame], None], width: float, height: float
) -> dict:
    """Draws a panel per group, and one legend; returns `files` (of all panels together) and `pieces` of a Drawing.

    Args:
        groups, draw: as for `drawing`.
        width, height: of a panel, in inches.
    """
    whole, handles = _figure(groups, draw, width, height)
    _add_legend(whole, handles, min(ROW, len(groups)))
    drawn = [_saved(_figure([group], draw, width, height)[0], "svg") for group in groups]
    if handles:
        legend = Figure()
        _add_legend(legend, handles, ROW)
        drawn.append(_saved(legend, "svg", bbox_inches="tight"))  # with empty sides a page would shrink it
    return {"files": {form: _saved(whole, form) for form in ("svg", "pdf")}, "pieces": tuple(drawn)}


def drawing(
    name: str,
    title: str,
    stage: str,
    groups: list[tuple[str, pd.DataFrame]],
    draw: Callable[[Axes, pd.DataFrame], None],
    describe: Callable[[pd.DataFrame], str],
    size: tuple[float, float],
    csv: pd.DataFrame,
    **more,
) -> Drawing:
    """Draws a figure with a panel for each group of rows.

    Args:
        name, title: the name of its files, and the title of the figure.
        stage: the stage of the pipeline whose numbers it shows.
        groups: (title, rows) of each panel; without any, the figure is empty.
        draw: draws the rows of a panel into its axes.
        describe: says in words, without a full stop, what a panel of these rows shows.
        size: width and height of a panel, in inches.
        csv, more: the numbers drawn, and further fields of Drawing.
    """
    drawn = panels(groups, draw, *size) if groups else {"files": {}, "pieces": ()}
    words = " ".join(f"{label + ': ' if label else ''}{describe(rows)}." for label, rows in groups)
    return Drawing(name=name, title=title, stage=stage, alternative=words, csv=csv, **drawn, **more)


def write(folder: Path, drawings: Iterable[Drawing]) -> None:
    """Writes the numbers and the files of all figures into a folder, which is replaced as a whole."""
    with temporary_sibling(folder) as new:
        new.mkdir()  # also where there is no figure
        for drawing in drawings:
            write_atomically(new / f"{drawing.name}.csv", csv_of(drawing.csv))
            for form, content in drawing.files.items():
                write_atomically(new / f"{drawing.name}.{form}", content)


def curve(
    axes: Axes, rows: pd.DataFrame, operator: str, across: str = "step", stroked: tuple | None = None, **look
) -> None:
    """Draws the mean over an operator's runs as a line, and where there are several, a band between their extremes.

    Args:
        axes, operator: where the line is drawn, and whose colour, stroke and name it has.
        rows: mean, minimum, maximum and n (the number of runs), in increasing order of `across`.
        across, look: the column of the horizontal axis, and further properties of the line.
        stroked: colour and stroke. None: those of the operator.
    """
    colour, stroke = stroked or style(operator)
    if (rows["n"] > 1).any():
        axes.fill_between(rows[across], rows["minimum"], rows["maximum"], color=colour, alpha=0.18, linewidth=0)
    name = names.operator(operator)
    axes.plot(rows[across], rows["mean"], color=colour, linestyle=stroke, linewidth=1.4, label=name, **look)


def _figure(
    groups: list[tuple[str, pd.DataFrame]], draw: Callable[[Axes, pd.DataFrame], None], width: float, height: float
) -> tuple[Figure, dict]:
    """Draws the panels, at most ROW side by side, without a legend; returns the figure, and label -> handle for one."""
    columns = min(ROW, len(groups))
    rows = -(-len(groups) // columns)  # rounded up
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).flat
    for axes, (title, frame) in zip(grid, groups, strict=False):
        axes.set_title(title, loc="left", wrap=True)  # names of operators may be long
        axes.grid(axis="y", linewidth=0.6)
        axes.set_axisbelow(True)
        draw(axes, frame)
    for axes in grid[len(groups) :]:  # places of the last row without a panel
        axes.set_axis_off()
    handles = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    return figure, handles


def _add_legend(figure: Figure, handles: dict, columns: int) -> None:
    """Adds a legend below `columns` panels, or alone, in the longest rows that fit; the figure grows by its height."""
    if not handles:
        return
    place = {"loc": "outside lower center"} if figure.axes else {"loc": "center"}
    for number in range(min(len(handles), NAMES, 2 * columns), 0, -1):
        legend = figure.legend(handles.values(), handles.keys(), ncols=number, **place)
        extent = legend.get_window_extent()
        if not figure.axes or extent.width <= figure.bbox.width or number == 1:
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + extent.height / figure.dpi)  # the panels keep theirs


def _saved(figure: Figure, form: str, **cut: str) -> bytes:
    """Returns a figure as `svg` or `pdf`, with no date and few digits in paths: equal bytes for equal numbers."""
    buffer, date = BytesIO(), {"svg": "Date", "pdf": "CreationDate"}[form]  # cut: of `savefig`, which margins to cut
    figure.savefig(buffer, format=form, metadata={date: None}, **cut)  # on white, for dark pages, too
    return COORDINATES.sub(lambda path: DIGITS.sub(rb"\1", path[0]), buffer.getvalue())


def steps_axis(axes: Axes) -> None:
    """Labels the horizontal axis as training steps, with few ticks and thousands separated."""
    axes.set_xlabel("training step")
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(4))
    axes.xaxis.set_major_formatter(mpl.ticker.StrMethodFormatter("{x:,.0f}"))


def inline(svg: bytes, name: str) -> str:
    """Cuts out the SVG element for use inside a page: colours are CSS variables, identifiers begin with `name`."""
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)  # identifiers and references: unique in a page
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', text)[1])
    size = f"--wide: {width:.0f}"  # points on paper; style.css makes of it what fits a screen
    text = re.sub(  # of the attributes only viewBox is kept; the words of the page describe the figure
        r'<svg [^>]*?(viewBox="[^"]*")[^>]*>',
        rf'<svg \1 aria-hidden="true" focusable="false" style="{size}">',
        text,
        count=1,
    )
    text = text.replace("fill: #ffffff", "fill: none")  # a page has a background of its own
    colours = {INK: "currentColor", GRID: "var(--rule)", HEAT: f"var(--heat, {HEAT})"}
    colours |= {colour: f"var(--{operator}, {colour})" for operator, (colour, _) in STYLES.items()}
    for colour, variable in colours.items():  # matplotlib writes `fill: #24292f` or `stroke: #24292f`
        text = re.sub(rf"(: ?){colour}\b", rf"\g<1>{variable}", text)
    return text
