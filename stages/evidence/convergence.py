"""Curves over pre-training steps, and the steps at which they reach milestones.

Losses are validation losses; scores are GLUE scores of models fine-tuned from intermediate checkpoints. Crossings are
interpolated linearly between evaluations. A run that never reaches a milestone has a row with its last step, whose
metric ends in NOT_REACHED. `rows` are observations, `measured` and `whole` measurements (see derived.py).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from stages.evidence import survival
from stages.evidence.derived import FIELDS, gains, matching
from stages.evidence.statistics import bands

LEVELS = (5.0, 3.0, 2.5, 2.0, 1.9, 1.8, 1.7)  # nats, of `steps_to_loss` in the released results
PLATEAU_ABOVE = 5.0  # nats; a loss that first falls slowly below this level is at no plateau
LAST = 10  # evaluations whose mean is the late loss, as single ones are noisy
SHARE = 0.95  # of the final score (Courtois et al. 2024, section 4.3)
PLATEAU_EVALUATIONS, PLATEAU_FALL = 4, 0.2  # nats within four evaluations: 1,000 steps in Courtois et al.
SHORTEST = 12  # evaluations that a run must have for its plateau to be reported; chosen by us
RUN = ["operator", "size", "pretraining_seed"]
NOT_REACHED = "_not_reached"
MILESTONES = ("plateau_end_step", "steps_to_loss", "steps_to_95_percent", "steps_to_95_percent_of_own")
NAMES = {name + ending: name for name in MILESTONES for ending in ("", NOT_REACHED)}  # milestones by metric
EVENTS = ["size", "operator", "milestone", "pretraining_seed", "step", "reached"]


def with_steps(rows: pd.DataFrame) -> pd.DataFrame:
    """Adds a column `step`, the number in the condition of every row, all of which are `step=NUMBER`."""
    return rows.assign(step=rows["condition"].str.removeprefix("step=").astype(int))


def validation_loss(rows: pd.DataFrame) -> pd.DataFrame:
    """Validation losses of pre-training, in nats, with their `step` as a number."""
    return with_steps(rows[(rows["stage"] == "pretraining") & (rows["metric"] == "validation_loss")])


def scores_by_step(measured: pd.DataFrame) -> pd.DataFrame:
    """GLUE scores, fractions, of models that were fine-tuned from intermediate checkpoints, with a number `step`."""
    return with_steps(matching(measured, {"stage": "convergence", "metric": "score", "evaluated_on": "glue_score"}))


def loss_measures(rows: pd.DataFrame, levels: Sequence[float] = LEVELS) -> pd.DataFrame:
    """Measures the validation loss of every pre-training run, in rows of FIELDS.

    The metrics are `first_validation_loss`, `final_validation_loss`, `steps_to_loss` for each level (condition
    `loss=LEVEL`), `plateau_end_step` for runs with a plateau and, for runs with ten evaluations from half of their
    steps on, `late_loss`, the mean of the last ten, and its `gains`.

    Args:
        rows: observations, each run's in order of steps.
        levels: in nats.
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
    steps = pd.DataFrame([row for key, run in groups for row in _steps(key, run, levels)], columns=FIELDS)
    return pd.concat([part[FIELDS] for part in (final, start, late, gains(late), steps) if len(part)])


def _steps(key: tuple, run: pd.DataFrame, levels: Sequence[float]) -> list[dict]:
    """Measures when a run (`key`: RUN) crosses each level, and when its plateau ends, if it has one."""
    operator, size, seed = key
    fields = {"stage": "pretraining", "operator": operator, "size": size, "pretraining_seed": seed}
    rows = []
    for level in levels:
        step, reached = survival.crossing(run["step"], run["value"], level)
        rows.append(fields | _reaching("steps_to_loss", step, reached, f"loss={level:g}"))
    span = plateau(run["step"].to_numpy(), run["value"].to_numpy(float))
    if span is not None:
        rows.append(fields | _reaching("plateau_end_step", span[1] or run["step"].max(), span[1] is not None))
    return rows


def _reaching(metric: str, step: float, reached: bool, condition: str | None = None) -> dict:
    """Part of a measurement: the step at which a run reaches a milestone, or its last step where it never does."""
    return {"metric": metric if reached else metric + NOT_REACHED, "condition": condition, "value": step}


