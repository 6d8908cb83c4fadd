"""The report's table of milestones: when each operator leaves the plateau, reaches a loss, nears its final score."""

from dataclasses import replace

import pandas as pd

from stages.presentation.tables import MISSING, Grid, Heading, Value, number, plain, spread

OTHERS = {
    "plateau_end_step": ("Plateau ends", "falls by 0.2 nats within 1,000 steps"),
    "steps_to_95_percent": ("95 % of pairwise", "of the GLUE score of pairwise at the last checkpoint"),
    "steps_to_95_percent_of_own": ("95 % of its own", "of its own GLUE score at the last checkpoint"),
}


def milestones(reached: pd.DataFrame) -> Grid:
    """A line an operator, size and source; a column a milestone that anyone reaches."""
    losses = sorted((name for name in set(reached["milestone"]) if name not in OTHERS), key=_level, reverse=True)
    names = [*losses, *(name for name in OTHERS if name in set(reached["milestone"]))]
    columns = {"label": (Heading("Model"), str)}
    columns |= {name: (_heading(name), _shown) for name in names}
    lines = []
    for (source, size, operator), rows in reached.groupby(["source", "size", "operator"], sort=False):
        cells = {row["milestone"]: row for row in rows.to_dict("records")}
        lines.append({"label": f"BERT-{size} {operator}, {source}"} | cells)
    notes = (
        "Mean of the steps ± standard deviation over pre-training seeds, where there are several; in brackets the "
        "evaluations between which the steps of all runs lie: a milestone is known no better than that. Steps to a "
        "loss are those of the first evaluation below it; steps to a score are interpolated linearly between "
        "checkpoints. Intervals, and how many runs reach a milestone, stand in the CSV. A dash: not reached, or "
        "evaluated too seldom.",
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
    between = f"[{number(row['after'], 0)}–{number(row['before'], 0)}]"
    return Value(number(row["mean"], 0), f"{spread(row['sd'], 0)} {between}".strip())
