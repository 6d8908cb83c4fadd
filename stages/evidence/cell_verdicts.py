"""The verdict on a cell of a table: whether this run measured the number that the paper prints.

Most cells get a verdict at once. The other cells are judged together, by a family of simultaneous intervals.
"""

import re
from fractions import Fraction
from math import isnan

import numpy as np
import pandas as pd

from stages.evidence import baselines
from stages.evidence.arithmetic import HOLDS, judge_printed_number
from stages.evidence.scores import GLUE_SCORE
from stages.evidence.statistics import (
    DIFFERENT,
    EXACT,
    NO_INTERVAL,
    NOT_SIGNIFICANT,
    compute_critical_value,
    explain_too_few,
    find_units,
)

NOT_RUN = "not run at this scale"
NOT_MEASURED = "not measured"
# The cell is measured, but the paper prints no number for a test.
NOT_JUDGED = "not judged"
NOT_IN_PAPER = "not in the paper"
NOT_COMPARABLE = "not comparable: generated data"
# Verdict on a count.
EQUAL = "equal"
# Verdict on the rows of baselines.
NO_MODEL = "no model"
# Columns that are a mean of the other columns.
WHOLE = (GLUE_SCORE, "average")
# Stands for the verdict until the size of the family is known.
TO_BE_TESTED = "to be tested"


def judge_cell(printed, run: pd.DataFrame, tested: bool, comparable: bool, at_chance: bool | None) -> str:
    """Judges whether this run agrees with a number that a paper prints in a cell of a table, or asks for a test.

    Args:
        printed: the published cell: the text `printed` and the number `value` (NaN for a formula or label); None if the
            paper has no such cell.
        run: measurements of this run in the printed unit; a count has a single measurement.
        tested: whether a test compares such a cell with the published number.
        comparable: whether the data of this run are of the papers' kind.
        at_chance: whether the mean of this run is no better than a constant answer; None if unknown.

    Returns:
        The verdict in words, such as `equal` (a count gives the printed digits) or `not in the paper`; `to be tested`
        if a test of three or more pre-training runs decides.
    """
    if printed is None:
        return NOT_IN_PAPER
    if isnan(printed.value):
        return NOT_JUDGED
    values, _, unit = find_units(run)
    if unit == EXACT:
        # Numbers of examples depend on the data; parameters do not.
        if not comparable and run["stage"].iloc[0] == "tasks":
            return NOT_COMPARABLE
        return _judge_count(printed, values[0])
    if not tested:
        return NOT_JUDGED
    if not comparable:
        return NOT_COMPARABLE
    if at_chance:
        return baselines.AT_CHANCE
    # A published score counts as a single pre-training run, as the released results of Courtois et al. show.
    return explain_too_few(unit, len(values)) or TO_BE_TESTED


def _judge_count(printed, count: float) -> str:
    """Judges whether a count rounds to the printed number, at the printed decimals: `equal` or `different`."""
    # Two decimals in `66. 67%`.
    digits = re.search(r"\.\s*(\d+)", printed.printed)
    decimals = len(digits[1]) if digits else 0
    # The limit takes off the rounding error of a float, such as 100 / 3.
    exact = Fraction(count).limit_denominator(10**9)
    if judge_printed_number(f"{printed.value:.{decimals}f}", exact) == HOLDS:
        return EQUAL
    return DIFFERENT


def judge_families(cells: pd.DataFrame, one_family: bool, alpha: float) -> pd.DataFrame:
    """Adds simultaneous intervals (Bonferroni) of the differences from printed numbers, and sets the verdicts.

    Args:
        cells: the cells of a table.
        one_family: whether all tested cells are one family; if not, the tested cells of each row are a family. Columns
            that average other columns belong to no family, and have single intervals.
        alpha: 1 - alpha is the confidence of all intervals of a family together.

    Returns:
        The cells with `difference_low` and `difference_high`. `to be tested` becomes `different` if the interval
        excludes zero, `not significant` if not, and `no interval` if all runs are equal.
    """
    tested = cells["verdict"] == TO_BE_TESTED
    estimated = tested & cells["difference_error"].notna()
    families = cells["row_key"]
    if one_family:
        families = pd.Series("", cells.index)
    # Cells whose runs are all equal count, too: which cells have an interval depends on the data.
    members = tested & ~cells["column_key"].isin(WHOLE)
    sizes = members.groupby(families).transform("sum").where(members, 1)
    freedom = cells["reproduced_n"].astype(float) - 1
    critical = [compute_critical_value(alpha, *family) for family in zip(sizes, freedom, strict=True)]
    difference = cells["reproduced"].astype(float) - cells["published"].astype(float)
    half = cells["difference_error"].astype(float) * critical
    low, high = difference - half, difference + half
    verdicts = np.where((low > 0) | (high < 0), DIFFERENT, NOT_SIGNIFICANT)
    verdicts = np.where(estimated, verdicts, NO_INTERVAL)
    return cells.assign(
        difference_low=low,
        difference_high=high,
        verdict=cells["verdict"].mask(tested, verdicts),
    )
