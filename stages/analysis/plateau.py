"""The study of the plateau: do operators leave it at different steps, or the spreads that their first scores have?

A run leaves the plateau at the first evaluation whose validation loss is below `analysis.plateau_loss`, a level that
was set before the run; one that never does is right-censored at its last step. Its arm is a name in `operators`: an
operator as its source starts it, or a variant of one with first scores of a given spread, or with a learning rate of
its own for what makes the scores.

Everything is compared at an equal value of what else was varied, in pairs of equal seeds, whose runs see the same
batches: the time that a run spends before it leaves, up to the horizon, averaged over that value, is one number a seed
and arm, and a t test on the differences counts seeds. Beside it stands the hazard ratio of Cox's model. Holm's method
adjusts over the comparisons of one question.
"""

from math import isnan, nan

import numpy as np
import pandas as pd
from scipy import stats

from stages.common.evidence import convergence, power, survival
from stages.common.evidence.statistics import holm, mean_interval, varies
from stages.plumbing.sections import Variant

SCALED, SOURCE, RATE, OTHER = "scaled", "as its source", "rate of its own", "other start"  # kinds of arms
MIDDLE = 1.0  # the spread that others are compared with, or the one nearest to it
PROBES = ("score_spread", "attention_entropy", "self_weight")
ARM = ["size", "arm", "operator", "kind", "spread"]
ARMS = [*ARM, *survival.MEANS, "loss", "loss_sd", "moved"]
WAITING = [*ARM, *survival.CURVE]
LINES = [*ARM, "metric", "step", "mean", "minimum", "maximum", "n"]
PAIRED = ["difference", "low", "high", "p"]
TESTS = [
    *("question", "size", "term", "reference", "places", "seeds", *PAIRED, "p_holm", "detectable"),
    *("hazard_ratio", "hazard_low", "hazard_high", "hazard_p", "hazard_p_holm"),
    *(f"loss_{name}" for name in (*PAIRED, "p_holm")),
    *("runs", "never", "runs_reference", "never_reference", "verdict"),
]
SOONER, LATER, UNDECIDED = "sooner", "later", "undecided"


def study(
    rows: pd.DataFrame,
    operators: tuple[str, ...],
    variants: dict[str, Variant],
    level: float | None,
    confidence: float,
    alpha: float,
) -> dict[str, pd.DataFrame]:
    """Computes all of the study from the observations, by the name of its file.

    Args:
        rows: observations, those of the stages `parameters` and `pretraining` among them.
        operators: the arms, in their order.
        variants: of params.yaml.
        level: the loss below which a run has left the plateau; None for no study.
        confidence: of the intervals.
        alpha: of the tests.

    Returns:
        plateau_arms (ARMS), plateau_waiting (WAITING), plateau_tests (TESTS) and plateau_probes (LINES): all empty
        without a level, or where no arm is a variant with a spread of its own.
    """
    arms = described(rows, operators, variants)
    if level is None or not (arms["kind"] == SCALED).any():
        empty = {"arms": ARMS, "waiting": WAITING, "tests": TESTS, "probes": LINES}
        return {f"plateau_{name}": pd.DataFrame(columns=columns) for name, columns in empty.items()}
    runs = arms.merge(left(rows, level), on=["size", "arm"])
    return {
        "plateau_arms": summarised(runs, rows, confidence),
        "plateau_waiting": survival.curves(runs, ARM),
        "plateau_tests": pd.concat(
            [tests(own, confidence, alpha).assign(size=size) for size, own in runs.groupby("size", sort=False)]
        )[TESTS],
        "plateau_probes": probed(rows, arms),
    }


