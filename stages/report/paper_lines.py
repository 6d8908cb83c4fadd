"""The lines of a paper's table, cell by cell: published, recomputed and reproduced, and the notes that explain them.

A row here is a list of cells as analysis filled them, one for every column of the table, None where it has none. A cell
is a named tuple with the fields `TYPES` of stages/evidence/cells.py; NaN or None stands for what a cell lacks.
"""

import re
from math import isnan

import pandas as pd

from stages.evidence.cell_verdicts import NO_MODEL, NOT_IN_PAPER, NOT_JUDGED, NOT_MEASURED, NOT_RUN
from stages.evidence.statistics import EXACT
from stages.report.tables import MISSING, Line, Value, number, spread
from stages.report.words import sentence

CHANGED = "†"  # a cell that the paper's other edition prints otherwise
CHANCE = "°"  # a score that is not above what a constant answer has
FORMULA = re.compile(r"[\w()+\-/^=., ]+")  # what can be set as a formula, with powers and indices


def published(rows: dict[str, list]) -> list[Line]:
    """Gives a line per edition, or one where all print the same. rows: cells of a row by edition, the later last."""
    texts = {edition: [cell.printed if cell else None for cell in row] for edition, row in rows.items()}
    same = len({tuple(map(str, line)) for line in texts.values()}) == 1
    shown = dict(list(rows.items())[-1:]) if same else rows
    return [
        Line("published" if same else f"published, {edition}", tuple(printed(cell) for cell in row))
        for edition, row in shown.items()
    ]


def printed(cell) -> Value:
    """Formats one cell as the paper prints it, marked where its other edition has something else."""
    if cell is None or pd.isna(cell.printed):
        return Value(MISSING)
    kind = "formula" if isnan(cell.published) and FORMULA.fullmatch(cell.printed) else "number"
    if pd.notna(cell.other_edition):
        return Value(f"{cell.printed} {CHANGED}", detail=f"the other edition: {cell.other_edition}", kind=kind)
    return Value(cell.printed, kind=kind)


def recomputed(row: list) -> Line | None:
    """Gives what follows from the results that the authors released; None where they say nothing on any cell."""
    counts = [cell.released_n for cell in row if cell and pd.notna(cell.released)]
    return Line(_with_n("recomputed", counts), tuple(map(_released, row))) if counts else None


def reproduced(row: list) -> Line | None:
    """Gives what this run counted, measured or, for a baseline, computed; None where it has no number of the row."""
    cells = [cell for cell in row if cell and pd.notna(cell.reproduced)]
    if not cells:
        return None
    trained = [cell.reproduced_n for cell in cells if cell.unit_of_inference != EXACT]
    counted = "counted" if len(trained) < len(cells) else ""
    label = " and ".join(part for part in (counted, _with_n("reproduced", trained) if trained else "") if part)
    computed = any(cell.verdict == NO_MODEL for cell in cells)
    return Line("computed" if computed else label, tuple(map(measured, row)))


def measured(cell) -> Value:
    """Formats one cell of this run: mean and spread; as their detail the interval, the runs and the verdict."""
    if cell is None or isnan(cell.reproduced):
        return Value(MISSING)
    mark = CHANCE if pd.notna(cell.at_chance) and cell.at_chance else ""
    judged = cell.verdict not in (NOT_MEASURED, NOT_JUDGED, NOT_IN_PAPER, NOT_RUN, NO_MODEL)
    detail = sentence("cell_detail", cell=cell, judged=judged)
    return Value(number(cell.reproduced, cell.decimals) + mark, spread(cell.reproduced_sd, cell.decimals), detail)


def notes(cells: pd.DataFrame) -> list[str]:
    """Says what the mark of chance means, where a cell has it, and what n and ± are in the reproduced lines."""
    trained = cells[(cells["status"] == "reproduced") & cells["unit_of_inference"].notna()]
    trained = trained[trained["unit_of_inference"] != EXACT]
    texts = [sentence("chance_note")] if cells["at_chance"].eq(True).any() else []
    for (unit, n, runs), _ in trained.groupby(["unit_of_inference", "reproduced_n", "runs"]):
        texts.append(sentence("unit_note", unit=unit, n=n, runs=runs))
    return texts


def _released(cell) -> Value:
    """Formats one cell of the released results: mean and spread."""
    if cell is None:
        return Value(MISSING)
    return Value(number(cell.released, cell.decimals), spread(cell.released_sd, cell.decimals))


def _with_n(label: str, counts: list) -> str:
    """Appends the numbers of units behind a line to its label, as in `reproduced, n = 3 or 5`."""
    numbers = [str(n) for n in dict.fromkeys(counts) if pd.notna(n)]
    return f"{label}, n = {' or '.join(numbers)}" if numbers else label
