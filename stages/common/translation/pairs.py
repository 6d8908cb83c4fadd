"""Sentence pairs as token ids: how they lie on the disk, how batches are drawn from them, and how these are padded."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from stages.plumbing.files import temporary_sibling

PAD, UNKNOWN, BEGIN, END = range(4)
SPECIAL = ("[PAD]", "[UNK]", "[BEGIN]", "[END]")  # their ids are the places in this list
SIDES = ("source", "target")
POOL = 32  # batches among which pairs are sorted by length before they are cut into batches


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs of one split; both sides begin with BEGIN and end with END.

    source, target: token ids, one array a sentence.
    """

    source: tuple[np.ndarray, ...]
    target: tuple[np.ndarray, ...]

    def __len__(self) -> int:
        return len(self.source)

    def save(self, path: Path) -> None:
        """Writes both sides as flat arrays of ids, with the ends of the sentences."""
        tensors = {}
        for side in SIDES:
            sentences = getattr(self, side)
            tensors[f"{side}_ids"] = np.concatenate(sentences).astype(np.uint16)
            tensors[f"{side}_ends"] = np.cumsum([len(sentence) for sentence in sentences])
        with temporary_sibling(path) as temporary:
            save_file(tensors, temporary)

    @classmethod
    def load(cls, path: Path) -> "Pairs":
        """Reads what `save` wrote."""
        tensors = load_file(path)
        return cls(*(tuple(np.split(tensors[f"{side}_ids"], tensors[f"{side}_ends"][:-1])) for side in SIDES))


@lru_cache(maxsize=8)  # the jobs of one worker share them
def load(path: Path) -> Pairs:
    """The pairs of a file, read once by a process."""
    return Pairs.load(path)


def batches(pairs: Pairs, size: int, seed: int) -> Iterator[np.ndarray]:
    """Cuts one epoch into batches, in a random order of batches.

    Args:
        pairs: what is cut; every pair stands in one batch, beside others of like length.
        size: pairs a batch, at most.
        seed: of the order.

    Yields:
        Indices of the pairs of a batch.
    """
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(pairs))
    lengths = np.array([max(map(len, pair)) for pair in zip(pairs.source, pairs.target, strict=True)])
    cut = []
    for start in range(0, len(order), POOL * size):
        pool = order[start : start + POOL * size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        cut += [pool[i : i + size] for i in range(0, len(pool), size)]
    return (cut[i] for i in generator.permutation(len(cut)))


def padded(sentences: list[np.ndarray]) -> np.ndarray:
    """The sentences as rows [batch, longest], filled up with PAD."""
    rows = np.full((len(sentences), max(map(len, sentences))), PAD, dtype=np.int64)
    for row, sentence in zip(rows, sentences, strict=True):
        row[: len(sentence)] = sentence
    return rows
