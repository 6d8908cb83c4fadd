"""The study of the plateau: do operators leave it at different steps, or the spreads that their first scores have?

A run leaves the plateau at the first evaluation whose validation loss is below `analysis.plateau_loss`, a level that
was set before the run; one that never does is right-censored at its last step. Its arm is a name in `operators`: an
operator whose own parameters start as in its source, or a variant of one with first scores of a given spread, or with a
learning rate of its own for what makes the scores.

plateau_tests.py compares the arms.
"""

from math import nan

import pandas as pd

from stages.analysis import plateau_tests
from stages.analysis.plateau_tests import TESTS
from stages.common.evidence import convergence, survival
from stages.common.evidence.arms import RATE, SCALED, SOURCE
from stages.plumbing.training_sections import Variant

OTHER = "other start"  # a kind of arms that the study shows and does not compare
PROBES = ("score_spread", "attention_entropy", "self_weight")
ARM = ["size", "arm", "operator", "kind", "spread"]
ARMS = [*ARM, *survival.MEANS, "loss", "loss_sd", "moved"]
WAITING = [*ARM, *survival.CURVE]
LINES = [*ARM, "metric", "step", "mean", "minimum", "maximum", "n"]


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
            [
                plateau_tests.tests(own, confidence, alpha).assign(size=size)
                for size, own in runs.groupby("size", sort=False)
            ]
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


def probed(rows: pd.DataFrame, arms: pd.DataFrame) -> pd.DataFrame:
    """Mean, minimum and maximum over seeds of what was measured inside the attention, by arm and step."""
    rows = _by_step(rows[rows["metric"].isin(PROBES)])
    groups = rows.groupby(["size", "arm", "metric", "step"], sort=False)["value"]
    lines = groups.agg(mean="mean", minimum="min", maximum="max", n="count").reset_index()
    return arms.merge(lines, on=["size", "arm"])[LINES]