def plateau(step: np.ndarray, loss: np.ndarray) -> tuple[int, int | None] | None:
    """Finds the first and the last step of the plateau that follows the first fall of the loss.

    It begins at the first evaluation from which the loss falls by 0.2 nats or less within four evaluations, and ends
    at the next one from which it falls by more; losses are running medians of five, of fewer at both ends. The
    definition counts evaluations and no steps, so that it is the same for runs of every length and learning rate.

    step, loss: [evaluations], in increasing order of steps; in nats. Returns the two steps, the second None where the
    run does not leave its plateau. None in place of both: the run has fewer than twelve evaluations, or its loss is
    below PLATEAU_ABOVE where it first falls slowly or, if it never does, at the end. A run that falls fast to
    its end, but not below that level, counts as on a plateau that begins at its last step.
    """
    if len(step) < SHORTEST:
        return None
    smooth = pd.Series(loss).rolling(5, center=True, min_periods=1).median().to_numpy()
    fall = smooth[:-PLATEAU_EVALUATIONS] - smooth[PLATEAU_EVALUATIONS:]
    slow = np.flatnonzero(fall <= PLATEAU_FALL)
    start = slow[0] if len(slow) else len(step) - 1
    if smooth[start] < PLATEAU_ABOVE:
        return None
    leaves = np.flatnonzero(fall[start:] > PLATEAU_FALL)
    return int(step[start]), int(step[start + leaves[0]]) if len(leaves) else None


def events(measured: pd.DataFrame) -> pd.DataFrame:
    """Determines when every pre-training run reached each of MILESTONES, or until when it had not. Columns: EVENTS.

    One row for every size, operator, milestone and seed of pre-training. measured: rows of MILESTONES are used, with or
    without NOT_REACHED. milestone: its name in MILESTONES, or for `steps_to_loss` the condition (`loss=3`). reached:
    whether the run reached it; if not, `step` is the last step up to which that is known. Where several fine-tuning
    runs measure one pre-training run, it reached the milestone if all of them did, at the mean of their steps;
    otherwise `step` is the mean of the last steps of those that did not.
    """
    rows = measured[measured["metric"].isin(NAMES)]
    kind = rows["metric"].map(NAMES)
    rows = rows.assign(
        milestone=rows["condition"].where(kind == "steps_to_loss", kind),
        reached=~rows["metric"].str.endswith(NOT_REACHED),
    )
    keys = ["size", "operator", "milestone", "pretraining_seed"]
    all_reached = rows.groupby(keys, sort=False)["reached"].transform("all")
    groups = rows[all_reached | ~rows["reached"]].groupby(keys, sort=False)  # unless all did, those that did not
    return groups.agg(step=("value", "mean"), reached=("reached", "all")).reset_index()[EVENTS]


def milestone_events(measured: pd.DataFrame) -> pd.DataFrame:
    """The `events`, without milestones that no run of a size reaches."""
    every = events(measured)
    return every[every.groupby(["size", "milestone"])["reached"].transform("any").astype(bool)]


def crossings(rows: pd.DataFrame, level: float) -> pd.DataFrame:
    """Selects from the `events` when every run first falls below a level, and adds where its loss ends.

    Args:
        rows: observations, each run's in order of steps; the runs have one size.
        level: of the validation loss, in nats.

    Returns:
        One row for every run: operator, pretraining_seed, step, reached and final_loss, in nats.
    """
    measured = loss_measures(rows, [level])
    final = matching(measured, {"metric": "final_validation_loss"}).rename(columns={"value": "final_loss"})
    runs = matching(events(measured), {"milestone": f"loss={level:g}"}).merge(final, on=RUN)
    return runs[["operator", "pretraining_seed", "step", "reached", "final_loss"]].astype({"pretraining_seed": int})


