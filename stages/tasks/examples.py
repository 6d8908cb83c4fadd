"""Holds the examples of a split as read from the source, and reads JSON files."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
import pandas as pd

from stages.files.stand_ins import require_data

T = TypeVar("T")


@dataclass(frozen=True)
class Examples:
    """The examples of a split of a task, with the name of their `source` for the report."""

    # A row for each example, numbered from 0, in the columns that glue.py or squad.py describes.
    frame: pd.DataFrame
    # Name of the files or the dataset.
    source: str
    # Whether the source holds only a part of the original.
    subset: bool = False
    # Number of examples left out, and why.
    dropped: int = 0
    reason: str = ""

    def sample(self, count: int | None, seed: list[int]) -> pd.DataFrame:
        """Draws `count` rows without replacement, in the order of the file; `None` or a larger number gives all rows.

        The numbers in `seed` together seed the draw.
        """
        if count is None or count >= len(self.frame):
            return self.frame
        chosen = self.frame.sample(count, random_state=np.random.default_rng(seed))
        return chosen.sort_index(ignore_index=True)


def read_json(path: Path, form: type[T]) -> T:
    """Reads a JSON file into `form`, a subclass of `msgspec.Struct`; further keys and a byte order mark are ignored.

    Raises:
        ValueError: the file is truncated, is not JSON in UTF-8, is nested too deeply, does not match `form`, or is a
            stand-in for data, such as a Git LFS pointer.
    """
    require_data(path)
    # Deep nesting ends in a RecursionError.
    try:
        return msgspec.json.decode(path.read_text(encoding="utf-8-sig"), type=form)
    except msgspec.ValidationError as error:
        raise ValueError(f"{path}: not of the form of the original files ({error}); convert the file") from None
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"{path}: not whole JSON in UTF-8 ({error}); fetch the file again") from None
