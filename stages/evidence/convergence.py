"""Curves over pre-training steps, and the steps at which runs reach milestones such as a level of the loss.

Scores are GLUE scores, fractions, of models that were fine-tuned from intermediate models or checkpoints. Crossings are
interpolated linearly between evaluations. If a run never reaches a milestone, the name of the metric ends in
`_not_reached`, and the value is the last step. `rows` are observations, each run's in order of steps; `measured` are
measurements (fields.py), a row per number.
"""

from collections.abc import Sequence
from math import fsum

import numpy as np
import pandas as pd

from stages.evidence import survival
from stages.evidence.derived import compute_gains
from stages.evidence.fields import FIELDS, select_numbered, select_rows, stack_frames
from stages.evidence.statistics import compute_bands

# Levels of `steps_to_loss` in the released results, nats.
LEVELS = (5.0, 3.0, 2.5, 2.0, 1.9, 1.8, 1.7)
# The late loss is the mean of so many evaluations, as single evaluations are noisy.
LAST = 10
# Share of the final score (Courtois et al. 2024, section 4.3).
SHARE = 0.95
RUN_KEYS = ["operator", "size", "pretraining_seed"]
NOT_REACHED = "_not_reached"
MILESTONES = (
    "steps_to_loss",
    "steps_to_95_percent",
    "steps_to_95_percent_of_own",
)
# Metrics of milestones, reached or not.
NAMES = (*MILESTONES, *(name + NOT_REACHED for name in MILESTONES))


def select_validation_loss(rows: pd.DataFrame) -> pd.DataFrame:
    """Selects the validation losses of pre-training, in nats, with `step` as a number."""
    return select_numbered(select_rows(rows, stage="pretraining", metric="validation_loss"), "step", int)


def select_scores_by_step(measured: pd.DataFrame) -> pd.DataFrame:
    """Selects the GLUE scores, fractions, of models fine-tuned from intermediate models, with a number `step`."""
    scores = select_rows(
        measured,
        stage="convergence",
        metric="score",
        evaluated_on="glue_score",
    )
    return select_numbered(scores, "step", int)


def measure_losses(rows: pd.DataFrame, levels: Sequence[float] = LEVELS) -> pd.DataFrame:
    """Measures the final, first and late validation loss of every pre-training run, and the steps to `levels`, in nats.

    Returns:
        Measurements, a row per run and metric:

        - `final_validation_loss`, `first_validation_loss`.
        - `late_loss`: mean of the last ten evaluations, for runs with ten evaluations in the second half of the steps;
          also differences from reference operators, such as `late_loss_over_original`.
        - `steps_to_loss` for each level (condition `loss=LEVEL`).
    """
    evaluations = select_validation_loss(rows)
    # In order of steps, without the condition, which is the step.
    in_order = evaluations[["stage", *RUN_KEYS, "value"]]
    first = in_order.drop_duplicates(RUN_KEYS).assign(metric="first_validation_loss")
    final = in_order.drop_duplicates(RUN_KEYS, keep="last").assign(metric="final_validation_loss")
    lates, milestones = [], []
    for keys, run in evaluations.groupby(RUN_KEYS, sort=False):
        fields = {"stage": "pretraining", **dict(zip(RUN_KEYS, keys, strict=True))}
        steps = run["step"].to_numpy()
        losses = run["value"].to_numpy(float)
        # A run with few evaluations has no late loss.
        second_half = losses[2 * steps >= steps[-1]]
        if len(second_half) >= LAST:
            mean = fsum(second_half[-LAST:]) / LAST
            lates.append({**fields, "metric": "late_loss", "value": mean})
        for level in levels:
            milestone = _measure_milestone("steps_to_loss", steps, losses, level)
            milestones.append({**fields, **milestone, "condition": f"loss={level:g}"})
    late = pd.DataFrame(lates, columns=FIELDS)
    return stack_frames([final, first, late, compute_gains(late), pd.DataFrame(milestones)]).reindex(columns=FIELDS)


