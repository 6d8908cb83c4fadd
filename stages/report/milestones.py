"""When each operator leaves the plateau, reaches a loss, nears its final score: table, tests and waiting curves."""

from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from pandas.api.typing import DataFrameGroupBy

from stages.common.evidence.statistics import FEWEST
from stages.report import names
from stages.report.drawing import WIDTH, Drawing, panels, steps_axis, style
from stages.report.tables import MISSING, Grid, Heading, Value, interval, number, plain, probability, spread

OTHERS = {
    "plateau_end_step": ("Plateau ends", "falls by more than 0.2 nats within four evaluations"),
    "steps_to_95_percent": ("95 % of pairwise", "of the GLUE score of pairwise at the last checkpoint"),
    "steps_to_95_percent_of_own": ("95 % of its own", "of its own GLUE score at the last checkpoint"),
}


def milestones(reached: pd.DataFrame) -> Grid:
    """A line an operator, size and source; a column a milestone that anyone reaches."""
    notes = (
        "Mean of the steps ± standard deviation over pre-training seeds, where there are several. A run that never "
        "gets there counts with its last step, and how many those are is said: the mean is then restricted to the "
        "length of the run, and the true one is later. In brackets the evaluations between which the steps of all "
        "others lie: a milestone is known no better than that. Steps to a loss are those of the first evaluation below "
        "it; steps to a score are interpolated linearly between checkpoints. Intervals stand in the CSV. A dash: no "
        "run of any operator of that size gets there, or it was evaluated too seldom.",
    )
    columns = {"label": (Heading("Model"), str)} | {name: (_heading(name), _shown) for name in _order(reached)}
    lines = [
        {"label": f"{names.model(size, operator)}, {source}"}
        | {row["milestone"]: row for row in rows.to_dict("records")}
        for (source, size, operator), rows in _models(reached)
    ]
    return _table(
        reached, lines, columns, name="milestones", title="Steps to losses and scores", stage="convergence", notes=notes
    )


def tests(compared: pd.DataFrame, confidence: float, alpha: float) -> Grid:
    """A line an operator, a column a milestone: steps more or less than the original operator; several runs per arm."""
    tested = compared[compared[["p", "p_log_rank"]].notna().any(axis=1)]
    told = tested.groupby(["size", "milestone"])["difference"].transform(lambda steps: (steps != 0).any())
    tested = tested[told.astype(bool)]  # the others all runs of a size reach at one evaluation
    notes = (
        f"Steps that an operator spends more than original before it gets there, up to the horizon of both (restricted "
        f"means), with Welch's {confidence:.0%} interval over pre-training seeds; where all runs of a side end at one "
        "step, and apart from the others, there is an exact permutation test and no interval. * marks p below "
        f"{alpha:g} after Holm over all operators and milestones of a size, from {FEWEST} runs a side on. A log-rank "
        "test of the whole curves, exact "
        "for up to six runs a side, stands in the detail of a cell and in the CSV; it is not adjusted. A milestone "
        "that all runs reach at one evaluation is left out.",
    )
    columns = {"label": (Heading("Operator"), str)} | {name: (_heading(name), _value) for name in _order(tested)}
    lines = [
        {"label": names.model(size, operator) + ("" if source == "reproduced" else f", {source}")}
        | {row.milestone: _difference(row, alpha) for row in rows.itertuples()}
        for (source, size, operator), rows in _models(tested)
    ]
    title = "Steps to losses and scores against the original operator"
    return _table(tested, lines, columns, name="milestone_tests", title=title, stage="analysis", notes=notes)


def _models(frame: pd.DataFrame) -> DataFrameGroupBy:
    return frame.groupby(["source", "size", "operator"], sort=False)


def _table(frame: pd.DataFrame, lines: list[dict], columns: dict, **about: Any) -> Grid:
    """The lines as a table, whose CSV holds the frame that they were made from."""
    return replace(plain(pd.DataFrame(lines, columns=list(columns)), columns, **about), csv=frame)


def waiting(curves: pd.DataFrame) -> list[Drawing]:
    """Kaplan-Meier curves of this run's operators, a panel for each milestone that tells runs apart.

    None where every operator has one run, and none of a milestone that all runs reach at one evaluation.
    """
    own = curves[curves["source"] == "reproduced"]
    panel = own.groupby(["size", "milestone"])
    one_step = own["step"].where(own["step"] > 0).groupby([own["size"], own["milestone"]]).transform("nunique") == 1
    all_there = own.groupby(["size", "milestone", "operator"])["waiting"].transform("min").eq(0)
    at_once = one_step & all_there.groupby([own["size"], own["milestone"]]).transform("all")
    own = own[(panel["at_risk"].transform("max") > 1) & ~at_once]
    groups = [
        (f"{_words(name)}, BERT-{size}", rows)
        for size, of_size in own.groupby("size", sort=False)
        for name in _order(of_size)
        if len(rows := of_size[of_size["milestone"] == name])
    ]
    if not groups:
        return []
    drawing = Drawing(
        name="waiting",
        place="",
        title="Share of this run's pre-training runs that have not got there yet (Kaplan-Meier)",
        stage="analysis",
        alternative=" ".join(f"{title}: {_ends(rows)}." for title, rows in groups),
        notes=("A curve that does not reach zero has runs that never got there; it is drawn as far as it is known.",),
        **panels(groups, still_waiting, WIDTH, 2.3),
        csv=own,
    )
    return [drawing]


def still_waiting(axes: Axes, frame: pd.DataFrame) -> None:
    """One step curve an operator."""
    last = frame["step"].max()
    for operator, rows in frame.groupby("operator", sort=False):
        colour, stroke = style(operator)
        step, share = [*rows["step"], last], [*rows["waiting"], rows["waiting"].iloc[-1]]
        axes.step(step, share, where="post", color=colour, linestyle=stroke, label=names.operator(operator))
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("share not there yet")
    steps_axis(axes)


def _ends(frame: pd.DataFrame) -> str:
    """Of every operator, the share that is left in the end, and when the last run that got there did."""
    return ", ".join(
        f"{names.operator(operator)} {rows['waiting'].iloc[-1]:.0%} left after step {rows['step'].iloc[-1]:,.0f}"
        for operator, rows in frame.groupby("operator", sort=False)
    )


def _order(frame: pd.DataFrame) -> list[str]:
    """The milestones of a frame: losses from the highest on, then the others."""
    there = set(frame["milestone"])
    losses = sorted((name for name in there if name not in OTHERS), key=_level, reverse=True)
    return [*losses, *(name for name in OTHERS if name in there)]


def _words(name: str) -> str:
    return _heading(name).label


def _value(cell: object) -> Value:
    return cell if isinstance(cell, Value) else Value(MISSING)


def _difference(row, alpha: float) -> Value:
    known = pd.notna(row.low)
    star = "*" if row.p_holm < alpha and min(row.runs, row.runs_reference) >= FEWEST else ""
    detail = (
        f"p = {probability(row.p)}, adjusted {probability(row.p_holm)}; log-rank p = {probability(row.p_log_rank)}; "
        f"{row.never} and {row.never_reference} runs never got there"
    )
    ends = f"({interval(row.low, row.high, 0)})" if known else "(no interval)" if pd.notna(row.p) else "(no test)"
    return Value(number(row.difference, 0) + star, ends, detail)


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
