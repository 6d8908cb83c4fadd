"""Where the lines of a shard come from: data/corpus/origins.csv.

A row says that the lines of `shard`, from `line` up to the next row of this shard, are the lines of `file` from
`source_line`; both count from 1. Documents that were streamed as rows or made of several lines have no row,
but malformed documents of several lines have a row, which names the first line.
"""

from bisect import bisect_right
from collections import defaultdict
from pathlib import Path

import pandas as pd

from stages.files.storage import write_atomically

NAME = "origins.csv"
COLUMNS = ["shard", "line", "file", "source_line"]
# line, file, source_line
Origin = tuple[int, str, int]


def write(folder: Path, origins: dict[str, list[Origin]]) -> None:
    """Writes the origins of shards, by file name and in the order of lines."""
    rows = []
    for shard, origins_of_shard in origins.items():
        rows += [(shard, *origin) for origin in origins_of_shard]
    text = pd.DataFrame(rows, columns=COLUMNS).to_csv(index=False, lineterminator="\n")
    # the name of a file may hold bytes that are not UTF-8
    write_atomically(folder / NAME, text.encode(errors="backslashreplace"))


def read(folder: Path) -> dict[str, list[Origin]]:
    """Reads origins.csv of a folder of shards, by shard; {} without a table."""
    path = folder / NAME
    if not path.exists():
        return {}
    # a file may be called NA
    table = pd.read_csv(path, dtype={"shard": str, "file": str}, keep_default_na=False)
    origins = defaultdict(list)
    for shard, *origin in table.itertuples(index=False, name=None):
        origins[shard].append(tuple(origin))
    return origins


def locate_line(line: int, origins: list[Origin]) -> tuple[str, int] | None:
    """Finds (file, source_line) of a line of a shard; None for a line before the first origin.

    Line 5 with the origin (3, "a.txt", 10) is line 12 of a.txt.
    """
    # number of origins that begin at the line or before
    begun = bisect_right(origins, line, key=lambda origin: origin[0])
    if not begun:
        return None
    first, file, source_line = origins[begun - 1]
    return file, source_line + line - first
