"""Every comparison of an arm with the original operator as one row, whatever was measured; and what it lets one say."""

import pandas as pd

from stages.evidence.baselines import AT_CHANCE
from stages.evidence.scores import GLUE_SCORE
from stages.evidence.statistics import EQUIVALENT, ONE_CHECKPOINT, TOO_FEW
from stages.report import inputs

TEXTS = {"protocol": "str", "direction": "str"}  # which may be empty
HIGHER, LOWER, UNDECIDED = "higher", "lower", "undecided"


def frame() -> pd.DataFrame:
    """All comparisons of this run and of the released results, as stages/analysis/contrasts.yaml describes them."""
    return inputs.read("contrasts", dtype=TEXTS).fillna(dict.fromkeys(TEXTS, ""))


def select(rows: pd.DataFrame, **wanted: str) -> list[dict]:
    """The comparisons that have these values."""
    for field, value in wanted.items():
        rows = rows[rows[field] == value]
    return rows.to_dict("records")


def finding(row: dict) -> str:
    """What a comparison shows, after Holm's correction; what leaves it without a verdict comes first."""
    if row["verdict"] in (AT_CHANCE, TOO_FEW):
        return row["verdict"]
    return row["direction"] or (EQUIVALENT if row["verdict"] == EQUIVALENT else UNDECIDED)


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """Comparisons of GLUE scores of this run that have enough pre-training seeds for a verdict."""
    scores = rows[(rows["quantity"] == "score") & (rows["source"] == "reproduced") & (rows["at"] == GLUE_SCORE)]
    return scores[~scores["verdict"].isin((ONE_CHECKPOINT, TOO_FEW))]
