"""Every comparison of two arms as one row, whatever was measured: the one table that all read.

Every operator is compared with the original, and the further pairs that `analysis.pairs` names with each other. A
comparison is of runs of one source (this run, or the released results), protocol and size: scores, the final loss, the
accuracy that noise takes, and steps to a milestone such as a level of the loss, where a run that never gets there
counts with the last step at which all runs are known (stages.evidence.survival). Holm's method adjusts the p values of
one family, and the intervals cover it simultaneously. contrasts.yaml describes every column.
"""

from collections.abc import Sequence
from functools import cache
from math import nan
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from scipy import stats

from stages.analysis import robustness
from stages.evidence import baselines, convergence, derived, power, scores, survival
from stages.evidence.derived import matching
from stages.evidence.estimate import between
from stages.evidence.statistics import (
    DIFFERENT,
    FEWEST,
    FINETUNING,
    INCONCLUSIVE,
    TOO_FEW,
    holm,
    too_few,
    units,
)
from stages.schema.settings import REFERENCE

DESCRIBED = Path(__file__).with_name("contrasts.yaml")
REPRODUCED, RELEASED = "reproduced", "released"  # sources
KEYS = ["quantity", "source", "protocol", "size", "at"]  # at: the column, the milestone, or FINAL_LOSS
RUN = ["operator", "stage", "pretraining_seed", "finetuning_seed", "value", "reached"]
SCORE, LOSS, LOST, STEPS = "score", "loss", "lost_", "steps"  # quantities; LOST is followed by the kind of noise
FINAL_LOSS = "validation_loss"
Arm = str | Sequence[str]  # one side of a comparison: an operator, or a pair of operators, whose difference is compared


@cache
def _words() -> dict[str, dict[str, str]]:
    """contrasts.yaml: `columns`, the meaning of each, and `reasons`, each verdict in words."""
    return yaml.safe_load(DESCRIBED.read_text(encoding="utf-8"))


def column_meanings() -> pd.DataFrame:
    """What the table holds: a row for each `column`, in order, with its `meaning`."""
    return pd.DataFrame(_words()["columns"].items(), columns=["column", "meaning"])


def quantities(rows: pd.DataFrame, measured: pd.DataFrame, without_model: baselines.WithoutModel) -> pd.DataFrame:
    """Collects all that is compared of one source: one row for every run, quantity and `at`.

    Args:
        rows, measured: observations, and the measurements made of them (see evidence/derived.py), where known
            with `most_frequent_high`, a fraction: the upper end of the interval of a constant answer's score.
        without_model: the scores of answers without a model, as `baselines.without_model` returns them; may be empty.

    Returns:
        KEYS but for the source, RUN (value: points, nats or steps; reached: whether the milestone was, or missing), and
        `score` with `most_frequent_high`: the score that has to exceed chance for the value to be informative, and the
        upper end of chance; both in one unit, and NaN where the value depends on no score.
    """
    measured = measured.assign(most_frequent_high=measured.get("most_frequent_high", nan))
    tuned = matching(measured, {"metric": "score", "stage": "finetuning"})
    tuned = tuned[tuned["evaluated_on"].isin((scores.GLUE_SCORE, *scores.COLUMNS))]
    points = {name: 100 * tuned[name] for name in ("value", "most_frequent_high")}
    tuned = tuned.assign(quantity=SCORE, at=tuned["evaluated_on"], score=points["value"], **points)
    losses = measured[measured["metric"] == "final_validation_loss"].assign(quantity=LOSS, at=FINAL_LOSS)
    steps = convergence.milestone_events(measured).rename(columns={"milestone": "at", "step": "value"})
    # what the strongest noise of each kind takes, in points; `score`, a fraction, is without noise
    levels, curve = robustness.levels(rows), [*robustness.CURVE, *robustness.RUN]
    clean = baselines.add_baselines(levels[levels["level"] == 0], without_model).rename(columns={"value": "score"})
    lost = derived.curve_measures(levels, curve).query("measure == 'lost'")
    lost = lost.merge(clean[[*curve, "score", "most_frequent_high"]], on=curve)
    lost = lost.assign(quantity=LOST + lost["kind"], at=lost["evaluated_on"], stage="noise", value=100 * lost["value"])
    parts = [tuned, losses, lost, steps.assign(quantity=STEPS, stage="pretraining")]
    names = [name for name in (*KEYS, *RUN, "score", "most_frequent_high") if name != "source"]
    # as objects, since a column that one part lacks would change the type of the others; `tuned` where all are empty
    return pd.concat([part.reindex(columns=names).astype(object) for part in parts if len(part)] or [tuned]).astype(
        dict.fromkeys(("value", "score", "most_frequent_high"), float)
    )


