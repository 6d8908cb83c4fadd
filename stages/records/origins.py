"""Where the lines of a shard come from: data/corpus/origins.csv.

A row says that, from `line` of `shard` on and up to the next row of this shard, its lines are those of `file` from
`source_line` on; both are counted from 1. Documents that were generated, streamed as rows or made of several lines have
no row: they are sound records, and nobody looks for them.
"""

import csv
import io
from bisect import bisect_right
from itertools import groupby
from pathlib import Path

from stages.plumbing.files import write_atomically

NAME = "origins.csv"
COLUMNS = ("shard", "line", "file", "source_line")
Origin = tuple[int, str, int]  # line, file, source_line


def write(folder: Path, origins: dict[str, list[Origin]]) -> None:
    """Leaves the table in a folder of shards. origins: of every shard, by its name, in the order of its lines."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((shard, *origin) for shard, found in origins.items() for origin in found)
    write_atomically(folder / NAME, text.getvalue().encode(errors="backslashreplace"))  # any name that a disk may have


def read(folder: Path) -> dict[str, list[Origin]]:
    """What `write` has left in a folder of shards; nothing where there is no table."""
    if not (folder / NAME).exists():
        return {}
    with (folder / NAME).open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return {
        shard: [(int(line), name, int(source_line)) for _, line, name, source_line in found]
        for shard, found in groupby(rows, key=lambda row: row[0])
    }


def locate(line: int, origins: list[Origin]) -> tuple[str, int] | None:
    """The source of a line of a shard, file and line; None where it is not known."""
    place = bisect_right(origins, line, key=lambda origin: origin[0])
    if not place:
        return None
    first, file, source_line = origins[place - 1]
    return file, source_line + line - first
