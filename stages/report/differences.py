"""The differences from the original that figures and sentences show: printed, released, of our studies and of this run."""

from collections.abc import Sequence

import pandas as pd

from stages.evidence import published
from stages.evidence.fields import stack_frames
from stages.evidence.scores import MISMATCHED
from stages.report import read_results
from stages.schema.settings import Settings

# questions of studies.csv by the quantity of contrasts.csv, with the labels of their axes
QUESTIONS = {"learns": "steps", "loss": "loss"}
UNITS = {"steps": "steps to 5.5 nats, %; left is better", "loss": "final loss, nats; left is better"}
# quantities of fine-tuned models
TUNED = ("score", "lost_noise", "transfer")
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
    claimed = repeat_for_protocols(published.read_claimed(), settings.protocols)
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


def repeat_for_protocols(claimed: pd.DataFrame, protocols: Sequence[str]) -> pd.DataFrame:
    """Repeats printed differences of fine-tuned models for every recipe of the run."""
    tuned = claimed["quantity"].isin(TUNED)
    repeated = claimed[tuned].merge(pd.DataFrame({"protocol": protocols}), how="cross")
    return pd.concat([claimed[~tuned], repeated])


def read_study_differences() -> pd.DataFrame:
    """Reads the differences that our studies found; `unit` is the label of the axis."""
    rows = read_results.read_studies()
    quantity = rows["question"].map(QUESTIONS)
    place = rows["study"] + ", " + rows["text"]
    rows = rows.assign(source="study", quantity=quantity, unit=quantity.map(UNITS), place=place)
    return rows.drop(columns=["text", "layers", "design"])
