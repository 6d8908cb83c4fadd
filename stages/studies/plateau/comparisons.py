"""The comparisons of the study of the plateau, in pairs of equal seeds, whose runs see the same batches.

Arms are compared at equal values of what else was varied, the factor: operators at equal spreads, spreads of the same
operator. A value of the factor is a place. The time before a run leaves, up to the horizon (the last step up to which
all runs of both arms are known), averaged over the places, is one number per seed and arm; a paired t test counts
seeds. The hazard ratio of Cox's model is added. Operators and spreads are also compared at single places, as an average
shows neither opposite effects nor places where no run leaves. Holm's method adjusts over the comparisons of one
question: over its averages, and over its single places.
"""

from math import isnan, nan

import numpy as np
import pandas as pd

from stages.evidence import estimate, power, survival
from stages.evidence.statistics import holm
from stages.studies.plateau import hazards

SOONER, LATER, UNDECIDED, NEITHER = "sooner", "later", "undecided", "neither leaves"  # verdicts on two arms
SCALED, SOURCE, RATE = "scaled", "as its source", "rate of its own"  # kinds of compared arms, see study.py
MIDDLE = 1.0  # the spread that others are compared with, or the one nearest to it
TELLING = 0.1  # share of all runs at a place that must leave for the place to count in the telling_* columns
PAIRED = ["difference", "low", "high", "p"]  # of a paired t test, with the ends of its interval
TESTS = [
    *("question", "size", "place", "term", "reference", "places", "informative", "seeds"),
    *(*PAIRED, "p_holm", "detectable"),
    *(*hazards.HAZARDS, "hazard_p_holm"),
    *(f"loss_{name}" for name in (*PAIRED, "p_holm")),
    *("runs", "never", "runs_reference", "never_reference", "horizon", "verdict"),
    *("telling_places", "telling_difference", "telling_low", "telling_high"),
]


def tests(runs: pd.DataFrame, confidence: float, alpha: float) -> pd.DataFrame:
    """Makes all comparisons of one size, one family after the other.

    Args:
        runs: one row per run: arm (its name in params.yaml), operator, kind, spread (of the first scores), seed, step
            (at which it leaves, or its last), reached (whether it leaves), loss (the final one, in nats), and size.
        confidence, alpha: of the intervals, in (0, 1), and the level of all tests of one family together.

    Returns:
        TESTS, one row per comparison; `size` is NaN. question: the family. place: the value of the factor, as text;
        empty for averages. term, reference: the two sides, as text. places: how many values of the factor both have;
        informative: at how many of these any run leaves. seeds: the number of pairs. PAIRED: of the time before
        leaving, term less reference, in steps; loss_*: the same of the final loss, in nats. *_holm: p after Holm's
        method. detectable: of `power.smallest_effects`, in steps; NaN where no run of a side leaves. runs, never: the
        term's runs, and how many never leave; *_reference: those of the other side. horizon: in steps. verdict: of
        `verdict`. telling_*: at how many places at least a tenth of all runs leaves, and the difference over these.
    """
    scaled, sources = runs[runs["kind"] == SCALED], runs[runs["kind"] == SOURCE]
    spreads = np.sort(scaled["spread"].unique())
    middle = float(spreads[np.argmin(np.abs(np.log(spreads / MIDDLE)))])
    both = scaled[scaled["operator"].isin(("shared", "tied_qkv"))]  # tied_qkv is shared without its diagonals
    by_operator = ("operator", scaled, "operator", "original", "spread")
    by_spread = ("spread", scaled, "spread", middle, "operator")
    families = [
        compared(*by_operator, confidence),
        compared(*by_spread, confidence),
        compared("source", sources, "operator", "original", "kind", confidence),
        _with_rates(sources, runs[runs["kind"] == RATE], confidence),
        compared("diagonals", both, "operator", "tied_qkv", "spread", confidence),
        _at_each(*by_operator, confidence),
        _at_each(*by_spread, confidence),
    ]
    # where nothing can be compared, the first family, empty, still has the columns
    return pd.concat([judged(family, alpha) for family in families if len(family)] or [judged(families[0], alpha)])