def milestones(measured: pd.DataFrame, by_step: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Estimates when each operator reaches each milestone.

    Args:
        measured: measurements, among them those of `events`.
        by_step: as `curves` returns them, for the steps of the evaluations.
        confidence: of the intervals.

    Returns:
        One row for every size, operator and milestone that at least one run of that size reaches, with survival.MEANS
        over pre-training seeds (see `survival.restricted_means`). A milestone lies between two evaluations: after,
        before: as `bracket` returns them for the runs that get there, missing where none does.
    """
    reaching = milestone_events(measured)
    means = survival.restricted_means(reaching, ["size", "milestone"], confidence)
    ends = []
    for row in means.itertuples():
        place = {"size": row.size, "operator": row.operator}
        arrivals = matching(reaching, place | {"milestone": row.milestone, "reached": True})
        quantity = "loss" if row.milestone.startswith(("loss=", "plateau")) else "glue_score"
        evaluated = np.sort(matching(by_step, place | {"quantity": quantity})["step"].to_numpy())
        steps = arrivals["step"].to_numpy(float)
        ends.append(bracket(evaluated, steps) if len(steps) else (np.nan, np.nan))
    ends = pd.DataFrame(ends, columns=["after", "before"], dtype="Int64")
    return pd.concat([means, ends], axis=1)[["size", "operator", "milestone", *survival.MEANS, "after", "before"]]


def bracket(evaluated: np.ndarray, values: np.ndarray) -> tuple[int, int]:
    """The last evaluation before the lowest of `values`, 0 without one, and the first that is not before the highest.

    evaluated: steps, in increasing order. values: steps [runs], none of them beyond the last evaluation.
    """
    earlier = evaluated[evaluated < values.min()]
    return int(earlier[-1]) if len(earlier) else 0, int(evaluated[np.searchsorted(evaluated, values.max())])


def selected(measured: pd.DataFrame, select: dict[str, str]) -> pd.DataFrame:
    """Selects measurements by their fields, as `matching` does, and adds `reached`, False where a time is censored.

    If `select` names a metric in MILESTONES, this gives one row for every pre-training run, whichever stage measured it
    and whether it gets there or not: `value` and `reached` are as `events` has them. Otherwise `reached` is True.
    """
    metric = select.get("metric")
    if metric not in MILESTONES:
        return matching(measured, select).assign(reached=True)
    rows = matching(measured, {field: value for field, value in select.items() if field != "metric"})
    steps = events(rows[rows["metric"].isin((metric, metric + NOT_REACHED))]).rename(columns={"step": "value"})
    return steps.reindex(columns=[*FIELDS, "reached"]).assign(stage="pretraining", metric=metric)


def steps_to_scores(whole: pd.DataFrame) -> pd.DataFrame:
    """Measures the curve of GLUE scores of every pre-training and fine-tuning seed, in rows of FIELDS.

    `steps_to_95_percent`: to 95 % of the mean score that `pairwise` of that size has at the last step of all rows (the
    authors' own target), for sizes that have it; `steps_to_95_percent_of_own`: to 95 % of the run's own last score;
    either with NOT_REACHED as above. `summed_drops`: the sum of all falls from one step to the next, a fraction.
    """
    rows = scores_by_step(whole).sort_values("step")
    at_end = rows[(rows["step"] == rows["step"].max()) & (rows["operator"] == "pairwise")]
    common = at_end.groupby("size")["value"].mean()
    measures, keys = [], [*RUN, "finetuning_seed"]
    for values, run in rows.groupby(keys, sort=False, dropna=False):
        fields = {"stage": "convergence"} | dict(zip(keys, values, strict=True))
        step, value = run["step"].to_numpy(float), run["value"].to_numpy(float)
        targets = {"steps_to_95_percent_of_own": value[-1], "steps_to_95_percent": common.get(fields["size"])}
        for metric, target in targets.items():
            if target is None:
                continue
            above, reaches = np.flatnonzero(value >= SHARE * target), step[-1]
            if len(above):
                # between the first evaluation not below the target and the one before, or at the first of all
                around = slice(max(above[0] - 1, 0), above[0] + 1)
                reaches = np.interp(SHARE * target, value[around], step[around])
            measures.append(fields | _reaching(metric, reaches, len(above) > 0))
        drops = float(np.maximum(-np.diff(value), 0).sum())
        measures.append(fields | {"metric": "summed_drops", "value": drops})
    return pd.DataFrame(measures, columns=FIELDS)


def curves(rows: pd.DataFrame, whole: pd.DataFrame) -> pd.DataFrame:
    """Computes mean, minimum, maximum and n over runs, by quantity, operator, size and step.

    quantity: `loss`, in nats, from the observations `rows`; `glue_score`, times 100, from the measurements `whole`.
    """
    scores = scores_by_step(whole).sort_values(["size", "operator", "step"], kind="stable")
    scores = scores.assign(value=100 * scores["value"])
    parts = [validation_loss(rows).assign(quantity="loss"), scores.assign(quantity="glue_score")]
    both = pd.concat([part for part in parts if len(part)] or parts)  # an empty part would decide types of columns
    return bands(both, ["quantity", "operator", "size", "step"])
