"""The ledger of filtering: what became of every document and byte.

A row is (shard, fate, rule, reason, documents, bytes, all_documents, all_bytes). Fates: `in` = `kept`
+ `not_selected` + `malformed` + `dropped`, in documents and bytes, for each shard and for the shard `total`.
A dropped document counts in `documents` under the first reason that applies to it, in `all_documents` under
every one.
"""

import csv
import io
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from stages.plumbing.files import write_atomically

TOTAL = "total"


@dataclass(frozen=True)
class Row:
    """One line of the ledger."""

    shard: str
    fate: str
    rule: str
    reason: str
    documents: int
    bytes: int
    all_documents: int
    all_bytes: int


COLUMNS = tuple(field.name for field in fields(Row))


def write_ledger(rows: list[Row], path: Path) -> None:
    """Writes the rows of a ledger as CSV, in the given order."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(astuple(row) for row in rows)
    write_atomically(path, text.getvalue())


def with_total(rows: list[Row]) -> list[Row]:
    """The rows and, after them, their sums over shards as rows of the shard `total`."""
    sums: dict[tuple, list[int]] = {}
    for row in rows:
        _, *what, documents, size, all_documents, all_bytes = astuple(row)
        entry = sums.setdefault(tuple(what), [0, 0, 0, 0])
        sums[tuple(what)] = [a + b for a, b in zip(entry, (documents, size, all_documents, all_bytes), strict=True)]
    return [*rows, *(Row(TOTAL, *what, *numbers) for what, numbers in sums.items())]


def read_ledger(path: Path) -> list[Row]:
    """ValueError when the file is missing or not a ledger."""
    if not path.exists():
        raise ValueError(f"{path}: no such file; run `dvc repro filtering` to make it")
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    if not lines or tuple(lines[0]) != COLUMNS:
        raise ValueError(f"{path}: not a ledger, its first line is not {','.join(COLUMNS)}; run `dvc repro filtering`")
    return [Row(*line[:4], *map(int, line[4:])) for line in lines[1:]]
