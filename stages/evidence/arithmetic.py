"""Rules that decide whether a printed number agrees with an exact number, given the printed digits and words."""

from fractions import Fraction

HOLDS = "holds"
TRUNCATED = "truncated"
FAILS = "fails"
# The source leaves open which value a number should have.
NOT_DECIDED = "not decided"
APPROXIMATELY = ("about", "approximately", "around")


def find_unit(text: str) -> Fraction:
    """Finds the worth of one unit in the last significant digit of a printed number: `5.93` gives 1/100.

    Zeros at the end of a whole number only show the size of the number, but the first two digits always count: `30000`
    gives 1,000, and `50` gives 1, so that 48 does not pass as a rounded 50.
    """
    digits = text.lstrip("+-")
    if "." in digits:
        decimals = digits.partition(".")[2]
        return Fraction(1, 10 ** len(decimals))
    first_two = min(2, len(digits))
    significant = max(len(digits.rstrip("0")), first_two)
    return Fraction(10 ** (len(digits) - significant))


def judge_printed_number(text: str, exact: Fraction, word: str = "") -> str:
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
        return HOLDS
    tolerance = unit if word in APPROXIMATELY else unit / 2
    if abs(exact - printed) <= tolerance:
        return HOLDS
    # Digits are cut off towards zero.
    cut = exact - printed
    if printed < 0:
        cut = -cut
    if 0 <= cut < unit:
        return TRUNCATED
    return FAILS
