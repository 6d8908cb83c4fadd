"""The differences from the original that figures and sentences show: printed, released, of our studies and of this run."""

import pandas as pd

from stages.evidence import published
from stages.evidence.fields import stack_frames
from stages.evidence.scores import MISMATCHED
from stages.report import read_results
from stages.schema.settings import Settings

# questions of studies.csv by the quantity of contrasts.csv, with the labels of their axes
QUESTIONS = {"learns": "steps", "loss": "loss"}
UNITS = {"steps": "steps to 5.5 nats, %; left is better", "loss": "final loss, nats; left is better"}
RANKS = ("published", "released", "study", "reproduced")
COLUMNS = [
    "source",
    "quantity",
    "protocol",
    "size",
    "at",
    "operator",
    "estimate",
    "low",
    "high",
    "verdict",
    "place",
]


def build_differences(settings: Settings) -> pd.DataFrame:
    """Builds the differences from the original: printed, released, of our studies and of this run, as in contrasts.csv.

    A run of the scale of a study has its own numbers in place of the study.
    """
    compared = read_results.read_contrasts().rename(columns={"arm": "operator"})
    claimed = published.read_claimed()
    studies = read_study_differences()
    shown = studies["operator"].isin([*settings.operators, *claimed["operator"]])
    studies = studies[shown & (studies["study"] != settings.scale)]
    rows = stack_frames([claimed, compared, studies.drop(columns="unit")])
    # a paper has a single column for MNLI under noise
    rows = rows[(rows["quantity"] != "lost_noise") | (rows["at"] != MISMATCHED)]
    return sort_sources(rows[COLUMNS].fillna({"protocol": "", "size": "", "at": "", "place": ""}))


def sort_sources(rows: pd.DataFrame, field: str = "source") -> pd.DataFrame:
    """Sorts rows by source, printed numbers first; rows of a source stay in order."""
    return rows.iloc[rows[field].map(RANKS.index).argsort(kind="stable")]


def read_study_differences() -> pd.DataFrame:
    """Reads the differences that our studies found; `unit` is the label of the axis."""
    rows = read_results.read_studies()
    quantity = rows["question"].map(QUESTIONS)
    place = rows["study"] + ", " + rows["text"]
    return rows.assign(source="study", quantity=quantity, unit=quantity.map(UNITS), place=place)
