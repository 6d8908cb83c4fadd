"""The figure of answers to questions: F1 and exact match, published and of this run."""

import pandas as pd

from stages.evidence import specifications
from stages.evidence.fields import select_rows
from stages.report import names
from stages.report.drawing import Drawing
from stages.report.figures import SOURCES
from stages.report.intervals import LARGEST, Mark, draw_intervals

TABLE = "kowsher2025_naacl_table2_squad"
# fields in the keys of rows and columns of the table
ROW_KEY = r"^(?P<size>\w+)\.(?P<operator>\w+)\.(?P<trained>\w+)$"
COLUMN_KEY = r"^(?P<questions>squad\d)_(?P<measure>\w+)$"
# names and shapes of the marks, by metric
METRICS = {"f1": ("F1", "o"), "em": ("exact match", "s")}
# the end of the title by what a model was trained on first
TRAINED = {"single": "", "triviaqa": " after TriviaQA"}


def draw_answers(cells: pd.DataFrame) -> Drawing:
    """Draws F1 and exact match, a panel per set of questions and training."""
    rows = list_answers(cells)
    groups = list(rows.groupby("title", sort=False))
    marks = {}
    for name, shape in METRICS.values():
        for source in rows["source"].unique():
            marks[f"{name}, {SOURCES[source]}"] = Mark(shape, LARGEST - 1, source == "reproduced")
    specified = specifications.load()[0][TABLE]
    return draw_intervals(
        "question_scores",
        "Answers to the questions of SQuAD",
        "question_answering",
        groups,
        kind="answers",
        marks=marks,
        place=f"{specified.source}, {specified.number}",
        measured=(rows["source"] == "reproduced").any(),
    )


def list_answers(cells: pd.DataFrame) -> pd.DataFrame:
    """Lists the published scores of question answering and those of this run, for `draw_intervals`.

    Args:
        cells: of all published tables, as in stages/evidence/cells.py; in per cent.
    """
    cells = select_rows(cells, table=TABLE)
    # averages and answers without a model are left out
    keys = cells["row_key"].str.extract(ROW_KEY).join(cells["column_key"].str.extract(COLUMN_KEY)).dropna()
    cells = cells.join(keys, how="inner")
    published = cells.assign(source="published", estimate=cells["published"], low=float("nan"), high=float("nan"))
    run = cells.assign(
        source="reproduced",
        estimate=cells["reproduced"],
        low=cells["interval_low"],
        high=cells["interval_high"],
    )
    rows = pd.concat([published, run])
    rows = rows[rows["estimate"].notna()]
    shown = {metric: name for metric, (name, _) in METRICS.items()}
    return rows.assign(
        title=rows["questions"].map(names.name_task) + rows["trained"].map(TRAINED),
        row=rows["operator"].map(names.name_operator),
        mark=rows["measure"].map(shown) + ", " + rows["source"].map(SOURCES),
        at=rows["column_key"],
        axis="F1 and exact match (%)",
        scale="",
    )
