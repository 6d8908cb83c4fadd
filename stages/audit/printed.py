"""The printed tables as the audit reads them: exact numbers by row and column, and both editions of Kowsher et al."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from stages.evidence import published

COURTOIS = ("original", "symmetric", "pairwise")  # operators
KOWSHER = (*COURTOIS, "shared")
EDITIONS = dict(zip(("K24", "K25"), published.EDITIONS, strict=True))  # by the prefix of their checks
TABLE3 = "courtois2024_table3_glue"
TEXT = "courtois2024_text_and_figure_numbers"


@dataclass(frozen=True)
class Numbers:
    """The printed cells of one table by row and column key: numbers as their digits, without separators or signs."""

    cells: dict[tuple[str, str], str]

    def text(self, row: str, column: str) -> str:
        """The number of a cell as it is printed."""
        return self.cells[row, column]

    def value(self, row: str, column: str) -> Fraction:
        """The number of a cell."""
        return Fraction(self.cells[row, column])


@cache
def numbers(name: str, part: str = "value") -> Numbers:
    """The cells of a table that hold numbers. part: a column of the file: `value`, or `std` for what is in brackets."""
    frame = published.texts(name)
    frame = frame[frame[part] != ""]
    return Numbers(dict(zip(zip(frame["row_key"], frame["column_key"], strict=True), frame[part], strict=True)))


def table(edition: str, name: str) -> Numbers:
    """The printed cells of a table, such as `table1_glue`, of an edition."""
    return numbers(f"{EDITIONS[edition]}_{name}")
