"""Names the lines of a figure: at their ends where few lines are drawn, otherwise in a legend below the panels."""

import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

# four operators and a reference line, at most, are named at their ends
MOST = 5
# letters in a line of a name, and the distance of two such lines, the size of the font, and the
# distance from the end of the curve, in points
LETTERS = 16
LEADING = 9.5
SMALL = 8
GAP = 5
# attempts to push names apart
ROUNDS = 200


def name_lines(figure: Figure) -> None:
    """Names the lines of all panels in the same way; a line without a label stays without a name."""
    handles = []
    for axes in figure.axes:
        of_panel = axes.get_legend_handles_labels()[0]
        handles += of_panel
        if len(of_panel) > MOST:
            add_legend(figure)
            return
    # bars and the samples of marks have no end
    if all(isinstance(handle, Line2D) and len(handle.get_xydata()) for handle in handles):
        # places are known after the layout only
        figure.draw_without_rendering()
        for axes in figure.axes:
            name_ends(axes)
    else:
        add_legend(figure)


def name_ends(axes: Axes) -> None:
    """Writes the name of every line right of the panel, at the line's end and in its colour, moved apart if needed."""
    points = 72 / axes.figure.dpi
    ends = []
    for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
        name = "\n".join(textwrap.wrap(label, LETTERS, break_on_hyphens=False))
        end = line.get_transform().transform(line.get_xydata()[-1])
        ends.append((points * end[1], name, line.get_color()))
    # from the top
    ends.sort(key=lambda entry: -entry[0])
    heights = [entry[0] for entry in ends]
    moved = push_apart(heights, [LEADING * (1 + entry[1].count("\n")) for entry in ends])
    # the lower right corner of the panel
    bottom = points * axes.bbox.y0
    for (_, name, colour), place in zip(ends, moved, strict=True):
        axes.annotate(
            name,
            (1, 0),
            (GAP, place - bottom),
            xycoords="axes fraction",
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=SMALL,
            linespacing=1,
        )


def push_apart(heights: list[float], needed: list[float]) -> list[float]:
    """Moves names (middle and height of each, from the top) apart: [10, 9] of height 4 gives [11.5, 7.5]."""
    moved = list(heights)
    for _ in range(ROUNDS):
        for upper in range(len(moved) - 1):
            distance = (needed[upper] + needed[upper + 1]) / 2
            lack = distance - (moved[upper] - moved[upper + 1])
            if lack > 0:
                moved[upper] += lack / 2
                moved[upper + 1] -= lack / 2
    return moved


def add_legend(figure: Figure) -> None:
    """Adds a legend below the panels, in the fewest rows that fit; the figure grows by the height of the legend."""
    handles = {}
    for axes in figure.axes:
        drawn, labels = axes.get_legend_handles_labels()
        handles.update(zip(labels, drawn, strict=True))
    if not handles:
        return
    for rows in range(1, len(handles) + 1):
        # rounded up, so that all rows are about as long
        columns = -(-len(handles) // rows)
        legend = figure.legend(handles.values(), handles.keys(), ncols=columns, loc="outside lower center")
        extent = legend.get_window_extent()
        if extent.width <= figure.bbox.width or columns == 1:
            break
        legend.remove()
    # the panels keep their height
    figure.set_figheight(figure.get_figheight() + extent.height / figure.dpi)
