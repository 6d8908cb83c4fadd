"""Packs token streams into sequences of equal length, and reads them back.

On disk: FOLDER/SPLIT/part_N.bin, uint16 little endian, [sequences, sequence_length], and FOLDER/index.json with
sequence_length, vocabulary_size, special (ids of special tokens by name) and splits (by name, `pack`'s entry and counts
of documents and tokens). Sequences run on across documents and streams; a split's incomplete end is dropped.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from stages.files.storage import compute_sha256, make_temporary_sibling

INDEX = "index.json"
# type of a token id, which is below 65,536
ITEM = np.dtype("<u2")
REMEDY = "delete data/tokens and run `dvc repro tokenization`"


def pack(
    streams: Iterable[Path],
    folder: Path,
    sequence_length: int,
    shard_bytes: int = 1 << 28,
) -> dict:
    """Cuts the concatenation of token files (uint16) into shards `folder`/part_N.bin of sequences of equal length.

    A shard has at most `shard_bytes`, but at least one sequence. Returns the entry of the split in the index: `shards`
    (name such as `train/part_1.bin`, number of sequences and SHA-256 of each), `sequences` (the total) and
    `dropped_tokens` (of the incomplete sequence at the end).
    """
    # number of tokens in each stream
    lengths = {}
    for stream in streams:
        lengths[stream] = stream.stat().st_size // ITEM.itemsize
    tokens = sum(lengths.values())
    sequences, dropped = divmod(tokens, sequence_length)
    sequence_bytes = sequence_length * ITEM.itemsize
    # number of sequences in a full shard
    capacity = max(shard_bytes // sequence_bytes, 1)
    shards = []
    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, sequences, capacity):
        path = folder / f"part_{len(shards) + 1}.bin"
        count = min(capacity, sequences - first)
        start = first * sequence_length
        stop = start + count * sequence_length
        # a killed process leaves no half-written shard under the final name
        with (
            make_temporary_sibling(path) as temporary,
            temporary.open("wb") as file,
        ):
            copy_tokens(lengths, file, start, stop)
        shard = {
            "name": f"{folder.name}/{path.name}",
            "sequences": count,
            "sha256": compute_sha256(path),
        }
        shards.append(shard)
    return {
        "shards": shards,
        "sequences": sequences,
        "dropped_tokens": dropped,
    }


def copy_tokens(lengths: dict[Path, int], file: BinaryIO, start: int, stop: int) -> None:
    """Writes the tokens [start, stop) of concatenated streams; `lengths` are the numbers of tokens of the streams."""
    # number of tokens in the streams before
    tokens_before = 0
    for stream, length in lengths.items():
        first = max(start - tokens_before, 0)
        last = min(stop - tokens_before, length)
        # an empty file cannot be mapped; one file at a time is open, as a corpus may have thousands
        if first < last:
            part = np.memmap(stream, ITEM, "r")[first:last]
            # `part.tofile` would not report a full disk
            file.write(part.data)
        tokens_before += length


class Sequences:
    """A split of packed sequences, memory-mapped: `sequences[[3, 1, 2]]` is int64 [3, sequence_length].

    ValueError if the index lacks the split, or the size of a shard differs from the index.
    """

    def __init__(self, folder: Path, split: str):
        index = read_index(folder)
        splits = index["splits"]
        if split not in splits:
            raise ValueError(f"{folder / INDEX}: no split {split}, only {', '.join(splits)}; {REMEDY}")
        self.sequence_length: int = index["sequence_length"]
        # the sequences of each shard
        self._parts: list[np.ndarray] = []
        for shard in splits[split]["shards"]:
            path = folder / shard["name"]
            self._parts.append(self._map_shard(path, shard["sequences"]))
        # numbers of the first sequence of each shard, and of the first sequence after all shards
        counts = [len(part) for part in self._parts]
        self._starts = np.cumsum([0, *counts])

    def _map_shard(self, path: Path, count: int) -> np.ndarray:
        if not path.exists():
            raise ValueError(f"{path}: missing, {INDEX} names it; {REMEDY}")
        shape = (count, self.sequence_length)
        size = path.stat().st_size
        expected = count * self.sequence_length * ITEM.itemsize
        if size != expected:
            raise ValueError(f"{path}: {size} bytes, {INDEX} says {expected} bytes; {REMEDY}")
        return np.memmap(path, dtype=ITEM, mode="r", shape=shape)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, indices) -> np.ndarray:
        """Returns the sequences at n indices from 0 as int64 [n, sequence_length]; IndexError for an index outside."""
        indices = np.asarray(indices, dtype=np.int64)
        outside = (indices < 0) | (indices >= len(self))
        if outside.any():
            raise IndexError(f"indices {indices[outside].tolist()} among {len(self)} sequences")
        # the shard of a sequence is the last shard that starts at the sequence or before
        shards = np.searchsorted(self._starts, indices, side="right") - 1
        result = np.empty((len(indices), self.sequence_length), dtype=np.int64)
        for shard in np.unique(shards):
            in_shard = shards == shard
            places = indices[in_shard] - self._starts[shard]
            result[in_shard] = self._parts[shard][places]
        return result


def read_index(folder: Path) -> dict:
    """Reads the index of a folder of packed sequences. ValueError for a missing index."""
    path = folder / INDEX
    if not path.exists():
        raise ValueError(f"{path}: no such file; run `dvc repro tokenization` to make it")
    return json.loads(path.read_text())
