"""The differences from the original that figures and sentences show: printed, released, of studies and of this run."""

import pandas as pd

from stages.evidence import published
from stages.evidence.fields import RELEASED, THIS_RUN, select_rows, stack_frames
from stages.evidence.published import PAPER_SIZES
from stages.evidence.scores import COLUMNS, MISMATCHED
from stages.report.read_results import read_summaries, select_contrasts
from stages.schema.settings import REFERENCE, Settings

TEXTS = ["source", "quantity", "protocol", "size", "at", "operator", "verdict", "place"]


def build_differences(settings: Settings) -> pd.DataFrame:
    """Builds the differences from the original, by operator and source, as in contrasts.csv.

    The steps of this run are those to the lowest loss that most operators reach. A run of the scale of a study has its
    own numbers in place of the study.
    """
    compared = select_contrasts().rename(columns={"arm": "operator"})
    steps = compared["quantity"] == "steps"
    compared = pd.concat([compared[~steps], select_lowest_level(compared[steps])])
    # figures have only the largest released models; tables have all
    smaller = (compared["source"] == RELEASED) & (compared["size"] != PAPER_SIZES[-1])
    # a paper has a single column for MNLI under noise
    further = (compared["quantity"] == "lost_noise") & (compared["at"] == MISMATCHED)
    compared = compared[~smaller & ~further]
    claimed = published.read_claimed()
    studies = select_rows(read_study_differences(), operator=[*settings.operators, *claimed["operator"]])
    studies = studies[studies["study"] != settings.scale]
    rows = stack_frames([claimed, compared, studies, count_saved(settings)])
    rows = rows[[*TEXTS, "estimate", "low", "high", "mark"]].fillna(dict.fromkeys(TEXTS, ""))
    # the operators of the run stand first, in its order; tasks are in the order of the tables
    sources = ("published", RELEASED, "study", "counted", THIS_RUN)
    order = dict.fromkeys([*settings.operators, *rows["operator"], *sources, *COLUMNS])
    places = {name: place for place, name in enumerate(order)}
    return rows.sort_values(["operator", "source", "at"], key=lambda names: names.map(places))


def select_main(rows: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Selects what sentences and the first screen name: differences of the first recipe and of one size of a source."""
    # other numbers than those of this run are of BERT-base, or of our studies
    elsewhere = rows["size"].isin(["", PAPER_SIZES[-1]])
    of_size = (rows["size"] == settings.sizes[-1]).where(rows["source"] == THIS_RUN, elsewhere)
    of_recipe = rows["protocol"].isin(["", settings.protocols[0]]) | (rows["source"] == RELEASED)
    return rows[of_size & of_recipe]


def select_lowest_level(steps: pd.DataFrame) -> pd.DataFrame:
    """Selects the steps of this run to the lowest loss that most operators reach, for each size."""
    levels = steps["at"].str.extract("^loss=(.*)", expand=False).astype(float)
    steps = select_rows(steps.assign(level=levels).dropna(subset="level"), source=THIS_RUN)
    reached = steps.groupby(["size", "level"])["low"].count().reset_index()
    reached = reached.sort_values(["low", "level"], ascending=[False, True]).drop_duplicates("size")
    # with operators some of whose runs never get there
    return steps.merge(reached[["size", "level"]])


def count_saved(settings: Settings) -> pd.DataFrame:
    """Counts the share of the parameters (%) that the operators of this run save, of BERT-base and of its sizes."""
    counted = select_rows(
        read_summaries(),
        metric="saved_percent",
        size=[PAPER_SIZES[-1], *settings.sizes],
        operator=settings.operators,
    )
    counted = counted[counted["operator"] != REFERENCE].rename(columns={"mean": "estimate"})
    return counted[["size", "operator", "estimate"]].assign(source="counted", quantity="saved")


def read_study_differences() -> pd.DataFrame:
    """Reads the differences that our studies found; `unit` is the label of the axis."""
    rows = published.read_table("studies")
    # by the names of contrasts.csv
    quantity = rows["question"].map({"learns": "steps", "loss": "loss"})
    units = {"steps": "steps to 5.5 nats, %; left is better", "loss": "final loss, nats; left is better"}
    marks = [f"our study {row.study} ({row.layers} layers, {row.design})" for row in rows.itertuples()]
    return rows.assign(
        source="study",
        quantity=quantity,
        unit=quantity.map(units),
        place=rows["study"] + ", " + rows["text"],
        mark=marks,
        # no text beside a mark
        text="",
    )
