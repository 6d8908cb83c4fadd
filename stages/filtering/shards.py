"""Filters shards of OSCAR records by the rules, and counts every document and byte for the ledger.

Bytes are counted in decompressed lines, without line feeds. A document passes if no rule drops the document;
selection.py then chooses the documents that are kept.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from stages.files.storage import make_temporary_sibling
from stages.filtering.annotation import Annotator, list_missing
from stages.filtering.rules import make_reason_finder
from stages.records import reading
from stages.records.records import Metadata, MetadataOrError, read_metadata_of_block

# level of compression: a sixth more bytes than at 3, in half the time
LEVEL = 1
PASSED = "passed.jsonl.zst"
MALFORMED = "malformed.csv"
# the only reason of a document without text
EMPTY = (("text", "empty"),)


def filter_shard(argument: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): filters a shard, a file of documents, by the rules.

    Leaves passed.jsonl.zst, the lines that pass byte for byte, and malformed.csv: file, line (from 1) and reason of
    each malformed line, without a header. `argument` has `shard` (path), `rules` (see select_rules), and `annotation`
    (arguments of Annotator).

    Returns:
        Four entries:
        - `passed`: numbers of documents and bytes that pass
        - `rows`: the numbers of the ledger for each fate (`malformed`, `dropped`), rule and reason
        - `unknown`, `lookups`: attributes of Annotator
    """
    find_reasons = make_reason_finder(argument["rules"])
    annotate = Annotator(**argument["annotation"])
    # [documents, bytes] by reasons: () stands for documents that pass, None for malformed lines
    counts_by_reasons = defaultdict(lambda: [0, 0])
    with (
        make_temporary_sibling(folder / PASSED) as path,
        reading.open_zstd_writer(path, LEVEL) as passed,
        (folder / MALFORMED).open("w", encoding="utf-8", newline="") as file,
    ):
        malformed = csv.writer(file, lineterminator="\n")
        for number, (line, metadata_or_error) in enumerate(_read_documents(Path(argument["shard"])), 1):
            if isinstance(metadata_or_error, Metadata) and list_missing(metadata_or_error):
                try:
                    metadata_or_error = annotate(bytes(line), metadata_or_error)
                except ValueError as error:
                    # the text or the address of the record cannot be read
                    metadata_or_error = error
            if isinstance(metadata_or_error, ValueError):
                malformed.writerow([argument["shard"], number, metadata_or_error])
                reasons = None
            # the text is blank
            elif metadata_or_error is None:
                reasons = EMPTY
            else:
                reasons = find_reasons(metadata_or_error)
                if not reasons:
                    passed.write(line)
                    passed.write(b"\n")
            counts = counts_by_reasons[reasons]
            counts[0] += 1
            counts[1] += len(line)
    passed_counts = counts_by_reasons.pop((), [0, 0])
    return {
        "passed": passed_counts,
        "rows": _make_ledger_rows(counts_by_reasons),
        "unknown": annotate.unknown,
        "lookups": annotate.lookups,
    }


def _read_documents(shard: Path) -> Iterator[tuple[memoryview, MetadataOrError]]:
    """Yields each line, without line feed, with the metadata; None for blank text, an error for an unsound line."""
    for block in reading.read_line_blocks(shard):
        codes = np.frombuffer(block, dtype=np.uint8)
        feeds = np.flatnonzero(codes == ord("\n"))
        starts = np.insert(feeds + 1, 0, 0)
        ends = np.append(feeds, len(block))
        found = read_metadata_of_block(block, starts, ends)
        # slices of a memoryview copy nothing, which saves time
        view = memoryview(block)
        for start, end, metadata_or_error in zip(starts.tolist(), ends.tolist(), found, strict=True):
            yield view[start:end], metadata_or_error


def _make_ledger_rows(counts_by_reasons: dict[tuple | None, list[int]]) -> list[list]:
    """Makes rows of the ledger from [documents, bytes] by the reasons to drop documents; None for malformed lines.

    {(("text", "empty"),): [2, 30]} gives [["dropped", "text", "empty", 2, 30, 2, 30]].
    """
    # four numbers by row: documents and bytes under the first reason, documents and bytes under every reason
    sums = defaultdict(lambda: np.zeros(4, dtype=np.int64))
    for reasons, counts in counts_by_reasons.items():
        # fate, rule and reason
        keys = [("malformed", "", "")]
        if reasons is not None:
            keys = [("dropped", *reason) for reason in reasons]
        sums[keys[0]][:2] += counts
        for key in keys:
            sums[key][2:] += counts
    return [[*key, *sums[key].tolist()] for key in sorted(sums)]
