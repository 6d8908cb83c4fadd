"""The examples of one split as they were read, whatever the task, and how a file of JSON is read."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
import pandas as pd

T = TypeVar("T")


@dataclass(frozen=True)
class Examples:
    """frame: one row per example, numbered from 0, in columns that glue.py or squad.py describes; none is read here.

    source: the files or dataset, as the report names them. subset: whether they hold only a part of the original.
    dropped: how many examples were left out; reason: why, empty where none was.
    """

    frame: pd.DataFrame
    source: str
    subset: bool = False
    dropped: int = 0
    reason: str = ""

    def sample(self, count: int | None, seed: list[int]) -> pd.DataFrame:
        """Draws `count` rows without replacement, in order, by the whole `seed`; all of them for None or if too few."""
        if count is None or count >= len(self.frame):
            return self.frame
        chosen = np.random.default_rng(seed).choice(len(self.frame), size=count, replace=False)
        return self.frame.iloc[np.sort(chosen)].reset_index(drop=True)


def find_file(folders: Iterable[Path], stem: str, suffix: str) -> Path | None:
    """Returns the first file that is there, in each folder the whole file before its subset; None without any.

    Args:
        folders: to look in, so that the subset of one goes before the whole file of the next.
        stem, suffix: the file's name up to its suffix, and the suffix, such as .tsv; a subset has `.subset` between.
    """
    paths = (folder / f"{stem}{kind}{suffix}" for folder in folders for kind in ("", ".subset"))
    return next(filter(Path.is_file, paths), None)


def require_file(folders: list[Path], stem: str, suffix: str, what: str, remedy: str) -> Path:
    """Returns the file that `find_file` finds with the same first arguments; ValueError where there is none.

    Args:
        what: task and split, for the message of an error.
        remedy: how to do without the file, in the imperative, as the end of that message.
    """
    path = find_file(folders, stem, suffix)
    if path is None:
        raise ValueError(
            f"{what}: neither {stem}{suffix} nor {stem}.subset{suffix} is in {' or '.join(map(str, folders))}; put the "
            f"original files below data.root, or {remedy}"
        )
    return path


def is_subset(path: Path) -> bool:
    """Whether a file that `find_file` found is the subset and not the whole file."""
    return path.suffixes[-2:-1] == [".subset"]  # a slice, because a name may have one suffix alone


def decoded(path: Path, form: type[T]) -> T:
    """Reads a file of JSON as the type `form`, a msgspec.Struct; keys that the type does not name are passed over.

    A byte order mark before the JSON and blank lines around it do no harm. ValueError, naming the file, for one cut
    short, no JSON in UTF-8, nested too deeply or of another form.
    """
    try:
        return msgspec.json.decode(path.read_text(encoding="utf-8-sig"), type=form)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"{path}: not whole JSON in UTF-8, of its form ({error}); fetch the file again") from None
