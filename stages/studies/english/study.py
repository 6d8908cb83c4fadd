"""Study: what does each operator cost on English, in steps on the plateau and in loss behind it?

The plateau is where the loss stalls before it falls on. An arm is the runs of one name in `operators` of params.yaml.
FOLDER holds `params.yaml` and `observations/` as the chain's stage `pretraining` leaves them at scale `english`; the
head of that scale's file is the plan of the study. Writes FOLDER/runs.csv (when every run leaves the plateau, and its
final loss), contrasts.csv (every arm against the original, some against a control, by pairs of seeds) and english.svg.

Every folder below FOLDER/rates holds the same two of runs at another learning rate, to ask whether the answer holds at
each arm's own rate. If there are any, writes FOLDER/rates.csv (all runs, with their rate) and own_rates.csv (the same
contrasts, every arm at its own rate).
"""

from math import inf, nan
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from stages.evidence import convergence, power, survival
from stages.evidence.estimate import paired
from stages.evidence.statistics import bands, holm
from stages.plumbing.files import write_atomically
from stages.plumbing.settings import REFERENCE
from stages.report import names
from stages.report.drawing import INK, curve, panels, steps_axis, style
from stages.report.tables import csv_of
from stages.studies.command import read

THRESHOLD = 5.5  # nats, as in the study of lengths: half way between the plateau (6.1) and the knee of the curves (4.9)
ROBUSTNESS = (5.3, 5.7)  # nats, further thresholds at which the answer is checked
MARGIN = 0.02  # nats, within which a final loss counts as equal to the original's; set by the plan
# attention/operators.py describes the operators; pairwise_scaled and original_wide are variants in scales/english.yaml.
FIRST_PART = ("symmetric", "shared", "pairwise_scaled", "pairwise")  # of the plan; its second part has all other arms
SYMMETRIC = ("symmetric", "partial_qk", "tied_qkv", "shared")  # arms whose scores are symmetric at the start
ASYMMETRIC = (REFERENCE, "shared_kv", "pairwise_scaled")
# Controls: shared_kv has as many weights as symmetric, but queries that are not its keys; first scores of original_wide
# spread as pairwise's, without its matrix S. These comparisons were not planned, but chosen when runs had been read.
CONTROLS = {"symmetric": "shared_kv", "pairwise": "original_wide"}
LOSS, STEPS = "final loss", "steps below {:g} nats"  # names of outcomes; of STEPS there is one for each threshold
SELECTION_SEED = 21  # seed of the runs that choose every arm's own rate, and serve nothing else


def main(folder: Path) -> None:
    """Judges the runs of a folder, which has params.yaml and observations, and writes what they show into it.

    Raises FileNotFoundError without params.yaml, and ValueError for a damaged file or without runs of the original.
    """
    params, losses = _losses(folder)
    if not (losses["operator"] == REFERENCE).any():
        raise ValueError(f"{folder / 'observations'}: no run of {REFERENCE}, which every arm is compared with")
    levels = params["analysis"]["confidence"], params["analysis"]["alpha"]
    runs = outcomes(losses)
    write_atomically(folder / "runs.csv", csv_of(runs))
    write_atomically(folder / "contrasts.csv", csv_of(contrasts(runs, *levels)))
    write_atomically(folder / "english.svg", figure(losses, runs))
    parts = [_at_rate(params, runs)]
    for place in sorted((folder / "rates").glob("*")):
        params, losses = _losses(place)
        parts.append(_at_rate(params, outcomes(losses)))
    if len(parts) > 1:
        rates = pd.concat(parts, ignore_index=True)
        write_atomically(folder / "rates.csv", csv_of(rates))
        write_atomically(folder / "own_rates.csv", csv_of(contrasts(at_own_rates(rates), *levels)))


def _losses(folder: Path) -> tuple[dict, pd.DataFrame]:
    """Reads params.yaml of a folder, and the validation losses of the operators that it lists, in their order there."""
    params, rows = read(folder)
    losses, arms = convergence.validation_loss(rows), params["operators"]
    losses = losses[losses["operator"].isin(arms)]
    return params, losses.sort_values("operator", key=lambda names: names.map(arms.index), kind="stable")


