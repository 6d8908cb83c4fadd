"""The speed of pre-training in every round, and the signs that another process slowed the machine in between.

All operators are timed in turn within a round, so times of a round are pairs.
"""

import numpy as np
import pandas as pd

from stages.evidence.fields import select_rows

# With the same share of the peak, two models differ in speed by the ratio of their operations. Models that move less
# memory may gain somewhat more, but not a tenth.
TOLERANCE = 1.1
# A process on the same core takes half of the core. Rounds of an idle machine differ by a tenth.
FAR_BELOW = 2 / 3
ROUND = [
    "size",
    "operator",
    "condition",
]


def collect_speeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Collects the speed of pre-training in every round.

    Returns:
        A row per `size`, `operator` and round (`condition`), with `stage`, `value` (the natural logarithm of the tokens
        per second) and `share_of_peak` (the share of the speed of matrix products, in [0, 1]).
    """
    rows = select_rows(rows, stage="timing")
    shares = select_rows(rows, metric="share_of_peak").rename(columns={"value": "share_of_peak"})
    speeds = select_rows(rows, metric="tokens_per_second")[["stage", *ROUND, "value"]]
    speeds = speeds.merge(shares[[*ROUND, "share_of_peak"]], on=ROUND)
    # Differences of logarithms: a slower machine then changes all operators by the same amount.
    return speeds.assign(value=np.log(speeds["value"].astype(float)))


def is_busy(arm: pd.DataFrame, reference: pd.DataFrame) -> bool:
    """Checks whether another process probably slowed either side of a comparison: an operator and the original.

    Either sign is enough: in some round, a side's `share_of_peak` is below two thirds of the median of the side's
    rounds; or the operator's mean share is above 1.1 times the original's.
    """
    for side in (arm, reference):
        shares = side["share_of_peak"]
        if shares.min() < FAR_BELOW * shares.median():
            return True
    # The operator would be faster than the smaller number of operations allows.
    return bool(arm["share_of_peak"].mean() > TOLERANCE * reference["share_of_peak"].mean())
