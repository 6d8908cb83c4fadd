"""The answer of the study of the plateau in words: a sentence for each of its questions."""

from collections.abc import Callable

import pandas as pd

from stages.common.evidence.arms import LATER, NEITHER, SOONER, UNDECIDED
from stages.report import names
from stages.report.answers import Sentence
from stages.report.plateau_tables import left
from stages.report.tables import interval, number, probability, signed

OPENINGS = {  # by question; the first is the main test
    "operator": "At equal spread of the first scores,",
    "source": "With only their own matrices started as in their sources,",
    "spread": "At equal operator,",
    "rate": "With a larger learning rate for what makes the scores,",
}
FIRST_SCREEN = ("operator", "source")
AUTHORS_RANGE = 0.02  # of every new weight, in the code that Courtois et al. released
ENOUGH = 0.9  # of the runs of the best arm must leave the plateau, or the runs are too short


def sentences(tests: pd.DataFrame, frame: pd.DataFrame, confidence: float, initializer_range: float) -> list[Sentence]:
    """The answer to the first questions, for the first screen, without single places; none without a study.

    initializer_range: of all other weights, beside which the authors' own is told.
    """
    leads, tests = ("Leaving the plateau", "Their own matrices as in the sources"), tests[tests["place"] == ""]
    first, own = (answer(tests, frame, confidence, (question,)) for question in FIRST_SCREEN)
    own = "" if own == first else own  # where the study decides nothing, it says so once
    if own and initializer_range != AUTHORS_RANGE:
        own += (
            f" All other weights start at {initializer_range:g}, where the authors' code has {AUTHORS_RANGE:g}: their "
            "own start was not run."
        )
    link = ("the study", "#plateau")
    return [Sentence(lead, text, (link,)) for lead, text in zip(leads, (first, own), strict=True) if text]


def others_start(initializer_range: float) -> str:
    """How all other weights start, beside the authors' code, for the text of the study."""
    theirs = f", where the released code of Courtois et al. has {AUTHORS_RANGE:g}"
    wider = ", so that even then first scores spread more than theirs would at this width"
    return f"N(0, {initializer_range:g}²)" + (theirs + wider if initializer_range > AUTHORS_RANGE else "")


def answer(
    tests: pd.DataFrame, frame: pd.DataFrame, confidence: float, questions: tuple[str, ...] = tuple(OPENINGS)
) -> str:
    """The answer of the study, that of every size, a sentence for each of some questions; empty without a study.

    Nothing is said to be equal: what is not shown is told with the difference that would have been found. No answer is
    given where the best arm leaves too seldom, or where no comparison of operators has an interval.
    """
    sizes = frame["size"].drop_duplicates()
    made = {
        size: _answer(tests[tests["size"] == size], frame[frame["size"] == size], confidence, questions)
        for size in sizes
    }
    told = [f"At BERT-{size}: {said}" if len(sizes) > 1 else said for size, said in made.items() if said]
    return names.unbroken(" ".join(told))


def _answer(tests: pd.DataFrame, frame: pd.DataFrame, confidence: float, questions: tuple[str, ...]) -> str:
    best = frame.sort_values(["never", "mean"]).iloc[0]
    if 1 - best["never"] / best["runs"] < ENOUGH:
        few = left(best["never"], best["runs"])
        return f"The study decides nothing: even in its best arm only {few} runs leave the plateau."
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
        within = f"{left(row.never, row.runs)} runs with {name(row.term)} leave within {number(row.horizon, 0)} steps"
        others = f"{left(row.never_reference, row.runs_reference)} with {reference}"
        parts.append(f"{within}, {others}{singly.get(row.term, '')}")
    return parts


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


def _all(terms: pd.Series, name: Callable[[str], str]) -> str:
    *others, last = map(name, terms)
    return f"{', '.join(others)} and {last}" if others else last