def table(
    sources: dict[str, pd.DataFrame], confidence: float, alpha: float, pairs: Sequence[Sequence[Arm]] = ()
) -> pd.DataFrame:
    """Compares every operator with the original, and each further pair of arms.

    Args:
        sources: the `quantities` of each source, by its name: REPRODUCED, RELEASED.
        confidence, alpha: of the interval of one comparison, such as 0.95, and of the tests of one family together.
        pairs: further comparisons (arm, reference) of REPRODUCED. A side that is itself a pair stands for the
            difference of two operators: ((symmetric, original), (shared, pairwise)) asks if two differences differ.

    Returns:
        One row per comparison, with the columns of contrasts.yaml; none of arms without runs.
    """
    columns = list(column_meanings()["column"])
    contrasts = []
    for source, rows in sources.items():
        further = pairs if source == REPRODUCED else ()
        for keys, runs in rows.assign(source=source).groupby(KEYS, sort=False, dropna=False):
            place = dict(zip(KEYS, keys, strict=True))
            arms = dict(iter(runs.groupby("operator", sort=False)))
            against_original = [(operator, REFERENCE) for operator in arms if operator != REFERENCE]
            for arm, reference in (*against_original, *further):
                involved = {*_operators(arm), *_operators(reference)}
                if involved <= set(arms) and _comparable(arms, arm, reference):
                    contrasts.append(place | _contrast(arms, arm, reference, confidence))
    if not contrasts:
        return pd.DataFrame(columns=columns)
    frame = pd.DataFrame(contrasts)
    families = frame.assign(family=[_family(row) for row in frame.itertuples()]).groupby("family", sort=False)
    return pd.concat([_with_verdicts(family, alpha) for _, family in families])[columns]


def _operators(arm: Arm) -> tuple[str, ...]:
    """Returns the operators of one side of a comparison."""
    return (arm,) if isinstance(arm, str) else tuple(arm)


def _comparable(arms: dict[str, pd.DataFrame], *sides: Arm) -> bool:
    """Whether the sides can be compared: a difference of two operators needs pre-training seeds that both have."""
    for side in sides:
        if isinstance(side, str):
            continue
        (_, seeds, unit), (_, other_seeds, other_unit) = (units(arms[operator]) for operator in side)
        if FINETUNING in (unit, other_unit) or seeds.intersection(other_seeds).empty:
            return False
    return True


