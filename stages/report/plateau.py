"""The study of the plateau in the report: its comparisons, its arms, and its answer in a sentence a question."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from stages.common.evidence.arms import LATER, NEITHER, SCALED, SOONER, UNDECIDED
from stages.report import names
from stages.report.answers import Sentence
from stages.report.tables import Grid, Heading, Value, interval, mean_sd, number, plain, probability, signed, text

OPENINGS = {  # by question; the first is the main test
    "operator": "At equal spread of the first scores,",
    "source": "With only their own matrices started as in their sources,",
    "spread": "At equal operator,",
    "rate": "With a larger learning rate for what makes the scores,",
}
FIRST_SCREEN = ("operator", "source")
AUTHORS_RANGE = 0.02  # of every new weight, in the code that Courtois et al. released
ENOUGH = 0.9  # of the runs of the best arm must leave the plateau, or the runs are too short
TEXTS = {"place": "str", "term": "str", "reference": "str"}  # columns of the comparisons that may hold numbers


def comparisons(tests: pd.DataFrame, confidence: float, alpha: float) -> tuple[Grid, Grid]:
    """Every comparison of the study: averaged over what is held equal, and at each single spread and operator."""
    averages, singles = tests[tests["place"] == ""], tests[tests["place"] != ""]
    notes = (
        f"{confidence:.0%} intervals. Steps: the time before a run leaves, up to the horizon, which ends that of a run "
        "that does not leave; averaged over what is held equal, in pairs of equal seeds, which see the same batches; a "
        "t test counts seeds. Places: those of them at which any run leaves; the others add nothing but zeros to the "
        "average, so a difference at one place alone is as many times larger as there are places. Hazard ratio: Cox's "
        "model within each place, errors by clusters of what shares a seed and a side of the comparison; from so few "
        "clusters its intervals are too narrow (some 90 % in place of 95 %), so that it confirms and decides nothing "
        "alone; a dash where it has no finite answer. Where no run of one side leaves, the interval of the steps takes "
        "that side's time as known. Sooner, and later or never, are said where the paired test shows it at "
        f"{alpha:g} after Holm over the comparisons of one question, and the hazard ratio, where there is one, shows "
        "the same; comparisons without an interval are no members of that family. Detectable: the smallest "
        "difference that so many seeds with this spread would show with 80 % power, at the first step of Holm; a dash "
        "where no run of a side leaves. Final loss is secondary; its p is adjusted in the same way.",
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
    several = tests["size"].nunique() > 1
    shown = tests.assign(
        label=[_label(row, several) for row in tests.rename(columns={"size": "size_"}).itertuples()],
        steps=[_estimate(row.difference, row.low, row.high, 0) for row in tests.itertuples()],
        hazard=[_estimate(row.hazard_ratio, row.hazard_low, row.hazard_high, 2) for row in tests.itertuples()],
        loss=[_estimate(row.loss_difference, row.loss_low, row.loss_high, 3) for row in tests.itertuples()],
        where=[text(f"{row.informative} of {row.places}") for row in tests.itertuples()],
        left=[
            text(f"{_left(row.never, row.runs)}, {_left(row.never_reference, row.runs_reference)}")
            for row in tests.itertuples()
        ],
    )
    columns = {
        "label": (Heading("Comparison"), str),
        "verdict": (Heading("Leaves"), lambda word: Value(word, kind="text")),
        "steps": (Heading("Steps", "of the first less those of the second"), lambda value: value),
        "p_holm": (Heading("p", "after Holm"), probability),
        "hazard": (Heading("Hazard ratio", "above 1: sooner"), lambda value: value),
        "hazard_p_holm": (Heading("p of the ratio", "after Holm"), probability),
        "left": (Heading("Left", "of the runs of each side"), lambda value: value),
        "where": (Heading("Places"), lambda value: value),
        "detectable": (Heading("Detectable", "steps, with 80 % power"), lambda value: number(value, 0)),
        "loss": (Heading("Final loss", "nats, difference"), lambda value: value),
        "loss_p_holm": (Heading("p of the loss", "after Holm"), probability),
    }
    return replace(plain(shown, columns, name=name, title=title, stage="analysis", notes=notes), csv=tests)


def _label(row, several: bool) -> str:
    """What is compared with what, at what."""
    if row.question == "spread":
        label = f"{names.operator(row.place) + ': ' if row.place else ''}spread {row.term} against {row.reference}"
    else:
        at = "equal spread" if row.question in ("operator", "diagonals") else "own parameters as in their sources"
        at = f"spread {row.place}" if row.place else at
        label = f"{names.operator(row.term)} against {names.operator(row.reference)}, {at}"
    return label[0].upper() + label[1:] + (f" (BERT-{row.size_})" if several else "")


def arms(frame: pd.DataFrame) -> Grid:
    """Every arm: when it leaves, how many of its runs never do, and where it ends."""
    shown = frame.assign(
        label=[
            f"{names.model(row.size_, row.operator)}, {_start(row)}"
            for row in frame.rename(columns={"size": "size_"}).itertuples()
        ],
        steps=[
            mean_sd((row.mean, row.sd, 0)) if row.never < row.runs else Value(f"≥ {number(row.horizon, 0)}")
            for row in frame.itertuples()
        ],
        between=[
            Value(interval(row.low, min(row.high, row.horizon), 0) if row.never < row.runs else "")
            for row in frame.itertuples()
        ],
        left=[Value(_left(row.never, row.runs)) for row in frame.itertuples()],
        final=[mean_sd((row.loss, row.loss_sd, 3)) for row in frame.itertuples()],
    )
    columns = {
        "label": (Heading("Arm"), str),
        "spread": (Heading("Spread", "of the first scores"), lambda value: f"{value:.3g}"),
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
        stage="analysis",
        notes=(
            "A run that does not leave counts with the horizon, the last step up to which all runs are known. The "
            "learning rate falls to 0 at the last step, so what longer training would bring is not asked.",
        ),
    )
    return replace(made, csv=frame)


def _start(row) -> str:
    return f"first spread {row.spread:g}" if row.kind == SCALED else row.kind


def answer(
    tests: pd.DataFrame, frame: pd.DataFrame, confidence: float, questions: tuple[str, ...] = tuple(OPENINGS)
) -> str:
    """The answer of the study, that of every size, a sentence for each of some questions; empty without a study.

    Nothing is said to be equal: what is not shown is told with the difference that would have been found. No answer is
    given where the best arm leaves too seldom, or where no comparison of operators has an interval.
    """
    sizes = frame["size"].drop_duplicates()
    made = [
        (f"At BERT-{size}: " if len(sizes) > 1 else "")
        + _answer(tests[tests["size"] == size], frame[frame["size"] == size], confidence, questions)
        for size in sizes
    ]
    return names.unbroken(" ".join(made))


def _answer(tests: pd.DataFrame, frame: pd.DataFrame, confidence: float, questions: tuple[str, ...]) -> str:
    best = frame.sort_values(["never", "mean"]).iloc[0]
    if 1 - best["never"] / best["runs"] < ENOUGH:
        left = _left(best["never"], best["runs"])
        return f"The study decides nothing: even in its best arm only {left} runs leave the plateau."
    averages, singles = tests[tests["place"] == ""], tests[tests["place"] != ""]
    if averages.loc[averages["question"] == "operator", "low"].isna().all():
        return "The study decides nothing: its comparisons of operators have no interval."
    made = []
    for question in questions:
        own = averages[averages["question"] == question]
        if len(own):
            made.append(f"{OPENINGS[question]} {_listed(own, singles[singles['question'] == question], confidence)}.")
    return " ".join(made)


def _listed(rows: pd.DataFrame, singles: pd.DataFrame, confidence: float) -> str:
    """What is not the same everywhere; what is shown, with its interval; what is not; and what cannot be told.

    singles: the same question at single places. What they show at some and its opposite at others, no average tells.
    """
    spread = rows["question"].iloc[0] == "spread"
    name = (lambda term: f"a first spread of {term}") if spread else names.operator
    singles = singles[singles["verdict"].isin((SOONER, LATER))]
    places = {term: own for term, own in singles.groupby("term", sort=False)}
    opposed = [term for term, own in places.items() if own["verdict"].nunique() > 1]
    parts = []
    for reference, own in rows.groupby("reference", sort=False):
        for term in own.loc[own["term"].isin(opposed), "term"]:
            found = [f"{word} {_where(rows, at['place'])}" for word, at in places[term].groupby("verdict")]
            parts.append(f"runs with {name(term)} leave {' and '.join(found)} than with {name(reference)}")
        own = own[~own["term"].isin(opposed)]
        shown = own[own["verdict"].isin((SOONER, LATER))]
        singly = {term: f", shown singly {_where(rows, at['place'])}" for term, at in places.items()}
        parts += _shown(shown, name, confidence, singly) if len(shown) else []
        undecided, neither = (own[own["verdict"] == word] for word in (UNDECIDED, NEITHER))
        if len(undecided):
            reach = undecided["detectable"].max()
            power = f", where {number(reach, 0)} steps would be found in 80 % of such studies" if reach > 0 else ""
            told = f"no difference to {name(reference)} is shown for {_undecided(undecided, name)}{power}"
            parts.append(told + "".join(_although(rows, places[t], name) for t in undecided["term"] if t in places))
        if len(neither):
            parts.append(f"no run with {_all(neither['term'], name)} leaves, and none with {name(reference)}")
    return "; ".join(parts)


def _undecided(rows: pd.DataFrame, name: Callable[[str], str]) -> str:
    """Terms with the intervals of their differences; where one is without zero, what leaves it undecided."""
    ends = {}
    for row in rows[rows["low"].notna()].itertuples():
        ends[row.term] = f" ({interval(row.low, row.high, 0)} steps{_withheld(row)})"
    return _all(rows["term"], lambda term: name(term) + ends.get(term, ""))


def _withheld(row) -> str:
    """What leaves a difference undecided whose interval is without zero: Holm's method, or the hazard ratio."""
    if row.low <= 0 <= row.high:
        return ""
    p, hazard_p = probability(row.p_holm), probability(row.hazard_p_holm)
    return f"; after Holm p = {p}, of the hazard ratio {hazard_p}, and a verdict needs both"


