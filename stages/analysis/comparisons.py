"""Every operator against `original`: GLUE columns, the GLUE score, and the final validation loss."""

from math import nan

import numpy as np
import pandas as pd

from stages.evidence import power, scores
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.statistics import (
    FINETUNING,
    TOO_FEW,
    agreement,
    holm,
    too_few,
    units,
    varies,
    verdict,
    welch,
)

FAMILY = ["protocol", "size", "operator"]
LOSS = "validation_loss"
COLUMNS = (
    *FAMILY,
    "column",
    "difference",
    "low",
    "high",
    "freedom",
    "p",
    "p_holm",
    "p_equivalence",
    "p_equivalence_holm",
    "family",
    "margin",
    "detectable",
    "verdict",
    "direction",
    "n",
    "n_original",
    "unit_of_inference",
    "at_chance",
)


def against_original(
    measurements: pd.DataFrame, confidence: float, alpha: float, margins: dict[str, float] | None
) -> pd.DataFrame:
    """One row for every protocol, size, operator and column; differences in points. Columns: COLUMNS.

    p_holm adjusts over the nine columns of one operator, and for the GLUE score over the operators; family: how many
    tests those are. freedom: Welch's degrees of freedom. verdict: that of `statistics.verdict`, from the adjusted p
    values; `one checkpoint per arm` where the units are fine-tuning seeds, `too few seeds` of fewer than three
    pre-training seeds, and `at chance` where both score no better than a constant answer (known if `baselines.beside`
    was asked). detectable: the difference that so many units with this spread would show in 80 % of such runs.
    direction: `higher` or `lower` where p_holm is below alpha and seeds are not too few, and empty otherwise.

    margins: None for results that the margins were made from, which they cannot judge: no equivalence is tested then.
    """
    rows = measurements[(measurements["metric"] == "score") & (measurements["stage"] == "finetuning")]
    rows = rows.assign(value=100 * rows["value"], column=rows["evaluated_on"])
    families = []
    for keys, pairs in _pairs(rows, FAMILY, (scores.GLUE_SCORE, *scores.COLUMNS)):
        families += [keys | _compared(c, *pair, confidence, alpha, margins) for c, pair in pairs.items()]
    if not families:
        return pd.DataFrame(columns=list(COLUMNS))
    made = pd.DataFrame(families)
    whole = made["column"] == scores.GLUE_SCORE
    parts = [*made[whole].groupby(FAMILY[:2], sort=False), *made[~whole].groupby(FAMILY, sort=False)]
    return pd.concat([_judged(own, alpha) for _, own in parts]).sort_index()[list(COLUMNS)]


def losses(
    measurements: pd.DataFrame, confidence: float, alpha: float, margins: dict[str, float] | None
) -> pd.DataFrame:
    """The same for the final validation loss, in nats; p_holm adjusts over the operators of one size."""
    rows = measurements[measurements["metric"] == "final_validation_loss"].assign(column=LOSS)
    made = [
        keys | _compared(LOSS, *pairs[LOSS], confidence, alpha, margins)
        for keys, pairs in _pairs(rows, ["size", "operator"], (LOSS,))
    ]
    if not made:
        return pd.DataFrame(columns=list(COLUMNS))
    sizes = [_judged(own, alpha) for _, own in pd.DataFrame(made).groupby("size", sort=False)]
    return pd.concat(sizes).reindex(columns=list(COLUMNS))


def _pairs(rows: pd.DataFrame, keys: list[str], columns: tuple[str, ...]):
    """For every operator but `original`: its keys, and by column its rows and those of `original`."""
    for values, own in rows.groupby(keys, sort=False):
        found = dict(zip(keys, values, strict=True))
        other = rows[np.all([rows[key] == found[key] for key in keys[:-1]] + [rows["operator"] == "original"], axis=0)]
        pairs = {c: (own[own["column"] == c], other[other["column"] == c]) for c in columns}
        pairs = {column: pair for column, pair in pairs.items() if all(map(len, pair))}
        if found["operator"] != "original" and pairs:
            yield found, pairs


def _compared(
    column: str, own: pd.DataFrame, original: pd.DataFrame, confidence: float, alpha: float, margins: dict | None
) -> dict:
    (first, unit), (second, other_unit) = units(own), units(original)
    result = welch(first, second, confidence)
    margin = margins[column] if margins else nan
    return {
        "column": column,
        "difference": result.difference,
        "low": result.low,
        "high": result.high,
        "freedom": _freedom(first, second),
        "p": result.p,
        "p_equivalence": agreement(first, second, margin)[0] if margins else nan,
        "margin": margin,
        "detectable": _detectable(first, second, alpha),
        "n": len(first),
        "n_original": len(second),
        "unit_of_inference": unit if unit == other_unit else FINETUNING,
        "at_chance": _at_chance(own) and _at_chance(original),
    }


def _at_chance(rows: pd.DataFrame) -> bool:
    """Whether a mean score is at chance; rows come in points, the baseline that `baselines.beside` adds does not."""
    known = "most_frequent_high" in rows and rows["most_frequent_high"].notna().all()
    return bool(known and rows["value"].mean() <= 100 * rows["most_frequent_high"].iloc[0])


def _detectable(first: np.ndarray, second: np.ndarray, alpha: float) -> float:
    if not (varies(first) and varies(second)):
        return nan
    error = sum(np.var(side, ddof=1) / len(side) for side in (first, second))
    return power.smallest_effect(float(np.sqrt(error)), _freedom(first, second), alpha)


def _freedom(first: np.ndarray, second: np.ndarray) -> float:
    """Welch's degrees of freedom; NaN where a side does not vary."""
    if not (varies(first) and varies(second)):
        return nan
    parts = [np.var(side, ddof=1) / len(side) for side in (first, second)]
    return float(sum(parts) ** 2 / sum(p**2 / (len(side) - 1) for p, side in zip(parts, (first, second), strict=True)))


def _judged(family: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """With p_holm, and verdicts at alpha for the family; equivalence too must be shown after Holm."""
    adjusted = {name: holm(family[name].to_numpy(float)) for name in ("p", "p_equivalence")}
    family = family.assign(p_holm=adjusted["p"], p_equivalence_holm=adjusted["p_equivalence"])
    family["family"] = int(family["p"].notna().sum())
    few = [too_few(row.unit_of_inference, row.n, row.n_original) for row in family.itertuples()]
    verdicts = [
        AT_CHANCE if row.at_chance else reason or verdict(row.p_equivalence_holm, row.p_holm, alpha)
        for row, reason in zip(family.itertuples(), few, strict=True)
    ]
    signs = np.where(family["difference"] > 0, "higher", "lower")
    shown = (family["p_holm"] < alpha) & np.array([reason != TOO_FEW for reason in few])
    return family.assign(verdict=verdicts, direction=np.where(shown, signs, ""))
