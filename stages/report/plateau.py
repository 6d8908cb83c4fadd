"""The study of the plateau in the report: its comparisons, its arms, and its answer in one sentence."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from stages.report import names
from stages.report.answers import Sentence
from stages.report.tables import Grid, Heading, Value, interval, mean_sd, number, plain, probability, text

UNDECIDED = "undecided"
ENOUGH = 0.9  # of the runs of the best arm must leave the plateau, or the runs are too short
QUESTIONS: dict[str, Callable[[object], str]] = {  # of a row: what is compared
    "operator": lambda row: f"{names.operator(row.term)} against {names.operator(row.reference)}, equal spread",
    "spread": lambda row: f"spread {row.term} against {row.reference}, equal operator",
    "source": lambda row: f"{names.operator(row.term)} against {row.reference}, as their sources start",
    "rate": lambda row: "scores with a learning rate of their own against without",
    "diagonals": lambda row: f"{names.operator(row.term)} against {names.operator(row.reference)}, equal spread",
}


def comparisons(tests: pd.DataFrame, confidence: float, alpha: float) -> Grid:
    """Every comparison of the study: steps, hazard ratio, final loss, and what could have been found."""
    shown = tests.assign(
        label=[_label(row, tests) for row in tests.itertuples()],
        steps=[_estimate(row.difference, row.low, row.high, 0) for row in tests.itertuples()],
        hazard=[_estimate(row.hazard_ratio, row.hazard_low, row.hazard_high, 2) for row in tests.itertuples()],
        loss=[_estimate(row.loss_difference, row.loss_low, row.loss_high, 3) for row in tests.itertuples()],
        never=[
            text(f"{row.never} of {row.runs}, {row.never_reference} of {row.runs_reference}")
            for row in tests.itertuples()
        ],
    )
    columns = {
        "label": (Heading("Comparison"), str),
        "verdict": (Heading("Leaves"), lambda word: Value(word, kind="text")),
        "steps": (Heading("Steps", "of the first less those of the second"), lambda value: value),
        "p_holm": (Heading("p", "after Holm"), probability),
        "hazard": (Heading("Hazard ratio", "above 1: sooner"), lambda value: value),
        "never": (Heading("Never left", "of the runs of each side"), lambda value: value),
        "detectable": (Heading("Found in 80 %", "steps"), lambda value: number(value, 0)),
        "loss": (Heading("Final loss", "nats, difference"), lambda value: value),
    }
    notes = (
        f"{confidence:.0%} intervals. Steps: the time before a run leaves, up to the horizon (restricted mean), "
        "averaged over what is held equal, in pairs of equal seeds, which see the same batches; a t test counts seeds. "
        "Hazard ratio: Cox's model within each value of what is held equal, runs of one seed and operator taken as one "
        "cluster; a dash where it has no finite answer. Sooner and later are said where the paired test shows it at "
        f"{alpha:g} after Holm over the comparisons of one question, and the hazard ratio, where there is one, shows "
        "the same. Found in 80 %: the smallest difference that so many seeds with this spread would show so often, at "
        "the first step of Holm. Final loss is secondary, and its intervals are not adjusted.",
    )
    made = plain(
        shown,
        columns,
        name="plateau_tests",
        title="What makes a run leave the plateau",
        stage="analysis",
        notes=notes,
    )
    return replace(made, csv=tests)


def arms(frame: pd.DataFrame) -> Grid:
    """Every arm: when it leaves, how many of its runs never do, and where it ends."""
    shown = frame.assign(
        label=[
            f"{names.model(row.size_, row.operator)}, {_start(row)}"
            for row in frame.rename(columns={"size": "size_"}).itertuples()
        ],
        steps=[mean_sd((row.mean, row.sd, 0)) for row in frame.itertuples()],
        between=[Value(interval(row.low, row.high, 0)) for row in frame.itertuples()],
        never=[Value(f"{row.never} of {row.runs}") for row in frame.itertuples()],
        final=[mean_sd((row.loss, row.loss_sd, 3)) for row in frame.itertuples()],
    )
    columns = {
        "label": (Heading("Arm"), str),
        "spread": (Heading("Spread", "of the first scores"), lambda value: f"{value:.3g}"),
        "steps": (Heading("Steps", "restricted mean ± standard deviation"), lambda value: value),
        "between": (Heading("Interval", "of the mean"), lambda value: value),
        "never": (Heading("Never left"), lambda value: value),
        "final": (Heading("Final loss", "nats"), lambda value: value),
        "moved": (Heading("Weights moved", "relative to their start, at the end"), text),
    }
    made = plain(
        shown,
        columns,
        name="plateau_arms",
        title="Arms of the study",
        stage="analysis",
        notes=("A run that never leaves counts with the horizon, the last step up to which all runs are known.",),
    )
    return replace(made, csv=frame)


def _start(row) -> str:
    return f"first spread {row.spread:g}" if row.kind == "scaled" else row.kind


def answer(tests: pd.DataFrame, frame: pd.DataFrame, confidence: float) -> str:
    """The answer of the study in one sentence, that of every size; empty without a study.

    Nothing is said to be equal: what is not shown is told with the difference that would have been found. No answer is
    given where the best arm leaves too seldom, or where no comparison of operators has an interval.
    """
    sizes = frame["size"].drop_duplicates()
    made = [
        (f"At BERT-{size}: " if len(sizes) > 1 else "")
        + _answer(tests[tests["size"] == size], frame[frame["size"] == size], confidence)
        for size in sizes
    ]
    return names.unbroken(" ".join(made))


def _answer(tests: pd.DataFrame, frame: pd.DataFrame, confidence: float) -> str:
    best = frame.sort_values(["never", "mean"]).iloc[0]
    if 1 - best["never"] / best["runs"] < ENOUGH:
        left = f"{best['runs'] - best['never']} of {best['runs']}"
        return f"The study decides nothing: even in its best arm only {left} runs leave the plateau."
    operators = tests[tests["question"] == "operator"]
    if operators["low"].isna().all():
        return "The study decides nothing: its comparisons of operators have no interval."
    parts = [f"At equal spread of the first scores {_listed(operators, confidence)}"]
    spreads = tests[tests["question"] == "spread"]
    if spreads["low"].notna().any():
        parts.append(f"at equal operator {_listed(spreads, confidence)}")
    return "; ".join(parts) + "."


def _listed(rows: pd.DataFrame, confidence: float) -> str:
    """What is shown, with its interval; then what is not, with what would have been."""
    spread = rows["question"].iloc[0] == "spread"
    name = (lambda term: f"a spread of {term}") if spread else names.operator
    reference = name(rows["reference"].iloc[0])
    shown = [
        f"{name(row.term)} leaves the plateau {number(abs(row.difference), 0)} steps {row.verdict} than {reference} "
        f"({confidence:.0%} interval {interval(*sorted((abs(row.low), abs(row.high))), 0)})"
        for row in rows.itertuples()
        if row.verdict != UNDECIDED
    ]
    rest = rows[rows["verdict"] == UNDECIDED]
    if len(rest):
        reach = rest["detectable"].max()
        power = f", where {number(reach, 0)} steps would be found in 80 % of such studies" if reach > 0 else ""
        shown.append(f"no difference to {reference} is shown for {' and '.join(map(name, rest['term']))}{power}")
    return ", ".join(shown)


def sentences(said: str) -> list[Sentence]:
    """The answer as a sentence of the first screen; none without a study."""
    return [Sentence("Leaving the plateau", said, (("the study", "#plateau"),))] if said else []


def _label(row, tests: pd.DataFrame) -> str:
    several = tests["size"].nunique() > 1
    label = QUESTIONS[row.question](row)
    return label[0].upper() + label[1:] + (f" (BERT-{tests.at[row.Index, 'size']})" if several else "")


def _estimate(value: float, low: float, high: float, decimals: int) -> Value:
    value, low, high = (round(end, decimals) + 0.0 for end in (value, low, high))  # no minus before a zero
    return Value(number(value, decimals), f"({interval(low, high, decimals)})" if pd.notna(low) else "")
