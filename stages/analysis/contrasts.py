"""Compares operators for every kind of measurement; each comparison is a row of contrasts.csv.

Every operator is compared with the original, and the pairs of `analysis.pairs` with each other, within a source (this
run, or the released results), protocol and size. The verdict is the interval: the intervals of a family cover all
differences together (Bonferroni).
"""

from collections.abc import Sequence
from functools import cache
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from stages.analysis import robustness
from stages.evidence import baselines, convergence, derived, power, scores, speeds
from stages.evidence.estimate import Estimate, compare_arms
from stages.evidence.fields import THIS_RUN, select_rows, stack_frames
from stages.evidence.statistics import (
    FEWEST,
    FINETUNING,
    FLIPPED,
    compute_critical_value,
    find_units,
    flip_signs_jointly,
)
from stages.evidence.verdicts import TESTED, Difference, explain_too_few, judge_difference
from stages.files.yaml_files import read_yaml
from stages.schema.settings import REFERENCE

FINAL_LOSS = "validation_loss"
# `at` depends on `quantity`: a column of the GLUE tables (score), FINAL_LOSS (loss), a split (lost_noise, the accuracy
# lost to noise), a milestone (steps), pretraining (speed) or elsewhere (transfer).
KEYS = ["quantity", "source", "protocol", "size", "at"]
RUN_KEYS = [
    "operator",
    "stage",
    "pretraining_seed",
    "finetuning_seed",
    "condition",
    "value",
    "reached",
    "share_of_peak",
]
# The score that has to exceed chance for a value to be informative, and the upper end of chance.
CHANCE = ["score", "most_frequent_high"]
# Quantities whose logarithms are compared: a difference is a ratio, which contrasts.csv has in per cent.
RATIOS = ("steps", "speed")
# Columns that are in the unit of the quantity.
IN_UNIT = ["estimate", "low", "high", "low_unadjusted", "high_unadjusted", "detectable"]
# A side of a comparison: an operator, or a pair of operators, whose difference is compared.
Arm = str | Sequence[str]


def describe_columns() -> pd.DataFrame:
    """Describes the table of comparisons: a row for each `column`, in order, with the `meaning`."""
    return pd.DataFrame(_read_descriptions()["columns"].items(), columns=["column", "meaning"])


def collect_quantities(rows: pd.DataFrame, measured: pd.DataFrame, baseline_scores: pd.DataFrame) -> pd.DataFrame:
    """Collects the numbers that are compared between operators.

    A row is the number of a run for a `quantity`, such as `score`, and for `at`, such as a column of the GLUE tables.

    Args:
        rows: observations.
        measured: the measurements (papers' quantities) made of the observations.
        baseline_scores: the scores of baselines, such as a constant answer; may be empty.

    Returns:
        `value` is in points or nats, or the logarithm of steps or of a speed. `reached`: whether the run reached the
        milestone; of a loss, the first of `analysis.levels`. `score` has to exceed `most_frequent_high`, the upper end
        of chance; both are NaN for quantities that are no scores.
    """
    losses = convergence.select_final_losses(measured)
    events = convergence.select_milestone_events(measured)
    logarithms = np.log(events["step"].astype(float))
    collected = (
        _collect_scores(measured, baseline_scores),
        losses.assign(quantity="loss", at=FINAL_LOSS),
        _collect_losses_to_noise(rows, baseline_scores),
        events.assign(quantity="steps", at=events["milestone"], value=logarithms),
        speeds.collect_speeds(rows).assign(quantity="speed", at="pretraining"),
        _collect_transfer(rows),
    )
    # As objects, because a column that only one part lacks would change the type of the other parts.
    parts = [part.reindex(columns=[*KEYS, *RUN_KEYS, *CHANCE]).astype(object) for part in collected]
    return stack_frames(parts).astype(dict.fromkeys(("value", "share_of_peak", *CHANCE), float))


