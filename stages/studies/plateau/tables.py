"""The tables of the study of the plateau: its comparisons, and its arms. words.yaml says what stands in them."""

from functools import cache
from pathlib import Path

import pandas as pd

from stages.plumbing.documents import read_yaml
from stages.report import own_tables
from stages.report.tables import Grid
from stages.studies.plateau.comparisons import SCALED


@cache
def words() -> dict[str, dict]:
    """Reads words.yaml: title and notes of every table and figure, and columns of every table, by name."""
    return read_yaml(Path(__file__).with_name("words.yaml"))


def comparisons(tests: pd.DataFrame, confidence: float, alpha: float) -> tuple[Grid, Grid]:
    """Makes plateau_tests, averaged over what is held equal, and plateau_places, at each single spread and operator.

    Args:
        tests: as `comparisons.tests` returns them.
        confidence, alpha: of their intervals, in (0, 1), and the level at which they were judged.
    """
    averages = tests["place"] == ""
    read = {"averages": tests[averages], "places": tests[~averages]}.__getitem__
    facts = {"confidence": f"{confidence:.0%}", "alpha": f"{alpha:g}", "departed": departed}
    return tuple(own_tables.table(name, read, words()[name], **facts) for name in ("plateau_tests", "plateau_places"))


def arms(frame: pd.DataFrame) -> Grid:
    """Makes the table of arms: when each leaves, how many of its runs do, and where it ends. frame: `study.ARMS`."""
    return own_tables.table("plateau_arms", lambda _: frame, words()["plateau_arms"], scaled=SCALED, departed=departed)


def departed(never: int, runs: int) -> str:
    """Says how many of all runs left the plateau, as in `3 of 5`."""
    return f"{runs - never} of {runs}"
