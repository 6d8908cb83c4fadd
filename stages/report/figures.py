"""The papers' figures and figures like them: curves over training steps, single runs as dots, and bars."""

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes

from stages.evidence import specifications
from stages.evidence.convergence import SHARE
from stages.evidence.fields import select_rows
from stages.report import names
from stages.report.drawing import (
    CONSTANT,
    DASHED,
    FULL,
    HEIGHT,
    ROW,
    Drawing,
    Groups,
    draw_curve,
    draw_figure,
    draw_reference,
    find_limits,
    label_rows,
    label_steps_axis,
    separate_rows,
)
from stages.report.line_names import SMALL
from stages.report.looks import HEAT, INK, PAPER, find_style

# sources, and their names in the title of a panel
SOURCES = {"released": "released", "published": "published", "reproduced": "this run"}
# the columns whose numbers a panel shows, by the kind of figure
SHOWN = {"bars": ["value"], "dots": ["score", "constant"], "curves": ["mean", "minimum", "maximum"]}
# the inset of a panel of losses shows the steps from this share on
LATE = 0.5
# place of the inset, as shares of the panel: left, bottom, width and height
INSET = (0.45, 0.45, 0.53, 0.5)


def draw_specified(figure: specifications.Figure, frame: pd.DataFrame) -> Drawing:
    """Draws a figure that tables.yaml specifies: panels of the papers' results, then of this run, on one scale.

    `frame` has a row per point, dot or bar: source, operator, quantity, size (empty for a panel without title),
    protocol if there are several, and the numbers to draw.
    """
    frame = frame[frame["quantity"] == figure.quantity]
    if figure.operators:
        frame = frame[frame["operator"].isin(figure.operators)]
    groups = split_panels(figure, frame)
    csv = frame
    if groups:
        csv = pd.concat([rows for _, rows in groups])[frame.columns.drop("quantity")]
    measured = [(rows["source"] != "published").any() for _, rows in groups]
    # every panel has the scale of the whole figure
    limits = find_limits(csv[SHOWN[figure.kind]].stack()) if groups else (0.0, 1.0)

    def paint_panel(axes: Axes, rows: pd.DataFrame) -> None:
        """Draws the rows of a panel as bars, dots or curves, with the scale of the whole figure."""
        if figure.kind == "bars":
            draw_bars(axes, rows, csv)
            axes.set_xlabel(figure.axis)
            return
        if figure.kind == "dots":
            draw_dots(axes, rows)
            axes.set_xlim(*limits)
            axes.set_xlabel(figure.axis)
            return
        axes.set_ylim(*limits)
        axes.set_ylabel(figure.axis)
        if figure.quantity == "loss":
            draw_losses(axes, rows)
        else:
            draw_curves(axes, rows)
            draw_goal(axes, rows)

    return draw_figure(
        figure.name,
        figure.title,
        figure.stage,
        groups,
        paint_panel,
        figure.kind,
        _choose_size(figure.kind, groups),
        csv,
        place=f"{figure.source}, {figure.number}" if figure.source else "",
        notes=figure.notes,
        measured=any(measured),
    )


def split_panels(figure: specifications.Figure, frame: pd.DataFrame) -> Groups:
    """Splits the rows into panels: published and released results (`beside`), then sizes and recipes of this run."""
    run = frame.loc[frame["source"] == "reproduced", "size"].drop_duplicates()
    if "protocol" not in frame:
        frame = frame.assign(protocol="")
    groups = []
    for source, size in [*figure.beside, *(("reproduced", size) for size in run)]:
        rows = select_rows(frame, source=source, size=size)
        for protocol, of_recipe in rows.groupby("protocol", sort=False):
            title = f"BERT-{size}, {SOURCES[source]}" if size else ""
            if rows["protocol"].nunique() > 1:
                title += f", {names.name_protocol(protocol)}"
            groups.append((title, of_recipe))
    return groups


def _choose_size(kind: str, groups: Groups) -> tuple[float, float]:
    """Chooses width and height of a panel, in inches: bars and dots need room for every label."""
    width = FULL / min(ROW, max(len(groups), 1))
    if kind == "curves" or not groups:
        return width, HEIGHT
    if kind == "dots":
        operators = max(rows["operator"].nunique() for _, rows in groups)
        return FULL, 0.7 + 0.25 * operators
    bars = max(len(rows) for _, rows in groups)
    return width, 0.75 + 0.23 * bars


