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
    """By the name of a table or figure, its `title` and `notes`; of a table also its columns."""
    return read_yaml(Path(__file__).with_name("words.yaml"))


def comparisons(tests: pd.DataFrame, confidence: float, alpha: float) -> tuple[Grid, Grid]:
    """Every comparison of the study: averaged over what is held equal, and at each single spread and operator."""
    averages = tests["place"] == ""
    read = {"averages": tests[averages], "places": tests[~averages]}.__getitem__
    facts = {"confidence": f"{confidence:.0%}", "alpha": f"{alpha:g}"}
    return tuple(own_tables.table(name, read, words()[name], **facts) for name in ("plateau_tests", "plateau_places"))


def arms(frame: pd.DataFrame) -> Grid:
    """Every arm: when it leaves, how many of its runs never do, and where it ends."""
    return own_tables.table("plateau_arms", lambda _: frame, words()["plateau_arms"], scaled=SCALED)


def left(never: int, runs: int) -> str:
    """How many runs of all left the plateau, in words."""
    return f"{runs - never} of {runs}"
