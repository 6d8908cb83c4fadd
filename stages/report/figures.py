"""The figures: each is an entry of reports/templates/figures.yaml that selects from a frame, as our own tables do.

An entry names its `frame` (figure_rows.py), the values that rows must have (`where`), the kind (painting.py), the
fields that split rows into panels (`facets`) and lines of a panel (`row`), the column `x` of curves and heat maps, the
label of the axis (`unit`) and, for intervals, whether the axis holds zero (`zero`). `range` is the range of the metric:
intervals of this run that are wider are left out, and a figure without narrower intervals is folded.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import nan
from typing import ClassVar

import pandas as pd

from stages.evidence.fields import select_rows
from stages.report import names
from stages.report.looks import HEAT, find_style
from stages.report.painting import render_panels
from stages.report.tables import Shown, choose_decimals, format_interval, format_number
from stages.report.text_templates import fill_template, read_content

# an interval decides if it is narrower than this share of the range of the metric
NARROW = 0.2
RUN = "reproduced"
# columns that a frame may leave out
OPTIONAL = {
    "low": nan,
    "high": nan,
    "reference": nan,
    "reference_label": None,
    "size": "",
    "text": "",
    "weight": "normal",
    "colour": "",
    "alpha": 1.0,
    "place": "",
}
# panels side by side in a column of a page
PAIR = 2
# matplotlib leaves names with an underscore out of legends
NO_LEGEND = "_"
# labels of the horizontal axes of curves and heat maps
ACROSS = {"step": "training step", "level": "level of noise (%)", "tested": "tested on"}
# in a description in words, a panel with more marks gives only their number
MOST_WORDS = 8


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry of figures.yaml; `place` is the place in a paper, and `across` the most panels side by side."""

    title: str
    stage: str
    frame: str
    kind: str
    place: str = ""
    where: dict = field(default_factory=dict)
    facets: list[str] = field(default_factory=list)
    row: list[str] = field(default_factory=lambda: ["operator"])
    x: str = ""
    unit: str = ""
    zero: bool = False
    range: float = nan
    across: int = PAIR
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Drawing(Shown):
    """A figure: `alternative` is the figure in words, and `files` has the bytes by format, empty without rows.

    A page folds a `folded` figure, and gives a `broad` figure its whole width.
    """

    alternative: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    folded: bool = False
    broad: bool = False
    kind: ClassVar[str] = "figure"

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self.files


def draw_figures(read: Callable[[str], pd.DataFrame], **facts: object) -> dict[str, Drawing]:
    """Draws every figure, by name; `read` returns a frame by name, and notes may name `facts`."""
    return {name: draw_figure(name, Entry(**entry), read, **facts) for name, entry in read_content("figures").items()}


def draw_figure(name: str, entry: Entry, read: Callable[[str], pd.DataFrame], **facts: object) -> Drawing:
    """Draws a figure by its entry; without rows, the figure is empty."""
    frame = select_rows(read(entry.frame), **entry.where)
    notes = [fill_template(note, **facts) for note in entry.notes]
    shown = {"name": name, "title": entry.title, "place": entry.place, "stage": entry.stage, "csv": frame}
    if frame.empty:
        return Drawing(**shown, measured=False)
    rows = arrange_rows(entry, frame)
    wide = (rows["source"] == RUN) & (rows["high"] - rows["low"] > entry.range)
    # without any narrower interval, the figure is folded
    folded = bool(wide.any() and wide.sum() == (rows["source"] == RUN).sum())
    if wide.any() and not folded:
        rows = rows[~wide].reset_index(drop=True)
        notes.append(f"Left out: {wide.sum()} intervals of this run, wider than the range of the metric.")
    return Drawing(
        **shown,
        notes=tuple(note for note in notes if note),
        measured=bool((rows["source"] != "published").any()),
        alternative=describe_panels(entry, rows),
        files=render_panels(entry.kind, rows, entry.across),
        folded=folded,
        broad=entry.across > PAIR,
    )


def arrange_rows(entry: Entry, frame: pd.DataFrame) -> pd.DataFrame:
    """Adds the columns that painting.py needs to the rows of a figure."""
    rows = frame.reset_index(drop=True)
    for column, value in OPTIONAL.items():
        if column not in rows:
            rows[column] = value
    several = [name for name in entry.facets if rows[name].nunique() > 1]
    rows["panel"] = join_names(rows, several)
    rows["row"] = join_names(rows, entry.row)
    if "unit" not in rows:
        rows["unit"] = entry.unit
    # bars of operators need no legend
    named = NO_LEGEND if entry.kind == "bar" else name_marks(rows)
    rows["mark"] = rows["mark"].fillna(named) if "mark" in rows else named
    sizes = rows.groupby("source", sort=False)["size"].transform(lambda found: found.nunique())
    first = rows.groupby("source", sort=False)["size"].transform(lambda found: pd.factorize(found)[0])
    # the last size is the largest
    rows["size_rank"] = sizes - 1 - first
    rows["x"] = rows[entry.x] if entry.x else nan
    rows["across"] = ACROSS.get(entry.x, entry.x)
    rows["zero"] = entry.zero
    if not rows["text"].any() and entry.kind == "bar":
        rows["text"] = rows["estimate"].map("{:.3g}".format)
    if not rows["colour"].any():
        # bars of documents belong to no operator
        rows["colour"] = rows["operator"].map(lambda operator: find_style(operator)[0] if operator else HEAT)
    rows["words"] = [describe_mark(row) for row in rows.itertuples()]
    return rows


def join_names(rows: pd.DataFrame, fields: list[str]) -> pd.Series:
    """Joins the readers' names of the values of fields, as in `BERT-base, released results`."""
    parts = pd.Series("", rows.index)
    for name in fields:
        named = rows[name].map(lambda value, name=name: names.name_fields(name, {name: value}))
        parts += named.where((parts == "") | (named == ""), ", " + named)
    return parts


def name_marks(rows: pd.DataFrame) -> pd.Series:
    """Names the mark of every row by source and size, as in `released results, BERT-base`."""
    marks = rows["source"].map(names.SOURCES)
    sized = rows["source"].isin(("released", "counted", RUN)) & (rows["size"] != "")
    return marks.where(~sized, marks + ", BERT-" + rows["size"].astype(str))


def describe_mark(row) -> str:
    """Describes a mark for hover and focus: `shared, this run, BERT-tiny: −9 (−20 to 2)`."""
    decimals = choose_decimals((row.high - row.low) / 2, 2)
    parts = [f"{row.row}, {row.mark}:".replace(", _", ""), format_number(row.estimate, decimals)]
    if pd.notna(row.low):
        parts.append(f"({format_interval(row.low, row.high, decimals)})")
    if row.place:
        parts.append(f"({row.place})")
    return " ".join(parts)


def describe_panels(entry: Entry, rows: pd.DataFrame) -> str:
    """Describes all panels in words, for readers who do not see the figure; of a curve, both ends."""
    if entry.kind == "curve":
        curves = rows.groupby(["panel", "row", "source"], sort=False)
        rows = rows.loc[sorted({*curves.head(1).index, *curves.tail(1).index})]
    sentences = []
    for panel, of_panel in rows.groupby("panel", sort=False):
        found = "; ".join(of_panel["words"])
        if len(of_panel) > MOST_WORDS:
            found = f"{len(of_panel)} numbers in {of_panel['row'].nunique()} rows"
        sentences.append(f"{panel}: {found}." if panel else f"{found}.")
    return " ".join(sentences)