def _although(rows: pd.DataFrame, found: pd.DataFrame, name: Callable[[str], str]) -> str:
    """What single places show, all in one direction, of a term whose average shows nothing."""
    return f", though runs with {name(found['term'].iloc[0])} leave {found['verdict'].iloc[0]} " + _where(
        rows, found["place"]
    )


def _where(rows: pd.DataFrame, places: pd.Series) -> str:
    """The places of a question in words: operators, or spreads."""
    spread = rows["question"].iloc[0] == "spread"
    at = "for" if spread else "at spreads of" if len(places) > 1 else "at a spread of"
    return f"{at} {_all(places, names.operator)}"


def _shown(rows: pd.DataFrame, name: Callable[[str], str], confidence: float, singly: dict[str, str]) -> list[str]:
    """Differences to one reference that are shown: in steps where both sides leave, else in runs.

    singly: by term, words on the single places that show it, too.
    """
    reference, parts = name(rows["reference"].iloc[0]), []
    stays = (rows["never"] == rows["runs"]) | (rows["never_reference"] == rows["runs_reference"])
    for (horizon, places), own in rows[~stays].groupby(["horizon", "places"], sort=False):
        kind = "operators" if rows["question"].iloc[0] == "spread" else "spreads"
        average = f", on average over {places} {kind}" if places > 1 else ""
        listed = [
            f"{name(row.term)} {signed(row.difference, 0)} ({interval(row.low, row.high, 0)}){singly.get(row.term, '')}"
            for row in own.itertuples()
        ]
        parts.append(
            f"a run spends more (+) or fewer (−) of the first {number(horizon, 0)} steps on the plateau "
            f"than with {reference}{average} ({confidence:.0%} interval): {', '.join(listed)}"
        )
    for row in rows[stays].itertuples():
        left, reference_left = _left(row.never, row.runs), _left(row.never_reference, row.runs_reference)
        within = f"{left} runs with {name(row.term)} leave within {number(row.horizon, 0)} steps"
        parts.append(f"{within}, {reference_left} with {reference}{singly.get(row.term, '')}")
    return parts


