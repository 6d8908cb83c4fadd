"""The tables of the study of the plateau: its comparisons, and its arms. Titles and notes stand in words.yaml."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import isnan
from pathlib import Path

import pandas as pd

from stages.plumbing.documents import read_yaml
from stages.report import names
from stages.report.tables import MISSING, Grid, Heading, Value, interval, mean_sd, number, plain, probability, text
from stages.studies.plateau.comparisons import SCALED


@cache
def words() -> dict[str, dict]:
    """By the name of a table or figure, its `title` and `notes`."""
    return read_yaml(Path(__file__).with_name("words.yaml"))


def comparisons(tests: pd.DataFrame, confidence: float, alpha: float) -> tuple[Grid, Grid]:
    """Every comparison of the study: averaged over what is held equal, and at each single spread and operator."""
    columns = {
        Heading("Comparison"): _label,
        Heading("Leaves"): lambda row: text(row.verdict),
        Heading("Steps", "of the first less those of the second"): lambda row: _estimate(
            row.difference, row.low, row.high, 0
        ),
        Heading("p", "after Holm"): lambda row: probability(row.p_holm),
        Heading("Steps where runs leave", "at places where a tenth does"): lambda row: _estimate(
            row.telling_difference, row.telling_low, row.telling_high, 0
        ),
        Heading("Hazard ratio", "above 1: sooner"): lambda row: _estimate(
            row.hazard_ratio, row.hazard_low, row.hazard_high, 2
        ),
        Heading("p of the ratio", "after Holm"): lambda row: probability(row.hazard_p_holm),
        Heading("Left", "of the runs of each side"): lambda row: text(
            f"{left(row.never, row.runs)}, {left(row.never_reference, row.runs_reference)}"
        ),
        Heading("Places"): lambda row: text(f"{row.informative} of {row.places}"),
        Heading("Detectable", "steps, with 80 % power"): lambda row: number(row.detectable, 0),
        Heading("Final loss", "nats, difference"): lambda row: _estimate(
            row.loss_difference, row.loss_low, row.loss_high, 3
        ),
        Heading("p of the loss", "after Holm"): lambda row: probability(row.loss_p_holm),
    }
    averages = tests["place"] == ""
    return (
        _grid("plateau_tests", tests[averages], columns, confidence=confidence, alpha=alpha),
        _grid("plateau_places", tests[~averages], columns),
    )


def _grid(name: str, frame: pd.DataFrame, columns: dict[Heading, Callable], **values: float) -> Grid:
    """A table whose rows are those of the frame.

    Args:
        name: of the table, also in words.yaml.
        frame: what is shown; it is the table's CSV as well.
        columns: by heading, what makes a cell of a row of the frame; the first labels the row.
        values: of the notes.
    """
    rows = list(frame.itertuples())
    shown = pd.DataFrame({heading.label: [form(row) for row in rows] for heading, form in columns.items()})
    forms = {heading.label: (heading, lambda cell: cell) for heading in columns}
    notes = tuple(note.format(**values) for note in words()[name]["notes"])
    return replace(plain(shown, forms, name=name, title=words()[name]["title"], stage="", notes=notes), csv=frame)


def _label(row) -> str:
    """What is compared with what, at what."""
    if row.question == "spread":
        label = f"{names.operator(row.place) + ': ' if row.place else ''}spread {row.term} against {row.reference}"
    else:
        at = "equal spread" if row.question in ("operator", "diagonals") else "own parameters as in their sources"
        at = f"spread {row.place}" if row.place else at
        label = f"{names.operator(row.term)} against {names.operator(row.reference)}, {at}"
    return label[0].upper() + label[1:]


def arms(frame: pd.DataFrame) -> Grid:
    """Every arm: when it leaves, how many of its runs never do, and where it ends."""
    leaves = lambda row: row.never < row.runs  # noqa: E731
    columns = {
        Heading("Arm"): lambda row: f"{names.operator(row.operator)}, {_start(row)}",
        Heading("Spread", "of the first scores"): lambda row: MISSING if isnan(row.spread) else f"{row.spread:.3g}",
        Heading("Steps", "restricted mean ± standard deviation"): lambda row: (
            mean_sd((row.mean, row.sd, 0)) if leaves(row) else f"≥ {number(row.horizon, 0)}"
        ),
        Heading("Interval", "of the mean"): lambda row: (
            interval(row.low, min(row.high, row.horizon), 0) if leaves(row) else ""
        ),
        Heading("Left"): lambda row: left(row.never, row.runs),
        Heading("Final loss", "nats"): lambda row: mean_sd((row.loss, row.loss_sd, 3)),
        Heading("Weights moved", "relative to their start, at the end"): lambda row: text(row.moved),
    }
    return _grid("plateau_arms", frame, columns)


def _start(row) -> str:
    return f"first spread {row.spread:g}" if row.kind == SCALED else row.kind


def left(never: int, runs: int) -> str:
    """How many runs of all left the plateau, in words."""
    return f"{runs - never} of {runs}"


def _estimate(value: float, low: float, high: float, decimals: int) -> Value:
    value, low, high = (round(end, decimals) + 0.0 for end in (value, low, high))  # no minus before a zero
    return Value(number(value, decimals), f"({interval(low, high, decimals)})" if pd.notna(low) else "")
