"""The words of all verdicts, and the judges: of a difference between two arms, and of a statement of a paper.

Tables, claims, cells, figures and sentences take the words from here; the value of a member is the word for readers.
analysis/contrasts.py says when the interval of a comparison counts; cell_verdicts.py says the same for a cell.
"""

from enum import StrEnum
from fractions import Fraction
from math import inf, isnan

from stages.evidence.statistics import FEWEST, FINETUNING, ROUNDS


class Difference(StrEnum):
    """The verdict on a difference: the side of zero on which the interval lies, or why there is no verdict."""

    HIGHER = "higher"
    LOWER = "lower"
    NOT_SIGNIFICANT = "not significant"
    AT_CHANCE = "at chance"
    # Too few seeds, rounds or checkpoints for a test, too few runs that reach a milestone, or only equal runs.
    TOO_FEW = "too few runs for a test"
    BUSY = "machine was busy"
    NOT_RUN = "not run"


class Statement(StrEnum):
    """The verdict on a statement of a paper, or on a printed number without error."""

    HOLDS = "holds"
    PARTLY = "partly"
    # The digits result only if they are cut off instead of rounded.
    TRUNCATED = "truncated"
    # The source reports no evidence.
    UNSUPPORTED = "unsupported"
    FAILS = "fails"
    # The numbers exist or could exist, but do not decide the statement.
    UNDECIDED = "undecided"
    # No number decides the statement.
    NOT_CHECKABLE = "not checkable"


# Verdicts on differences that rest on an interval.
TESTED = (Difference.HIGHER, Difference.LOWER, Difference.NOT_SIGNIFICANT)
# In the audit, a paper agrees or disagrees with its own numbers, which is no replication.
AUDITED = {
    Statement.HOLDS: "consistent",
    Statement.FAILS: "inconsistent",
    Statement.UNSUPPORTED: "no evidence",
}
# A sign for every verdict, and a tone: good, bad, open, or an empty text.
SYMBOLS = {
    Difference.HIGHER: "▲",
    Difference.LOWER: "▼",
    Difference.NOT_SIGNIFICANT: "·",
    Statement.HOLDS: "✓",
    Statement.PARTLY: "◐",
    Statement.TRUNCATED: "≈",
    Statement.UNSUPPORTED: "∅",
    Statement.FAILS: "✗",
    Statement.UNDECIDED: "○",
    Statement.NOT_CHECKABLE: "?",
}
TONES = {
    Statement.HOLDS: "good",
    Statement.PARTLY: "open",
    Statement.UNSUPPORTED: "open",
    Statement.FAILS: "bad",
}
# Words before a printed number that allow a whole unit of the last digit.
APPROXIMATELY = ("about", "approximately", "around")


def judge_difference(low: float, high: float) -> Difference:
    """Judges a difference by the ends of its interval, which are NaN if there are too few runs for an interval."""
    if isnan(low):
        return Difference.TOO_FEW
    if low > 0:
        return Difference.HIGHER
    if high < 0:
        return Difference.LOWER
    return Difference.NOT_SIGNIFICANT


def explain_too_few(unit: str, *counts: int) -> str:
    """Names the cause (key of `reasons` in contrasts.yaml) of too few units; an empty text if there can be a verdict.

    A verdict needs three pre-training seeds (or rounds) on either side, whose numbers are `counts`. Any number of
    fine-tuning seeds is too few, because these share one checkpoint.
    """
    fewest = min(counts)
    if unit == ROUNDS:
        return "TOO_FEW_ROUNDS" if fewest < FEWEST else ""
    if unit == FINETUNING or fewest < 2:
        return "ONE_CHECKPOINT"
    if fewest < FEWEST:
        return "TOO_FEW_SEEDS"
    return ""


def judge_claim(low: float, high: float, above: float = -inf, below: float = inf) -> Statement:
    """Judges whether an interval (`low`, `high`) lies in the claimed range (`above`, `below`).

    An interval from -1 to 1 leaves `above=0` undecided. A number without error is an interval of one value. NaN ends
    leave every value possible.
    """
    if above <= low and high <= below:
        return Statement.HOLDS
    if high <= above or low >= below:
        return Statement.FAILS
    return Statement.UNDECIDED


def find_unit(text: str) -> Fraction:
    """Finds the unit of the last significant digit of a printed number, its tolerance: `5.93` gives 1/100.

    `30000` gives 1,000, because zeros at the end only show the size of a number. But the first two digits always count:
    `50` gives 1, so that 48 does not pass as a rounded 50.
    """
    digits = text.lstrip("+-")
    if "." in digits:
        decimals = digits.partition(".")[2]
        return Fraction(1, 10 ** len(decimals))
    first_two = min(2, len(digits))
    significant = max(len(digits.rstrip("0")), first_two)
    return Fraction(10 ** (len(digits) - significant))


def judge_printed_number(text: str, exact: Fraction, word: str = "") -> Statement:
    """Judges whether a printed number agrees with the exact number: `5.93` agrees with 5.934.

    Args:
        text: the printed number, without separators, such as `12.94` or `30000`.
        exact: the exact number, in the same unit.
        word: the word before the number in the source: `about`, `approximately`, `around`, `up to`, or an empty text.

    Returns:
        HOLDS: the exact number rounds to the printed digits (a tie up or down). After `about` and the like, a whole
        unit of the last digit is allowed; after `up to`, any smaller number.
        TRUNCATED: the exact number gives the printed digits only if cut off, such as a positive number printed as 0.
        FAILS: in all other cases.

    Raises:
        ValueError: the word is unknown, or the text is no number.
    """
    if word not in ("", "up to", *APPROXIMATELY):
        raise ValueError(f"no tolerance for {word!r}; use {', '.join(APPROXIMATELY)}, up to or an empty text")
    unit = find_unit(text)
    printed = Fraction(text)
    if word == "up to" and exact < printed:
        return Statement.HOLDS
    tolerance = unit if word in APPROXIMATELY else unit / 2
    if abs(exact - printed) <= tolerance:
        return Statement.HOLDS
    # Digits are cut off towards zero.
    cut = exact - printed
    if printed < 0:
        cut = -cut
    if 0 <= cut < unit:
        return Statement.TRUNCATED
    return Statement.FAILS