def _all(terms: pd.Series, name: Callable[[str], str]) -> str:
    *others, last = map(name, terms)
    return f"{', '.join(others)} and {last}" if others else last


def _left(never: int, runs: int) -> str:
    return f"{runs - never} of {runs}"


def sentences(tests: pd.DataFrame, frame: pd.DataFrame, confidence: float, initializer_range: float) -> list[Sentence]:
    """The answer to the first questions, for the first screen, without single places; none without a study.

    initializer_range: of all other weights, beside which the authors' own is told.
    """
    leads, tests = ("Leaving the plateau", "Their own matrices as in the sources"), tests[tests["place"] == ""]
    said = [answer(tests, frame, confidence, (question,)) for question in FIRST_SCREEN]
    if said[-1] and initializer_range != AUTHORS_RANGE:
        said[-1] += (
            f" All other weights start at {initializer_range:g}, where the authors' code has {AUTHORS_RANGE:g}: their "
            "own start was not run."
        )
    link = ("the study", "#plateau")
    return [Sentence(lead, text, (link,)) for lead, text in zip(leads, dict.fromkeys(said), strict=False) if text]


def _estimate(value: float, low: float, high: float, decimals: int) -> Value:
    value, low, high = (round(end, decimals) + 0.0 for end in (value, low, high))  # no minus before a zero
    return Value(number(value, decimals), f"({interval(low, high, decimals)})" if pd.notna(low) else "")
