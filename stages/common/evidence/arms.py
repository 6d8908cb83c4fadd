"""The arms of a study of the plateau: operators, each started and trained in one of several ways."""

import pandas as pd

SOONER, LATER, UNDECIDED, NEITHER = "sooner", "later", "undecided", "neither leaves"  # verdicts on two arms
SCALED, SOURCE, RATE = "scaled", "as its source", "rate of its own"  # kinds of arms that such a study compares


def without_arms(frame: pd.DataFrame, arms: pd.DataFrame) -> pd.DataFrame:
    """The rows of operators that start and learn as their sources have it: the study alone compares the other arms.

    Args:
        frame: a table with the column `operator`.
        arms: the arms of the run, each with its `kind`; an operator that is none of them keeps its rows.
    """
    return frame[~frame["operator"].isin(arms.loc[arms["kind"] != SOURCE, "arm"])]
