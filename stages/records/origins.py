"""Where the lines of a shard come from: data/corpus/origins.csv.

A row says that, from `line` of `shard` on and up to the next row of this shard, its lines are those of `file` from
`source_line` on; both are counted from 1. Documents that were generated, streamed as rows or made of several lines have
no row: they are valid by construction, so that no error has to name the line that they come from.
"""

from bisect import bisect_right
from pathlib import Path

import pandas as pd

from stages.files.storage import write_atomically

NAME = "origins.csv"
COLUMNS = ["shard", "line", "file", "source_line"]
Origin = tuple[int, str, int]  # line, file, source_line


def write(folder: Path, origins: dict[str, list[Origin]]) -> None:
    """Writes the table into a folder of shards. origins: by a shard's file name its origins, in the order of lines."""
    rows = [(shard, *origin) for shard, origins_of_shard in origins.items() for origin in origins_of_shard]
    text = pd.DataFrame(rows, columns=COLUMNS).to_csv(index=False, lineterminator="\n")
    write_atomically(folder / NAME, text.encode(errors="backslashreplace"))  # a name may hold what is no UTF-8


def read(folder: Path) -> dict[str, list[Origin]]:
    """Reads what `write` has left in a folder of shards: its `origins`, by shard; {} if there is no table."""
    if not (folder / NAME).exists():
        return {}
    table = pd.read_csv(folder / NAME, dtype={"shard": str, "file": str}, keep_default_na=False)  # NA may be a name
    return {
        shard: list(rows[COLUMNS[1:]].itertuples(index=False, name=None))
        for shard, rows in table.groupby("shard", sort=False)
    }


def locate(line: int, origins: list[Origin]) -> tuple[str, int] | None:
    """Finds (file, source_line) of a shard's line by its origins, in order; None where none is at or before it."""
    place = bisect_right(origins, line, key=lambda origin: origin[0])
    if not place:
        return None
    first, file, source_line = origins[place - 1]
    return file, source_line + line - first