def described(rows: pd.DataFrame, operators: tuple[str, ...], variants: dict[str, Variant]) -> pd.DataFrame:
    """Every arm and size with its operator, its kind, and the spread of its first scores. Columns: ARM."""
    counted = rows[(rows["metric"] == "first_score_spread") & rows["operator"].isin(operators)]
    spreads = counted.set_index(["operator", "size"])["value"].to_dict()
    made = []
    for size in rows.loc[rows["stage"] == "pretraining", "size"].drop_duplicates():
        for name in operators:
            own = variants.get(name, Variant(operator=name))
            changed = [key for key in ("start", "score_spread", "score_rate") if getattr(own, key) is not None]
            kinds = {(): SOURCE, ("score_spread",): SCALED, ("score_rate",): RATE}
            spread = own.score_spread or spreads.get((name, size), nan)
            made.append((size, name, own.operator, kinds.get(tuple(changed), OTHER), spread))
    return pd.DataFrame(made, columns=ARM)


def left(rows: pd.DataFrame, level: float) -> pd.DataFrame:
    """When every run left the plateau, or until when it had not; and its last validation loss.

    Columns: size, arm, seed, step, reached, loss.
    """
    made = []
    for (arm, size, seed), run in convergence.validation_loss(rows).groupby(convergence.RUN, sort=False):
        run = run.sort_values("step")
        below = run.loc[run["value"] < level, "step"]
        step = below.iloc[0] if len(below) else run["step"].iloc[-1]
        made.append((size, arm, seed, float(step), bool(len(below)), float(run["value"].iloc[-1])))
    return pd.DataFrame(made, columns=["size", "arm", "seed", "step", "reached", "loss"])


