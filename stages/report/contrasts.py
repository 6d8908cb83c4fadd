"""Every comparison of an arm with the original operator as one row, whatever was measured; and what it lets one say."""

import pandas as pd

from stages.evidence.baselines import AT_CHANCE
from stages.evidence.statistics import EQUIVALENT, TOO_FEW
from stages.report import inputs

TEXTS = {"protocol": "str", "direction": "str"}  # which may be empty
HIGHER, LOWER, UNDECIDED = "higher", "lower", "undecided"


def frame(**wanted: object) -> pd.DataFrame:
    """Selects the comparisons with these values; stages/analysis/contrasts.yaml describes the columns."""
    return inputs.select(inputs.read("contrasts", dtype=TEXTS).fillna(dict.fromkeys(TEXTS, "")), **wanted)


def finding(row: dict) -> str:
    """Says what a comparison shows after Holm's correction, or what leaves it without a verdict."""
    shown = row["verdict"] in (AT_CHANCE, TOO_FEW, EQUIVALENT)
    return row["direction"] or (row["verdict"] if shown else UNDECIDED)