def make_contrasts(
    sources: dict[str, pd.DataFrame], confidence: float, alpha: float, pairs: Sequence[Sequence[Arm]] = ()
) -> pd.DataFrame:
    """Compares every operator with the original, and each further pair of arms.

    Args:
        sources: the rows of `collect_quantities` by source: `reproduced` (this run) or `released`.
        confidence: of the interval of a single comparison, such as 0.95.
        alpha: 1 - alpha is the confidence of all intervals of a family together.
        pairs: further comparisons (arm, reference) of this run, except of speeds. An arm is an operator, or a pair of
            operators for the difference: `((symmetric, original), (shared, pairwise))` compares two differences.

    Returns:
        A row for each comparison with runs of both arms; contrasts.yaml describes the columns.
    """
    collected = stack_frames([rows.assign(source=source) for source, rows in sources.items()])
    contrasts = []
    for keys, runs in collected.groupby(KEYS, sort=False, dropna=False):
        place = dict(zip(KEYS, keys, strict=True))
        comparisons: list[Sequence[Arm]] = [
            (name, REFERENCE) for name in runs["operator"].unique() if name != REFERENCE
        ]
        # A difference of two operators has no share of the peak, which a verdict on a speed needs.
        if place["source"] == THIS_RUN and place["quantity"] != "speed":
            comparisons += pairs
        for sides in comparisons:
            # `(pairwise, original)` gives [[pairwise], [original]]; a side may have two operators.
            names = [[side] if isinstance(side, str) else list(side) for side in sides]
            arms = [_select_runs(operators, runs) for operators in names]
            if not any(arm.empty for arm in arms):
                contrasts.append(place | _compare_sides(names, arms, runs, confidence))
    columns = list(_read_descriptions()["columns"])
    if not contrasts:
        return pd.DataFrame(columns=columns)
    # `low` and `high` of an Estimate are the interval of a single comparison.
    frame = pd.DataFrame(contrasts).rename(
        columns={
            "value": "estimate",
            "unit": "unit_of_inference",
            "low": "low_unadjusted",
            "high": "high_unadjusted",
        }
    )
    frame["family"] = [_name_family(row) for row in frame.itertuples()]
    families = [_judge_family(family, alpha) for _, family in frame.groupby("family", sort=False)]
    compared = pd.concat(families)[columns]
    # From logarithms of a ratio to per cent: 0.1 becomes 10.5 %.
    logarithms = compared["quantity"].isin(RATIOS), IN_UNIT
    compared.loc[logarithms] = 100 * np.expm1(compared.loc[logarithms].astype(float))
    return compared


def _collect_scores(measured: pd.DataFrame, baseline_scores: pd.DataFrame) -> pd.DataFrame:
    """Selects the scores on the columns of the GLUE tables, in points, with the chance level."""
    columns = (scores.GLUE_SCORE, *scores.COLUMNS)
    rows = select_rows(measured, metric="score", stage="finetuning", evaluated_on=columns)
    rows = baselines.add_baselines(rows, baseline_scores)
    points = 100 * rows["value"]
    return rows.assign(
        quantity="score",
        at=rows["evaluated_on"],
        value=points,
        score=points,
        most_frequent_high=100 * rows["most_frequent_high"],
    )


def _collect_losses_to_noise(rows: pd.DataFrame, baseline_scores: pd.DataFrame) -> pd.DataFrame:
    """Computes the accuracy, in points, that the strongest noise takes from every run."""
    levels = derived.select_noise_levels(rows)
    keys = [*robustness.CURVE, *robustness.RUN_KEYS]
    # The score without noise, and the upper end of chance, which the score has to exceed.
    clean = baselines.add_baselines(levels[levels["level"] == 0], baseline_scores)
    clean = clean.rename(columns={"value": "score"})
    lost = derived.measure_curves(levels, keys)
    lost = lost[lost["measure"] == "lost"].merge(clean[[*keys, *CHANCE]], on=keys)
    return lost.assign(
        quantity="lost_noise",
        at=lost["evaluated_on"],
        value=100 * lost["value"],
    )


def _collect_transfer(rows: pd.DataFrame) -> pd.DataFrame:
    """Averages each run's balanced accuracy, in points, over all pairs of a task trained on and another tested on."""
    away = derived.select_elsewhere(select_rows(rows, stage="cross_domain"))
    runs = away.groupby(["protocol", "size", "operator", *robustness.RUN_KEYS], sort=False, dropna=False)
    means = runs["value"].mean().reset_index()
    points = 100 * means["value"]
    return means.assign(
        quantity="transfer",
        at="elsewhere",
        value=points,
        score=points,
        # Balanced accuracy of every constant answer, in points.
        most_frequent_high=50.0,
    )


def _select_runs(operators: list[str], runs: pd.DataFrame) -> pd.DataFrame:
    """Selects the runs of one operator; for two operators, subtracts the second from the first by seed."""
    if len(operators) == 1:
        return select_rows(runs, operator=operators)
    by_seed = []
    for operator in operators:
        values, seeds, unit = find_units(select_rows(runs, operator=operator))
        # An operator with a single checkpoint has no pre-training seeds to pair.
        if unit == FINETUNING:
            return pd.DataFrame()
        by_seed.append(pd.Series(values, seeds))
    first, second = by_seed
    # A seed that only one operator has gives a missing difference.
    differences = (first - second).dropna()
    differences = differences.rename_axis("pretraining_seed").reset_index(name="value")
    return differences.assign(finetuning_seed=nan)


