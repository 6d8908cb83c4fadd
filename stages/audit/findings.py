"""What a check of the audit finds, and the ways to find it: by digits, a statement as a whole, a note, GRIM.

The words of a check stand in checks.yaml, if that describes it, or in statements.yaml by its identifier: what is
checked, and a sentence for its numbers. These texts and the identifier are filled, by str.format, with its values.
`judge` (stages.evidence.arithmetic) gives HOLDS where an exact number rounds to the printed digits, TRUNCATED where
they result only if its further digits are cut off, else FAILS; a word such as `about` before the number widens this.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import yaml

from stages.evidence.arithmetic import FAILS, HOLDS, TRUNCATED, judge

NOTE = "informative"
BEST = (HOLDS, TRUNCATED, FAILS)  # the verdicts of `judge`, the most favourable first


@dataclass(frozen=True)
class Finding:
    """One check. verdict: HOLDS, TRUNCATED, FAILS, NOT_DECIDED, or NOTE for a number that judges no statement.

    check: its identifier, such as `C.GAIN.base`. statement: what is checked, in words. arithmetic: the numbers behind
    the verdict, in words. by: `arithmetic`, or `reading` where two statements were compared by eye.
    """

    check: str
    statement: str
    verdict: str
    arithmetic: str
    by: str = "arithmetic"


@cache
def _statements() -> dict[str, list[str]]:
    """The two texts of every check, by its identifier."""
    return yaml.safe_load(Path(__file__).with_name("statements.yaml").read_text(encoding="utf-8"))


def finding(check: str, verdict: str, **values: object) -> Finding:
    """Makes a finding in the words of statements.yaml.

    Args:
        check: the identifier with its braces, a key of that file, such as `C.GAIN.{size}`.
        verdict: as in `Finding`.
        values: what the braces of the identifier and of both texts name; fractions are formatted as floats.
    """
    shown = {name: float(value) if isinstance(value, Fraction) else value for name, value in values.items()}
    statement, arithmetic = _statements()[check]
    return Finding(check.format(**shown), statement.format(**shown), verdict, arithmetic.format(**shown))


def whether(check: str, holds: bool, **values: object) -> Finding:
    """Makes a finding on a statement that holds or fails as a whole. check, values: as for `finding`."""
    return finding(check, HOLDS if holds else FAILS, **values)


def note(check: str, **values: object) -> Finding:
    """Makes a finding that judges no statement, for numbers that a reader should know. Arguments as for `finding`."""
    return finding(check, NOTE, **values)


def compare(check: str, text: str, exact: Fraction, word: str = "", **values: object) -> Finding:
    """Makes a finding on a printed number, with the verdict of `judge`.

    Args:
        check: as for `finding`.
        text: the printed number, as `judge` takes it.
        exact: what it should be, in the same unit.
        word: what the source says before the number, as `judge` takes it.
        values: as for `finding`, in addition to `compared`, the two numbers in words.
    """
    return finding(check, judge(text, exact, word), compared=compared(text, exact), **values)


def compared(text: str, exact: Fraction) -> str:
    """Words for a printed number and the exact one (five digits; whole from 10,000): `printed 2, computed 1.9524`."""
    return f"printed {text}, computed {float(exact):{'.5g' if abs(exact) < 10_000 else ',.0f'}}"


def possible(text: str, examples: int, runs: int = 1) -> str:
    """Checks by GRIM (Brown and Heathers 2017) whether whole numbers of right answers can give a printed mean accuracy.

    Args:
        text: the printed percentage, as `judge` takes it.
        examples: the number of examples that every run was tested on.
        runs: the number of runs whose accuracies were averaged.

    Returns:
        HOLDS where some number of right answers rounds to `text`, TRUNCATED where only cutting gives it, else FAILS.
    """
    total, printed = examples * runs, Fraction(text)
    nearest = math.floor(printed * total / 100)  # only its neighbours can round to what is printed
    verdicts = {judge(text, Fraction(100 * right, total)) for right in range(max(0, nearest - 1), nearest + 3)}
    return min(verdicts, key=BEST.index)


def excludes(examples: int, runs: int) -> bool:
    """Returns whether GRIM can exclude any percentage of two decimals: if possible means are over 0.01 points apart."""
    return examples * runs < 10_000


@cache
def chance(examples: int, runs: int) -> float:
    """Returns the share, in [0, 1], of all percentages from 50.00 to 100.00 that pass: how little GRIM excludes."""
    texts = [f"{value / 100:.2f}" for value in range(5000, 10001)]
    return sum(possible(text, examples, runs) == HOLDS for text in texts) / len(texts)
