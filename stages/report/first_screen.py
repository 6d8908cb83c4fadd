"""The rows of the picture on the first screen: what an operator's paper prints, and what was found.

A column (entry `columns` of sections.yaml) has a difference for each trained operator from each source. Only
differences of this run have a verdict. A column with a `range` is shown if the intervals of this run are narrow against
the range.
"""

import re

import pandas as pd

from stages.evidence.fields import THIS_RUN, select_rows, stack_frames
from stages.evidence.verdicts import SYMBOLS, Difference
from stages.report.differences import select_main
from stages.report.names import join_names, name_key
from stages.report.tables import MISSING, choose_decimals, format_number, format_signed
from stages.report.text_templates import read_content
from stages.schema.settings import REFERENCE, Settings

# the columns that place a mark
NUMBERS = ["estimate", "low", "high"]


def build_first_screen(settings: Settings, differences: pd.DataFrame) -> pd.DataFrame:
    """Builds the rows of the picture, with a `text` beside each mark, from `differences` (differences.py).

    `column` is a key of sections.yaml, and `title` and `unit` label the column.
    """
    operators = [name for name in settings.operators if name != REFERENCE]
    trained = pd.DataFrame({"operator": operators}, dtype="str")
    # the merges keep only trained operators, and the last merge sorts the rows in their order
    rows = select_main(differences, settings).merge(trained, on="operator")
    columns = []
    for key, column in read_content("sections")["columns"].items():
        of_column = select_rows(rows, **column["where"])
        if "range" in column and not is_narrow(of_column, column["range"]):
            continue
        # operators without a number of this run get a row `not run`
        found = select_rows(of_column, source=[THIS_RUN, "counted"])["operator"]
        lacking = trained[~trained["operator"].isin(found)].assign(
            source=THIS_RUN,
            size=settings.sizes[-1],
            verdict=Difference.NOT_RUN,
        )
        of_column = stack_frames([of_column, lacking])
        columns.append(of_column.assign(column=key, title=column["label"], unit=column["unit"]))
    rows = trained.merge(pd.concat(columns), on="operator")
    text_columns = rows.columns.difference([*NUMBERS, "mark"])
    rows[text_columns] = rows[text_columns].fillna("")
    rows["verdict"] = rows["verdict"].where(rows["source"] == THIS_RUN, "")
    rows["mark"] = rows["mark"].fillna(join_names(rows, ["source", "size"]))
    rows["text"] = [write_text(row) for row in rows.itertuples()]
    # steps share a column with losses: they have a text, but no mark on the axis of losses
    rows[NUMBERS] = rows[NUMBERS].where(rows["quantity"] != "steps")
    return rows


def is_narrow(rows: pd.DataFrame, full_range: float) -> bool:
    """Whether this run has intervals, and all are narrower than a fifth of the range of the metric, such as 100."""
    run = select_rows(rows, source=THIS_RUN)
    widths = run["high"] - run["low"]
    return len(run) > 0 and bool((widths < full_range / 5).all())


def write_text(row) -> str:
    """Writes the text beside a mark, such as `this run −9 · not significant` or `paper 2024 −46 % steps`."""
    source = {"published": "paper", THIS_RUN: "this run"}.get(row.source, row.source)
    # the year from a place such as `Kowsher et al. 2025, Table 1`, because a source may have two editions
    parts = [source, *re.findall(r"\d{4}(?=,)", row.place)[:1]]
    half_width = (row.high - row.low) / 2
    decimals = 0 if row.quantity == "steps" else choose_decimals(half_width, 2)
    if row.quantity == "saved":
        # a share that is saved has no sign
        parts.append(format_number(row.estimate, decimals))
    elif pd.notna(row.estimate):
        parts.append(format_signed(row.estimate, decimals))
    # the axis names other units; steps share a column with losses
    parts.append({"saved": "%", "steps": "% steps"}.get(row.quantity, ""))
    # the task, such as `QQP`
    if row.quantity == "lost_noise":
        parts.append(name_key(row.at))
    if row.verdict:
        parts += [SYMBOLS.get(row.verdict, MISSING), row.verdict]
    return " ".join(filter(None, parts))
