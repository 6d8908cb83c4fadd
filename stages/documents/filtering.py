"""Filters shards of OSCAR records by the rules, and keeps a ledger of every document and byte.

A ledger row is (shard, fate, rule, reason, documents, bytes, all_documents, all_bytes). Fates: `in` = `kept`
+ `not_selected` + `malformed` + `dropped`, in documents and bytes, for each shard and for the shard `total`.
A dropped document counts in `documents` under the first reason that applies to it, in `all_documents` under
every one. Bytes are those of the lines, decompressed, without line feeds.
"""

import csv
from collections import defaultdict
from dataclasses import astuple, dataclass, fields
from itertools import islice
from pathlib import Path

from stages.documents import reading, records
from stages.documents.rules import Rules

KEPT = "kept.jsonl.zst"
MALFORMED = "malformed.csv"
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


def filter_shard(settings: dict, folder: Path) -> dict:
    """Job. settings: shard (path), rules (the fields of Rules).

    Leaves the kept lines, byte for byte, in `folder`/kept.jsonl.zst and the malformed ones (file, line,
    reason) in malformed.csv. Gives [fate, rule, reason, documents, bytes, all_documents, all_bytes] of all
    but `not_selected`.
    """
    rules = Rules(**settings["rules"])
    tallies: dict[tuple, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    with (
        reading.zstd_writer(folder / KEPT) as kept,
        (folder / MALFORMED).open("w", encoding="utf-8", newline="") as file,
    ):
        malformed = csv.writer(file, lineterminator="\n")
        for number, line in enumerate(reading.lines(Path(settings["shard"])), 1):
            try:
                reasons = rules.reasons(records.annotations(line))
            except ValueError as error:
                malformed.writerow([settings["shard"], number, error])
                fates = [("malformed", "", "")]
            else:
                fates = [("dropped", *reason) for reason in reasons]
                if not fates:
                    kept.write(line)
                    kept.write(b"\n")
                    fates = [("kept", "", "")]
            size = len(line)
            first = tallies[fates[0]]
            first[0] += 1
            first[1] += size
            for fate in fates:
                tally = tallies[fate]
                tally[2] += 1
                tally[3] += size
    return {"rows": [[*fate, *tallies[fate]] for fate in sorted(tallies)]}


def select(kept: Path, target: Path, limit: int) -> int:
    """Writes the first `limit` lines of a shard of kept documents to `target`; gives their bytes."""
    size = 0
    with reading.zstd_writer(target) as file:
        for line in islice(reading.lines(kept), limit):
            file.write(line + b"\n")
            size += len(line)
    return size


def shard_rows(shard: str, tallies: list[list], selected: tuple[int, int] | None) -> list[Row]:
    """The ledger of one shard. selected: documents and bytes taken of those kept; None for all of them."""
    rows = [Row(shard, *tally) for tally in tallies if tally[0] != "kept"]
    kept = next((tally[3:5] for tally in tallies if tally[0] == "kept"), [0, 0])
    taken = kept if selected is None else selected
    left = [kept[0] - taken[0], kept[1] - taken[1]]
    everything = [sum(row.documents for row in rows) + kept[0], sum(row.bytes for row in rows) + kept[1]]
    return [
        Row(shard, "in", "", "", *everything, *everything),
        Row(shard, "kept", "", "", *taken, *taken),
        Row(shard, "not_selected", "", "", *left, *left),
        *rows,
    ]


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
