"""What every audit check is made of: exact fractions of printed numbers, one rule of tolerance, and GRIM.

`judge` is that rule, for the audit and for claims: a printed number is as precise as its digits and the word before it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from stages.evidence import published

HOLDS, TRUNCATED, FAILS, NOTE = "holds", "truncated", "fails", "informative"
NOT_DECIDED = "not decided"  # where the source leaves open what a number would have to be
APPROXIMATELY = ("about", "approximately", "around")


@dataclass(frozen=True)
class Finding:
    """One check. verdict: HOLDS, TRUNCATED, FAILS, or NOTE for a number that judges no published statement.

    by: `arithmetic`, or `reading` where two statements were compared by eye.
    """

    check: str
    statement: str
    verdict: str
    arithmetic: str
    by: str = "arithmetic"


@dataclass(frozen=True)
class Numbers:
    """The printed cells of one table by row and column key."""

    cells: dict[tuple[str, str], str]

    def text(self, row: str, column: str) -> str:
        """The number of a cell as its digits, without separators or signs around it."""
        return self.cells[row, column]

    def value(self, row: str, column: str) -> Fraction:
        return Fraction(self.cells[row, column])


@cache
def numbers(name: str, part: str = "value") -> Numbers:
    """The cells of a table that hold numbers; part: `value`, or `std` for what stands in brackets."""
    frame = published.texts(name)
    frame = frame[frame[part] != ""]
    return Numbers(dict(zip(zip(frame["row_key"], frame["column_key"], strict=True), frame[part], strict=True)))


def decimals(text: str) -> int:
    """How many digits a printed number has after its point."""
    return len(text.partition(".")[2])


def unit(text: str) -> Fraction:
    """The place of the last digit that counts in a printed number: 1/100 for `5.93`, 1,000 for `30000`.

    Zeros that end a whole number show its size and not its precision, but two digits always count: `50` is no 48.
    """
    digits = text.lstrip("+-")
    if "." in digits:
        return Fraction(1, 10 ** decimals(digits))
    counting = max(len(digits.rstrip("0")), min(2, len(digits)))
    return Fraction(10 ** (len(digits) - counting))


def judge(text: str, exact: Fraction, word: str = "") -> str:
    """Whether a printed number gives the exact one, by the digits printed and the word before them.

    Args:
        text: the printed number, without separators, such as `12.94` or `30000`.
        exact: what it should be, in the same unit.
        word: what the source says before it: one of APPROXIMATELY, `up to`, or nothing.

    Returns:
        HOLDS where the exact number rounds to the printed digits; after a word of APPROXIMATELY, where it is at most
        one unit of the last digit away; after `up to`, also where it is less. TRUNCATED where only cutting the digits
        of the exact number off gives the printed ones. FAILS otherwise.

    Raises:
        ValueError: for a word that this rule does not know.
    """
    if word not in ("", "up to", *APPROXIMATELY):
        raise ValueError(f"no tolerance for {word!r}; known are {', '.join(APPROXIMATELY)} and up to")
    step, printed = unit(text), Fraction(text)
    if abs(exact - printed) <= (step if word in APPROXIMATELY else step / 2) or (word == "up to" and exact < printed):
        return HOLDS
    away = exact - printed if printed >= 0 else printed - exact
    return TRUNCATED if 0 <= away < step else FAILS


def compare(check: str, statement: str, text: str, exact: Fraction, more: str = "", word: str = "") -> Finding:
    """A finding that sets a printed number, and the word before it, against the exact one."""
    shown = (
        f"printed {text}, computed {float(exact):.5g}"
        if abs(exact) < 10_000
        else f"printed {text}, computed {float(exact):,.0f}"
    )
    return Finding(check, statement, judge(text, exact, word), shown + (f"; {more}" if more else ""))


def whether(check: str, statement: str, holds: bool, arithmetic: str) -> Finding:
    """A finding on a statement that holds or fails as a whole."""
    return Finding(check, statement, HOLDS if holds else FAILS, arithmetic)


def note(check: str, statement: str, arithmetic: str) -> Finding:
    """A finding that judges no statement, for a number that a reader should know."""
    return Finding(check, statement, NOTE, arithmetic)


def possible(text: str, examples: int, runs: int = 1) -> str:
    """GRIM (Brown and Heathers 2017): can a percentage be the mean accuracy of so many runs on so many examples?

    HOLDS where some number of right answers rounds to it, TRUNCATED where only cutting gives it, FAILS otherwise.
    """
    total, printed = examples * runs, Fraction(text)
    nearest = math.floor(printed * total / 100)
    verdicts = {judge(text, Fraction(100 * right, total)) for right in range(max(0, nearest - 1), nearest + 3)}
    return next(verdict for verdict in (HOLDS, TRUNCATED, FAILS) if verdict in verdicts)


def excludes(examples: int, runs: int) -> bool:
    """Whether GRIM can exclude any percentage of two decimals: not where possible means lie closer than 0.01 points."""
    return examples * runs < 10_000


@cache
def chance(examples: int, runs: int) -> float:
    """The share of all percentages with two decimals from 50 to 100 that pass: how little GRIM excludes."""
    texts = [f"{value / 100:.2f}" for value in range(5000, 10001)]
    return sum(possible(text, examples, runs) == HOLDS for text in texts) / len(texts)


VOCABULARY, POSITIONS, TYPES = 30522, 512, 2
SIZES = {"small": (4, 512, 2048, 8), "base": (12, 768, 3072, 12)}  # layers, width, inner width, heads


@dataclass(frozen=True)
class Count:
    """Exact parameters of a BERT: projections of one layer, one layer, the encoder, and the two heads."""

    projections: int
    layer: int
    encoder: int
    masked_lm: int
    classifier: int


def bert(operator: str, size: str, bias: bool = True) -> Count:
    """By closed formulas of its parts; bias: of the shared projection."""
    layers, h, inner, heads = SIZES[size]
    linear = h * h + h
    projections = {
        "original": 3 * linear,
        "symmetric": 2 * linear,
        "pairwise": 2 * linear + heads * (h // heads) ** 2,
        "shared": h * h + bias * h + 3 * h,
    }[operator]
    layer = projections + linear + 2 * h + (h * inner + inner) + (inner * h + h) + 2 * h
    encoder = (VOCABULARY + POSITIONS + TYPES) * h + 2 * h + layers * layer
    return Count(projections, layer, encoder, encoder + linear + 2 * h + VOCABULARY, encoder + linear + 2 * h + 2)
