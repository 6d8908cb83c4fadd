"""Every comparison of an arm with the original operator as one row, whatever was measured; and what it lets one say."""

from math import nan

import pandas as pd

from stages.evidence.baselines import AT_CHANCE
from stages.evidence.scores import GLUE_SCORE
from stages.evidence.statistics import EQUIVALENT, ONE_CHECKPOINT, TOO_FEW
from stages.report import inputs

COLUMNS = ["quantity", "source", "protocol", "size", "task", "arm", "n", "estimate", "low", "high", "p_holm", "verdict"]
NAMES = {"operator": "arm", "column": "task", "evaluated_on": "task", "difference": "estimate"}
HIGHER, LOWER, UNDECIDED = "higher", "lower", "undecided"


def frame() -> pd.DataFrame:
    """Scores, losses and what noise takes, beside the original operator, of this run and of released results."""
    noise = inputs.read("noise_tests")
    noise = noise[noise["kind"] == "noise"].assign(difference=lambda rows: 100 * rows["difference"])
    parts = [
        inputs.read("comparisons").assign(quantity="score"),
        inputs.read("losses").assign(quantity="loss", source="reproduced", column=""),
        noise.assign(quantity="noise", source="reproduced", verdict=noise["unit_of_inference"], low=nan, high=nan),
    ]
    parts = [part.rename(columns=NAMES).reindex(columns=COLUMNS) for part in parts]
    return pd.concat([part for part in parts if len(part)] or parts[:1])


def select(rows: pd.DataFrame, **wanted: str) -> list[dict]:
    """The comparisons that have these values."""
    for field, value in wanted.items():
        rows = rows[rows[field] == value]
    return rows.to_dict("records")


def finding(row: dict, alpha: float) -> str:
    """What a comparison shows, after Holm's correction; what leaves it without a verdict comes first."""
    if row["verdict"] in (AT_CHANCE, TOO_FEW):
        return row["verdict"]
    if row["p_holm"] < alpha:
        return HIGHER if row["estimate"] > 0 else LOWER
    return EQUIVALENT if row["verdict"] == EQUIVALENT else UNDECIDED


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """Comparisons of GLUE scores of this run that have enough pre-training seeds for a verdict."""
    own = rows[(rows["quantity"] == "score") & (rows["source"] == "reproduced") & (rows["task"] == GLUE_SCORE)]
    return own[~own["verdict"].isin((ONE_CHECKPOINT, TOO_FEW))]
