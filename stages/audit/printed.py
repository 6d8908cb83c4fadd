"""The printed tables as the audit reads them: exact numbers by row and column, and both editions of Kowsher et al."""

from fractions import Fraction
from functools import cache

from stages.evidence import published

COURTOIS = ("original", "symmetric", "pairwise")  # operators, in the order of their tables
KOWSHER = (*COURTOIS, "shared")
EDITIONS = dict(zip(("K24", "K25"), published.EDITIONS, strict=True))  # prefixes of tables: arXiv 2024, NAACL 2025
TABLE3 = "courtois2024_table3_glue"
TEXT = "courtois2024_text_and_figure_numbers"


class Numbers(dict[tuple[str, str], str]):
    """The printed digits of one table, without commas and units, by row and column key: (`base.original`, `mrpc`)."""

    def value(self, row: str, column: str) -> Fraction:
        """The exact value of a cell."""
        return Fraction(self[row, column])


@cache
def numbers(name: str, part: str = "value") -> Numbers:
    """Reads a column of data/published/NAME.csv by cell of the printed table, without cells for which it is empty.

    part: the column, `value`, `std` (the number in brackets), `bold` (`yes` or `no`) or `printed` (all characters).
    """
    frame = published.texts(name)
    frame = frame[frame[part] != ""]
    return Numbers(dict(zip(zip(frame["row_key"], frame["column_key"], strict=True), frame[part], strict=True)))


def table(edition: str, name: str) -> Numbers:
    """Returns the numbers of a table, such as `table1_glue`, in an edition, a key of EDITIONS."""
    return numbers(f"{EDITIONS[edition]}_{name}")
