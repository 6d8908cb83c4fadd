"""Times as the stage `timing` measures them: ours apart from those of stock BERT, and means over its rounds."""

import pandas as pd

STOCK = r"implementation=trainer precision=(\w+) round=\d+"
KEYS = ["size", "operator", "stock", "metric", "task"]


def of_operators(rows: pd.DataFrame) -> pd.DataFrame:
    """Of all measurements, the times of our operators; their condition is the round, within which times compare."""
    return rows[(rows["stage"] == "timing") & rows["condition"].str.fullmatch(r"round=\d+").fillna(False)]


def summaries(rows: pd.DataFrame) -> pd.DataFrame:
    """KEYS, mean and sd over the rounds of every time; stock: the precision of stock BERT, empty for ours."""
    rows = rows[rows["stage"] == "timing"]
    rows = rows.assign(
        stock=rows["condition"].str.extract(STOCK, expand=False).fillna(""), task=rows["task"].fillna("")
    )
    groups = rows.groupby(KEYS, sort=False)["value"].agg(["mean", "std"])
    return groups.rename(columns={"std": "sd"}).reset_index()
