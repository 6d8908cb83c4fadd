"""The comparisons of the study of the plateau, in pairs of equal seeds, whose runs see the same batches.

Arms are compared at equal values of the factor: operators at equal spreads, spreads of the same operator. A value of
the factor is a place. A place is informative if at least a tenth of all runs at the place leaves. The time before a run
leaves is cut at the horizon, the last step up to which all runs of both arms are known. The mean of these times over
the informative places is one number per seed and arm. Two tests judge the differences of the seeds: a paired t test,
and an exact sign-flip test. Operators and spreads are also compared at single places, because an average hides opposite
effects. Holm's method adjusts over the comparisons of one question: over the averages, and over the single places.
"""

from itertools import product
from math import nan

import numpy as np
import pandas as pd

from stages.evidence import estimate, power, survival
from stages.evidence.statistics import ROUNDING, holm

SOONER, LATER, UNDECIDED, NEITHER = "sooner", "later", "undecided", "neither leaves"  # verdicts on two arms
SCALED, SOURCE, RATE = "scaled", "as its source", "rate of its own"  # kinds of compared arms, see study.py
MIDDLE = 1.0  # the spread that others are compared with, or the one nearest to it
TELLING = 0.1  # share of all runs at a place that must leave for the place to be informative
PAIRED = ["difference", "low", "high", "p"]  # of a paired t test, with the ends of its interval
TESTS = [
    *("question", "size", "place", "term", "reference", "places", "informative", "seeds"),
    *(*PAIRED, "p_holm", "flip_p", "flip_p_holm", "detectable"),
    *(f"loss_{name}" for name in (*PAIRED, "p_holm")),
    *("runs", "never", "runs_reference", "never_reference", "horizon", "verdict"),
]


def tests(runs: pd.DataFrame, confidence: float, alpha: float) -> pd.DataFrame:
    """Makes all comparisons of one size, one family after the other.

    Args:
        runs: one row per run: arm (its name in params.yaml), operator, kind, spread (of the first scores), seed, step
            (at which it leaves, or its last), reached (whether it leaves), loss (the final one, in nats), and size.
        confidence, alpha: of the intervals, in (0, 1), and the level of all tests of one family together.

    Returns:
        TESTS, one row per comparison; `size` is NaN. question: the family. place: the value of the factor, as text;
        empty for averages. term, reference: the two sides, as text. places: how many values of the factor both sides
        have. informative: how many of the places are informative; only informative places count in the differences.
        seeds: the number of pairs. PAIRED: of the time before leaving, term less reference, in steps. flip_p: of
        `sign_flip_p`, for the same differences. loss_*: PAIRED of the final loss, in nats. *_holm: p after Holm's
        method. detectable: of `power.smallest_effects`, in steps, by the t test; NaN as in `judged`. runs, never: the
        term's runs at all places, and how many never leave; *_reference: the same of the other side. horizon: in steps.
        verdict: of `verdict`.
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

    The difference is NaN where no place is informative. The difference of times is also NaN where no run of either side
    leaves at an informative place: all of these runs wait to the end, which is no estimate of 0.

    Args:
        question, runs, confidence: the name of the family; the others as for `tests`.
        arm, reference: the column whose values are compared, and the value that all others are compared with.
        factor: the column whose values are held equal.

    Returns:
        One row per comparison: TESTS, NaN in the columns that `judged` adds, and `error`, the standard error of the
        difference, in steps.
    """
    rows = []
    # All terms set the share, so that every comparison of the family has the same informative places.
    shares = runs.groupby(factor)["reached"].mean()
    telling = shares.index[shares >= TELLING]
    for term in sorted(set(runs[arm]) - {reference}, key=runs[arm].tolist().index):  # in the order of the rows
        both = runs[runs[arm].isin((term, reference))]
        both = both.assign(of_term=both[arm] == term)
        both = both[both.groupby(factor)["of_term"].transform("nunique") == 2]  # at places that both have
        if both.empty:
            continue
        until = survival.horizon(both)
        both = both.assign(waited=both["step"].clip(upper=until))
        counted = both[both[factor].isin(telling)]
        steps = _difference(counted, "waited", factor, confidence)
        if not counted["reached"].any():
            steps |= dict.fromkeys((*PAIRED, "error", "flip_p"), nan)
        loss = _difference(counted, "loss", factor, confidence)
        sides = both.groupby("of_term")["reached"]
        size, never = sides.size(), sides.size() - sides.sum()
        rows.append(
            {"question": question, "place": "", "term": _name(term), "reference": _name(reference)}
            | {"places": both[factor].nunique(), "informative": counted[factor].nunique(), "horizon": until}
            | steps
            | {f"loss_{name}": loss[name] for name in PAIRED}
            | {"runs": size[True], "never": never[True]}
            | {"runs_reference": size[False], "never_reference": never[False]}
        )
    return pd.DataFrame(rows, columns=[*TESTS, "error"])