def _measure_milestone(metric: str, steps: np.ndarray, values: np.ndarray, level: float, rising: bool = False) -> dict:
    step, reached = survival.find_crossing(steps, values, level, rising)
    if not reached:
        metric += NOT_REACHED
    return {"metric": metric, "value": step}


def measure_steps_to_scores(measured: pd.DataFrame) -> pd.DataFrame:
    """Measures when the GLUE score of every pre-training and fine-tuning seed nears the final score.

    Returns:
        Measurements, a row per run and metric:

        - `steps_to_95_percent`: the step at 95 % of the mean score of operator `pairwise`, of equal size, at the last
          step of all rows (the target of the authors); missing for sizes without `pairwise`.
        - `steps_to_95_percent_of_own`: the step at 95 % of the run's last score.
        - `summed_drops`: the sum of all falls from an evaluation to the next, a fraction.
    """
    rows = select_scores_by_step(measured).sort_values("step")
    # The common target of all operators, as in Figure 3 of Courtois et al.
    at_end = rows[(rows["step"] == rows["step"].max()) & (rows["operator"] == "pairwise")]
    common_targets = at_end.groupby("size")["value"].mean()
    keys = [*RUN_KEYS, "finetuning_seed"]
    measures = []
    for values, run in rows.groupby(keys, sort=False, dropna=False):
        fields = {"stage": "convergence", **dict(zip(keys, values, strict=True))}
        steps = run["step"].to_numpy(float)
        scores = run["value"].to_numpy(float)
        targets = {
            "steps_to_95_percent_of_own": scores[-1],
            "steps_to_95_percent": common_targets.get(fields["size"]),
        }
        for milestone, target in targets.items():
            if target is not None:
                measures.append(fields | _measure_milestone(milestone, steps, scores, SHARE * target, rising=True))
        drops = np.maximum(-np.diff(scores), 0)
        measures.append({**fields, "metric": "summed_drops", "value": float(drops.sum())})
    return pd.DataFrame(measures, columns=FIELDS)


def collect_events(measured: pd.DataFrame) -> pd.DataFrame:
    """Collects when every pre-training run reached each milestone, or up to which step the run did not.

    Returns:
        A row per run and milestone (a level such as `loss=3`, or a share of the final score): `size`, `operator`,
        `milestone`, `pretraining_seed`, `step` and `reached` (False if the run ended at `step` before the milestone).
        With several fine-tuning runs, `step` is their mean if all reached the milestone, or else the mean of the last
        steps of the runs that did not.
    """
    rows = select_rows(measured, metric=NAMES)
    kind = rows["metric"].str.removesuffix(NOT_REACHED)
    rows = rows.assign(
        # The condition of `steps_to_loss` is the level, such as `loss=3`.
        milestone=rows["condition"].where(kind == "steps_to_loss", kind),
        reached=rows["metric"] == kind,
    )
    keys = ["size", "operator", "milestone", "pretraining_seed"]
    # If any fine-tuning run misses the milestone, only the fine-tuning runs that miss the milestone count.
    all_reached = rows.groupby(keys, sort=False)["reached"].transform("all")
    decisive = rows[all_reached | ~rows["reached"]]
    events = decisive.groupby(keys, sort=False).agg(
        step=("value", "mean"),
        reached=("reached", "all"),
    )
    return events.reset_index()


def select_milestone_events(measured: pd.DataFrame) -> pd.DataFrame:
    """Collects the rows of `collect_events`, without milestones that no run of a size reaches."""
    every = collect_events(measured)
    # A milestone that no run reaches tells no operators apart.
    reached = every.groupby(["size", "milestone"])["reached"].transform("any")
    return every[reached.astype(bool)]


