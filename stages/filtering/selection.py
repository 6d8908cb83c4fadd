"""Chooses the documents that are kept among the documents that passed the rules, and makes the rows of the ledger.

`kept` are the numbers of a shard's kept documents, from 0 among the documents of the shard that passed.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from stages.files.storage import link_file
from stages.filtering.shards import LEVEL, PASSED
from stages.records import reading
from stages.runner import jobs
from stages.schema.sections import Filtering


def place_kept(shards: list[Path], results: jobs.Results, folder: Path, settings: Filtering) -> Iterator[tuple]:
    """Puts the kept documents into `folder`; yields the rows of the ledger."""
    counts = [result["passed"][0] for _, result in results]
    choices = choose_documents(counts, settings)
    for shard, (job_folder, result), passing, kept in zip(shards, results, counts, choices, strict=True):
        target = folder / shard.name
        size = 0
        if len(kept) == passing:
            # nothing is left out, so the file of the job gets a second name, without a copy
            link_file(job_folder / PASSED, target)
            _, size = result["passed"]
        elif len(kept):
            size = copy_kept(job_folder / PASSED, target, kept)
        # otherwise nothing was chosen, and there is no file
        yield from make_shard_rows(shard.name, result, (len(kept), size))


def choose_documents(counts: list[int], settings: Filtering) -> list[Sequence[int]]:
    """Chooses `filtering.documents` of the documents that passed: the first, or a random sample.

    `counts` are the numbers of documents that passed, by shard. Returns `kept` of each shard, sorted: the first 4 of
    shards with 3 and 5 documents are [0, 1, 2] and [0].
    """
    total = sum(counts)
    limit = total if settings.documents is None else min(settings.documents, total)
    if settings.selection == "sample" and limit < total:
        return list(reading.split_by_shard(sample_numbers(total, limit, settings.seed), counts))
    choices = []
    left = limit
    for passing in counts:
        taken = min(passing, left)
        choices.append(range(taken))
        left -= taken
    return choices


def sample_numbers(total: int, count: int, seed: int) -> np.ndarray:
    """Draws `count` of the numbers from 0 to `total` - 1 without repetition, all sets equally likely, sorted.

    Memory grows with `count`, not `total`, unless more than half are drawn. 3 of 10 with seed 0: [5, 6, 8].
    """
    random = np.random.default_rng(seed)
    # to choose 9 of 10, the number that is left out is drawn: few draws seldom repeat a number
    needed = min(count, total - count)
    drawn = np.array([], dtype=np.int64)
    while len(drawn) < needed:
        more = random.integers(total, size=needed - len(drawn))
        # sorted, each number once
        drawn = np.union1d(drawn, more)
    if needed < count:
        return np.setdiff1d(np.arange(total), drawn, assume_unique=True)
    return drawn


def copy_kept(passed: Path, target: Path, kept: Iterable[int]) -> int:
    """Copies the lines with the numbers `kept`, from 0, of a shard; returns the copied bytes, without line feeds."""
    size = 0
    numbers = set(kept)
    with reading.open_zstd_writer(target, LEVEL) as file:
        for number, line in enumerate(reading.read_lines(passed)):
            if number in numbers:
                file.write(line + b"\n")
                size += len(line)
    return size


def make_shard_rows(shard: str, result: dict, kept_counts: tuple[int, int]) -> Iterator[tuple]:
    """Makes the rows of a shard in the ledger, from the result of `filter_shard`.

    `kept_counts` are the numbers of kept documents and bytes.
    """
    passed = result["passed"]
    # each row: fate, rule, reason, documents, bytes, all_documents, all_bytes
    rows = result["rows"]
    # `documents` and `bytes` count a dropped document once, under the first reason
    total = np.sum([passed, *(row[3:5] for row in rows)], axis=0)
    fates = {"in": total, "kept": kept_counts, "not_selected": np.subtract(passed, kept_counts)}
    for fate, counts in fates.items():
        yield shard, fate, "", "", *counts, *counts
    for row in rows:
        yield shard, *row
