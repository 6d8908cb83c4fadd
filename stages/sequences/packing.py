"""Packs token streams into sequences of equal length, and reads them back.

On disk: FOLDER/SPLIT/part_N.bin, uint16 little endian, [sequences, sequence_length], and FOLDER/index.json
with, for each split, the shards' sizes and checksums. Sequences run over the borders of documents and shards;
only the last partial sequence of a split is dropped (and what streams.py cut off before, where that is asked for).
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from stages.plumbing.files import sha256, temporary_sibling

INDEX = "index.json"
ITEM = np.dtype("<u2")
SHARD_BYTES = 1 << 28
BLOCK_BYTES = 1 << 22
REMEDY = "delete data/tokens and run `dvc repro tokenization`"


def pack(streams: Iterable[Path], folder: Path, sequence_length: int, shard_bytes: int = SHARD_BYTES) -> dict:
    """Cuts the concatenation of token files into shards `folder`/part_N.bin of about `shard_bytes` at most.

    Gives the split's entry of the index: shards, sequences, dropped_tokens.
    """
    streams = list(streams)
    row = sequence_length * ITEM.itemsize
    size = sum(stream.stat().st_size for stream in streams)
    left = size // row * row
    blocks, shards = _Blocks(streams), []
    folder.mkdir(parents=True, exist_ok=True)
    while left:
        path = folder / f"part_{len(shards) + 1}.bin"
        length = min(left, max(shard_bytes // row, 1) * row)
        with temporary_sibling(path) as temporary, temporary.open("wb") as file:
            file.writelines(blocks.take(length))
        left -= length
        shards.append({"name": f"{folder.name}/{path.name}", "sequences": length // row, "sha256": sha256(path)})
    return {"shards": shards, "sequences": size // row, "dropped_tokens": size % row // ITEM.itemsize}


class _Blocks:
    """The bytes of several files as one."""

    def __init__(self, paths: list[Path]):
        self._blocks = _blocks_of(paths)
        self._rest = b""

    def take(self, length: int) -> Iterator[bytes]:
        """Blocks that hold the next `length` bytes; there are as many."""
        while length:
            block = self._rest or next(self._blocks)
            block, self._rest = block[:length], block[length:]
            length -= len(block)
            yield block


def _blocks_of(paths: list[Path]) -> Iterator[bytes]:
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                yield block


class Sequences:
    """A split of packed sequences, memory-mapped: `sequences[[3, 1, 2]]` is int64 [3, sequence_length].

    ValueError when the index does not know the split, or a shard's size is not what the index says.
    """

    def __init__(self, folder: Path, split: str):
        index = read_index(folder)
        if split not in index["splits"]:
            raise ValueError(f"{folder / INDEX}: no split {split}, only {', '.join(index['splits'])}; {REMEDY}")
        self.sequence_length: int = index["sequence_length"]
        self._folder, self._shards = folder, index["splits"][split]["shards"]
        self._parts = [self._open(shard) for shard in self._shards]
        self._ends = np.cumsum([shard["sequences"] for shard in self._shards], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, indices) -> np.ndarray:
        """Sequences at n indices from 0: int64 [n, sequence_length]. IndexError outside."""
        indices = np.asarray(indices, dtype=np.int64)
        if indices.size and (indices.min() < 0 or indices.max() >= len(self)):
            raise IndexError(f"indices from {indices.min()} to {indices.max()} among {len(self)} sequences")
        numbers = np.searchsorted(self._ends, indices, side="right")
        result = np.empty((len(indices), self.sequence_length), dtype=np.int64)
        for number in np.unique(numbers):
            here = numbers == number
            start = self._ends[number] - self._shards[number]["sequences"]
            result[here] = self._parts[number][indices[here] - start]
        return result

    def _open(self, shard: dict) -> np.ndarray:
        path = self._folder / shard["name"]
        shape = (shard["sequences"], self.sequence_length)
        expected = shape[0] * shape[1] * ITEM.itemsize
        found = path.stat().st_size if path.exists() else None
        if found != expected:
            state = "missing" if found is None else f"{found} bytes"
            raise ValueError(f"{path}: {state}, {INDEX} says {expected} bytes; {REMEDY}")
        return np.memmap(path, dtype=ITEM, mode="r", shape=shape)


def read_index(folder: Path) -> dict:
    """ValueError when there is none."""
    path = folder / INDEX
    if not path.exists():
        raise ValueError(f"{path}: no such file; run `dvc repro tokenization` to make it")
    return json.loads(path.read_text())
