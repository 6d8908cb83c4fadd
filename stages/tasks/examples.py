"""The examples of one split as they were read, whatever the task."""

from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Examples:
    """frame: one row an example, as its reader describes. source: where it was read, in words for the report.

    subset: whether that holds a part of the original only. dropped: how many examples were left out; reason: why.
    """

    frame: pd.DataFrame
    source: str
    subset: bool = False
    dropped: int = 0
    reason: str = ""

    def sample(self, count: int | None, seed: list[int]) -> pd.DataFrame:
        """`count` rows drawn without replacement, in the frame's order; all when there are no more."""
        if count is None or count >= len(self.frame):
            return self.frame
        chosen = np.random.default_rng(seed).choice(len(self.frame), size=count, replace=False)
        return self.frame.iloc[np.sort(chosen)].reset_index(drop=True)
