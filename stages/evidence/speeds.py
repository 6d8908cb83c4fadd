"""The speed of pre-training in every round, and the signs that another process slowed the machine in between.

All operators are timed in turn within a round, so times of a round are pairs. Speeds are compared by their logarithms:
a machine that is slower in a round then changes all operators by the same amount.
"""

import numpy as np
import pandas as pd

from stages.evidence.fields import select_rows

# the verdict on a comparison whose times are not to be trusted
BUSY = "machine was busy"
# With the same share of the peak, two models differ in speed by the ratio of their operations. Models that move less
# memory may gain somewhat more, but not a tenth.
TOLERANCE = 1.1
# A process on the same core takes half of the core. Rounds of an idle machine differ by a tenth.
FAR_BELOW = 2 / 3
ROUND = ["size", "operator", "condition"]


def collect_speeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Collects the speed of our pre-training, without stock BERT.

    Args:
        rows: observations.

    Returns:
        A row for every size, operator and round (`condition`), with the stage, `value`, the natural logarithm of the
        tokens per second, and `share_of_peak`, the share of the speed of matrix products, in [0, 1].
    """
    rows = select_rows(rows, stage="timing")
    rows = rows[rows["condition"].str.startswith("round=", na=False)]
    shares = select_rows(rows, metric="share_of_peak").rename(columns={"value": "share_of_peak"})
    speeds = select_rows(rows, metric="tokens_per_second")[["stage", *ROUND, "value"]]
    speeds = speeds.merge(shares[[*ROUND, "share_of_peak"]], on=ROUND)
    return speeds.assign(value=np.log(speeds["value"].astype(float)))


def is_busy(arm: pd.DataFrame, reference: pd.DataFrame) -> bool:
    """Checks whether another process probably slowed one side of a comparison.

    Either sign is enough. The share of the peak in a round is below FAR_BELOW times the median of that operator's
    rounds. Or the arm has a mean share above TOLERANCE times that of the reference: the arm is then faster than the
    smaller number of operations allows.

    Args:
        arm: `share_of_peak` of the rounds of an operator.
        reference: `share_of_peak` of the rounds of the original.
    """
    for side in (arm, reference):
        shares = side["share_of_peak"]
        if shares.min() < FAR_BELOW * shares.median():
            return True
    return bool(arm["share_of_peak"].mean() > TOLERANCE * reference["share_of_peak"].mean())
