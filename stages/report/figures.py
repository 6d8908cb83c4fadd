"""The figures: each is an entry of reports/templates/figures.yaml that selects from a frame, as our own tables do.

An entry names its `frame` (frames.py), the values that rows must have (`where`), the kind (painting.py), the fields
that split rows into panels (`facets`) and lines of a panel (`row`), the column `x` of curves and heat maps, the label
of the axis (`unit`), whether panels have equal axes (`share`) and whether the axis of intervals holds zero (`zero`).
`columns` has the columns of the frame for estimate, low, high, reference (a dashed line, labelled `reference`) and so
on; numbers are times `scale`. `range` is the range of the metric: intervals of this run that are wider are left out,
and a figure without narrower intervals is folded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import nan
from typing import ClassVar

import msgspec
import pandas as pd

from stages.evidence.fields import THIS_RUN, select_rows
from stages.report.looks import HEAT, TONES
from stages.report.names import SOURCES, join_names
from stages.report.painting import render_panels
from stages.report.tables import Reader, Shown, choose_decimals, format_interval, format_number
from stages.report.text_templates import fill_template

NUMBERS = ["estimate", "low", "high", "reference"]
# panels side by side in a column of a page
PAIR = 2
# labels of the horizontal axes of curves and heat maps
ACROSS = {"step": "training step", "level": "level of noise (%)", "tested": "tested on"}


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of figures.yaml; `place` is the place in a paper, and `across` the most panels side by side."""

    title: str
    stage: str
    frame: str
    kind: str
    place: str = ""
    where: dict = {}
    columns: dict = {}
    scale: float = 1.0
    facets: list = []
    row: Sequence = ("operator",)
    x: str = ""
    unit: str = ""
    reference: str = ""
    zero: bool = False
    share: bool = False
    range: float = nan
    across: int = PAIR
    notes: list = []


@dataclass(frozen=True, kw_only=True)
class Drawing(Shown):
    """A figure: `alternative` is the figure in words, and `files` has the bytes by format, empty without rows.

    A page gives a `broad` figure its whole width.
    """

    alternative: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    broad: bool = False
    kind: ClassVar[str] = "figure"

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self.files


def draw_figure(name: str, entry: Entry, read: Reader, **facts: object) -> Drawing:
    """Draws a figure by its entry; without rows, the figure is empty.

    `read` returns a frame by name, and notes may name `facts`.
    """
    frame = select_rows(read(entry.frame), **entry.where)
    notes = [fill_template(note, **facts) for note in entry.notes]
    fields = {"name": name, "title": entry.title, "place": entry.place, "stage": entry.stage, "csv": frame}
    if frame.empty:
        return Drawing(**fields, measured=False)
    rows = arrange_rows(entry, frame)
    of_run = rows["source"] == THIS_RUN
    wide = of_run & (rows["high"] - rows["low"] > entry.range)
    folded = ""
    all_wide = wide.equals(of_run & rows["low"].notna())
    if wide.any() and all_wide:
        folded = "folded, because the intervals of this run are wider than the range of the metric"
    elif wide.any():
        rows = rows[~wide].reset_index(drop=True)
        notes.append(f"Left out: {wide.sum()} intervals of this run, wider than the range of the metric.")
    # the rows that the text for screen readers names: of a curve, only the last
    named = rows
    if entry.kind == "curve":
        named = rows.groupby(["panel", "row", "mark"], sort=False).tail(1)
    return Drawing(
        **fields,
        notes=tuple(notes),
        measured=set(rows["source"]) != {"published"},
        alternative="; ".join(named["words"]),
        files=render_panels(entry.kind, rows, entry.across, entry.share),
        folded=folded,
        broad=entry.across > PAIR,
    )


def arrange_rows(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """Adds the columns that painting.py needs to the rows of a figure."""
    rows = pd.DataFrame(
        {
            # defaults for columns that the frame may lack; columns of the frame replace the defaults
            "unit": entry.unit,
            "source": THIS_RUN,
            "operator": "",
            "size": "",
            "low": nan,
            "high": nan,
            "reference": nan,
            "mark": None,
            "text": "",
            "place": "",
            "alpha": 1.0,
            **frame.reset_index(drop=True),
            "zero": entry.zero,
            "reference_label": entry.reference,
        }
    )
    for name, column in entry.columns.items():
        rows[name] = rows[column]
    rows[NUMBERS] *= entry.scale
    # facets with more than one value; published numbers, whose protocol is empty, need no panel of their own
    several = [name for name in entry.facets if rows[name].replace("", None).nunique() > 1]
    sources = rows["source"].map(SOURCES)
    panels = join_names(rows, several)
    # a panel without a name, such as our studies by size, is named by the source
    rows["panel"] = panels.where(panels != "", sources) if several else ""
    rows["row"] = join_names(rows, entry.row)
    # bars of operators need no legend
    rows["mark"] = rows["mark"].fillna("" if entry.kind == "bar" else sources)
    if entry.x:
        rows = rows.assign(
            x=rows[entry.x],
            xlabel=ACROSS.get(entry.x, entry.x),
            ylabel=rows["unit"],
        )
    else:
        rows = rows.assign(xlabel=rows["unit"], ylabel="")
    if entry.kind == "bar":
        style_bars(rows)
    elif entry.kind == "heat":
        rows["mark"] = rows["x"]
    elif entry.kind == "curve":
        # printed numbers first, so that the legend shows the lines of this run
        rows = rows.sort_values("source", kind="stable").reset_index(drop=True)
    rows["words"] = [describe_mark(row) for row in rows.itertuples()]
    return rows


def style_bars(bars: pd.DataFrame) -> None:
    """Adds text and colour to the rows of bars in place; bars that count verdicts are coloured by `tone`."""
    bars["text"] = bars["estimate"].map("{:.3g}".format)
    if "tone" in bars:
        bars["colour"] = bars["tone"].map(TONES)
        # verdicts of one tone, numbered from 0, differ in opacity
        bars["alpha"] = 0.6 ** bars["number"]
        # a short part of a bar has no room for a number
        bars["text"] = bars["text"].where(bars["estimate"] > 0.04 * bars["estimate"].max(), "")
    else:
        bars["colour"] = HEAT


def describe_mark(row) -> str:
    """Describes a mark for hover and focus: `BERT-tiny, shared, this run: −9 (−20 to 2)`."""
    # 2, or fewer for a wide interval
    decimals = choose_decimals((row.high - row.low) / 2, 2)
    labels = filter(None, [row.panel, row.row, row.mark])
    parts = [", ".join(labels) + ":", format_number(row.estimate, decimals)]
    if pd.notna(row.low):
        parts.append(f"({format_interval(row.low, row.high, decimals)})")
    if row.place:
        parts.append(f"({row.place})")
    return " ".join(parts)
