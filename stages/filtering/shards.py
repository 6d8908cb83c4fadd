"""Filters shards of OSCAR records by the rules, and keeps a ledger of every document and byte.

records/ledger.py describes the rows of the ledger. Bytes are counted in decompressed lines, without line feeds. A
document passes if no rule drops the document; stage.py then selects the documents that the ledger counts as kept.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stages.files.storage import make_temporary_sibling
from stages.filtering.annotation import Annotator, list_missing
from stages.filtering.rules import make_judge
from stages.records import reading, records
from stages.records.records import Annotations

# level of compression: a sixth more bytes than at 3, in half the time
LEVEL = 1
PASSED = "passed.jsonl.zst"
MALFORMED = "malformed.csv"
# the only reason of a document without text
EMPTY = (("text", "empty"),)


class Tally(NamedTuple):
    """Numbers of documents and bytes with equal fate, rule and reason; records/ledger.py explains the fields."""

    fate: str
    rule: str
    reason: str
    documents: int
    bytes: int
    all_documents: int
    all_bytes: int


def filter_shard(settings: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): filters a shard, a file of documents, by the rules.

    Leaves passed.jsonl.zst, the lines that pass byte for byte, and malformed.csv: file, line (from 1) and reason of
    each malformed line, without a header.

    Args:
        settings: `shard` (path), `rules` (the keys of `filtering` that are rules), and `annotation` (blocklists and
            model).
        folder: the folder of the job.

    Returns:
        Three entries:
        - `rows`: numbers of documents and bytes for each fate (`passed`, `malformed`, `dropped`), rule and reason
        - `unknown`: the number of documents whose metadata stayed unknown, by name of the metadata
        - `lookups`: how many addresses were looked up in the blocklists, and how many are listed
    """
    find_reasons = make_judge(settings["rules"])
    annotate = Annotator(**settings["annotation"])
    # [documents, bytes] by reasons; None stands for malformed lines
    counts_by_reasons: dict[tuple | None, list[int]] = defaultdict(lambda: [0, 0])
    number = 0
    with (
        make_temporary_sibling(folder / PASSED) as path,
        reading.open_zstd_writer(path, LEVEL) as passed,
        (folder / MALFORMED).open("w", encoding="utf-8", newline="") as file,
    ):
        malformed = csv.writer(file, lineterminator="\n")
        for block, starts, ends, documents in _read_blocks(Path(settings["shard"])):
            for start, end, metadata in zip(starts, ends, documents, strict=True):
                number += 1
                # copying the line costs time, so only a line without metadata is copied
                if isinstance(metadata, Annotations) and list_missing(metadata):
                    try:
                        metadata = annotate(block[start:end], metadata)
                    except ValueError as error:
                        # the text or the address of the record cannot be read
                        metadata = error
                if isinstance(metadata, ValueError):
                    malformed.writerow([settings["shard"], number, metadata])
                    reasons = None
                elif metadata is None:
                    reasons = EMPTY
                else:
                    reasons = find_reasons(metadata)
                    if not reasons:
                        passed.write(memoryview(block)[start:end])
                        passed.write(b"\n")
                counts = counts_by_reasons[reasons]
                counts[0] += 1
                counts[1] += end - start
    return {"rows": _sum_fates(counts_by_reasons), "unknown": annotate.unknown, "lookups": annotate.lookups}


def _read_blocks(shard: Path) -> Iterator[tuple[bytes, list[int], list[int], list[Annotations | ValueError | None]]]:
    """Yields blocks of lines: (bytes, starts of lines, ends without line feeds, metadata of each line).

    The metadata are None for a document with blank text, a ValueError for a malformed line.
    """
    for block in reading.read_line_blocks(shard):
        codes = np.frombuffer(block, dtype=np.uint8)
        feeds = np.flatnonzero(codes == ord("\n"))
        starts = np.insert(feeds + 1, 0, 0)
        ends = np.append(feeds, len(block))
        documents = records.read_metadata(block, starts, ends)
        yield block, starts.tolist(), ends.tolist(), documents


