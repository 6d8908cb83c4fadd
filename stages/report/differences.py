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
    """Builds the differences from the original, by operator and source, in columns of contrasts.csv."""
    compared = select_contrasts().rename(columns={"arm": "operator"})
    of_steps = compared["quantity"] == "steps"
    compared = pd.concat([compared[~of_steps], select_lowest_level(compared[of_steps])])
    # figures have only the largest released models; tables have all
    smaller = (compared["source"] == RELEASED) & (compared["size"] != PAPER_SIZES[-1])
    # a paper has a single column for MNLI under noise
    further = (compared["quantity"] == "lost_noise") & (compared["at"] == MISMATCHED)
    compared = compared[~smaller & ~further]
    claimed = published.read_claimed()
    studies = select_rows(read_study_differences(), operator=[*settings.operators, *claimed["operator"]])
    # a run at the scale of a study has its own numbers in place of the study
    studies = studies[studies["study"] != settings.scale]
    rows = stack_frames([claimed, compared, studies, read_saved(settings)])
    rows = rows[[*TEXTS, "estimate", "low", "high", "mark"]].fillna(dict.fromkeys(TEXTS, ""))
    # one order for the three columns: operators of the run first, then other operators, sources and tasks
    sources = ("published", RELEASED, "study", "counted", THIS_RUN)
    order = dict.fromkeys([*settings.operators, *rows["operator"], *sources, *COLUMNS])
    ranks = {name: rank for rank, name in enumerate(order)}
    return rows.sort_values(["operator", "source", "at"], key=lambda column: column.map(ranks))


def select_main(rows: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Selects the differences for sentences and the first screen: of one protocol, and of one size per source."""
    # this run: the last of its sizes; other sources: BERT-base, or our studies, which have no size
    of_base = rows["size"].isin(["", PAPER_SIZES[-1]])
    of_size = (rows["size"] == settings.sizes[-1]).where(rows["source"] == THIS_RUN, of_base)
    of_protocol = rows["protocol"].isin(["", settings.protocols[0]]) | (rows["source"] == RELEASED)
    return rows[of_size & of_protocol]


def select_lowest_level(steps: pd.DataFrame) -> pd.DataFrame:
    """Selects the steps of this run to one loss per size: the lowest of the losses that the most operators reach.

    The column `at` has the loss, as in `loss=2.5`.
    """
    levels = steps["at"].str.extract("^loss=(.*)", expand=False).astype(float)
    steps = select_rows(steps.assign(level=levels).dropna(subset="level"), source=THIS_RUN)
    # `low`: how many operators have an interval, because all runs reach the loss
    reached = steps.groupby(["size", "level"])["low"].count().reset_index()
    reached = reached.sort_values(["low", "level"], ascending=[False, True]).drop_duplicates("size")
    # at this loss, also operators with runs that do not reach it
    return steps.merge(reached[["size", "level"]])


def read_saved(settings: Settings) -> pd.DataFrame:
    """Reads the share of the parameters (%) that each operator saves, for BERT-base and the sizes of this run."""
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
    # the names of these quantities in contrasts.csv
    quantity = rows["question"].map({"learns": "steps", "loss": "loss"})
    units = {"steps": "steps to 5.5 nats, %; left is better", "loss": "final loss, nats; left is better"}
    marks = [f"our study {row.study} ({row.layers} layers, {row.design})" for row in rows.itertuples()]
    return rows.assign(
        source="study",
        quantity=quantity,
        unit=quantity.map(units),
        place=rows["study"] + ", " + rows["text"],
        mark=marks,
        # in figures, `text` stands beside a mark
        text="",
    )
