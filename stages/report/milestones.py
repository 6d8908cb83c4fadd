"""The report's table of milestones: when each operator leaves the plateau, reaches a loss, nears its final score."""

from dataclasses import replace

import pandas as pd

from stages.report import names
from stages.report.tables import MISSING, Grid, Heading, Value, number, plain, spread

OTHERS = {
    "plateau_end_step": ("Plateau ends", "falls by more than 0.2 nats within four evaluations"),
    "steps_to_95_percent": ("95 % of pairwise", "of the GLUE score of pairwise at the last checkpoint"),
    "steps_to_95_percent_of_own": ("95 % of its own", "of its own GLUE score at the last checkpoint"),
}


def milestones(reached: pd.DataFrame) -> Grid:
    """A line an operator, size and source; a column a milestone that anyone reaches."""
    losses = sorted((name for name in set(reached["milestone"]) if name not in OTHERS), key=_level, reverse=True)
    order = [*losses, *(name for name in OTHERS if name in set(reached["milestone"]))]
    columns = {"label": (Heading("Model"), str)}
    columns |= {name: (_heading(name), _shown) for name in order}
    lines = []
    for (source, size, operator), rows in reached.groupby(["source", "size", "operator"], sort=False):
        cells = {row["milestone"]: row for row in rows.to_dict("records")}
        lines.append({"label": f"{names.model(size, operator)}, {source}"} | cells)
    notes = (
        "Mean of the steps ± standard deviation over pre-training seeds, where there are several. A run that never "
        "gets there counts with its last step, and how many those are is said: the mean is then restricted to the "
        "length of the run, and the true one is later. In brackets the evaluations between which the steps of all "
        "others lie: a milestone is known no better than that. Steps to a loss are those of the first evaluation below "
        "it; steps to a score are interpolated linearly between checkpoints. Intervals stand in the CSV. A dash: no "
        "run of any operator of that size gets there, or it was evaluated too seldom.",
    )
    made = plain(
        pd.DataFrame(lines, columns=list(columns)),
        columns,
        name="milestones",
        title="Steps to losses and scores",
        stage="convergence",
        notes=notes,
    )
    return replace(made, csv=reached)


def _level(name: str) -> float:
    return float(name.removeprefix("loss="))


def _heading(name: str) -> Heading:
    return Heading(*OTHERS[name]) if name in OTHERS else Heading(f"Loss {_level(name):g}", "nats")


def _shown(row: object) -> Value:
    if not isinstance(row, dict):
        return Value(MISSING)
    if row["never"] == row["runs"]:
        return Value(f"never ({row['never']:g} of {row['runs']:g})", kind="text")
    between = f"[{number(row['after'], 0)}–{number(row['before'], 0)}]"
    never = f"; {row['never']:g} of {row['runs']:g} never" if row["never"] else ""
    return Value(number(row["mean"], 0), f"{spread(row['sd'], 0)} {between}{never}".strip())
