"""The verdict on a cell of a table: whether this run measured the number that the paper prints.

Most cells get a verdict at once. The other cells are judged together, by a family of simultaneous intervals.
"""

import re
from fractions import Fraction
from math import isnan

import pandas as pd

from stages.evidence.scores import GLUE_SCORE
from stages.evidence.statistics import EXACT, compute_critical_value, find_units
from stages.evidence.verdicts import Difference, Statement, explain_too_few, judge_difference, judge_printed_number


def judge_cell(printed, run: pd.DataFrame, tested: bool, comparable: bool, at_chance: bool | None) -> str | None:
    """Judges whether this run agrees with a number that a paper prints in a cell of a table, or asks for a test.

    Args:
        printed: the published cell: the text `printed` and the number `value` (NaN for a formula or label); None if the
            paper has no such cell.
        run: measurements of this run in the printed unit; a count has a single measurement.
        tested: whether a test compares the cells of this column with the published numbers.
        comparable: whether the data of this run are of the papers' kind, and not generated.
        at_chance: whether the mean of this run is no better than a constant answer; None if unknown.

    Returns:
        A Statement on a count, a Difference, or an empty text if nothing is judged; None if the interval of three or
        more pre-training runs decides.
    """
    if printed is None or isnan(printed.value):
        return ""
    values, _, unit = find_units(run)
    # Parameters are counted on any data; examples (stage `tasks`) only on data of the papers' kind.
    if unit == EXACT and (comparable or run["stage"].iloc[0] != "tasks"):
        return _judge_count(printed, values[0])
    if unit == EXACT or not (tested and comparable):
        return ""
    if at_chance:
        return Difference.AT_CHANCE
    # An interval takes three pre-training seeds, and, for a number of steps, that all runs reach the milestone.
    if explain_too_few(unit, len(values)) or not run["reached"].all():
        return Difference.TOO_FEW
    return None


def _judge_count(printed, count: float) -> Statement:
    """Judges whether a count rounds to the printed number, at the printed decimals."""
    # The text may have a blank after the point: `66. 67%` has two decimals.
    digits = re.search(r"\.\s*(\d+)", printed.printed)
    decimals = len(digits[1]) if digits else 0
    # The limit takes off the rounding error of a float, such as 100 / 3.
    exact = Fraction(count).limit_denominator(10**9)
    return judge_printed_number(f"{printed.value:.{decimals}f}", exact)


def judge_families(cells: pd.DataFrame, one_family: bool, alpha: float) -> pd.DataFrame:
    """Adds simultaneous intervals (Bonferroni) of the differences from printed numbers, and sets missing verdicts.

    Args:
        cells: the cells of a table, as in cells.yaml. A tested cell has no verdict yet.
        one_family: whether all tested cells are one family; if not, the tested cells of each row are a family. Columns
            that average other columns belong to no family, and have single intervals.
        alpha: 1 - alpha is the confidence of all intervals of a family together.

    Returns:
        The cells with `difference_low` and `difference_high`, and with a verdict for every cell that had none.
    """
    tested = cells["verdict"].isna()
    families = cells["row_key"]
    if one_family:
        families = pd.Series("", cells.index)
    members = tested & ~cells["column_key"].isin((GLUE_SCORE, "average"))
    # The number of intervals in the family of each cell. Cells without an interval, whose runs are all equal, count,
    # too, because which cells have an interval depends on the data.
    tests = members.groupby(families).transform("sum").where(members, 1)
    freedom = cells["reproduced_n"].astype(float) - 1
    critical = [compute_critical_value(alpha, count, degrees) for count, degrees in zip(tests, freedom, strict=True)]
    difference = cells["reproduced"] - cells["published"]
    # Half the width of each interval.
    half = cells["difference_error"] * critical
    low, high = difference - half, difference + half
    verdicts = [judge_difference(*ends) for ends in zip(low, high, strict=True)]
    return cells.assign(
        difference_low=low,
        difference_high=high,
        verdict=cells["verdict"].mask(tested, pd.Series(verdicts, cells.index, dtype="str")),
    )
