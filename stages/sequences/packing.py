"""Packs token streams into sequences of equal length, and reads them back.

On disk: FOLDER/SPLIT/part_N.bin, uint16 little endian, [sequences, sequence_length], and FOLDER/index.json with
sequence_length, vocabulary_size, special (ids of special tokens by name) and splits (by name, `pack`'s entry and
counts of documents and tokens). Sequences run on across documents and streams; a split's incomplete end is dropped.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from stages.files.storage import sha256, temporary_sibling

INDEX = "index.json"
ITEM = np.dtype("<u2")  # of a token id, which is below 65,536
REMEDY = "delete data/tokens and run `dvc repro tokenization`"


def pack(streams: Iterable[Path], folder: Path, sequence_length: int, shard_bytes: int = 1 << 28) -> dict:
    """Cuts the concatenation of token files into shards `folder`/part_N.bin.

    Args:
        streams: files of token ids, each an ITEM, as stage tokenization makes them, in the order of joining.
        folder, sequence_length: the folder of the split, whose name is the split's; tokens per sequence.
        shard_bytes: bytes of a shard, at most, by default 256 MiB; but a shard has at least one sequence.

    Returns:
        The entry of the split in the index: `shards`, a list of `name` (SPLIT/part_N.bin), `sequences` and `sha256`;
        `sequences`, the number of all; `dropped_tokens`, those of the incomplete sequence at the end.
    """
    streams = list(streams)
    ends = np.cumsum([stream.stat().st_size // ITEM.itemsize for stream in streams], dtype=np.int64).tolist()
    tokens = ends[-1] if ends else 0
    sequences = tokens // sequence_length
    capacity = max(shard_bytes // (sequence_length * ITEM.itemsize), 1)  # sequences of a shard
    shards = []
    folder.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, sequences, capacity), 1):
        path, count = folder / f"part_{number}.bin", min(capacity, sequences - first)
        with temporary_sibling(path) as temporary, temporary.open("wb") as file:
            start, stop = first * sequence_length, (first + count) * sequence_length
            for stream, begin, end in zip(streams, [0, *ends], ends, strict=False):  # [0, *ends] has one more
                if max(start, begin) < min(stop, end):  # of an empty file there is no map
                    part = np.memmap(stream, ITEM, "r")[max(start - begin, 0) : stop - begin]
                    file.write(part.data)  # `part.tofile` does not say of a full disk that it is full
        shards.append({"name": f"{folder.name}/{path.name}", "sequences": count, "sha256": sha256(path)})
    return {"shards": shards, "sequences": sequences, "dropped_tokens": tokens % sequence_length}


class Sequences:
    """A split of packed sequences, memory-mapped: `sequences[[3, 1, 2]]` is int64 [3, sequence_length].

    folder: that of the index. ValueError when the index has no such split, or a shard is not of the size in the index.
    """

    def __init__(self, folder: Path, split: str):
        index = read_index(folder)
        if split not in index["splits"]:
            raise ValueError(f"{folder / INDEX}: no split {split}, only {', '.join(index['splits'])}; {REMEDY}")
        self.sequence_length: int = index["sequence_length"]
        self._shards, self._parts = index["splits"][split]["shards"], []
        for shard in self._shards:
            path, shape = folder / shard["name"], (shard["sequences"], self.sequence_length)
            expected = shape[0] * shape[1] * ITEM.itemsize
            size = path.stat().st_size if path.exists() else None
            if size != expected:
                state = "missing" if size is None else f"{size} bytes"
                raise ValueError(f"{path}: {state}, {INDEX} says {expected} bytes; {REMEDY}")
            self._parts.append(np.memmap(path, dtype=ITEM, mode="r", shape=shape))
        self._ends = np.cumsum([shard["sequences"] for shard in self._shards], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, indices) -> np.ndarray:
        """The sequences at n indices from 0: int64 [n, sequence_length]. IndexError for one outside."""
        indices = np.asarray(indices, dtype=np.int64)
        if indices.size and (indices.min() < 0 or indices.max() >= len(self)):
            raise IndexError(f"indices from {indices.min()} to {indices.max()} among {len(self)} sequences")
        numbers = np.searchsorted(self._ends, indices, side="right")  # of the shards: the first that ends after it
        result = np.empty((len(indices), self.sequence_length), dtype=np.int64)
        for number in np.unique(numbers):
            of_shard = numbers == number
            first = self._ends[number] - self._shards[number]["sequences"]  # index of the shard's first sequence
            result[of_shard] = self._parts[number][indices[of_shard] - first]
        return result


def read_index(folder: Path) -> dict:
    """Reads the index, as described above, of a folder of packed sequences. ValueError when there is none."""
    path = folder / INDEX
    if not path.exists():
        raise ValueError(f"{path}: no such file; run `dvc repro tokenization` to make it")
    return json.loads(path.read_text())
