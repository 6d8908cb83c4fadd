"""The tables of the study of the plateau: its comparisons, and its arms."""

from dataclasses import replace
from math import isnan

import pandas as pd

from stages.report import names
from stages.report.tables import MISSING, Grid, Heading, Value, interval, mean_sd, number, plain, probability, text
from stages.studies.plateau.comparisons import SCALED


def comparisons(tests: pd.DataFrame, confidence: float, alpha: float) -> tuple[Grid, Grid]:
    """Every comparison of the study: averaged over what is held equal, and at each single spread and operator."""
    averages, singles = tests[tests["place"] == ""], tests[tests["place"] != ""]
    notes = (
        f"{confidence:.0%} intervals. Steps: the time before a run leaves, up to the horizon, which ends that of a run "
        "that does not leave; averaged over what is held equal, in pairs of equal seeds, which see the same batches; a "
        "t test counts seeds. Places: those of them at which any run leaves; the others add nothing but zeros to the "
        "average, so beside it stands the mean over those places alone at which a tenth of all runs leaves. Hazard "
        "ratio: Cox's model within each place, errors by clusters of equal seeds, which were chosen after the runs had "
        "been judged by clusters of a seed and arm; from so few clusters its intervals are too narrow, so that it "
        "confirms and decides nothing alone; a dash where it has no finite answer. Where no run of one side leaves, "
        "the interval of the steps takes that side's time as known. Sooner, and later or never, are said where the "
        f"paired test shows it at {alpha:g} after Holm over the comparisons of one question, and the hazard ratio, "
        "where there is one, shows the same; comparisons without an interval are no members of that family. "
        "Detectable: the smallest difference that so many seeds with this spread would show with 80 % power, at the "
        "first step of Holm; a dash where no run of a side leaves. Final loss is secondary; its p is adjusted in the "
        "same way.",
    )
    single = (
        "As above, at each single spread and for each operator. Holm's method goes over those rows of one question in "
        "which any run leaves.",
    )
    return (
        _compared(averages, "plateau_tests", "Steps before leaving the plateau: arms against each other", notes),
        _compared(
            singles,
            "plateau_places",
            "Steps before leaving the plateau, at single spreads and for single operators",
            single,
        ),
    )


def _compared(tests: pd.DataFrame, name: str, title: str, notes: tuple[str, ...]) -> Grid:
    shown = tests.assign(
        label=[_label(row) for row in tests.itertuples()],
        steps=[_estimate(row.difference, row.low, row.high, 0) for row in tests.itertuples()],
        telling=[_estimate(row.telling_difference, row.telling_low, row.telling_high, 0) for row in tests.itertuples()],
        hazard=[_estimate(row.hazard_ratio, row.hazard_low, row.hazard_high, 2) for row in tests.itertuples()],
        loss=[_estimate(row.loss_difference, row.loss_low, row.loss_high, 3) for row in tests.itertuples()],
        where=[text(f"{row.informative} of {row.places}") for row in tests.itertuples()],
        left=[
            text(f"{left(row.never, row.runs)}, {left(row.never_reference, row.runs_reference)}")
            for row in tests.itertuples()
        ],
    )
    columns = {
        "label": (Heading("Comparison"), str),
        "verdict": (Heading("Leaves"), lambda word: Value(word, kind="text")),
        "steps": (Heading("Steps", "of the first less those of the second"), lambda value: value),
        "p_holm": (Heading("p", "after Holm"), probability),
        "telling": (Heading("Steps where runs leave", "at places where a tenth does"), lambda value: value),
        "hazard": (Heading("Hazard ratio", "above 1: sooner"), lambda value: value),
        "hazard_p_holm": (Heading("p of the ratio", "after Holm"), probability),
        "left": (Heading("Left", "of the runs of each side"), lambda value: value),
        "where": (Heading("Places"), lambda value: value),
        "detectable": (Heading("Detectable", "steps, with 80 % power"), lambda value: number(value, 0)),
        "loss": (Heading("Final loss", "nats, difference"), lambda value: value),
        "loss_p_holm": (Heading("p of the loss", "after Holm"), probability),
    }
    return replace(plain(shown, columns, name=name, title=title, stage="", notes=notes), csv=tests)


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
    shown = frame.assign(
        label=[f"{names.operator(row.operator)}, {_start(row)}" for row in frame.itertuples()],
        steps=[
            mean_sd((row.mean, row.sd, 0)) if row.never < row.runs else Value(f"≥ {number(row.horizon, 0)}")
            for row in frame.itertuples()
        ],
        between=[
            Value(interval(row.low, min(row.high, row.horizon), 0) if row.never < row.runs else "")
            for row in frame.itertuples()
        ],
        left=[Value(left(row.never, row.runs)) for row in frame.itertuples()],
        final=[mean_sd((row.loss, row.loss_sd, 3)) for row in frame.itertuples()],
    )
    columns = {
        "label": (Heading("Arm"), str),
        "spread": (Heading("Spread", "of the first scores"), lambda value: MISSING if isnan(value) else f"{value:.3g}"),
        "steps": (Heading("Steps", "restricted mean ± standard deviation"), lambda value: value),
        "between": (Heading("Interval", "of the mean"), lambda value: value),
        "left": (Heading("Left"), lambda value: value),
        "final": (Heading("Final loss", "nats"), lambda value: value),
        "moved": (Heading("Weights moved", "relative to their start, at the end"), text),
    }
    made = plain(
        shown,
        columns,
        name="plateau_arms",
        title="Arms of the study: when their runs leave the plateau, and where they end",
        stage="",
        notes=(
            "A run that does not leave counts with the horizon, the last step up to which all runs are known. The "
            "learning rate falls to 0 at the last step, so what longer training would bring is not asked.",
        ),
    )
    return replace(made, csv=frame)


def _start(row) -> str:
    return f"first spread {row.spread:g}" if row.kind == SCALED else row.kind


def left(never: int, runs: int) -> str:
    """How many runs of all left the plateau, in words."""
    return f"{runs - never} of {runs}"


def _estimate(value: float, low: float, high: float, decimals: int) -> Value:
    value, low, high = (round(end, decimals) + 0.0 for end in (value, low, high))  # no minus before a zero
    return Value(number(value, decimals), f"({interval(low, high, decimals)})" if pd.notna(low) else "")
