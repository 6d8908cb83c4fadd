"""Filters shards of OSCAR records by the rules, and keeps a ledger of every document and byte.

records/ledger.py describes the ledger's rows. Bytes are those of the lines, decompressed, without line feeds.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from stages.files.storage import temporary_sibling
from stages.filtering.annotation import Annotator, missing
from stages.filtering.rules import judge
from stages.records import reading, records
from stages.records.records import Annotations

LEVEL = 1  # of compression: a sixth more bytes than at 3, in half the time
KEPT = "kept.jsonl.zst"
MALFORMED = "malformed.csv"


def filter_shard(settings: dict, folder: Path) -> dict:
    """Job (runner/jobs.py). settings: shard (path), rules (of `rules_of`), annotation (the arguments of Annotator).

    Leaves in `folder`, the job's own, the kept lines, byte for byte, as kept.jsonl.zst, and malformed.csv: file, line
    (from 1) and reason of each malformed one, without a header. Returns `rows`, a list of [fate, rule, reason,
    documents, bytes, all_documents, all_bytes] for the fates `kept`, `malformed` and `dropped`, and `unknown`, the
    number of documents whose metadata stayed unknown, by `categories`, `harmful_pp` and `quality_warnings`.
    """
    reasons_of, annotate = judge(settings["rules"]), Annotator(**settings["annotation"])
    fates: dict[tuple | None, list[int]] = defaultdict(lambda: [0, 0])  # documents, bytes by reasons; None: malformed
    number = 0
    with (
        temporary_sibling(folder / KEPT) as path,
        reading.zstd_writer(path, LEVEL) as kept,
        (folder / MALFORMED).open("w", encoding="utf-8", newline="") as file,
    ):
        malformed = csv.writer(file, lineterminator="\n")
        for block, starts, ends, documents in _blocks(Path(settings["shard"])):
            for start, end, document in zip(starts, ends, documents, strict=True):
                number += 1
                if not isinstance(document, ValueError) and missing(document):
                    try:
                        document = annotate(block[start:end], document)
                    except ValueError as error:  # what its metadata would follow from cannot be read
                        document = error
                if isinstance(document, ValueError):
                    malformed.writerow([settings["shard"], number, document])
                    reasons = None
                else:
                    reasons = reasons_of(document)
                    if not reasons:
                        kept.write(memoryview(block)[start:end])
                        kept.write(b"\n")
                fate = fates[reasons]
                fate[0] += 1
                fate[1] += end - start
    return {"rows": _tallies(fates), "unknown": annotate.unknown}


def _blocks(shard: Path) -> Iterator[tuple[bytes, list[int], list[int], list[Annotations | ValueError]]]:
    """Yields blocks: bytes, where each line starts and ends (before its line feed), its metadata or what is wrong."""
    for block in reading.line_blocks(shard):
        feeds = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))
        starts, ends = np.insert(feeds + 1, 0, 0), np.append(feeds, len(block))
        yield block, starts.tolist(), ends.tolist(), records.annotations_of(block, starts, ends)


def _tallies(fates: dict[tuple | None, list[int]]) -> list[list]:
    """Adds up [documents, bytes] by reasons to the rows of `filter_shard`, sorted.

    Reasons are (rule, reason) pairs; there are none for documents that are kept, and None for malformed ones.
    `documents` and `bytes` count what has the row's reason first, `all_documents` and `all_bytes` what has it at all.
    """
    tallies: dict[tuple, np.ndarray] = defaultdict(lambda: np.zeros(4, dtype=np.int64))
    for reasons, counts in fates.items():
        rows = [("malformed", "", "")] if reasons is None else [("dropped", *reason) for reason in reasons]
        rows = rows or [("kept", "", "")]
        tallies[rows[0]][:2] += counts
        for row in rows:
            tallies[row][2:] += counts
    return [[*row, *tallies[row].tolist()] for row in sorted(tallies)]


def select(kept: Path, target: Path, chosen: Iterable[int]) -> int:
    """Copies lines of a shard of kept documents; returns their number of bytes, without line feeds.

    Args:
        kept, target: the shard, and the file to write.
        chosen: sorted numbers of the lines, from 0.
    """
    size, previous = 0, -1
    lines = reading.lines(kept)
    with reading.zstd_writer(target, LEVEL) as file:
        for number in chosen:
            line = next(islice(lines, number - previous - 1, None))  # skips those between
            file.write(line + b"\n")
            size, previous = size + len(line), number
    return size


def sample(total: int, count: int, seed: int) -> np.ndarray:
    """Draws `count` of [0, total), all sets equally likely, sorted [count]. Memory grows with `count`, not `total`."""
    random = np.random.default_rng(seed)
    left_out = count > total / 2  # then draws what is left out: the fewer are drawn, the fewer come twice
    drawn = total - count if left_out else count
    chosen = np.array([], dtype=np.int64)
    while len(chosen) < drawn:
        chosen = np.union1d(chosen, random.integers(total, size=drawn - len(chosen)))
    return np.setdiff1d(np.arange(total), chosen, assume_unique=True) if left_out else chosen  # total < 2 * count


def shard_rows(shard: str, tallies: list[list], selected: tuple[int, int] | None) -> list[tuple]:
    """Makes the rows of one shard in the ledger, with `in`, `kept` and `not_selected` even where they are 0.

    A row is (shard, fate, rule, reason, documents, bytes, all_documents, all_bytes), the last two as in `_tallies`.

    Args:
        shard, tallies: its name, and `rows` as `filter_shard` returns them.
        selected: how many documents and bytes of those kept are selected; None for all of them.
    """
    kept = next((tally[3:5] for tally in tallies if tally[0] == "kept"), [0, 0])  # documents, bytes
    taken = selected or kept  # (0, 0) is true
    rows = {
        "in": [sum(tally[i] for tally in tallies) for i in (3, 4)],
        "kept": taken,
        "not_selected": [number - part for number, part in zip(kept, taken, strict=True)],
    }
    return [
        *((shard, fate, "", "", *numbers, *numbers) for fate, numbers in rows.items()),
        *((shard, *tally) for tally in tallies if tally[0] != "kept"),
    ]
