"""What a check of the audit finds, and the ways to find it: by digits, a statement as a whole, a note, GRIM.

The words of every check stand in statements.yaml, by its identifier: the statement that is checked, and the sentence
that its numbers are put into. Both, and the identifier, are patterns for the values that a check gives.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import yaml

from stages.evidence.arithmetic import FAILS, HOLDS, TRUNCATED, judge

NOTE = "informative"
BEST = (HOLDS, TRUNCATED, FAILS)
PATH = Path(__file__).with_name("statements.yaml")


@dataclass(frozen=True)
class Finding:
    """One check. verdict: HOLDS, TRUNCATED, FAILS, NOT_DECIDED, or NOTE for a number that judges no statement.

    by: `arithmetic`, or `reading` where two statements were compared by eye.
    """

    check: str
    statement: str
    verdict: str
    arithmetic: str
    by: str = "arithmetic"


@cache
def _statements() -> dict[str, list[str]]:
    return yaml.safe_load(PATH.read_text(encoding="utf-8"))


def finding(check: str, verdict: str, **values: object) -> Finding:
    """A finding in the words of statements.yaml.

    Args:
        check: the identifier, a key of that file.
        verdict: what is found.
        values: what the patterns of the identifier and its words name. Fractions are written as decimal numbers.
    """
    shown = {name: float(value) if isinstance(value, Fraction) else value for name, value in values.items()}
    statement, arithmetic = _statements()[check]
    return Finding(check.format(**shown), statement.format(**shown), verdict, arithmetic.format(**shown))


def whether(check: str, holds: bool, **values: object) -> Finding:
    """A finding on a statement that holds or fails as a whole. Other arguments as for `finding`."""
    return finding(check, HOLDS if holds else FAILS, **values)


def note(check: str, **values: object) -> Finding:
    """A finding that judges no statement, for a number that a reader should know. Arguments as for `finding`."""
    return finding(check, NOTE, **values)


def compare(check: str, text: str, exact: Fraction, word: str = "", **values: object) -> Finding:
    """A finding that sets a printed number, and the word before it, against the exact one.

    Args:
        check: as for `finding`.
        text: the printed number, as `judge` takes it.
        exact: what it should be.
        word: what the source says before it.
        values: as for `finding`; `compared` has the two numbers in words.
    """
    return finding(check, judge(text, exact, word), compared=compared(text, exact), **values)


def compared(text: str, exact: Fraction) -> str:
    """A printed number beside the exact one, in words."""
    return f"printed {text}, computed {float(exact):{'.5g' if abs(exact) < 10_000 else ',.0f'}}"


def possible(text: str, examples: int, runs: int = 1) -> str:
    """Checks by GRIM whether a percentage can be a mean accuracy: right answers are whole numbers, so few means exist.

    Args:
        text: the printed percentage, as `judge` takes it.
        examples: on which every run was tested.
        runs: whose accuracies were averaged.

    Returns:
        HOLDS where some number of right answers rounds to the percentage, TRUNCATED where only cutting gives it, FAILS
        otherwise (Brown and Heathers 2017).
    """
    total, printed = examples * runs, Fraction(text)
    nearest = math.floor(printed * total / 100)  # only its neighbours can round to what is printed
    verdicts = {judge(text, Fraction(100 * right, total)) for right in range(max(0, nearest - 1), nearest + 3)}
    return min(verdicts, key=BEST.index)


def excludes(examples: int, runs: int) -> bool:
    """Whether GRIM can exclude any percentage of two decimals: not where possible means lie closer than 0.01 points."""
    return examples * runs < 10_000


@cache
def chance(examples: int, runs: int) -> float:
    """The share of all percentages with two decimals from 50 to 100 that pass: how little GRIM excludes."""
    texts = [f"{value / 100:.2f}" for value in range(5000, 10001)]
    return sum(possible(text, examples, runs) == HOLDS for text in texts) / len(texts)
