"""The printed tables as exact numbers by row and column, in both editions of Kowsher et al.

Checks and functions call the editions `K24` (arXiv 2024), `K25` (NAACL 2025) and, for both, `K`; `shared` is the
authors' operator.
"""

from fractions import Fraction
from functools import cache
from itertools import product
from typing import NoReturn

import pandas as pd

from stages.audit.closed_formulas import SIZES
from stages.evidence import published
from stages.evidence.data_files import REMEDY
from stages.evidence.scores import COLUMNS

# Operators in the order of the printed tables.
COURTOIS = ("original", "symmetric", "pairwise")
KOWSHER = (*COURTOIS, "shared")

# Both editions of Kowsher et al.: the prefix of checks, and the prefix of tables in data/published.
EDITIONS = {"K24": "kowsher2024_arxiv", "K25": "kowsher2025_naacl"}

TABLE3 = "courtois2024_table3_glue"
# The rows of Table 3, such as `base.original`.
ROWS = [f"{size}.{operator}" for size, operator in product(SIZES, COURTOIS)]
TEXT = "courtois2024_text_and_figure_numbers"


class Numbers(dict[tuple[str, str], str]):
    """The printed digits of a table, without commas and units, by row and column key: (`base.original`, `mrpc`)."""

    def __init__(self, cells: pd.Series, name: str):
        super().__init__(cells)
        self.name = name

    def __missing__(self, key: tuple[str, str]) -> NoReturn:
        raise ValueError(f"{published.FOLDER}/{self.name}.csv: no number for row and column {key}; {REMEDY}")

    def read_value(self, row: str, column: str) -> Fraction:
        """Return the exact value of a cell: `12.94` gives 647/50."""
        return Fraction(self[row, column])

    def read_row(self, row: str) -> pd.Series:
        """Return the exact values of a row by column key."""
        return pd.Series({column: Fraction(text) for (key, column), text in self.items() if key == row})


@cache
def read_numbers(name: str, part: str = "value") -> Numbers:
    """Read the texts in a column of a table in data/published, by row and column key, without empty cells.

    `part` is `value`, `std` (the number in brackets), `bold` (`yes` or `no`) or `printed` (all characters).
    """
    cells = published.read_texts(name).set_index(["row_key", "column_key"])[part]
    return Numbers(cells[cells != ""], name)


def read_table(edition: str, name: str) -> Numbers:
    """Read the printed digits of a table of Kowsher et al., edition `K24` or `K25`, by row and column key."""
    return read_numbers(f"{EDITIONS[edition]}_{name}")


def average_columns(cells: pd.Series) -> dict[str, Fraction]:
    """Average a row of a GLUE table by three definitions, because the papers print an average without a definition.

    MNLI has two columns, of which a reader may count both, the mean, or only the first.
    """
    total = sum((cells[column] for column in COLUMNS), Fraction())
    matched = cells["mnli_m"]
    mismatched = cells["mnli_mm"]
    return {
        "all nine columns": total / 9,
        "eight tasks": (total - (matched + mismatched) / 2) / 8,
        "without MNLI-mm": (total - mismatched) / 8,
    }
