"""The rows of the picture on the first screen: what an operator's paper prints, and what was found.

A column (entry `columns` of sections.yaml) has a difference for each trained operator from each source. Only differences
of this run have a verdict. A column with a `range` is shown if the intervals of this run are narrow against the range.
"""

import re
from math import nan

import pandas as pd

from stages.evidence.cells import PAPER_SIZES
from stages.evidence.fields import select_rows, stack_frames
from stages.evidence.scores import GLUE_SCORE
from stages.evidence.verdicts import SYMBOLS, TESTED, Difference
from stages.report import read_results
from stages.report.differences import build_differences
from stages.report.figures import NARROW, RUN, measure_widths, name_marks
from stages.report.tables import choose_decimals, format_signed
from stages.report.text_templates import read_content
from stages.schema.settings import REFERENCE, Settings

# BERT-base, the size of which released results are shown
BIGGEST = PAPER_SIZES[-1]
COUNTED = "counted on built models"
YEAR = re.compile(r"\d{4}(?=,)")
# short names of sources before a number
SHORT = {"published": "paper", "released": "released", "study": "study", RUN: "this run"}


def build_first_screen(settings: Settings) -> pd.DataFrame:
    """Builds the rows: `column` is a key of sections.yaml, `title` and `unit` label the column, `text` stands at a mark."""
    operators = [name for name in settings.operators if name != REFERENCE]
    rows = select_rows(build_differences(settings), operator=operators)
    rows = stack_frames([rows, count_saved(settings, operators)])
    # of steps, only what a paper prints has a place beside the loss
    rows = rows[(rows["quantity"] != "steps") | (rows["source"] == "published")]
    # the first protocol of the run, or the empty protocol of pre-training
    rows = rows[rows["protocol"].isin(["", settings.protocols[0]]) | (rows["source"] == "released")]
    sizes = rows["source"].map({"released": BIGGEST, RUN: settings.sizes[-1]})
    rows = rows[(rows["size"] == sizes) | sizes.isna() | (rows["quantity"] == "saved")]
    columns = []
    for key, column in read_content("sections")["columns"].items():
        of_column = select_rows(rows, quantity=column["quantity"])
        of_column = of_column[(of_column["quantity"] != "score") | (of_column["at"] == GLUE_SCORE)]
        if "range" in column and not is_narrow(of_column, column["range"]):
            continue
        missing = set(operators) - set(select_rows(of_column, source=RUN)["operator"])
        absent = {"source": RUN, "estimate": nan, "verdict": Difference.NOT_RUN, "size": settings.sizes[-1]}
        lacking = pd.DataFrame([{**absent, "operator": name} for name in operators if name in missing])
        columns.append(stack_frames([of_column, lacking]).assign(column=key, title=column["label"], unit=column["unit"]))
    rows = pd.concat(columns)
    # operators in the order of the run
    rows = rows.sort_values("operator", key=lambda names: names.map(operators.index), kind="stable")
    bold = (rows["source"] == RUN) & rows["verdict"].isin(TESTED[:2])
    rows["weight"] = bold.map({True: "bold", False: "normal"})
    rows.loc[rows["source"] != RUN, "verdict"] = ""
    rows["mark"] = name_marks(rows).mask((rows["source"] == RUN) & (rows["quantity"] == "saved"), COUNTED)
    rows["text"] = [write_text(row) for row in rows.fillna({"verdict": "", "place": ""}).itertuples()]
    # steps have a text, but no place on an axis of losses
    rows.loc[rows["quantity"] == "steps", "estimate"] = nan
    return rows.fillna({"protocol": "", "at": "", "place": "", "verdict": ""})


def is_narrow(rows: pd.DataFrame, scale: float) -> bool:
    """Whether this run has intervals, all of which are narrower than a fifth of the range of the metric."""
    widths = measure_widths(select_rows(rows, source=RUN))
    return len(widths) > 0 and bool((widths < NARROW * scale).all())


def count_saved(settings: Settings, operators: list[str]) -> pd.DataFrame:
    """Counts the share of the parameters (%) that operators save, of BERT-base or else of the last size of the run."""
    counted = select_rows(read_results.read_summaries(), metric="saved_percent", operator=operators)
    counted = select_rows(counted, size=[BIGGEST, settings.sizes[-1]])
    of_base = counted[counted["size"] == BIGGEST]
    counted = of_base if len(of_base) else counted
    counted = counted[["operator", "mean"]].rename(columns={"mean": "estimate"})
    place = {"size": settings.sizes[-1], "place": f"BERT-{BIGGEST if len(of_base) else settings.sizes[-1]}"}
    return counted.assign(source=RUN, quantity="saved", protocol="", verdict="", low=nan, high=nan, **place)


def write_text(row) -> str:
    """Writes the text beside a mark, such as `this run −9 ○ not significant` or `paper −46 % of the steps`."""
    number = format_signed(row.estimate, choose_decimals((row.high - row.low) / 2, 2))
    if row.quantity == "saved":
        number = f"{row.estimate:.2f} %"
    elif row.quantity == "steps":
        number = f"{format_signed(row.estimate, 0)} % steps"
    elif row.verdict == Difference.NOT_RUN:
        number = ""
    # an operator's source may have two editions
    year = YEAR.findall(row.place)[:1]
    start = "counted" if row.mark == COUNTED else SHORT[row.source]
    parts = [start, *year, number]
    if row.verdict:
        parts += [SYMBOLS.get(row.verdict, "–"), row.verdict]
    return " ".join(filter(None, parts))
