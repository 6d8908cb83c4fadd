"""The verdict on a cell of a table: whether what this run measured is what the paper prints.

A cell gets its verdict at once, or it is tested: then its p value is adjusted over the family of cells that are tested
together, and the adjusted one gives the verdict.
"""

import re
from fractions import Fraction
from math import isnan

import pandas as pd

from stages.evidence import baselines
from stages.evidence.arithmetic import HOLDS, judge
from stages.evidence.scores import GLUE_SCORE
from stages.evidence.statistics import DIFFERENT, EXACT, INCONCLUSIVE, holm, p_of_difference, too_few, units

NOT_RUN = "not run at this scale"
NOT_MEASURED = "not measured"
NOT_JUDGED = "not judged"  # measured, but the paper prints no number that a test could be made against
NOT_IN_PAPER = "not in the paper"
NOT_COMPARABLE = "not comparable: generated data"
EQUAL = "equal"  # of a count
NO_MODEL = "no model"  # of the rows of baselines
WHOLE = (GLUE_SCORE, "average")  # columns that are a mean of the others
TESTED = ""  # in place of a verdict, until the family of a cell, whose p values are adjusted together, is complete


def of_cell(printed, run: pd.DataFrame, tested: bool, comparable: bool, chance: bool | None) -> dict:
    """Gives a cell its verdict, or the p value that it follows from once that is adjusted.

    Counts must give the printed digits. A published score comes from one pre-training run (the released results say so
    of Courtois et al., and nothing else is said of the others), so it is one unit, set against several of this run's;
    with fewer than three pre-training runs here nothing is tested. A score at chance is no result to compare.

    Args:
        printed: the published cell, with its text `printed` and its number `value` (NaN for a formula or label); None
            for a cell that the paper does not have.
        run: this run's measurements in the printed unit, as for `units`, with `stage`; one or more, but of a count one.
        tested: whether a test compares such a cell with the published number.
        comparable: whether this run's data are of the papers' kind, and not generated.
        chance: whether this run's mean is at chance; None where that is not known.

    Returns:
        `verdict`: a constant of this file, DIFFERENT or AT_CHANCE, or what `too_few` returns. Where it is TESTED, also
        `p_difference`, as `p_of_difference` returns it.
    """
    if printed is None:
        return {"verdict": NOT_IN_PAPER}
    values, _, unit = units(run)
    if isnan(printed.value):
        return {"verdict": NOT_JUDGED}
    if unit == EXACT and not comparable and (run["stage"] == "tasks").all():  # numbers of examples; parameters compare
        return {"verdict": NOT_COMPARABLE}
    if unit == EXACT:
        # both are floats: the printed text, such as `66. 67%`, tells the decimals; rounding errors are taken off
        digits = re.search(r"\.\s*(\d+)", printed.printed)
        text = f"{printed.value:.{len(digits[1]) if digits else 0}f}"
        count = Fraction(values[0]).limit_denominator(10**9)
        return {"verdict": EQUAL if judge(text, count) == HOLDS else DIFFERENT}
    if not tested:
        return {"verdict": NOT_JUDGED}
    if not comparable:
        return {"verdict": NOT_COMPARABLE}
    if chance:
        return {"verdict": baselines.AT_CHANCE}
    if few := too_few(unit, len(values)):
        return {"verdict": few}
    return {"verdict": TESTED, "p_difference": p_of_difference(values, printed.value)}


def of_families(frame: pd.DataFrame, in_one: bool, alpha: float) -> pd.DataFrame:
    """Adjusts the tested cells' p values by Holm's method and sets their verdicts; returns the frame, changed in place.

    Args:
        frame: the cells of a table, each with what `of_cell` returns, `row_key` and `column_key`; its index is unique.
        in_one: whether all tested cells are one family; otherwise those of each row are one. A cell in a column of
            WHOLE belongs to no family, and its p value is not adjusted.
        alpha: the level of the tests of a family together.
    """
    tested = frame["verdict"] == TESTED
    family = tested & (~frame["column_key"].isin(WHOLE))
    for _, cells in frame[family].groupby(lambda place: 0 if in_one else frame["row_key"][place]):
        frame.loc[cells.index, "p_difference"] = holm(cells["p_difference"].to_numpy(float))
    different = frame["p_difference"].astype(float) < alpha
    frame.loc[tested, "verdict"] = different[tested].map({True: DIFFERENT, False: INCONCLUSIVE})
    return frame
