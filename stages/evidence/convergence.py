"""Curves over pre-training steps, and the steps at which they reach something.

Losses are validation losses; scores are GLUE scores of models fine-tuned from intermediate checkpoints. Crossings are
interpolated linearly between the two evaluations around them. A run that has not reached something by its last
evaluation is not left out: it has a row of the metric with NOT_REACHED at its end, whose value is that last step.
"""

import numpy as np
import pandas as pd

from stages.evidence import survival
from stages.evidence.derived import FIELDS, gains, matching
from stages.evidence.statistics import bands

LEVELS = (5.0, 3.0, 2.5, 2.0, 1.9, 1.8, 1.7)  # nats
LAST = 10  # evaluations behind the late loss
SHARE = 0.95  # of the final score (Courtois et al. 2024, section 4.3)
PLATEAU_EVALUATIONS, PLATEAU_FALL = 4, 0.2  # nats within four evaluations: 1,000 steps in Courtois et al.
SHORTEST = 12  # evaluations that a run must have for its plateau to be reported
RUN = ["operator", "size", "pretraining_seed"]
NOT_REACHED = "_not_reached"
MILESTONES = ("plateau_end_step", "steps_to_loss", "steps_to_95_percent", "steps_to_95_percent_of_own")
NAMES = {name + ending: name for name in MILESTONES for ending in ("", NOT_REACHED)}  # of metrics: their milestones
EVENTS = ["size", "operator", "milestone", "pretraining_seed", "step", "reached"]