def _name(arm: str | float) -> str:
    """Returns an operator, an arm or a kind as it is, and a spread as text."""
    return arm if isinstance(arm, str) else f"{arm:g}"


def _difference(both: pd.DataFrame, column: str, factor: str, confidence: float) -> dict:
    """Estimates the mean difference of a column, term less reference, over pairs of equal seeds.

    The column is averaged over the values of the factor. A seed counts if both sides have the seed at every value.

    Returns:
        PAIRED, the standard `error`, `flip_p` of `sign_flip_p`, and the number of `seeds`. Without two pairs that
        differ, the interval and both p are NaN, so that both tests have the same family.
    """
    table = both.pivot_table(index="seed", columns=["of_term", factor], values=column).dropna()
    if table.empty:
        return dict.fromkeys((*PAIRED, "error", "flip_p"), nan) | {"seeds": 0}
    term = table[True].mean(axis=1).to_numpy(float)
    reference = table[False].mean(axis=1).to_numpy(float)
    difference = estimate.paired(term, reference, confidence)
    numbers = (difference.value, difference.low, difference.high, difference.p)
    flip_p = sign_flip_p(term - reference) if difference.has_interval else nan
    found = dict(zip(PAIRED, numbers, strict=True))
    return found | {"error": difference.error, "flip_p": flip_p, "seeds": len(table)}


def sign_flip_p(differences: np.ndarray) -> float:
    """Computes the exact two-sided p of a mean of paired differences, from all assignments of signs.

    If the arms do not differ, every difference is as likely positive as negative. The p is the share of the 2^n
    assignments whose mean is at least as far from 0 as the mean of the data, for instance 2/64 for six differences of
    one sign.

    Args:
        differences: one per seed [n]; time and memory grow with 2^n.
    """
    signs = np.array(list(product((1, -1), repeat=len(differences))))
    means = np.abs(signs @ differences) / len(differences)  # means[0] is the mean of the data
    # Means that are equal in exact arithmetic may differ by rounding.
    tolerance = ROUNDING * np.abs(differences).max()
    return float(np.mean(means >= means[0] - tolerance))


def smallest_flip_p(seeds: int | pd.Series) -> float | pd.Series:
    """Returns the smallest p that `sign_flip_p` can have: all differences of one sign, for instance 2/64 for six."""
    return 2.0 ** (1 - seeds)


def judged(family: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Adjusts the p values of one family, the result of `compared`; adds `detectable` and `verdict`. Columns: TESTS.

    `detectable` is NaN where no run of a side leaves: the times of that side do not vary, and the true times, beyond
    the horizon, are not known. `detectable` is also NaN where the sign-flip test cannot be significant.
    """
    frame = family.reset_index(drop=True)
    for p in ("p", "flip_p", "loss_p"):
        frame[f"{p}_holm"] = holm(frame[p].to_numpy(float))
    effects = power.smallest_effects(frame.assign(freedom=frame["seeds"] - 1), alpha)
    stuck = (frame["never"] == frame["runs"]) | (frame["never_reference"] == frame["runs_reference"])
    members = frame["flip_p"].notna().sum()
    hopeless = members * smallest_flip_p(frame["seeds"]) >= alpha
    frame["detectable"] = pd.Series(effects, frame.index).mask(stuck | hopeless)
    frame["verdict"] = [verdict(row, alpha) for row in frame.itertuples()]
    return frame[TESTS]


def verdict(row, alpha: float) -> str:
    """SOONER or LATER where the t test and the sign-flip test show it; NEITHER where no run leaves; else UNDECIDED."""
    if row.never == row.runs and row.never_reference == row.runs_reference:
        return NEITHER
    if row.p_holm < alpha and row.flip_p_holm < alpha:
        return SOONER if row.difference < 0 else LATER
    return UNDECIDED