def _at_rate(params: dict, runs: pd.DataFrame) -> pd.DataFrame:
    """Adds the column `learning_rate` to what `outcomes` returns for the runs of one params.yaml."""
    return runs.assign(learning_rate=params["pretraining"]["learning_rate"])


def at_own_rates(rates: pd.DataFrame) -> pd.DataFrame:
    """Selects the runs of every arm at its own learning rate, at which its run of SELECTION_SEED ends lowest.

    rates: runs at all rates, as `outcomes` returns them, with their `learning_rate`. Returns the rows of all other
    seeds at the own rate of their arm; for an arm without such seeds there, or without SELECTION_SEED, no row.
    """
    selecting = rates["seed"] == SELECTION_SEED
    tried = rates[selecting & (rates["outcome"] == LOSS)]
    own = tried.sort_values("value").drop_duplicates("arm")[["arm", "learning_rate"]]
    return rates[~selecting].merge(own, on=["arm", "learning_rate"])


def outcomes(losses: pd.DataFrame) -> pd.DataFrame:
    """Determines when every run leaves the plateau, and where it ends, from rows of `convergence.validation_loss`.

    One row for each run and outcome: `arm`, `seed`, `outcome`, `value` (the first step below a threshold, or
    the last loss in nats) and `reached`: False where no evaluation is below, so that the value is the last step.
    """
    rows = []
    for (arm, seed), run in losses.groupby(["operator", "pretraining_seed"], sort=False):
        run = run.sort_values("step")
        for threshold in (THRESHOLD, *ROBUSTNESS):
            event = survival.first_below(run["step"], run["value"], threshold)
            rows.append((arm, int(seed), STEPS.format(threshold), *event))
        rows.append((arm, int(seed), LOSS, float(run["value"].iloc[-1]), True))
    return pd.DataFrame(rows, columns=["arm", "seed", "outcome", "value", "reached"])


def contrasts(runs: pd.DataFrame, confidence: float, alpha: float) -> pd.DataFrame:
    """Compares every arm with the original, and some with a control, by the paired t-test and Holm's correction.

    Each outcome has two families, which are corrected separately: all arms against the original, then arms against
    their CONTROLS. Final losses are compared only between arms all of whose runs have left the plateau.

    Args:
        runs, confidence: as `outcomes` returns them; of the intervals, in (0, 1), which are not adjusted.
        alpha: the level of all tests of one family together.

    Returns:
        One row per comparison: `outcome`, `arm`, `reference`, `seeds` (pairs), `never` (runs of the arm that never get
        there), `estimate` (arm less reference) with `low` and `high` (`high` infinite where a run of the arm never gets
        there, as the difference may then be larger; `low` where one of the reference does not), `p`, `p_equivalence`
        (that final losses differ by less than MARGIN; NaN for steps), `p_holm`, `detectable` (of
        `power.smallest_effects`) and `verdict` (of `_verdict`). The last row, where it can be made, is a family of its
        own: the mean final loss of the SYMMETRIC arms against that of the ASYMMETRIC, seed by seed.
    """
    stuck = set(runs.loc[(runs["outcome"] == STEPS.format(THRESHOLD)) & ~runs["reached"], "arm"])
    families = []
    for outcome, rows in runs.groupby("outcome", sort=False):
        values = rows.pivot(index="seed", columns="arm", values="value")[rows["arm"].unique()]
        if outcome == LOSS:
            values = values.drop(columns=stuck)
        never = (~rows["reached"]).groupby(rows["arm"]).sum()
        for references in ({arm: REFERENCE for arm in values if arm != REFERENCE}, CONTROLS):
            pairs = [(arm, other) for arm, other in references.items() if {arm, other} <= set(values)]
            family = [_contrast(values, outcome, *pair, never, confidence) for pair in pairs]
            families += [_judged(pd.DataFrame(family), alpha)] if family else []
        if outcome == LOSS and {*SYMMETRIC, *ASYMMETRIC} <= set(values):
            groups = {"symmetric at the start": SYMMETRIC, "asymmetric at the start": ASYMMETRIC}
            means = pd.DataFrame({name: values[[*group]].mean(axis=1) for name, group in groups.items()})
            families.append(_judged(pd.DataFrame([_contrast(means, outcome, *means, never, confidence)]), alpha))
    return pd.concat(families, ignore_index=True) if families else pd.DataFrame()