def with_steps(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the step of their condition (`step=NUMBER`) as a number."""
    return rows.assign(step=rows["condition"].str.removeprefix("step=").astype(int))


def validation_loss(rows: pd.DataFrame) -> pd.DataFrame:
    """Validation losses of pre-training with their `step` as a number."""
    return with_steps(rows[(rows["stage"] == "pretraining") & (rows["metric"] == "validation_loss")])


def scores_by_step(measured: pd.DataFrame) -> pd.DataFrame:
    """GLUE scores of models that were fine-tuned from intermediate checkpoints, with their `step` as a number."""
    return with_steps(matching(measured, {"stage": "convergence", "metric": "score", "evaluated_on": "glue_score"}))


def loss_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """Of every pre-training run: first, final and late loss, gaps to other operators, steps to losses, its plateau.

    `late_loss` is the mean of the last ten evaluations, for runs that have as many after half of their steps.
    """
    rows = validation_loss(rows)
    if rows.empty:
        return rows.reindex(columns=FIELDS)
    groups = rows.groupby(RUN, sort=False)
    last, first = groups["step"].transform("max"), groups["step"].transform("min")
    final = rows[rows["step"] == last].assign(metric="final_validation_loss", condition=None)
    start = rows[rows["step"] == first].assign(metric="first_validation_loss", condition=None)
    late = rows[(groups.cumcount(ascending=False) < LAST) & (2 * rows["step"] >= last)]
    late = late.groupby(RUN, sort=False).agg(value=("value", "mean"), n=("value", "count")).reset_index()
    late = late[late["n"] == LAST].assign(stage="pretraining", metric="late_loss").reindex(columns=FIELDS)
    steps = pd.DataFrame([row for key, run in groups for row in _steps(key, run)], columns=FIELDS)
    return pd.concat([part[FIELDS] for part in (final, start, late, gains(late), steps) if len(part)])


def _steps(key: tuple, run: pd.DataFrame) -> list[dict]:
    """The first evaluation below each of LEVELS, and the end of the plateau where the run has one."""
    operator, size, seed = key
    fields = {"stage": "pretraining", "operator": operator, "size": size, "pretraining_seed": seed}
    rows = []
    for level in LEVELS:
        step, reached = survival.first_below(run["step"], run["value"], level)
        rows.append(fields | _reaching("steps_to_loss", step, reached, f"loss={level:g}"))
    span = plateau(run["step"].to_numpy(), run["value"].to_numpy(float))
    if span is not None:
        rows.append(fields | _reaching("plateau_end_step", span[1] or run["step"].max(), span[1] is not None))
    return rows


def _reaching(metric: str, step: float, reached: bool, condition: str | None = None) -> dict:
    """A measurement: the step at which a run reaches a milestone, or its last step where it never does."""
    return {"metric": metric if reached else metric + NOT_REACHED, "condition": condition, "value": step}


def plateau(step: np.ndarray, loss: np.ndarray) -> tuple[int, int | None] | None:
    """The first and the last step of the plateau that follows the first fall of the loss.

    It begins at the first evaluation from which the loss falls by 0.2 nats or less within four evaluations, and ends
    at the next one from which it falls by more; losses are running medians of five. Nothing here counts steps, so runs
    of every length and learning rate are told by one definition.

    Args:
        step: [evaluations], increasing.
        loss: [evaluations], nats.

    Returns:
        The two steps, the second None where the run does not leave its plateau. A run that falls fast to its end, and
        is not below the highest of LEVELS there, may have its plateau still before it: it is said to begin at the last
        step and not to be left. None where there is no plateau: fewer than twelve evaluations, or a loss below the
        highest of LEVELS when it first falls slowly, or at the end.
    """
    if len(step) < SHORTEST:
        return None
    smooth = pd.Series(loss).rolling(5, center=True, min_periods=1).median().to_numpy()
    fall = smooth[:-PLATEAU_EVALUATIONS] - smooth[PLATEAU_EVALUATIONS:]
    slow = np.flatnonzero(fall <= PLATEAU_FALL)
    start = slow[0] if len(slow) else len(step) - 1
    if smooth[start] < LEVELS[0]:
        return None
    leaves = np.flatnonzero(fall[start:] > PLATEAU_FALL)
    return int(step[start]), int(step[start + leaves[0]]) if len(leaves) else None


def events(measured: pd.DataFrame) -> pd.DataFrame:
    """When every pre-training run reached each of MILESTONES, or until when it had not. Columns: EVENTS.

    One row for every size, operator, milestone and seed of pre-training. milestone: its metric, or the condition
    (`loss=3`) of steps to a loss. reached: whether it was; otherwise `step` is the last one at which that is known.
    Where several fine-tuning runs tell of one pre-training run, all must have reached it; the step is then their mean.
    """
    rows = measured[measured["metric"].isin(NAMES)]
    kind = rows["metric"].map(NAMES)
    rows = rows.assign(
        milestone=rows["condition"].where(kind == "steps_to_loss", kind),
        reached=~rows["metric"].str.endswith(NOT_REACHED),
    )
    keys = ["size", "operator", "milestone", "pretraining_seed"]
    all_reached = rows.groupby(keys, sort=False)["reached"].transform("all")
    groups = rows[all_reached | ~rows["reached"]].groupby(keys, sort=False)  # of the others, those that never did
    return groups.agg(step=("value", "mean"), reached=("reached", "all")).reset_index()[EVENTS]


def milestone_events(measured: pd.DataFrame) -> pd.DataFrame:
    """The `events`, without milestones that no run of a size reaches."""
    every = events(measured)
    return every[every.groupby(["size", "milestone"])["reached"].transform("any").astype(bool)]


def selected(measured: pd.DataFrame, select: dict[str, str]) -> pd.DataFrame:
    """The measurements with these values in these fields, each with whether its run `reached` what it tells of.

    Of a milestone, the runs that never reach it are among them: one row for every pre-training run, with the step that
    `events` has as its value.
    """
    metric = select.get("metric")
    if metric not in MILESTONES:
        return matching(measured, select).assign(reached=True)
    rows = matching(measured, {field: value for field, value in select.items() if field != "metric"})
    steps = events(rows[rows["metric"].isin((metric, metric + NOT_REACHED))]).rename(columns={"step": "value"})
    return steps.reindex(columns=[*FIELDS, "reached"]).assign(stage="pretraining", metric=metric)


def steps_to_scores(whole: pd.DataFrame) -> pd.DataFrame:
    """Steps to 95 % of the final GLUE score: of `pairwise` (as the authors drew it), and of the run itself.

    A run that never gets there has its last step under the metric that ends in NOT_REACHED.

    whole: scores with stage `convergence` and condition `step=N`; other rows are passed over.
    """
    rows = scores_by_step(whole).sort_values("step")
    at_end = rows[(rows["step"] == rows["step"].max()) & (rows["operator"] == "pairwise")]
    common = at_end.groupby("size")["value"].mean()
    measures, keys = [], [*RUN, "finetuning_seed"]
    for values, run in rows.groupby(keys, sort=False, dropna=False):
        fields = {"stage": "convergence"} | dict(zip(keys, values, strict=True))
        final, common_target = run["value"].iloc[-1], common.get(fields["size"])
        targets = {"steps_to_95_percent_of_own": final, "steps_to_95_percent": common_target}
        for metric, target in targets.items():
            if target is not None:
                measures.append(fields | _reaching(metric, *crossing(run["step"], run["value"], SHARE * target)))
        drops = float(np.maximum(-np.diff(run["value"]), 0).sum())
        measures.append(fields | {"metric": "summed_drops", "value": drops})
    return pd.DataFrame(measures, columns=FIELDS)


def crossing(step: pd.Series, value: pd.Series, target: float) -> tuple[float, bool]:
    """Interpolates the step at which a rising curve first reaches a target.

    Args:
        step: [evaluations], increasing.
        value: at these steps [evaluations].
        target: in the unit of the values.

    Returns:
        The step, between the last evaluation below the target and the first that is not, and True; or the last step
        and False.
    """
    step, value = step.to_numpy(float), value.to_numpy(float)
    above = np.flatnonzero(value >= target)
    if not len(above):
        return float(step[-1]), False
    around = slice(max(above[0] - 1, 0), above[0] + 1)  # the first evaluation alone where that is above already
    return float(np.interp(target, value[around], step[around])), True


def curves(rows: pd.DataFrame, whole: pd.DataFrame) -> pd.DataFrame:
    """By operator, size and step: mean, minimum, maximum and n over runs; quantity: `loss` or `glue_score` (x 100)."""
    scores = scores_by_step(whole).sort_values(["size", "operator", "step"], kind="stable")
    scores = scores.assign(value=100 * scores["value"])
    parts = [validation_loss(rows).assign(quantity="loss"), scores.assign(quantity="glue_score")]
    both = pd.concat([part for part in parts if len(part)] or parts)
    return bands(both, ["quantity", "operator", "size", "step"])