def draw_curves(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws a curve per operator; steps increase."""
    for operator, rows in frame.groupby("operator", sort=False):
        draw_curve(axes, rows, operator)
    label_steps_axis(axes)


def draw_losses(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws curves of a loss by step, with an inset of late steps if there is room; two points (a text) are dots."""
    if (frame.groupby("operator").size() == 2).all():
        # a text states beginning and end, and nothing is known between
        for operator, rows in frame.groupby("operator", sort=False):
            colour, _ = find_style(operator)
            axes.plot(rows["step"], rows["mean"], "o", color=colour, label=names.name_operator(operator))
        axes.margins(0.15)
        label_steps_axis(axes)
        return
    draw_curves(axes, frame)
    late = frame[frame["step"] >= LATE * frame["step"].max()]
    if not _has_room(axes, late):
        return
    inset = axes.inset_axes(INSET)
    draw_curves(inset, late)
    inset.set_xlabel("")
    inset.tick_params(labelsize=SMALL)
    inset.xaxis.set_major_locator(mpl.ticker.MaxNLocator(2))


def _has_room(axes: Axes, late: pd.DataFrame) -> bool:
    """Says whether an inset of several late curves would hide no curve of the panel."""
    points = late.groupby("operator").size()
    low, high = axes.get_ylim()
    bottom = low + INSET[1] * (high - low)
    return len(points) > 1 and points.min() > 1 and late["mean"].max() <= bottom


def draw_goal(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws a line at 95 % of the last score of pairwise, if the frame has any."""
    last = frame[frame["operator"] == "pairwise"].nlargest(1, "step")
    for score in last["mean"]:
        draw_reference(axes, SHARE * float(score), f"{SHARE:.0%} of pairwise's last")


def draw_dots(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws runs as dots, a line of dots per pre-training seed, and a bar at the mean over the means of seeds."""
    operators = list(dict.fromkeys(frame["operator"]))
    for place, operator in enumerate(operators):
        colour, _ = find_style(operator)
        rows = frame[frame["operator"] == operator]
        # the lines of seeds stand around the place of the operator
        rank = rows["pretraining_seed"].rank(method="dense")
        shift = (rank - (rank.max() + 1) / 2) * 0.5 / rank.max()
        hollow = (rows["source"] == "reproduced").all()
        fill = PAPER if hollow else colour
        axes.plot(rows["score"], place + shift, "o", color=colour, markersize=4.5, markerfacecolor=fill, clip_on=False)
        mean = rows.groupby("pretraining_seed")["score"].mean().mean()
        axes.vlines(mean, place - 0.36, place + 0.36, color=colour, linewidth=1.6)
    if frame["constant"].notna().any():
        constant = frame["constant"].max()
        axes.axvline(constant, color=INK, linewidth=0.8, linestyle=DASHED)
        axes.annotate(CONSTANT, (constant, 0), (4, 0), textcoords="offset points", va="center", fontsize=SMALL)
    label_rows(axes, [names.name_operator(operator) for operator in operators])
    separate_rows(axes, len(operators))


def draw_bars(axes: Axes, frame: pd.DataFrame, everything: pd.DataFrame) -> None:
    """Draws a bar of `value` per row of a panel, by `label`, in the colour of `operator`.

    The bars of all panels (`everything`) have one scale, which includes zero, and one thickness.
    """
    labels = list(dict.fromkeys(frame["label"]))
    for place, label in enumerate(labels):
        rows = frame[frame["label"] == label]
        height = 0.8 / len(rows)
        for number, row in enumerate(rows.itertuples()):
            shift = (number - (len(rows) - 1) / 2) * height
            # bars of documents belong to no operator
            colour = find_style(row.operator)[0] if row.operator else HEAT
            name = names.name_operator(row.operator)
            # the label of the row may name the operator already
            legend = None if name in ("", label) else name
            drawn = axes.barh(place + shift, row.value, height, color=colour, label=legend)
            axes.bar_label(drawn, fmt="%.3g", padding=3, fontsize=SMALL)
    label_rows(axes, [names.replace_keys(label) for label in labels])
    most = everything.groupby(["source", "size"])["label"].nunique().max()
    axes.set_ylim(most - 0.5, -0.5)
    low, high = find_limits([0, *everything["value"]], 0.12)
    axes.set_xlim(min(0, low) if everything["value"].min() < 0 else 0, high)
    axes.locator_params(axis="x", nbins=5)


def list_drop_shares(corpus: pd.DataFrame) -> pd.DataFrame:
    """Computes the share of documents (%) that each reason is first to drop, from totals of the filter's ledger."""
    dropped = select_rows(corpus[corpus["documents"] > 0], fate="dropped")
    everything = select_rows(corpus, fate="in")["documents"].sum()
    labels = (dropped["rule"] + ": " + dropped["reason"]).str.replace("_", " ")
    frame = pd.DataFrame({"label": labels, "value": 100 * dropped["documents"] / max(everything, 1)})
    return frame.assign(source="reproduced", quantity="dropped", operator="", size="")
