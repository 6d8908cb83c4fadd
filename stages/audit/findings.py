"""A finding of the audit, and functions that make a finding: by printed digits, as a whole statement, or as a note.

The words of every computed check are in statements.yaml. `check` is a key there, such as `C.GAIN.{size}`, and `values`
are the values for the braces of the key and of both texts (statement and arithmetic).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

from stages.evidence.verdicts import Statement, judge_printed_number
from stages.files.yaml_files import read_yaml


@dataclass(frozen=True)
class Finding:
    """A check of the audit, with the verdict and the reason in words.

    Attributes:
        check: the identifier, such as `C.GAIN.base`.
        statement: the statement that is checked, in words.
        verdict: NOT_CHECKABLE marks a note, which judges no printed statement, but is evidence for a claim.
        arithmetic: the numbers behind the verdict, in words.
        by: `arithmetic`, or `reading` if two statements were compared by eye.
    """

    check: str
    statement: str
    verdict: Statement
    arithmetic: str
    by: str = "arithmetic"


# The return type of every function that makes checks.
Findings = Iterator[Finding]


@cache
def read_content(name: str) -> dict:
    """Read a YAML file of this folder: `checks` (data of the checks) or `statements` (words of the checks)."""
    return read_yaml(Path(__file__).with_name(f"{name}.yaml"))


def make_finding(check: str, verdict: Statement, **values: object) -> Finding:
    """Make a finding with the words of statements.yaml: `C.GAIN.{size}` and `size="base"` give check `C.GAIN.base`."""
    # Before Python 3.12, Fractions have no format such as `.2f`.
    shown = {name: float(value) if isinstance(value, Fraction) else value for name, value in values.items()}
    statement, arithmetic = read_content("statements")[check]
    return Finding(
        check=check.format(**shown),
        statement=statement.format(**shown),
        verdict=verdict,
        arithmetic=arithmetic.format(**shown),
    )


def judge_printed(check: str, printed: str, exact: Fraction, word: str = "", **values: object) -> Finding:
    """Make a finding on a printed number: does the exact number, in the same unit, round to the printed digits?

    The verdict is TRUNCATED if the digits result only by cutting off. `word` stands before the number, such as
    `about`.
    """
    return make_finding(check, judge_printed_number(printed, exact, word), printed=printed, exact=exact, **values)


def check_equal(check: str, printed: object, other: object, **values: object) -> Finding:
    """Make a finding that holds if the printed number and the number from elsewhere are equal."""
    return check_statement(check, printed == other, printed=printed, other=other, **values)


def check_statement(check: str, holds: bool, **values: object) -> Finding:
    """Make a finding on a statement that holds or fails as a whole."""
    return make_finding(check, Statement.HOLDS if holds else Statement.FAILS, **values)


def note_numbers(check: str, **values: object) -> Finding:
    """Make a finding that states numbers without a verdict."""
    return make_finding(check, Statement.NOT_CHECKABLE, **values)


def pick_best(verdicts: Iterable[Statement]) -> Statement:
    """Return the most favourable verdict: holds, truncated, fails."""
    return min(verdicts, key=(Statement.HOLDS, Statement.TRUNCATED, Statement.FAILS).index)