def _contrast(
    values: pd.DataFrame, outcome: str, arm: str, reference: str, never: pd.Series, confidence: float
) -> dict:
    """Makes a row of `contrasts` that `_judged` completes, with `error` and `freedom` of the t distribution for that.

    values: of one outcome, a row for each seed, a column for each arm; a seed that one of them lacks is left out.
    never: by arm, how many runs never get there.
    """
    pairs = values[[arm, reference]].dropna()
    difference = paired(*pairs.to_numpy(float).T, confidence)
    row = {"outcome": outcome, "arm": arm, "reference": reference, "seeds": len(pairs), "never": int(never.get(arm, 0))}
    row |= {"estimate": difference.value, "low": -inf if never.get(reference, 0) else difference.low}
    row |= {"high": inf if row["never"] else difference.high}
    row |= {"p": difference.p, "p_equivalence": difference.p_within(MARGIN) if outcome == LOSS else nan}
    return row | {"error": difference.error, "freedom": difference.freedom}


def _judged(family: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Adds `p_holm`, `detectable` and `verdict` to the comparisons of one family, and drops `error` and `freedom`."""
    adjusted, detectable = holm(family["p"].to_numpy(float)), power.smallest_effects(family, alpha)
    family = family.assign(p_holm=adjusted, detectable=detectable)
    verdicts = [_verdict(row, alpha) for row in family.itertuples()]
    return family.assign(verdict=verdicts).drop(columns=["error", "freedom"])


def _verdict(row, alpha: float) -> str:
    """Returns `lower` or `higher` (loss), `sooner` or `later` (steps), else `equivalent`, else `undecided`."""
    if row.p_holm < alpha:  # NaN shows nothing
        words = ("lower", "higher") if row.outcome == LOSS else ("sooner", "later")
        return words[row.estimate > 0]
    return "equivalent" if row.p_equivalence < alpha else "undecided"


def figure(losses: pd.DataFrame, runs: pd.DataFrame) -> bytes:
    """Draws the curves of all arms, a panel for each part of the plan, and when each run leaves the plateau, as SVG."""
    times = runs[runs["outcome"] == STEPS.format(THRESHOLD)]
    first = losses["operator"].isin(FIRST_PART)
    parts = {"first part": first, "second part": ~first & (losses["operator"] != REFERENCE)}
    groups = [
        (f"Validation loss, nats: {part}", losses[rows | (losses["operator"] == REFERENCE)])
        for part, rows in parts.items()
        if rows.any()
    ]
    groups.append((f"Steps until the loss is below {THRESHOLD:g} nats", times))
    return panels(groups, _panel, 4.4, 3.0)["files"]["svg"]  # inches of a panel


def _panel(axes: Axes, frame: pd.DataFrame) -> None:
    """Draws a line per arm, the mean over its runs, with a band from the lowest run to the highest.

    Of times, which have a column `reached`: one dot per run, in a row for each arm; hollow where it never leaves.
    """
    if "reached" in frame:
        arms = list(frame["arm"].unique())
        for row in frame.itertuples():
            colour, _ = style(row.arm)
            look = {"marker": "o", "markersize": 5, "color": colour}
            axes.plot(row.value, arms.index(row.arm), markerfacecolor=colour if row.reached else "none", **look)
        axes.set_yticks(range(len(arms)), [names.operator(arm) for arm in arms])
        axes.invert_yaxis()
        axes.set_xlim(left=0)
    else:
        for operator, runs in frame.groupby("operator", sort=False):
            curve(axes, bands(runs, ["step"]), operator)
        axes.axhline(THRESHOLD, color=INK, linewidth=0.6, linestyle=":")
        axes.set_ylim(top=7)  # nats; leaves out the first fall, down to the plateau
    steps_axis(axes)
