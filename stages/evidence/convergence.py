"""Curves over pre-training steps, and the steps at which they reach something.

Losses are validation losses; scores are GLUE scores of models fine-tuned from intermediate checkpoints. Crossings are
interpolated linearly between the two evaluations around them.
"""

import numpy as np
import pandas as pd

from stages.evidence.derived import FIELDS, gains

LEVELS = (5.0, 3.0, 2.5, 2.0, 1.9, 1.8, 1.7)  # nats
LAST = 10  # evaluations behind the late loss
SHARE = 0.95  # of the final score (Courtois et al. 2024, section 4.3)
PLATEAU_FROM, PLATEAU_WITHIN, PLATEAU_FALL = 5_000, 1_000, 0.2  # steps, steps, nats
RUN = ["operator", "size", "pretraining_seed"]


def validation_loss(rows: pd.DataFrame) -> pd.DataFrame:
    """Validation losses of pre-training with their `step` as a number."""
    rows = rows[(rows["stage"] == "pretraining") & (rows["metric"] == "validation_loss")]
    return rows.assign(step=rows["condition"].str.removeprefix("step=").astype(int))


def loss_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """Of every pre-training run: first, final and late loss, gaps to other operators, and steps to losses.

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
    """The first evaluation below each of LEVELS, and the end of the plateau; what is never reached is left out."""
    operator, size, seed = key
    own = {"stage": "pretraining", "operator": operator, "size": size, "pretraining_seed": seed}
    step, loss = run["step"].to_numpy(), run["value"].to_numpy(float)
    found = []
    for level in LEVELS:
        below = np.flatnonzero(loss < level)
        if len(below) and below[0]:
            found.append(own | {"metric": "steps_to_loss", "condition": f"loss={level:g}", "value": step[below[0]]})
    end = plateau_end(step, loss)
    return found if end is None else [*found, own | {"metric": "plateau_end_step", "value": end}]


def plateau_end(step: np.ndarray, loss: np.ndarray) -> int | None:
    """The step from which on the loss falls by 0.2 nats within 1,000 steps; running median of five evaluations.

    None for runs that are too short, or evaluated too seldom, for the definition.
    """
    if len(step) < 5 or np.max(np.diff(step)) > PLATEAU_WITHIN / 2:
        return None
    smooth = pd.Series(loss).rolling(5, center=True, min_periods=1).median().to_numpy()
    for place in np.flatnonzero(step >= PLATEAU_FROM):
        ahead = np.flatnonzero(step <= step[place] + PLATEAU_WITHIN)[-1]
        if smooth[place] - smooth[ahead] > PLATEAU_FALL:
            return int(step[place])
    return None


def steps_to_scores(whole: pd.DataFrame) -> pd.DataFrame:
    """Steps to 95 % of the final GLUE score: of `pairwise` (as the authors drew it), and of the run itself.

    whole: scores with stage `convergence` and condition `step=N`; other rows are passed over.
    """
    rows = whole[(whole["stage"] == "convergence") & (whole["evaluated_on"] == "glue_score")]
    rows = rows.assign(step=rows["condition"].str.removeprefix("step=").astype(int)).sort_values("step")
    final = rows[rows["step"] == rows["step"].max()]
    common = final[final["operator"] == "pairwise"].groupby("size")["value"].mean()
    found = []
    for (operator, size, p, f), run in rows.groupby([*RUN, "finetuning_seed"], sort=False, dropna=False):
        own = {"stage": "convergence", "operator": operator, "size": size, "pretraining_seed": p, "finetuning_seed": f}
        targets = {"steps_to_95_percent_of_own": run["value"].iloc[-1], "steps_to_95_percent": common.get(size)}
        for metric, target in targets.items():
            step = None if target is None else crossing(run["step"], run["value"], SHARE * target)
            found += [] if step is None else [own | {"metric": metric, "value": step}]
        drops = float(np.maximum(-np.diff(run["value"]), 0).sum())
        found.append(own | {"metric": "summed_drops", "value": drops})
    return pd.DataFrame(found, columns=FIELDS)


def crossing(step: pd.Series, value: pd.Series, target: float) -> float | None:
    """The interpolated step at which a rising curve first reaches the target; None if it never does."""
    step, value = step.to_numpy(float), value.to_numpy(float)
    above = np.flatnonzero(value >= target)
    if not len(above):
        return None
    place = above[0]
    if place == 0:
        return float(step[0])
    before, after = value[place - 1], value[place]
    return float(step[place - 1] + (target - before) / (after - before) * (step[place] - step[place - 1]))


def curves(rows: pd.DataFrame, whole: pd.DataFrame) -> pd.DataFrame:
    """By operator, size and step: mean, minimum, maximum and n over runs; quantity: `loss` or `glue_score` (x 100)."""
    scores = whole[(whole["stage"] == "convergence") & (whole["metric"] == "score")]
    scores = scores[scores["evaluated_on"] == "glue_score"]
    scores = scores.assign(step=scores["condition"].str.removeprefix("step=").astype(int), value=100 * scores["value"])
    scores = scores.sort_values(["size", "operator", "step"], kind="stable")
    parts = [validation_loss(rows).assign(quantity="loss"), scores.assign(quantity="glue_score")]
    both = pd.concat([part for part in parts if len(part)] or parts)
    groups = both.groupby(["quantity", "operator", "size", "step"], sort=False)["value"]
    return groups.agg(mean="mean", minimum="min", maximum="max", n="count").reset_index()
