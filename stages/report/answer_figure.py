"""The figure of the first screen: what every operator costs in GLUE score, as differences with their intervals."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from stages.common.evidence.scores import GLUE_SCORE
from stages.report import names
from stages.report.answers import BIGGEST, biggest_first, chance, differences, judged, recipe, saving
from stages.report.drawing import INK, Drawing, panels, style
from stages.report.tables import number, probability, signed


def drawing(described: dict, summaries: pd.DataFrame, comparisons: pd.DataFrame, settings) -> Drawing:
    """The figure of the first screen: difference in GLUE score by operator and size, with what each saves.

    This run is drawn where its scores are no chance.
    """
    rows = differences(comparisons, "released")
    if not chance(summaries, settings):
        rows = pd.concat([rows, differences(comparisons, "reproduced")])
    rows = rows[rows["operator"] != "original"]
    listed = []
    for operator in dict.fromkeys([*described, *rows["operator"]]):
        own = biggest_first(rows[rows["operator"] == operator])
        saved = {size: saving(summaries, operator, size) for size in (*own["size"], BIGGEST)}
        if own.empty or (own["source"] != "released").all():
            nan = float("nan")
            listed.append(_mark(operator, BIGGEST, "no results released", nan, nan, nan, saved[BIGGEST]))
        for row in own.itertuples():
            share = saved[row.size] if row.source == "released" else None  # another vocabulary than the counted models'
            size = row.size + recipe(own, row)
            listed.append(_mark(operator, size, row.source, row.difference, row.low, row.high, share))
    frame = pd.DataFrame(listed)
    note = (
        f"{settings.analysis.confidence:.0%} intervals; in brackets the share of the model's parameters that is saved."
    )
    if (frame["source"] == "reproduced").any():
        generated = settings.data.source == "embedded"
        kind = ", on generated tasks: these are no scores of GLUE itself, and test no claim" if generated else ""
        note += (
            f" Hollow: this run{kind}. Where its interval goes beyond the scale, the line ends in a triangle; an "
            "estimate beyond it is given as a number. Intervals are not adjusted for several operators"
        )
        own = comparisons[(comparisons["source"] == "reproduced") & (comparisons["column"] == GLUE_SCORE)]
        p = judged(own)["p_holm"].dropna()
        note += f"; after Holm's method the smallest p of this run is {probability(p.min())}." if len(p) else "."
    return draw_answer(frame, (note,))


def _mark(
    operator: str, size: str, source: str, difference: float, low: float, high: float, saved: float | None
) -> dict:
    return {
        "operator": operator,
        "size": size,
        "source": source,
        "difference": difference,
        "low": low,
        "high": high,
        "saved_percent": float("nan") if saved is None else saved,
    }


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