def summarised(runs: pd.DataFrame, rows: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """The restricted mean and the final loss of every arm, and how far its weights have moved in the end."""
    means = survival.restricted_means(runs, ["size"], confidence, "arm")
    losses = runs.groupby(["size", "arm"], sort=False)["loss"].agg(loss="mean", loss_sd="std").reset_index()
    whole = runs[ARM].drop_duplicates().merge(means, on=["size", "arm"]).merge(losses, on=["size", "arm"])
    return whole.merge(_moved(rows), on=["size", "arm"], how="left").fillna({"moved": ""})[ARMS]


def _moved(rows: pd.DataFrame) -> pd.DataFrame:
    """The relative movement of every weight at the last evaluation, in words. Columns: size, arm, moved."""
    rows = _by_step(rows[rows["metric"].str.startswith("movement_")])
    rows = rows[rows["step"] == rows.groupby(["size", "arm"])["step"].transform("max")]
    means = rows.groupby(["size", "arm", "metric"], sort=False)["value"].mean().reset_index()
    words = means["metric"].str.removeprefix("movement_") + means["value"].map(" {:.2g}".format)
    return means.assign(moved=words).groupby(["size", "arm"], sort=False)["moved"].agg(", ".join).reset_index()


def _by_step(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of pre-training with their `step` as a number, and `arm` for operator."""
    rows = rows[rows["stage"] == "pretraining"]
    return rows.assign(arm=rows["operator"], step=rows["condition"].str.removeprefix("step=").astype(int))


def tests(runs: pd.DataFrame, confidence: float, alpha: float) -> pd.DataFrame:
    """All comparisons of one size, question by question."""
    scaled = runs[runs["kind"] == SCALED]
    spreads = np.sort(scaled["spread"].unique())
    middle = float(spreads[np.argmin(np.abs(np.log(spreads / MIDDLE)))])
    rated = runs[runs["kind"] == RATE]
    unrated = runs[(runs["kind"] == SOURCE) & runs["operator"].isin(rated["operator"])]
    both = scaled[scaled["operator"].isin(("shared", "tied_qkv"))]
    questions = [
        ("operator", scaled, "operator", "original", "spread"),
        ("spread", scaled, "spread", middle, "operator"),
        ("source", runs[runs["kind"] == SOURCE], "operator", "original", "kind"),
        ("rate", pd.concat([unrated, rated]), "kind", SOURCE, "operator"),
        ("diagonals", both, "operator", "tied_qkv", "spread"),
    ]
    made = [compared(*question, confidence, alpha) for question in questions]
    return pd.concat([frame for frame in made if len(frame)] or made[:1])


def compared(
    question: str,
    runs: pd.DataFrame,
    arm: str,
    reference: str | float,
    factor: str,
    confidence: float,
    alpha: float,
) -> pd.DataFrame:
    """Every value of the column `arm` against the reference, at equal values of the column `factor`."""
    other = runs[runs[arm] == reference]
    made = []
    for term in sorted(set(runs[arm]) - {reference}, key=runs[arm].tolist().index):
        own = runs[runs[arm] == term]
        places = set(own[factor]) & set(other[factor])
        pair = [side[side[factor].isin(places)] for side in (own, other)]
        if not places:
            continue
        both = pd.concat(pair)
        until = survival.horizon(both)
        [hazard] = survival.proportional_hazards(both, factor, confidence, arm, reference).to_dict("records")
        steps = paired(*(side.assign(value=survival.restricted(side, until)) for side in pair), factor, confidence)
        loss = paired(*(side.assign(value=side["loss"]) for side in pair), factor, confidence)
        counts = [count for side in pair for count in (len(side), int((~side["reached"]).sum()))]
        made.append(
            {"question": question, "term": _name(term), "reference": _name(reference), "places": len(places)}
            | steps
            | {f"loss_{name}": loss[name] for name in PAIRED}
            | {"hazard_ratio": hazard["hazard_ratio"], "hazard_low": hazard["low"]}
            | {"hazard_high": hazard["high"], "hazard_p": hazard["p"]}
            | dict(zip(("runs", "never", "runs_reference", "never_reference"), counts, strict=True))
        )
    frame = pd.DataFrame(made, columns=[*TESTS, "error"])
    for p in ("p", "hazard_p", "loss_p"):
        frame[f"{p}_holm"] = holm(frame[p].to_numpy(float))
    strict = alpha / max(len(frame), 1)  # the first step of Holm's method, which a difference must pass by itself
    frame["detectable"] = [
        nan if isnan(row.error) else power.smallest_effect(row.error, row.seeds - 1, strict)
        for row in frame.itertuples()
    ]
    frame["verdict"] = [verdict(row, alpha) for row in frame.itertuples()]
    return frame.reindex(columns=TESTS)


def _name(arm: str | float) -> str:
    return arm if isinstance(arm, str) else f"{arm:g}"


def paired(own: pd.DataFrame, other: pd.DataFrame, factor: str, confidence: float) -> dict:
    """The mean difference over pairs of equal seeds, of `value` averaged over the values of the factor.

    A seed counts where both sides have it at every value. Without two pairs that differ, there is no interval.
    """
    tables = [side.pivot_table(index="seed", columns=factor, values="value") for side in (own, other)]
    means = [table.dropna().mean(axis=1) for table in tables]
    differences = (means[0] - means[1]).dropna().to_numpy(float)
    found = dict.fromkeys(("difference", "low", "high", "p", "error"), nan) | {"seeds": len(differences)}
    if not varies(differences):
        return found | ({"difference": float(differences.mean())} if len(differences) else {})
    mean, sd, low, high = mean_interval(differences, confidence)
    p = float(stats.ttest_1samp(differences, 0.0).pvalue)
    return found | {"difference": mean, "low": low, "high": high, "p": p, "error": sd / np.sqrt(len(differences))}


def verdict(row, alpha: float) -> str:
    """SOONER or LATER where the paired test shows it and the hazard ratio, where there is one, shows the same."""
    if not row.p_holm < alpha:
        return UNDECIDED
    sooner = row.difference < 0
    if not isnan(row.hazard_p) and not (row.hazard_p_holm < alpha and (row.hazard_ratio > 1) == sooner):
        return UNDECIDED
    return SOONER if sooner else LATER


def probed(rows: pd.DataFrame, arms: pd.DataFrame) -> pd.DataFrame:
    """Mean, minimum and maximum over seeds of what was measured inside the attention, by arm and step."""
    rows = _by_step(rows[rows["metric"].isin(PROBES)])
    groups = rows.groupby(["size", "arm", "metric", "step"], sort=False)["value"]
    lines = groups.agg(mean="mean", minimum="min", maximum="max", n="count").reset_index()
    return arms.merge(lines, on=["size", "arm"])[LINES]