def _sum_fates(fates: dict[tuple | None, list[int]]) -> list[list]:
    """Sums counts by reasons to sorted rows [fate, rule, reason, documents, bytes, all_documents, all_bytes].

    `documents` and `bytes` count documents whose first reason is the reason of the row; `all_documents` and `all_bytes`
    count all documents with that reason.

    Args:
        fates: [documents, bytes] by reasons, (rule, reason) pairs; () for documents that pass, None for malformed
            lines.
    """
    sums: dict[tuple, np.ndarray] = defaultdict(lambda: np.zeros(4, dtype=np.int64))
    for reasons, counts in fates.items():
        if reasons is None:
            keys = [("malformed", "", "")]
        elif not reasons:
            keys = [("passed", "", "")]
        else:
            keys = [("dropped", rule, reason) for rule, reason in reasons]
        first = keys[0]
        sums[first][:2] += counts
        for key in keys:
            sums[key][2:] += counts
    rows = []
    for key in sorted(sums):
        counts = sums[key].tolist()
        rows.append([*key, *counts])
    return rows


def copy_chosen(passed: Path, target: Path, chosen: Iterable[int]) -> int:
    """Copies lines of a shard; returns the number of copied bytes, without line feeds.

    Args:
        passed: the shard.
        target: the file to write.
        chosen: sorted numbers of the lines, from 0.
    """
    size = 0
    previous = -1
    lines = reading.read_lines(passed)
    with reading.open_zstd_writer(target, LEVEL) as file:
        for number in chosen:
            skipped = number - previous - 1
            line = next(islice(lines, skipped, None))
            file.write(line + b"\n")
            size += len(line)
            previous = number
    return size


def sample_numbers(total: int, count: int, seed: int) -> np.ndarray:
    """Draws `count` of the numbers from 0 to `total` - 1 without repetition, all sets equally likely, sorted.

    Memory grows with `count`, not `total`, unless more than half are drawn. 3 of 10 with seed 0: [5, 6, 8].
    """
    random = np.random.default_rng(seed)
    # of a large share the rest is drawn: the fewer numbers are drawn, the fewer are drawn twice
    draws_rest = count > total / 2
    needed = total - count if draws_rest else count
    drawn = np.array([], dtype=np.int64)
    while len(drawn) < needed:
        more = random.integers(total, size=needed - len(drawn))
        drawn = np.union1d(drawn, more)
    if draws_rest:
        return np.setdiff1d(np.arange(total), drawn, assume_unique=True)
    return drawn


def make_shard_rows(shard: str, tallies: list[list], selected: tuple[int, int] | None) -> list[tuple]:
    """Makes the rows of a shard in the ledger, which counts every document and byte by fate (kept, dropped, ...).

    Args:
        shard: the name of the shard.
        tallies: [fate, rule, reason, documents, bytes, all_documents, all_bytes] for each fate, rule and reason.
        selected: documents and bytes that are selected among the documents that passed; None if all are selected.

    Returns:
        Tuples (shard, fate, rule, reason, documents, bytes, all_documents, all_bytes), also of the fates `in`, `kept`
        and `not_selected`. The last two numbers count a document under every reason, the two before only under the
        first.
    """
    read = np.zeros(2, dtype=int)
    passed = np.zeros(2, dtype=int)
    others = []
    for tally in map(Tally._make, tallies):
        # counts each document under the first reason only
        counts = (tally.documents, tally.bytes)
        read += counts
        if tally.fate == "passed":
            passed += counts
        else:
            others.append((shard, *tally))
    kept = passed if selected is None else np.array(selected)
    fates = {
        "in": read,
        "kept": kept,
        "not_selected": passed - kept,
    }
    rows = []
    for fate, numbers in fates.items():
        counts = numbers.tolist()
        rows.append((shard, fate, "", "", *counts, *counts))
    return rows + others