def _with_rates(sources: pd.DataFrame, rated: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Compares arms whose scores have their own learning rate with the same operator without one, and with original."""
    families = []
    for (arm, operator), runs in rated.groupby(["arm", "operator"], sort=False):
        for reference in dict.fromkeys((operator, "original")):
            other = sources[sources["operator"] == reference]
            pair = pd.concat([runs.assign(arm=arm), other.assign(arm=reference)])
            families.append(compared("rate", pair, "arm", reference, "size", confidence))  # there is only one size
    return pd.concat(families) if families else pd.DataFrame()


def _at_each(question: str, runs: pd.DataFrame, arm: str, reference: str | float, factor: str, confidence: float):
    """Makes the comparisons of `compared` at each value of `factor` alone, which becomes their `place`."""
    return pd.concat(
        compared(question, at_place, arm, reference, factor, confidence).assign(place=_name(place))
        for place, at_place in runs.groupby(factor, sort=False)
    )


def compared(
    question: str, runs: pd.DataFrame, arm: str, reference: str | float, factor: str, confidence: float
) -> pd.DataFrame:
    """Compares every value of a column with the reference, at equal values of the factor.

    Where no run of either side leaves, the difference is NaN: that all of them wait to the end is no estimate of 0.

    Args:
        question, runs, confidence: the name of the family; the others as for `tests`.
        arm, reference: the column whose values are compared, and the value that all others are compared with.
        factor: the column whose values are held equal.

    Returns:
        One row per comparison: TESTS, NaN in what `judged` adds, and `error`, that of the difference, in steps.
    """
    rows, shares = [], runs.groupby(factor)["reached"].mean()  # of all terms, so that one set of places serves all
    telling = shares.index[shares >= TELLING]  # the places at which enough of all runs leave to tell arms apart
    for term in sorted(set(runs[arm]) - {reference}, key=runs[arm].tolist().index):  # in the order of the rows
        both = runs[runs[arm].isin((term, reference))]
        both = both.assign(of_term=both[arm] == term)
        both = both[both.groupby(factor)["of_term"].transform("nunique") == 2]  # at places that both have
        if both.empty:
            continue
        until = survival.horizon(both)
        both = both.assign(waited=both["step"].clip(upper=until))
        steps, loss = (_difference(both, column, factor, confidence) for column in ("waited", "loss"))
        means = _difference(both[both[factor].isin(telling)], "waited", factor, confidence)
        sides = both.groupby("of_term")["reached"]
        size, never = sides.size(), sides.size() - sides.sum()
        places = both.groupby(factor)["reached"].any()
        rows.append(
            {"question": question, "place": "", "term": _name(term), "reference": _name(reference)}
            | {"places": len(places), "informative": int(places.sum()), "horizon": until}
            | (steps if places.any() else steps | dict.fromkeys((*PAIRED, "error"), nan))
            | {f"loss_{name}": loss[name] for name in PAIRED}
            | hazards.ratio(both, factor, confidence)
            | {"telling_places": len(places.index.intersection(telling))}
            | {f"telling_{name}": means[name] for name in PAIRED[:3]}
            | {"runs": size[True], "never": never[True]}
            | {"runs_reference": size[False], "never_reference": never[False]}
        )
    return pd.DataFrame(rows, columns=[*TESTS, "error"])


def _name(arm: str | float) -> str:
    """Returns an operator, an arm or a kind as it is, and a spread as text."""
    return arm if isinstance(arm, str) else f"{arm:g}"


def _difference(both: pd.DataFrame, column: str, factor: str, confidence: float) -> dict:
    """Estimates the mean difference of a column, term less reference, over pairs of equal seeds.

    The column is averaged over the values of the factor; a seed counts where both sides have it at every value. Returns
    PAIRED, its standard `error` and the number of `seeds`. Without two pairs that differ, there is no interval (NaN).
    """
    table = both.pivot_table(index="seed", columns=["of_term", factor], values=column).dropna()
    if table.empty:
        return dict.fromkeys((*PAIRED, "error"), nan) | {"seeds": 0}
    means = [table[side].mean(axis=1).to_numpy(float) for side in (True, False)]
    difference = estimate.paired(*means, confidence)
    numbers = (difference.value, difference.low, difference.high, difference.p)
    return dict(zip(PAIRED, numbers, strict=True)) | {"error": difference.error, "seeds": len(table)}


def judged(family: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Adjusts the p values of one family, the result of `compared`; adds `detectable` and `verdict`. Columns: TESTS."""
    frame = family.reset_index(drop=True)
    for p in ("p", "hazard_p", "loss_p"):
        frame[f"{p}_holm"] = holm(frame[p].to_numpy(float))
    # where no run of a side leaves, its times do not vary, and the true ones, beyond the horizon, are not known
    stuck = (frame["never"] == frame["runs"]) | (frame["never_reference"] == frame["runs_reference"])
    effects = power.smallest_effects(frame.assign(freedom=frame["seeds"] - 1), alpha)
    frame["detectable"] = pd.Series(effects, frame.index).mask(stuck)
    frame["verdict"] = [verdict(row, alpha) for row in frame.itertuples()]
    return frame[TESTS]


def verdict(row, alpha: float) -> str:
    """SOONER or LATER where the t test and any hazard ratio show it; NEITHER where no run leaves; else UNDECIDED."""
    if row.never == row.runs and row.never_reference == row.runs_reference:
        return NEITHER
    if not row.p_holm < alpha:
        return UNDECIDED
    sooner = row.difference < 0
    if not isnan(row.hazard_p) and not (row.hazard_p_holm < alpha and (row.hazard_ratio > 1) == sooner):
        return UNDECIDED
    return SOONER if sooner else LATER
