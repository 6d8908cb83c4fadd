"""The figure of the first screen: what every operator costs in GLUE score, as differences with their intervals."""

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from stages.evidence.scores import GLUE_SCORE
from stages.report import inputs, names
from stages.report.drawing import INK, Drawing, drawing, style
from stages.report.first_screen import BIGGEST, RELEASED, of_run, saving
from stages.report.inputs import select
from stages.report.tables import probability, signed
from stages.report.words import alternative, content, facts_of, sentence

NOTHING = "no results released"


def answer(summaries: pd.DataFrame, settings) -> Drawing:
    """Draws the figure of the first screen: the difference in GLUE score by operator and size, with what each saves.

    This run's differences are drawn only if none of its scores may be at chance. summaries: of `inputs.summaries`.
    """
    rows, facts = inputs.contrasts(quantity="score", at=GLUE_SCORE), of_run(settings, summaries)
    if facts["at_chance"] or facts["chance_unknown"]:
        rows = select(rows, source=RELEASED)
    columns = ["operator", "size", "source", "difference", "low", "high", "saved_percent"]
    frame = pd.DataFrame(marks(rows, summaries), columns=columns).astype({"saved_percent": float})
    reproduced = select(rows, source="reproduced")
    notes = sentence(
        "answer_note",
        **facts_of(settings),
        reproduced=len(reproduced) > 0,
        generated=settings.data.generated,
        p=probability(reproduced["p_holm"].min()) if reproduced["p_holm"].notna().any() else "",
    )
    title, size = "Difference in GLUE score from the original operator", (4.4, 0.95 + 0.44 * len(frame))
    describe = partial(alternative, "answer")
    return drawing("answer", title, "analysis", [("", frame)], draw, describe, size, frame, notes=(notes,))


def marks(rows: pd.DataFrame, summaries: pd.DataFrame) -> list[dict]:
    """Lists the marks of the figure by operator: of the released results, BERT-base first, and then of this run.

    rows: of `inputs.contrasts`. A mark has operator, size (and protocol, where this run has several), source; in points
    difference, low and high, but for source NOTHING; and, but for this run, saved_percent (None if not counted).
    """
    entries = []
    for operator in dict.fromkeys([*content("sections")["operators"], *rows["arm"]]):
        models = select(rows, arm=operator)  # sorted next: False, of RELEASED and of BIGGEST, comes before True
        models = models.sort_values(["source", "size"], key=lambda keys: ~keys.isin((RELEASED, BIGGEST)), kind="stable")
        if not (models["source"] == RELEASED).any():
            entries.append({"operator": operator, "size": BIGGEST, "source": NOTHING})
        several = select(models, source="reproduced")["protocol"].nunique() > 1
        for row in models.itertuples():
            recipe = f", {names.protocol(row.protocol)}" if several and row.source != RELEASED else ""
            entry = {"operator": operator, "size": row.size + recipe, "source": row.source}
            entries.append(entry | {"difference": row.estimate, "low": row.low, "high": row.high})
    for mark in entries:  # not of a run's own models: they have another vocabulary than those that are counted
        if mark["source"] != "reproduced":
            mark["saved_percent"] = saving(summaries, mark["operator"], mark["size"])
    return entries


def draw(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws the differences with their intervals, one below the other. frame: the marks; NaN where one has no value.

    The scale is twice the furthest end of a released difference (without any, of all), at least one point, to both
    sides. An interval that goes beyond it ends in a triangle, and an estimate beyond it is printed as a number.
    """
    scale = frame[frame["source"] == RELEASED]
    reach = 2 * np.nanmax(np.abs((scale if len(scale) else frame)[["low", "high"]].to_numpy(dtype=float)), initial=0.5)
    axes.set_xlim(-reach, reach)
    for place, row in enumerate(frame.itertuples()):
        colour, _ = style(row.operator)
        if np.isnan(row.difference):
            axes.text(0.97 * reach, place, NOTHING, ha="right", va="center", fontsize=8.5, style="italic")
            continue
        face = "none" if row.source == "reproduced" else colour
        axes.hlines(place, row.low, row.high, color=colour, linewidth=2)
        if abs(row.difference) > reach:
            side = "right" if row.difference > 0 else "left"
            edge = np.copysign(0.97 * reach, row.difference)
            axes.text(edge, place - 0.17, signed(row.difference, 1), ha=side, va="bottom", fontsize=8.5, color=colour)
        else:
            axes.plot(row.difference, place, "o", color=colour, markersize=6, markerfacecolor=face)
        for end, marker in ((row.low, "<"), (row.high, ">")):
            if abs(end) > reach:
                axes.plot(np.copysign(0.97 * reach, end), place, marker, color=colour, markersize=5)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(frame)), [_label(row) for row in frame.itertuples()])
    axes.set_ylim(len(frame) - 0.5, -0.5)
    axes.set_xlabel("GLUE points above the original")
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x", linewidth=0.6)


def _label(row) -> str:
    """Labels a mark: its operator and size, whether it is of this run, and the share of parameters saved, if known."""
    saved = "" if np.isnan(row.saved_percent) else f" (saves {row.saved_percent:.1f} %)"
    source = ", this run" if row.source == "reproduced" else ""
    return f"{names.operator(row.operator)},\nBERT-{row.size}{source}{saved}"
