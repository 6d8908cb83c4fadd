"""Filters shards of OSCAR records by the rules, and counts every document and byte for the ledger.

Bytes are counted in decompressed lines, without line feeds. A document passes if no rule drops the document; stage.py
then selects the documents that the ledger counts as kept.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

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


def filter_shard(settings: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): filters a shard, a file of documents, by the rules.

    Leaves passed.jsonl.zst, the lines that pass byte for byte, and malformed.csv: file, line (from 1) and reason of
    each malformed line, without a header. Settings are `shard` (path), `rules` (see select_rules), and `annotation`
    (arguments of Annotator).

    Returns:
        Four entries:
        - `passed`: numbers of documents and bytes that pass
        - `rows`: the numbers of the ledger for each fate (`malformed`, `dropped`), rule and reason
        - `unknown`, `lookups`: attributes of Annotator
    """
    find_reasons = make_judge(settings["rules"])
    annotate = Annotator(**settings["annotation"])
    # [documents, bytes] by reasons; None stands for malformed lines
    counts_by_reasons = defaultdict(lambda: [0, 0])
    with (
        make_temporary_sibling(folder / PASSED) as path,
        reading.open_zstd_writer(path, LEVEL) as passed,
        (folder / MALFORMED).open("w", encoding="utf-8", newline="") as file,
    ):
        malformed = csv.writer(file, lineterminator="\n")
        for number, (line, metadata) in enumerate(_read_documents(Path(settings["shard"])), 1):
            if isinstance(metadata, Annotations) and list_missing(metadata):
                try:
                    metadata = annotate(bytes(line), metadata)
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
                    passed.write(line)
                    passed.write(b"\n")
            counts = counts_by_reasons[reasons]
            counts[0] += 1
            counts[1] += len(line)
    passed_counts = counts_by_reasons.pop((), [0, 0])
    return {
        "passed": passed_counts,
        "rows": _sum_fates(counts_by_reasons),
        "unknown": annotate.unknown,
        "lookups": annotate.lookups,
    }


def _read_documents(shard: Path) -> Iterator[tuple[memoryview, records.Metadata]]:
    """Yields the line of each document, without line feed, and the metadata."""
    for block in reading.read_line_blocks(shard):
        codes = np.frombuffer(block, dtype=np.uint8)
        feeds = np.flatnonzero(codes == ord("\n"))
        starts = np.insert(feeds + 1, 0, 0)
        ends = np.append(feeds, len(block))
        documents = records.read_metadata(block, starts, ends)
        # copying each line would cost time
        lines = memoryview(block)
        for start, end, metadata in zip(starts.tolist(), ends.tolist(), documents, strict=True):
            yield lines[start:end], metadata


def _sum_fates(fates: dict[tuple | None, list[int]]) -> list[list]:
    """Sums [documents, bytes] by reasons, None for malformed lines, to sorted rows of the ledger."""
    sums = defaultdict(lambda: np.zeros(4, dtype=np.int64))
    for reasons, counts in fates.items():
        keys = [("malformed", "", "")]
        if reasons is not None:
            keys = [("dropped", *reason) for reason in reasons]
        sums[keys[0]][:2] += counts
        for key in keys:
            sums[key][2:] += counts
    return [[*key, *sums[key].tolist()] for key in sorted(sums)]


def copy_chosen(passed: Path, target: Path, chosen: Iterable[int]) -> int:
    """Copies the lines of a shard with the chosen numbers, from 0; returns the copied bytes, without line feeds."""
    size = 0
    numbers = set(chosen)
    with reading.open_zstd_writer(target, LEVEL) as file:
        for number, line in enumerate(reading.read_lines(passed)):
            if number in numbers:
                file.write(line + b"\n")
                size += len(line)
    return size


def sample_numbers(total: int, count: int, seed: int) -> np.ndarray:
    """Draws `count` of the numbers from 0 to `total` - 1 without repetition, all sets equally likely, sorted.

    Memory grows with `count`, not `total`, unless more than half are drawn. 3 of 10 with seed 0: [5, 6, 8].
    """
    random = np.random.default_rng(seed)
    # of a large share the rest is drawn: the fewer numbers are drawn, the fewer are drawn twice
    needed = min(count, total - count)
    drawn = np.array([], dtype=np.int64)
    while len(drawn) < needed:
        more = random.integers(total, size=needed - len(drawn))
        drawn = np.union1d(drawn, more)
    if needed < count:
        return np.setdiff1d(np.arange(total), drawn, assume_unique=True)
    return drawn


def make_shard_rows(shard: str, result: dict, kept: tuple[int, int]) -> Iterator[tuple]:
    """Makes the rows of a shard in the ledger, from the result of `filter_shard`.

    `kept` has the selected documents and bytes among those that passed.
    """
    passed, rows = result["passed"], result["rows"]
    # documents and bytes under the first reason only, so that each document is counted once
    read = np.sum([passed, *(row[3:5] for row in rows)], axis=0)
    fates = {"in": read, "kept": kept, "not_selected": np.subtract(passed, kept)}
    for fate, counts in fates.items():
        yield shard, fate, "", "", *counts, *counts
    for row in rows:
        yield shard, *row
