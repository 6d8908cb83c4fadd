"""The first screen of the report: what is known about each operator, in sentences that follow from data.

A sentence is made only where its numbers are there; a direction is named only where the difference is shown after
Holm's method over the operators, and what several fine-tuning seeds of one checkpoint show is said of that checkpoint.
"""

from dataclasses import dataclass

import pandas as pd

from stages.common.evidence.arithmetic import FAILS
from stages.common.evidence.cells import PAPER_SIZES
from stages.common.evidence.scores import COLUMNS, GLUE_SCORE
from stages.common.evidence.statistics import FEWEST, ONE_CHECKPOINT, PRETRAINING, TOO_FEW
from stages.report import names
from stages.report.overview import scored
from stages.report.tables import interval, number, signed

BIGGEST = PAPER_SIZES[-1]
FINDINGS = 3
FIELDS = {  # of comparisons
    *("source", "protocol", "operator", "size", "column", "difference", "low", "high"),
    *("verdict", "direction", "n", "unit_of_inference"),
}


@dataclass(frozen=True)
class Sentence:
    """lead: its first words, set apart. links: (label, address) of where it is shown."""

    lead: str
    text: str
    links: tuple[tuple[str, str], ...] = ()


def operators(
    described: dict, summaries: pd.DataFrame, comparisons: pd.DataFrame, checks: pd.DataFrame, confidence
) -> list[Sentence]:
    """What each operator of the papers saves, and what the released results say that it costs.

    Args:
        described: operator -> `does` (a few words) and, where no results are released, `instead`: a check of the audit
            and what it says of the published ones.
        summaries: the counts among them, as analysis summarises.
        comparisons: differences to the original operator, with their intervals.
        checks: the audit.
        confidence: of the intervals, as a fraction.
    """
    released = differences(comparisons, "released")
    sentences = []
    for operator, words in described.items():
        saved = saving(summaries, operator)
        parts = [f"{words['does']}."]
        if saved is not None:
            parts.append(f"It saves {number(saved, 1)} % of the parameters of BERT-{BIGGEST}.")
        parts.append(_cost(released[released["operator"] == operator], confidence) or _nothing(words, checks))
        links = [("counts", "#parameters"), ("released results", "#against_original")]
        instead = words.get("instead", {}).get("check")
        if not (released["operator"] == operator).any():
            links = links[:1] + (
                [(f"audit, {instead}", f"audit.html#{instead}")] if instead in set(checks["check"]) else []
            )
        sentences.append(Sentence(names.operator(operator).capitalize(), names.unbroken(" ".join(parts)), tuple(links)))
    return sentences


def differences(comparisons: pd.DataFrame, source: str) -> pd.DataFrame:
    """Differences of the GLUE score to the original operator that have an interval; none where a column is missing."""
    if not set(comparisons.columns) >= FIELDS:
        return pd.DataFrame(columns=sorted(FIELDS))
    rows = comparisons[(comparisons["source"] == source) & (comparisons["column"] == GLUE_SCORE)]
    return rows[rows[["difference", "low", "high"]].notna().all(axis=1)]


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """The differences that have enough pre-training seeds for a verdict."""
    return rows[~rows["verdict"].isin((ONE_CHECKPOINT, TOO_FEW))]


def saving(summaries: pd.DataFrame, operator: str, size: str = BIGGEST) -> float | None:
    """The share of a masked-language model's parameters that an operator saves, in per cent; None if not counted."""
    found = summaries.loc[
        (summaries["metric"] == "saved_percent") & (summaries["operator"] == operator) & (summaries["size"] == size),
        "mean",
    ]
    return float(found.iloc[0]) if len(found) else None


def _cost(rows: pd.DataFrame, confidence: float) -> str:
    """What the released results show, the biggest model first; empty without them."""
    if rows.empty:
        return ""
    rows = biggest_first(rows)
    shown = [
        phrase(row, f"{confidence:.0%} interval " if place == 0 else "") for place, row in enumerate(rows.itertuples())
    ]
    units = set(rows["unit_of_inference"])
    unit = (
        "Each arm is several pre-training runs."
        if units == {PRETRAINING} and rows["n"].min() > 1
        else "There is one pre-trained checkpoint per arm: this speaks for those checkpoints, not for the operator."
    )
    return f"In GLUE score the authors' released results show {' and '.join(shown)}. {unit}"


def biggest_first(rows: pd.DataFrame) -> pd.DataFrame:
    """Sizes that the papers have from the biggest on, then others."""
    order = {size: place for place, size in enumerate(reversed(PAPER_SIZES))}
    return rows.sort_values(
        "size", key=lambda sizes: sizes.map(lambda size: order.get(size, len(order))), kind="stable"
    )


def recipe(rows: pd.DataFrame, row) -> str:
    """Whose recipe fine-tuned a model of this run, where there are several."""
    several = rows.loc[rows["source"] == "reproduced", "protocol"].nunique() > 1
    return f", {names.protocol(row.protocol)}" if several and row.source == "reproduced" else ""