def select_final_losses(measured: pd.DataFrame) -> pd.DataFrame:
    """Selects the final loss of every run; `reached` says whether the run reached the first of `analysis.levels`."""
    losses = select_rows(measured, metric="final_validation_loss")
    events = collect_events(measured)
    # Events are in the order of the levels: the first milestone, such as `loss=5`, is the first level.
    levels = events.loc[events["milestone"].str.startswith("loss="), "milestone"]
    first_level = select_rows(events, milestone=list(levels[:1]))
    return losses.merge(first_level[[*RUN_KEYS, "reached"]], on=RUN_KEYS, how="left")


def select_measurements(measured: pd.DataFrame, fields: dict[str, str]) -> pd.DataFrame:
    """Selects measurements by the values of `fields`, and adds `reached`: whether the value was really observed.

    For a time to a milestone, such as `{"metric": "steps_to_loss", "size": "base"}`, every pre-training run has a row:
    `value` is the step, and `reached` says whether the run reached the milestone. For other metrics, `reached` is True.
    """
    metric = fields.get("metric")
    if metric not in MILESTONES:
        return select_rows(measured, **fields).assign(reached=True)
    wanted = {**fields, "metric": [metric, metric + NOT_REACHED]}
    events = collect_events(select_rows(measured, **wanted))
    steps = events.rename(columns={"step": "value"})
    # Events have neither a stage nor a metric.
    return steps.reindex(columns=[*measured.columns, "reached"]).assign(
        stage="pretraining",
        metric=metric,
    )


def estimate_milestones(measured: pd.DataFrame, by_step: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Estimates at which step each operator reaches each milestone, such as a level of the loss.

    Args:
        measured: measurements; only times to milestones are used.
        by_step: curves of losses and scores, whose column `step` holds the steps of the evaluations.
        confidence: of the intervals, such as 0.95.

    Returns:
        A row for every size, operator and milestone of `select_milestone_events`. The mean over pre-training seeds has
        an interval, and is missing if a run never reaches the milestone. `after` and `before` are the steps of the
        evaluations around the earliest and the latest run that reaches the milestone, missing without such a run.
    """
    reaching = select_milestone_events(measured)
    rows = []
    for (size, milestone, operator), runs in reaching.groupby(["size", "milestone", "operator"], sort=False):
        quantity = "loss" if milestone.startswith("loss=") else "glue_score"
        evaluated = select_rows(by_step, size=size, operator=operator, quantity=quantity)["step"]
        arrivals = runs.loc[runs["reached"], "step"]
        bracket = (None, None)
        if len(arrivals):
            bracket = find_bracket(evaluated.to_numpy(), arrivals)
        rows.append((size, operator, milestone, *survival.estimate_mean_time(runs, confidence), *bracket))
    columns = ["size", "operator", "milestone", *survival.MEANS, "after", "before"]
    return pd.DataFrame(rows, columns=columns).astype({"after": "Int64", "before": "Int64"})


def find_bracket(evaluated: np.ndarray, steps: pd.Series) -> tuple[int, int]:
    """Finds the evaluations around all steps: 150 and 260 lie between the evaluations at 100 and 300.

    Both arguments are steps. Returns the last evaluation before the lowest step (0
    without such an evaluation), and the first evaluation not before the highest step.
    """
    earlier = evaluated[evaluated < steps.min()]
    later = evaluated[evaluated >= steps.max()]
    return int(earlier.max(initial=0)), int(later.min())


def summarise_curves(rows: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """Computes mean, minimum and maximum over runs of the loss, in nats, and the GLUE score, in points, at every step.

    Returns:
        A row per `quantity` (`loss`, `glue_score`), `operator`, `size` and `step`: `mean`, `minimum`, `maximum`, and
        `n`, the number of runs.
    """
    losses = select_validation_loss(rows).assign(quantity="loss")
    scores = select_scores_by_step(measured).sort_values(["size", "operator", "step"], kind="stable")
    scores = scores.assign(
        quantity="glue_score",
        value=100 * scores["value"],
    )
    return compute_bands(stack_frames([losses, scores]), ["quantity", "operator", "size", "step"])