def _compare_sides(names: list[list[str]], arms: list[pd.DataFrame], runs: pd.DataFrame, confidence: float) -> dict:
    """Compares two sides on a quantity: the columns of contrasts.csv that need no family.

    `names` has the one or two operators of each side, `arms` the numbers of each side, `runs` all runs.
    """
    runs = select_rows(runs, operator=[*names[0], *names[1]])
    quantity = runs["quantity"].iloc[0]
    estimate = compare_arms(*arms, confidence)
    # The operator of every run that never reaches the milestone. Quantities without a milestone lack `reached`.
    missed = runs.loc[~runs["reached"].fillna(True).astype(bool), "operator"]
    never = [nan, nan]
    if quantity in ("steps", "loss"):
        never = [missed.isin(operators).sum() for operators in names]
    if quantity == "steps":
        # The steps of a run that never reaches the milestone are unknown.
        incomplete = len(missed) > 0
    else:
        # If only some runs of an operator reach the first of `analysis.levels`, the losses form two groups, but a t
        # interval assumes one.
        incomplete = runs.groupby("operator")["reached"].nunique().max() > 1
    if incomplete:
        estimate = Estimate(nan, estimate.n, estimate.unit, paired=estimate.paired)
    arm, reference = [" - ".join(operators) for operators in names]
    return vars(estimate) | {
        "arm": arm,
        "reference": reference,
        "n": estimate.n[0],
        "n_reference": estimate.n[1],
        "never": never[0],
        "never_reference": never[1],
        "at_chance": baselines.is_contrast_at_chance(runs, lost=quantity == "lost_noise"),
        "busy": quantity == "speed" and speeds.is_busy(*arms),
    }


def _name_family(row) -> str:
    """Names the family of comparisons whose intervals are simultaneous, such as `steps released base loss=5`."""
    names = [row.quantity, row.source, row.protocol, row.size]
    # All columns of the GLUE tables form a family for each arm; all steps to a milestone form a family.
    if row.quantity == "score" and row.at != scores.GLUE_SCORE:
        names.append(row.arm)
    elif row.quantity == "steps":
        names.append(row.at)
    # A missing protocol is NaN.
    return " ".join(name for name in names if isinstance(name, str))


def _judge_family(family: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Judges the comparisons of a family: adds simultaneous intervals, verdicts, `tests`, `p_flips`, `detectable`."""
    # Comparisons without an interval count, too: which arms have an interval depends on the data.
    tests = len(family) if family["error"].notna().any() else 0
    critical = [compute_critical_value(alpha, tests, freedom) for freedom in family["freedom"]]
    # Half the width of each interval.
    half = family["error"] * critical
    level = alpha / max(tests, 1)
    family = family.assign(
        tests=tests,
        p_flips=_compute_flip_p_values(family),
        detectable=[power.compute_smallest_effect(row.error, row.freedom, level) for row in family.itertuples()],
        low=family["estimate"] - half,
        high=family["estimate"] + half,
    )
    family[["verdict", "reason"]] = [_explain_verdict(row, alpha) for row in family.itertuples()]
    return family


def _compute_flip_p_values(family: pd.DataFrame) -> pd.Series:
    """Computes the p values of joint sign flips; NaN without pairs of equal seeds or outside 6 to 14 seeds."""
    p_values = pd.Series(nan, family.index)
    # A cell of the column `differences` is a series of paired differences by seed.
    differences = family["differences"]
    flipped = differences[differences.map(len).isin(FLIPPED)]
    if len(flipped):
        # A row for each seed, with missing numbers if the comparisons have different seeds.
        aligned = pd.concat(list(flipped), axis="columns")
        if aligned.notna().all(axis=None):
            p_values[flipped.index] = flip_signs_jointly(aligned.to_numpy())
    return p_values


def _find_verdict(row) -> tuple[Difference, str]:
    """Judges a comparison by the interval; the second value is the cause, a key of `reasons` in contrasts.yaml."""
    if row.at_chance:
        return Difference.AT_CHANCE, "AT_CHANCE"
    if row.busy:
        return Difference.BUSY, "BUSY"
    too_few = explain_too_few(row.unit_of_inference, row.n, row.n_reference)
    if too_few:
        return Difference.TOO_FEW, too_few
    verdict = judge_difference(row.low, row.high)
    if verdict in TESTED:
        return verdict, verdict.name
    # The units are enough, but there is no interval.
    return verdict, "CENSORED" if row.never + row.never_reference > 0 else "EQUAL"


def _explain_verdict(row, alpha: float) -> tuple[Difference, str]:
    """Judges a comparison, and gives the reason in words, with a note if joint sign flips disagree."""
    verdict, cause = _find_verdict(row)
    descriptions = _read_descriptions()
    reason = descriptions["reasons"][cause].format(
        fewest=FEWEST,
        tolerance=f"{100 * (speeds.TOLERANCE - 1):.0f} %",
        far_below=f"{100 * speeds.FAR_BELOW:.0f} %",
    )
    # The smallest p value of n seeds is 2 / 2^n.
    can_decide = not isnan(row.p_flips) and 2.0 ** (1 - row.n) < alpha
    interval_excludes_zero = verdict != Difference.NOT_SIGNIFICANT
    disagrees = (row.p_flips < alpha) != interval_excludes_zero
    if verdict in TESTED and can_decide and disagrees:
        reason += descriptions["disagreement"].format(p=row.p_flips)
    return verdict, reason


@cache
def _read_descriptions() -> dict[str, Any]:
    """Reads contrasts.yaml: `columns` (their meaning), `reasons` (by cause), `disagreement`."""
    return read_yaml(Path(__file__).with_name("contrasts.yaml"))