def phrase(row, interval_name: str = "") -> str:
    """A difference in words: a direction only where it is shown over all operators together."""
    size = f"at BERT-{row.size}"
    if row.direction == "higher":
        return f"a gain of {number(row.difference, 2)} points {size} ({interval_name}{interval(row.low, row.high, 2)})"
    if row.direction == "lower":
        return (
            f"a loss of {number(-row.difference, 2)} points {size} ({interval_name}{interval(-row.high, -row.low, 2)})"
        )
    both = interval(row.low, row.high, 2)
    together = " over all operators together" if row.low > 0 or row.high < 0 else ""
    return f"no detectable difference{together} {size} ({signed(row.difference, 2)} points, {interval_name}{both})"


def _nothing(words: dict, checks: pd.DataFrame) -> str:
    instead = words.get("instead", {})
    there = instead.get("check") in set(checks["check"])
    return f"What it costs is not known: no raw results of it are released{', ' + instead['says'] if there else ''}."


def findings(listed: list[dict], checks: pd.DataFrame) -> list[Sentence]:
    """The first of the listed checks that fail, in words and with their arithmetic, each linked to its place.

    Args:
        listed: by weight; `check`, and `says`: what it means when that check fails.
        checks: the audit.
    """
    found = checks.set_index("check")
    failing = [
        entry for entry in listed if entry["check"] in found.index and found.at[entry["check"], "verdict"] == FAILS
    ]
    return [
        Sentence(
            entry["says"],
            f"In numbers: {names.prose(found.at[entry['check'], 'arithmetic']).rstrip('.')}.",
            ((f"audit, {entry['check']}", f"audit.html#{entry['check']}"),),
        )
        for entry in failing[:FINDINGS]
    ]


def this_run(settings, summaries: pd.DataFrame, comparisons: pd.DataFrame) -> list[Sentence]:
    """What this run can add to what is known, and what it cannot.

    Args:
        settings: of the run.
        summaries: as above.
        comparisons: as above.
    """
    tuned = len(scored(settings, summaries)) > 0
    at_chance = chance(summaries, settings)
    reasons = limits(settings, at_chance)
    counted = saving(summaries, settings.operators[-1]) is not None
    can = ["It counts the parameters of the papers' models anew, whatever its own scale."] if counted else []
    own = differences(comparisons, "reproduced")
    tested = judged(own)
    if len(tested) and not at_chance:
        where = " between its own models" if reasons else ""
        can.append(f"In GLUE score against the original it finds{where} {_found(tested)}.")
    cannot = f"It cannot test what the papers say about scores: {'; '.join(reasons)}." if reasons else ""
    links = (("counts", "#parameters"), *([("its scores", "#overview")] if tuned else []))
    return [
        *([Sentence("What it adds", " ".join(can), links)] if can else []),
        *([Sentence("What it cannot tell", cannot)] if cannot else []),
    ]


def _found(rows: pd.DataFrame) -> str:
    """The differences that are shown, with their intervals, and then the operators of which none is."""
    is_shown = rows["direction"].isin(("higher", "lower"))
    shown = [
        f"for {names.operator(row.operator)}{recipe(rows, row)} {phrase(row)}" for row in rows[is_shown].itertuples()
    ]
    others = [
        f"{names.operator(row.operator)}{recipe(rows, row)}"
        + (f" at BERT-{row.size}" if rows["size"].nunique() > 1 else "")
        + (
            f" ({signed(row.difference, 2)}, {interval(row.low, row.high, 2)} taken alone)"
            if row.low * row.high > 0
            else ""
        )
        for row in rows[~is_shown].itertuples()
    ]
    return "; ".join([*shown, *([f"no detectable difference for {', '.join(others)}"] if others else [])])


def chance(summaries: pd.DataFrame, settings) -> str:
    """Which of a run's scores do not rise above a constant answer, as a reason not to read them as results.

    Judged by the GLUE score, and by its columns where a run has not all of them. Empty where all scores are above;
    where it is not known whether they are, that is the reason.
    """
    rows = scored(settings, summaries)
    if rows.empty:
        return "it fine-tunes no model"
    whole = rows[rows["evaluated_on"] == GLUE_SCORE]
    rows = whole if len(whole) else rows[rows["evaluated_on"].isin(COLUMNS)]
    if "at_chance" not in rows or rows["at_chance"].isna().all():
        return "whether its scores are above chance is not known"
    low, what = int(rows["at_chance"].eq(True).sum()), "GLUE scores" if len(whole) else "scores of single tasks"
    if not low:
        return ""
    return f"{'all' if low == len(rows) else low} of its {len(rows)} {what} are at chance"


def limits(settings, at_chance: str) -> list[str]:
    """Why the scores of a run do not speak for or against the papers."""
    reasons = []
    if settings.data.source == "embedded":
        reasons.append("its text and tasks are generated by this repository")
    strange = [size for size in settings.sizes if size not in PAPER_SIZES]
    if strange:
        papers = " and ".join(f"BERT-{size}" for size in PAPER_SIZES)
        reasons.append(f"its models are {', '.join(f'BERT-{size}' for size in strange)}, the papers' are {papers}")
    if len(settings.pretraining.seeds) == 1:
        reasons.append("it has one pre-training seed, which speaks for one checkpoint per arm and not for an operator")
    elif len(settings.pretraining.seeds) < FEWEST:
        reasons.append(f"it has {len(settings.pretraining.seeds)} pre-training seeds, where a verdict takes {FEWEST}")
    return reasons + ([at_chance] if at_chance else [])
