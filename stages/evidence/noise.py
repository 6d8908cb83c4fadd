"""How the scores of one model under rising noise are summarised: the one definition, for tables and for claims."""

import numpy as np
import pandas as pd


def summary(levels: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Computes three numbers of one curve of scores by level of noise.

    Args:
        levels: of noise [n], at least two, in any order.
        scores: at these levels [n].

    Returns:
        lost: the score at the lowest level minus that at the highest. area: the mean score over the range of levels, by
        trapezoids, as data/published/claims.yaml asks for. slope: of the least-squares line, score per unit of level.
    """
    order = np.argsort(levels)
    x, y = levels[order], scores[order]
    return {
        "lost": float(y[0] - y[-1]),
        "area": float(np.trapezoid(y, x) / (x[-1] - x[0])),
        "slope": float(np.polyfit(x, y, 1)[0]),
    }


def measures(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The `summary` of every curve of two levels or more, in rows of `keys`, `measure` (a key of it) and `value`.

    Args:
        rows: one row per score, with columns `level` and `value`.
        keys: the columns that the rows of one curve agree in, those of its run among them.
    """
    numbers = [
        (*values, *measure)
        for values, curve in rows.groupby(keys, dropna=False, sort=False)
        if len(curve) > 1
        for measure in summary(curve["level"].to_numpy(float), curve["value"].to_numpy(float)).items()
    ]
    return pd.DataFrame(numbers, columns=[*keys, "measure", "value"])
