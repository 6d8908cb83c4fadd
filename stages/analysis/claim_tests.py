"""Decides a claim from its estimates: one verdict for all the places that the claim speaks of, with a known error.

A test is an entry of claim_rules.yaml, and every place that it names is a cell. A claim holds where it holds in every
cell, so each cell is tested at alpha and all must pass (an intersection-union test, Berger 1982). It fails where it
fails somewhere, so the cells' p values against it are adjusted by Holm's method. Both err in at most a share alpha of
runs, however many cells there are; with neither, the claim stays open. A claim about an operator is decided by three
pre-training runs or more: one checkpoint per arm leaves it open, two seeds do, and so does a cell where all that is
compared is at chance.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd

from stages.analysis.claim_estimates import ESTIMATES, bounds
from stages.analysis.power_sentences import sentence
from stages.evidence.arithmetic import FAILS, HOLDS, TRUNCATED, judge
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.estimate import Estimate, unit_of_inference
from stages.evidence.statistics import FEWEST
from stages.evidence.translation import model

YES, NO, OPEN, ONE, FEW, CHANCE, NOTHING = "yes", "no", "open", "one checkpoint", "few", AT_CHANCE, "nothing"
AS_CLAIMED, NOT_AS_CLAIMED, OPPOSITE, UNDECIDED = "as claimed", "not as claimed", "opposite direction", "undecided"
PARTLY = "partly"


@dataclass(frozen=True)
class Cell:
    """One place of a claim. estimate: None where nothing was measured."""

    test: dict
    label: str
    estimate: Estimate | None


@dataclass(frozen=True)
class Outcome:
    """verdict: of the claim. reading: what the runs themselves say, whatever they can speak for. The rest in words.

    places: of which the claim speaks.
    """

    verdict: str
    reading: str = ""
    unit: str = ""
    estimate: str = ""
    interval: str = ""
    power: str = ""
    places: int = 0


def evaluate(
    tests: list[dict], rows: pd.DataFrame, size: str | None, confidence: float, alpha: float, single: bool = False
) -> Outcome:
    """All tests of one claim on all of its cells. size: in place of the sizes of the tests.

    single: single runs are read by their value, which decides about those runs and nothing else.
    """
    cells = [cell for test in tests for cell in _cells(test, rows, size, confidence)]
    found = [cell for cell in cells if cell.estimate is not None]
    if not found:
        return Outcome(NOTHING)
    if all(cell.test["test"] == "exact" for cell in found):
        return _counted(found, len(found) == len(cells))
    verdict = decide(found, alpha, single)
    verdict = NOTHING if verdict != NO and len(found) < len(cells) else verdict
    reading = _reading(found, verdict, alpha)
    checkpoints = [cell.estimate.checkpoints for cell in found if cell.estimate.checkpoints is not None]
    if any(cell.estimate.at_chance for cell in found):
        verdict, reading = CHANCE, AT_CHANCE
    elif min(checkpoints, default=FEWEST) < FEWEST and verdict != NOTHING:
        verdict = ONE if min(checkpoints) < 2 else FEW
    return Outcome(
        verdict,
        reading,
        "; ".join(dict.fromkeys(unit_of_inference(cell.estimate) for cell in found)),
        "; ".join(_labelled(cell, _shown(cell)) for cell in found),
        "; ".join(_labelled(cell, _ends(cell, confidence)) for cell in found if cell.estimate.known),
        "" if verdict == CHANCE else sentence([(cell.test, cell.estimate) for cell in found], alpha),
        len(cells),
    )


def _cells(test: dict, rows: pd.DataFrame, size: str | None, confidence: float) -> list[Cell]:
    """One for every size and every value of `each`."""
    field, values = next(iter(test.get("each", {}).items()), (None, [None]))
    sizes = [None] if "size" in test["select"] else [size] if size else test["sizes"]
    made = []
    for value, place in product(values, sizes):
        select = test["select"] | ({field: value} if field else {}) | ({"size": place} if place else {})
        made.append(Cell(test, _label(test, select, place), ESTIMATES[test["test"]](test, rows, select, confidence)))
    return made


def _label(test: dict, select: dict, size: str | None) -> str:
    where = [select.get(key) for key in ("operator", "evaluated_on", "task", "condition", "metric")]
    several = "operator" in select or "each" in test or "condition" in select
    names = [str(name).replace("_", " ") for name in where[: 4 if "metric" not in test.get("each", {}) else 5] if name]
    return " ".join([*filter(None, [_subject(test)]), *(names if several else []), *([model(size)] if size else [])])


def _subject(test: dict) -> str:
    divided = test.get("ratio") or test["test"] == "spread"
    return f"{test['of']} {'/' if divided else '−'} {test['than']}" if "of" in test else ""


def _counted(cells: list[Cell], complete: bool) -> Outcome:
    """Counts against what is printed, by the tolerance of its digits and words: HOLDS, TRUNCATED, PARTLY or FAILS."""
    judged = [_judged(cell) for cell in cells]
    verdict = judged[0] if len(set(judged)) == 1 else TRUNCATED if FAILS not in judged else PARTLY
    shown = "; ".join(_labelled(cell, _shown(cell)) for cell in cells)
    return Outcome(verdict if complete else NOTHING, unit="a count", estimate=shown)


def _judged(cell: Cell) -> str:
    if "printed" not in cell.test:
        return HOLDS if _by_value(cell) else FAILS
    count = Fraction(cell.estimate.value).limit_denominator(10**9)
    exact = 1 / (1 - count / 100) if cell.test.get("fold") else count
    return judge(str(cell.test["printed"]), exact, cell.test.get("word", ""))


def decide(cells: list[Cell], alpha: float, single: bool = False) -> str:
    """YES, NO or OPEN, by the rule at the head of this file; whose cells they are is not asked here.

    All cells pass at alpha: the error of all together is no larger than that of one. Or one fails after Holm, which
    rejects something exactly where the smallest p value times their number is below alpha.
    """
    if all(_p_for(cell, single) < alpha for cell in cells):
        return YES
    return NO if _any(np.array([_p_against(cell, single) for cell in cells]), alpha) else OPEN


def _any(p_values: np.ndarray, alpha: float) -> bool:
    known = p_values[~np.isnan(p_values)]
    return bool(len(known) and len(known) * known.min() < alpha)


def _by_value(cell: Cell) -> bool:
    low, high = bounds(cell.test)
    return low <= cell.estimate.value <= high


def _p_for(cell: Cell, single: bool) -> float:
    """p of the test that this cell is as claimed: two-sided, but one-sided at both ends for an equivalence."""
    low, high = bounds(cell.test)
    made = cell.estimate
    if made.exact or cell.test.get("point") or (single and not made.tested):
        return 0.0 if _by_value(cell) else 1.0
    if not made.tested:
        return 1.0
    return min(1.0, max(made.p_above(low), made.p_below(high)) * (1 if "within" in cell.test else 2))


def _p_against(cell: Cell, single: bool) -> float:
    """Two-sided p of the test that this cell lies outside of what is claimed; NaN where there is none."""
    low, high = bounds(cell.test)
    made = cell.estimate
    if made.exact or cell.test.get("point") or (single and not made.tested):
        return 1.0 if _by_value(cell) else 0.0
    return min(1.0, 2 * min(made.p_below(low), made.p_above(high))) if made.tested else np.nan


def _reading(cells: list[Cell], verdict: str, alpha: float) -> str:
    """What the runs say. A direction is called opposite only where an interval excludes no effect on the other side."""
    if verdict == YES:
        return AS_CLAIMED
    if verdict != NO:
        return UNDECIDED
    return OPPOSITE if _any(np.array([_p_opposite(cell) for cell in cells]), alpha) else NOT_AS_CLAIMED


def _p_opposite(cell: Cell) -> float:
    """Two-sided p that an effect has the other sign than the claimed one; NaN for claims without a direction."""
    test, made = cell.test, cell.estimate
    if test["test"] not in ("difference", "spread") or not made.tested or ("above" in test) == ("below" in test):
        return np.nan
    none = 1.0 if test.get("ratio") or test["test"] == "spread" else 0.0
    return min(1.0, 2 * (made.p_below(none) if "above" in test else made.p_above(none)))


def _labelled(cell: Cell, text: str) -> str:
    return f"{cell.label}: {text}" if cell.label else text


def _form(cell: Cell) -> str:
    value, exact = cell.estimate.value, cell.estimate.exact and float(cell.estimate.value).is_integer()
    return "{:,.0f}" if exact or abs(value) >= 1000 else "{:.3g}" if abs(value) < 1 else "{:.2f}"


def _shown(cell: Cell) -> str:
    made, test = cell.estimate, cell.test
    signed = test["test"] == "difference" and not test.get("ratio") and made.value > 0
    text = ("+" if signed else "") + _form(cell).format(made.value).replace("-", "−")
    late, runs = sum(made.never), sum(made.n)
    if late and late == runs:
        return f"none of {runs} runs got there"
    sure = "at least " * made.at_least + "at most " * made.at_most if made.at_least != made.at_most else ""
    return sure + text + (f" ({late} of {runs} runs never got there)" if late else "")


def _ends(cell: Cell, confidence: float) -> str:
    low, high = (
        _form(cell).format(x).replace("-", "−").replace("inf", "∞") for x in (cell.estimate.low, cell.estimate.high)
    )
    return f"{low} to {high} ({confidence:.0%})"


def describe(test: dict) -> str:
    """The test in words: what is compared, where, and what must hold."""
    select = test["select"]
    quantity = " ".join(
        str(select[key]) for key in ("metric", "evaluated_on", "task", "condition", "operator") if select.get(key)
    )
    subject = f"{_subject(test)}: " if "of" in test else ""
    each = f", each {next(iter(test['each']))}" if "each" in test else ""
    sizes = ", ".join(model(size) for size in test.get("sizes", [select.get("size")]) if size)
    return f"{subject}{_kind(test)}{quantity}{each} ({sizes}) {_asked(test)}".replace("_", " ")


def _kind(test: dict) -> str:
    if test["test"] == "spread":
        return "ratio of standard deviations within a pre-training run of "
    return "ratio of " if test.get("ratio") else ""


def _asked(test: dict) -> str:
    if "printed" in test:
        word = f"{test['word']} " if "word" in test else ""
        return f"gives the printed {word}{test['printed']}" + (" as a factor" if test.get("fold") else "")
    if "within" in test:
        return f"is closer to 0 than {test['within']:g}"
    if "between" in test:
        return f"lies between {test['between'][0]:g} and {test['between'][1]:g}"
    return " and ".join(f"lies {side} {test[side]:g}" for side in ("above", "below") if side in test)