def _runs_of(side: Arm, arms: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Returns the runs of one side: those of an operator, or the differences of two operators by pre-training seed."""
    if isinstance(side, str):
        return arms[side]
    first, second = (arms[operator] for operator in side)
    (values, seeds, _), (other_values, other_seeds, _) = units(first), units(second)
    common = seeds.intersection(other_seeds)
    differences = values[seeds.get_indexer(common)] - other_values[other_seeds.get_indexer(common)]
    stage = first["stage"].iloc[0]
    return pd.DataFrame({"stage": stage, "pretraining_seed": common, "finetuning_seed": nan, "value": differences})


def _contrast(arms: dict[str, pd.DataFrame], arm: Arm, reference: Arm, confidence: float) -> dict:
    """Compares two sides: columns of `table` but for KEYS and for what depends on the family of tests.

    arms: rows of `quantities` with equal KEYS, by operator, with all operators of both sides.
    """
    sides = [_operators(arm), _operators(reference)]
    operators = list(dict.fromkeys(sides[0] + sides[1]))
    runs, until, never = [arms[operator] for operator in operators], nan, [nan, nan]
    quantity = runs[0]["quantity"].iloc[0]
    if quantity == STEPS:
        runs, until = survival.restrict_times([rows.astype({"reached": bool}) for rows in runs])
        waiting = {operator: int((~rows["reached"]).sum()) for operator, rows in zip(operators, runs, strict=True)}
        never = [sum(waiting[operator] for operator in side) for side in sides]
    restricted = dict(zip(operators, runs, strict=True))
    estimate = between(_runs_of(arm, restricted), _runs_of(reference, restricted), confidence)
    return {
        "arm": " - ".join(sides[0]),
        "reference": " - ".join(sides[1]),
        "unit_of_inference": estimate.unit,
        "estimate": estimate.value,
        "low_unadjusted": estimate.low,
        "high_unadjusted": estimate.high,
        **{name: getattr(estimate, name) for name in ("paired", "error", "freedom", "p")},
        **dict(zip(("n", "n_reference"), estimate.n, strict=True)),
        **dict(zip(("never", "never_reference"), never, strict=True)),
        "horizon": until,
        "at_chance": baselines.nothing_to_compare(runs, "score", lost=quantity.startswith(LOST)),
    }


def _family(row) -> str:
    """Names the family of tests, adjusted together by Holm's method, that a row of `table` belongs to.

    A score in a single column is in that of its operator's columns, a time in that of its milestone; the GLUE score and
    every other quantity are in one of all comparisons, and all tasks, of that quantity.
    """
    part = ""
    if row.quantity == SCORE and row.at != scores.GLUE_SCORE:
        part = row.arm
    elif row.quantity == STEPS:
        part = row.at
    names = [row.quantity, row.source, row.protocol, row.size, part]  # a missing one is NaN
    return " ".join(name for name in names if isinstance(name, str) and name)


def _with_verdicts(family: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Adds what the rows of a family decide as a whole: tests, p_holm, detectable, low, high, and verdict to reason."""
    p_values = family["p"].to_numpy(float)
    tests, detectable = int(family["p"].notna().sum()), power.smallest_effects(family, alpha)
    family = family.assign(p_holm=holm(p_values), tests=tests, detectable=detectable)
    family[["low", "high"]] = _simultaneous_intervals(family, alpha)
    significant = family["p_holm"] < alpha
    verdicts = pd.Series(np.where(significant, DIFFERENT, INCONCLUSIVE), family.index)
    reasons = [too_few(row.unit_of_inference, row.n, row.n_reference) for row in family.itertuples()]
    few = pd.Series(reasons, family.index)
    verdicts = verdicts.mask(few != "", few)
    family["verdict"] = verdicts.mask(family["at_chance"].astype(bool), baselines.AT_CHANCE)
    signs = np.where(family["estimate"] > 0, "higher", "lower")  # of single checkpoints, too, which have no verdict
    shown = significant & ~family["verdict"].isin((TOO_FEW, baselines.AT_CHANCE))
    words = {name: text.format(fewest=FEWEST) for name, text in _words()["reasons"].items()}
    return family.assign(direction=np.where(shown, signs, ""), reason=family["verdict"].map(words))


def _simultaneous_intervals(family: pd.DataFrame, alpha: float) -> np.ndarray:
    """Computes the ends [rows, 2] of intervals that cover all true differences of a family with 1 - alpha together.

    By Bonferroni's inequality each of n tests has an interval of confidence 1 - alpha / n. An interval that excludes 0
    is always significant after Holm's correction; Holm may also reject where the interval still contains 0.
    """
    tests = max(int(family["p"].notna().sum()), 1)
    error, freedom = family["error"].to_numpy(float), family["freedom"].to_numpy(float)
    half = stats.t.isf(alpha / tests / 2, freedom) * error
    estimate = family["estimate"].to_numpy(float)
    return np.column_stack([estimate - half, estimate + half])
