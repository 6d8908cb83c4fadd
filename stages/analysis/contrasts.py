"""Every comparison of an operator with the original as one row, whatever was measured: the one table that all read.

A comparison is of runs of one source (this run, or the released results), protocol and size: scores, the final loss,
the accuracy that noise takes, and steps to a milestone such as a level of the loss, where a run that never gets there
counts with the last step at which all runs are known (stages.evidence.survival). Holm's method adjusts the p values of
one family. contrasts.yaml describes every column.
"""

from functools import cache
from math import nan
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from stages.analysis import robustness
from stages.evidence import baselines, convergence, derived, power, scores, survival
from stages.evidence.derived import matching
from stages.evidence.estimate import between, welch
from stages.evidence.statistics import FEWEST, INCONCLUSIVE, TOO_FEW, holm, too_few, units, verdict
from stages.plumbing.settings import REFERENCE

DESCRIBED = Path(__file__).with_name("contrasts.yaml")
REPRODUCED, RELEASED = "reproduced", "released"  # sources
KEYS = ["quantity", "source", "protocol", "size", "at"]  # at: the column, the milestone, or FINAL_LOSS
RUN = ["operator", "stage", "pretraining_seed", "finetuning_seed", "value", "reached"]
SCORE, LOSS, LOST, STEPS = "score", "loss", "lost_", "steps"  # quantities; LOST is followed by the kind of noise
FINAL_LOSS = "validation_loss"


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


def table(sources: dict[str, pd.DataFrame], confidence: float, alpha: float, margins: dict[str, float]) -> pd.DataFrame:
    """Compares every operator with the original.

    Args:
        sources: the `quantities` of each source, by its name: REPRODUCED, RELEASED.
        confidence, alpha: of the intervals, such as 0.95, and of the tests of one family together.
        margins: of equivalence, by column of scores and FINAL_LOSS; in the unit of the estimate. They were made from
            the released results, which they do not judge.

    Returns:
        One row per comparison, with the columns of contrasts.yaml; none without an arm of the original.
    """
    contrasts, columns = [], list(column_meanings()["column"])
    for source, rows in sources.items():
        for keys, runs in rows.assign(source=source).groupby(KEYS, sort=False, dropna=False):
            arms = dict(iter(runs.groupby("operator", sort=False)))
            reference, place = arms.pop(REFERENCE, None), dict(zip(KEYS, keys, strict=True))
            margin = margins.get(keys[-1], nan) if keys[0] in (SCORE, LOSS) and source != RELEASED else nan
            if reference is not None:
                contrasts += [place | _contrast(arm, reference, confidence, margin) for arm in arms.values()]
    if not contrasts:
        return pd.DataFrame(columns=columns)
    frame = pd.DataFrame(contrasts)
    families = frame.assign(family=[_family(row) for row in frame.itertuples()]).groupby("family", sort=False)
    return pd.concat([_with_verdicts(family, alpha) for _, family in families])[columns]


def _contrast(arm: pd.DataFrame, reference: pd.DataFrame, confidence: float, margin: float) -> dict:
    """Compares one arm with the reference: columns of `table` but for KEYS and for what depends on the family of tests.

    arm, reference: their rows of `quantities` with equal KEYS. margin: NaN where there is none.
    """
    arms, until, never = [arm, reference], nan, [nan, nan]
    operator, quantity = arm[["operator", "quantity"]].iloc[0]
    if quantity == STEPS:
        arms, until = survival.restrict_times([runs.astype({"reached": bool}) for runs in arms])
        never = [int((~runs["reached"]).sum()) for runs in arms]
    estimate = between(*arms, confidence)
    return {
        "arm": operator,
        "reference": REFERENCE,
        "unit_of_inference": estimate.unit,
        "estimate": estimate.value,
        **{name: getattr(estimate, name) for name in ("paired", "low", "high", "error", "freedom", "p")},
        "p_unpaired": welch(*(units(side)[0] for side in arms), confidence).p if estimate.paired else estimate.p,
        **dict(zip(("n", "n_reference"), estimate.n, strict=True)),
        **dict(zip(("never", "never_reference"), never, strict=True)),
        "margin": margin,
        "p_equivalence": estimate.p_within(margin),
        "horizon": until,
        "at_chance": baselines.nothing_to_compare(arms, "score", lost=quantity.startswith(LOST)),
    }


def _family(row) -> str:
    """Names the family of tests, adjusted together by Holm's method, that a row of `table` belongs to.

    A score in a single column is in that of its operator's columns; the GLUE score and every other quantity are in one
    of all operators, and all tasks or milestones, of that quantity.
    """
    single = row.quantity == SCORE and row.at != scores.GLUE_SCORE
    names = [row.quantity, row.source, row.protocol, row.size, row.arm if single else ""]  # a missing one is NaN
    return " ".join(name for name in names if isinstance(name, str) and name)


def _with_verdicts(family: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Adds what the rows of a family decide as a whole: tests, Holm's p values, detectable, and verdict to reason."""
    adjusted = {f"{name}_holm": holm(family[name].to_numpy(float)) for name in ("p", "p_unpaired", "p_equivalence")}
    tests, detectable = int(family["p"].notna().sum()), power.smallest_effects(family, alpha)
    family = family.assign(**adjusted, tests=tests, detectable=detectable)
    few = [too_few(row.unit_of_inference, row.n, row.n_reference) for row in family.itertuples()]
    family["verdict"] = [
        baselines.AT_CHANCE if row.at_chance else reason or verdict(row.p_equivalence_holm, row.p_holm, alpha)
        for row, reason in zip(family.itertuples(), few, strict=True)
    ]
    signs = np.where(family["estimate"] > 0, "higher", "lower")  # of single checkpoints, too, which have no verdict
    shown = (family["p_holm"] < alpha) & ~family["verdict"].isin((TOO_FEW, baselines.AT_CHANCE))
    undecided = family["margin"].isna() & (family["verdict"] == INCONCLUSIVE)
    words = {name: text.format(fewest=FEWEST) for name, text in _words()["reasons"].items()}
    reasons = family["verdict"].mask(undecided, "no margin").map(words)
    only_paired = shown & ~(family["p_unpaired_holm"] < alpha)
    return family.assign(direction=np.where(shown, signs, ""), only_paired=only_paired, reason=reasons)
