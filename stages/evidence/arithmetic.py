"""One rule of tolerance for printed numbers: each is as precise as its digits and the word before it."""

from fractions import Fraction

HOLDS, TRUNCATED, FAILS = "holds", "truncated", "fails"
NOT_DECIDED = "not decided"  # where a source leaves open what a number would have to be
APPROXIMATELY = ("about", "approximately", "around")


def unit(text: str) -> Fraction:
    """Returns the worth of one unit in the last digit that counts in a printed number: 1/100 for `5.93`.

    text: as for `judge`. Zeros that end a whole number show its size and not its precision, but its first two digits
    always count: the unit of `30000` is 1,000 and that of `50` is 1, so that `50` is not taken for a rounded 48.
    """
    digits = text.lstrip("+-")
    if "." in digits:
        return Fraction(1, 10 ** len(digits.partition(".")[2]))
    counting = max(len(digits.rstrip("0")), min(2, len(digits)))
    return Fraction(10 ** (len(digits) - counting))


def judge(text: str, exact: Fraction, word: str = "") -> str:
    """Judges whether a printed number agrees with the exact one, by the digits printed and the word before them.

    Args:
        text: the printed number, without separators, such as `12.94` or `30000`.
        exact: what it should be, in the same unit.
        word: what the source says before it: one of APPROXIMATELY, `up to`, or nothing.

    Returns:
        HOLDS where the exact number rounds to the printed digits, a tie either way; after a word of APPROXIMATELY,
        where it is at most a unit of the last digit away; after `up to`, also where it is less. TRUNCATED where it only
        gives the printed digits if cut off there; a printed 0 counts as a positive number cut off. FAILS otherwise.

    Raises:
        ValueError: for a word that this rule does not know, and for a text that is no number.
    """
    if word not in ("", "up to", *APPROXIMATELY):
        raise ValueError(f"no tolerance for {word!r}; known are {', '.join(APPROXIMATELY)} and up to")
    step, printed = unit(text), Fraction(text)
    if abs(exact - printed) <= (step if word in APPROXIMATELY else step / 2) or (word == "up to" and exact < printed):
        return HOLDS
    away = exact - printed if printed >= 0 else printed - exact
    return TRUNCATED if 0 <= away < step else FAILS
