"""How the scores of one model under rising noise are summarised: the one definition, for tables and for claims."""

import numpy as np


def summary(levels: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Three numbers of one curve.

    Args:
        levels: of noise [n], at least two, in any order.
        scores: at these levels [n].

    Returns:
        lost: the score at the lowest level minus that at the highest. area: the mean score over the range of levels, by
        trapezoids, as data/published/claims.yaml asks for. slope: of the least-squares line, score a unit of level.
    """
    order = np.argsort(levels)
    x, y = levels[order], scores[order]
    return {
        "lost": float(y[0] - y[-1]),
        "area": float(np.trapezoid(y, x) / (x[-1] - x[0])),
        "slope": float(np.polyfit(x, y, 1)[0]),
    }
