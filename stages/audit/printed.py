"""The printed tables as the audit reads them: exact numbers by row and column, and both editions of Kowsher et al."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from stages.evidence import published

COURTOIS = ("original", "symmetric", "pairwise")  # operators, in the order of their tables
KOWSHER = (*COURTOIS, "shared")
EDITIONS = dict(zip(("K24", "K25"), published.EDITIONS, strict=True))  # prefixes of tables, by those of checks
TABLE3 = "courtois2024_table3_glue"
TEXT = "courtois2024_text_and_figure_numbers"


@dataclass(frozen=True)
class Numbers:
    """The cells of one table by row and column key: numbers as text of the printed digits, without commas and units."""

    cells: dict[tuple[str, str], str]

    def text(self, row: str, column: str) -> str:
        """The number of a cell as text, with the digits that are printed. KeyError for a cell that holds none."""
        return self.cells[row, column]

    def value(self, row: str, column: str) -> Fraction:
        """The exact value of what `text` returns."""
        return Fraction(self.cells[row, column])


@cache
def numbers(name: str, part: str = "value") -> Numbers:
    """Reads the cells of a table in which one column of the file is not empty.

    part: this column: `value`, `std` (the number in brackets), `bold` (`yes` or `no`) or `printed` (all characters).
    """
    frame = published.texts(name)
    frame = frame[frame[part] != ""]
    return Numbers(dict(zip(zip(frame["row_key"], frame["column_key"], strict=True), frame[part], strict=True)))


def table(edition: str, name: str) -> Numbers:
    """Returns the numbers of a table, such as `table1_glue`, in an edition, a key of EDITIONS."""
    return numbers(f"{EDITIONS[edition]}_{name}")
