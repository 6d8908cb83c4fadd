"""The picture of the first screen: for every operator, intervals of the differences from the original.

Every number is a row of contrasts.csv or of studies.csv; the parameters are counted. Templates picture.html and
picture.tex draw the rows.
"""

from dataclasses import dataclass
from math import nan

import pandas as pd

from stages.evidence.cells import PAPER_SIZES
from stages.evidence.fields import select_rows
from stages.evidence.scores import GLUE_SCORE, MISMATCHED
from stages.evidence.statistics import NOT_SIGNIFICANT, NOT_TESTED, ONE_CHECKPOINT
from stages.report import names, read_results
from stages.report.figures import SOURCES
from stages.report.intervals import find_scale
from stages.report.looks import find_style
from stages.report.tables import Grid, Group, Heading, Line, Value, format_interval, format_number, format_signed
from stages.report.text_templates import read_content
from stages.schema.settings import Settings

# BERT-base, the size of which released results are shown
BIGGEST = PAPER_SIZES[-1]
# sources of marks: this run, released results, studies of this repository, and counts
RUN, RELEASED, STUDY, COUNTED = "reproduced", "released", "study", "counted"
HIGHER, LOWER, MIXED = "higher", "lower", "mixed"
# all other verdicts say why there is no interval
SYMBOLS = {HIGHER: "▲", LOWER: "▼", NOT_SIGNIFICANT: "○", MIXED: "◆"}
# space beside the longest bar, a share of the scale
MARGIN = 0.06


@dataclass(frozen=True)
class Mark:
    """One interval in a cell: a difference from the original with its interval (or NaN), in the unit of the column.

    `source` is the kind of evidence, `label` the source for readers, such as `released, BERT-base`; `text` has the
    numbers, `size` the rounded size, and `name` the task, if several marks share a source. `verdict` is by the
    interval, of released results on the checkpoints, and empty for a count.
    """

    source: str
    label: str
    estimate: float
    low: float
    high: float
    text: str
    size: str
    name: str
    verdict: str


@dataclass(frozen=True)
class Cell:
    """The intervals of one operator in one column, and the verdict of this run; a count has an empty verdict."""

    marks: tuple[Mark, ...]
    verdict: str

    @property
    def size(self) -> str:
        """The range of this run's significant differences, such as `by 0.40 to 0.98`; empty without a direction."""
        if self.verdict not in (HIGHER, LOWER):
            return ""
        shown = [mark for mark in self.marks if mark.source == RUN and mark.verdict == self.verdict]
        shown.sort(key=lambda mark: abs(mark.estimate))
        sizes = dict.fromkeys([shown[0].size, shown[-1].size])
        return "by " + " to ".join(sizes)

    @property
    def symbol(self) -> str:
        """The sign that stands for the verdict."""
        return SYMBOLS.get(self.verdict, "–")


@dataclass(frozen=True)
class Column:
    """The scale of a column of the picture, from `low` at the left end to `high` at the right end."""

    low: float
    high: float

    @property
    def drawn(self) -> bool:
        """Whether the column has a mark away from zero."""
        return self.high > self.low

    def locate_share(self, value: float) -> float:
        """Returns the place of a value on the scale, from 0 at the left end to 1 at the right end, where it is cut."""
        if not self.drawn:
            return 0.0
        share = (value - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)


def build_rows(settings: Settings) -> list[dict]:
    """Builds the rows of the first screen, one per operator, those that sections.yaml describes first.

    The numbers are of the released results at the papers' largest size, of this run at its last size, and of studies. A
    row has `key`, `operator` (the name), `colour`, and `cells`, a Cell by column (saved, score, loss, noise, transfer,
    time).
    """
    size = settings.sizes[-1]
    # the first protocol of the run, or the empty protocol of pre-training
    contrasts = read_results.read_contrasts(protocol=["", settings.protocols[0]])
    sizes = contrasts["source"].map({RELEASED: BIGGEST, RUN: size})
    # released results stand first
    contrasts = contrasts[contrasts["size"] == sizes].sort_values("source", kind="stable")
    studies = read_results.read_studies()
    # a run of the scale of a study has its own numbers
    studies = studies[studies["study"] != settings.scale]
    summaries = read_results.read_summaries()
    described = read_content("sections")["operators"]
    rows = []
    for operator in dict.fromkeys([*described, *contrasts["arm"]]):
        compared = select_rows(contrasts, arm=operator)
        studied = select_rows(studies, operator=operator)
        noise = select_rows(compared, quantity="lost_noise")
        marks = {
            "saved": count_saved(summaries, operator, [BIGGEST, size]),
            "score": list_marks(select_rows(compared, quantity="score", at=GLUE_SCORE), 2),
            "loss": [
                *list_marks(select_rows(compared, quantity="loss"), 3),
                *list_study_marks(select_rows(studied, question="loss")),
            ],
            "noise": list_marks(noise[noise["at"] != MISMATCHED], 1, by_task=True),
            "transfer": list_marks(select_rows(compared, quantity="transfer"), 1),
            "time": list_marks(select_rows(compared, quantity="speed"), 1),
        }
        cells = {key: Cell(tuple(found), judge_marks(found)) for key, found in marks.items()}
        colour, _ = find_style(operator)
        rows.append({"key": operator, "operator": names.name_operator(operator), "colour": colour, "cells": cells})
    return rows


