"""The differences from the original that figures and sentences show: printed, released, of studies and of this run."""

from collections.abc import Sequence

import pandas as pd

from stages.evidence import published
from stages.evidence.cells import PAPER_SIZES
from stages.evidence.fields import select_rows, stack_frames
from stages.evidence.scores import MISMATCHED
from stages.report import read_results
from stages.schema.settings import REFERENCE, Settings

# questions of studies.csv by the quantity of contrasts.csv, with the labels of their axes
QUESTIONS = {"learns": "steps", "loss": "loss"}
UNITS = {"steps": "steps to 5.5 nats, %; left is better", "loss": "final loss, nats; left is better"}
# quantities of fine-tuned models
TUNED = ("score", "lost_noise", "transfer")
RANKS = ("published", "released", "study", "counted", "reproduced")
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
    "mark",
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
    rows = stack_frames([claimed, compared, studies.drop(columns="unit"), count_saved(settings)])
    # a paper has a single column for MNLI under noise
    rows = rows[(rows["quantity"] != "lost_noise") | (rows["at"] != MISMATCHED)]
    rows = sort_sources(rows[COLUMNS].fillna(dict.fromkeys(("protocol", "size", "at", "place", "verdict"), "")))
    # the operators of the run stand first, in its order
    order = list(dict.fromkeys([*settings.operators, *rows["operator"]]))
    return rows.iloc[rows["operator"].map(order.index).argsort(kind="stable")]


def sort_sources(rows: pd.DataFrame, field: str = "source") -> pd.DataFrame:
    """Sorts rows by source, printed numbers first; rows of a source stay in order."""
    return rows.iloc[rows[field].map(RANKS.index).argsort(kind="stable")]


def count_saved(settings: Settings) -> pd.DataFrame:
    """Counts the share of the parameters (%) that the operators of this run save, of BERT-base and of its sizes."""
    sizes = list(dict.fromkeys([PAPER_SIZES[-1], *settings.sizes]))
    operators = [name for name in settings.operators if name != REFERENCE]
    counted = select_rows(read_results.read_summaries(), metric="saved_percent", size=sizes, operator=operators)
    counted = counted[["size", "operator", "mean"]].rename(columns={"mean": "estimate"})
    return counted.assign(source="counted", quantity="saved")


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
    mark = "our study " + rows["study"] + " (" + rows["layers"].astype(str) + " layers, " + rows["design"] + ")"
    rows = rows.assign(source="study", quantity=quantity, unit=quantity.map(UNITS), place=place, mark=mark)
    return rows.drop(columns=["text", "layers", "design"])
