"""The report's tables as CSV files that a spreadsheet opens without computing anything."""

import re

import pandas as pd

FORMULA = re.compile(r"[=+@\t\r-]")
NUMBER = re.compile(r"[+-]?[0-9.,]+(e[+-]?[0-9]+)?%?|-")  # or the dash that papers print for no number


def csv_of(frame: pd.DataFrame) -> str:
    """Writes a table as CSV.

    Returns:
        Its text, in which a cell that a spreadsheet would take for a formula (`=...`, or words after a plus, a minus
        or an @) begins with an apostrophe, the sign of spreadsheets for text. Numbers stand as they are.
    """
    return frame.map(_as_text).to_csv(index=False, lineterminator="\n")


def _as_text(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) and not NUMBER.fullmatch(cell) else cell