def list_marks(rows: pd.DataFrame, decimals: int, by_task: bool = False) -> list[Mark]:
    """Lists a mark for every row of contrasts.csv of an operator and quantity; `by_task` labels tasks, not models."""
    marks = []
    for row in rows.to_dict("records"):
        place = names.name_task(row["at"]) if by_task else f"BERT-{row['size']}"
        verdict = row["direction"] or row["verdict"]
        if row["verdict"] == ONE_CHECKPOINT:
            verdict = judge_checkpoint(row)
        label = f"{SOURCES[row['source']]}, {place}"
        marks.append(make_mark(row["source"], label, place if by_task else "", row, decimals, verdict))
    return marks


def judge_checkpoint(row: dict) -> str:
    """Gives the verdict on a single checkpoint: the side of the interval if released, none in this run."""
    if row["source"] == RUN:
        return ONE_CHECKPOINT
    if pd.isna(row["low"]):
        return NOT_TESTED
    return row["direction"] or NOT_SIGNIFICANT


def list_study_marks(rows: pd.DataFrame) -> list[Mark]:
    """Lists a mark for every final loss in rows of studies.csv."""
    return [make_mark(STUDY, f"study {row['study']}", "", row, 3, row["verdict"]) for row in rows.to_dict("records")]


def make_mark(source: str, label: str, name: str, row: dict, decimals: int, verdict: str) -> Mark:
    """Makes a mark from a row with estimate, low and high; the size of the difference has one decimal less."""
    text = format_signed(row["estimate"], decimals)
    if pd.notna(row["low"]):
        text += f" [{format_interval(row['low'], row['high'], decimals)}]"
    size = format_number(abs(row["estimate"]), decimals - 1)
    return Mark(source, label, row["estimate"], row["low"], row["high"], text, size, name, verdict)


def count_saved(summaries: pd.DataFrame, operator: str, sizes: list[str]) -> list[Mark]:
    """Makes the mark of the share of parameters that an operator saves, at the first of `sizes` with a count."""
    counted = select_rows(summaries, metric="saved_percent", operator=operator)
    for size in sizes:
        for share in select_rows(counted, size=size)["mean"]:
            text = f"{format_number(share, 1)} %"
            return [Mark(COUNTED, f"counted, BERT-{size}", share, nan, nan, text, text, "", "")]
    return []


def judge_marks(marks: list[Mark]) -> str:
    """Gives the verdict of a cell: the direction that this run shows, or else why there is none; empty for a count.

    Tasks with opposite directions are `mixed`. Released results and studies do not count: their verdicts are on other
    models.
    """
    if any(mark.source == COUNTED for mark in marks):
        return ""
    verdicts = [mark.verdict for mark in marks if mark.source == RUN]
    if {HIGHER, LOWER} <= set(verdicts):
        return MIXED
    for verdict in (HIGHER, LOWER, NOT_SIGNIFICANT, *verdicts):
        if verdict in verdicts:
            return verdict
    return NOT_TESTED


def fit_columns(rows: list[dict]) -> dict[str, Column]:
    """Fits a scale for each column, which holds zero and every mark, but may cut an extremely long interval."""
    columns = {}
    for key in read_content("sections")["columns"]:
        marks = [mark for row in rows for mark in row["cells"][key].marks]
        if not any(mark.estimate for mark in marks):
            columns[key] = Column(0.0, 0.0)
        elif marks[0].source == COUNTED:
            # bars begin at zero
            columns[key] = Column(0.0, (1 + MARGIN) * max(mark.estimate for mark in marks))
        else:
            columns[key] = Column(*find_scale(pd.DataFrame(marks), zero=True))
    return columns


def list_numbers(rows: list[dict]) -> Grid:
    """Lists the numbers behind the picture as a table: a row for every mark."""
    columns = read_content("sections")["columns"]
    groups, records = [], []
    for row in rows:
        for key, cell in row["cells"].items():
            for mark in cell.marks:
                texts = (columns[key]["label"], mark.label, mark.verdict or "counted")
                column, source, verdict = (Value(text, kind="text") for text in texts)
                groups.append(Group(row["operator"], (Line("", (column, source, Value(mark.text), verdict)),)))
                record = {"operator": row["key"], "column": key, "source": mark.source, "label": mark.label}
                numbers = {"estimate": mark.estimate, "low": mark.low, "high": mark.high, "verdict": mark.verdict}
                records.append(record | numbers)
    return Grid(
        name="first_screen",
        title="Numbers behind the picture: differences from the original operator",
        stage="analysis",
        first="Operator",
        headings=(Heading("Column"), Heading("Source"), Heading("Difference"), Heading("Verdict")),
        groups=tuple(groups),
        csv=pd.DataFrame(records),
    )
