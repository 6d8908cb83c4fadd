"""Holds sentence pairs as token ids, and saves and loads the pairs."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

from stages.files.storage import make_temporary_sibling, read_once

# The id of a special token is the index in SPECIAL. PAD must be 0, because `pad_sequences` fills with 0.
SPECIAL = ("[PAD]", "[UNK]", "[BEGIN]", "[END]")
PAD, UNKNOWN, BEGIN, END = range(4)
SIDES = ("source", "target")


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs of a split: per sentence an array of token ids, begin and end token included."""

    source: tuple[np.ndarray, ...]
    target: tuple[np.ndarray, ...]

    def __len__(self) -> int:
        return len(self.source)

    @property
    def lengths(self) -> list[int]:
        """The number of tokens of the longer sentence of every pair."""
        return [max(map(len, pair)) for pair in zip(self.source, self.target, strict=True)]

    def save(self, path: Path) -> None:
        """Writes a safetensors file; ValueError without any pair.

        For each side, `SIDE_ids` (uint16) joins all ids, and `SIDE_ends` has the end of every sentence: [2, 3] and [4]
        give the ids [2, 3, 4] and the ends [2, 3].
        """
        tensors = {}
        for side in SIDES:
            sentences = getattr(self, side)
            # params.yaml limits vocabularies so that ids fit into 16 bits.
            tensors[f"{side}_ids"] = np.concatenate(sentences).astype(np.uint16)
            tensors[f"{side}_ends"] = np.cumsum([len(sentence) for sentence in sentences])
        with make_temporary_sibling(path) as temporary:
            save_file(tensors, temporary)


# Eight cached files hold all splits of two protocols.
@read_once(8)
def load_pairs(path: Path) -> Pairs:
    """Reads a file of `Pairs.save`; the result is cached and must not be changed."""
    tensors = load_file(path)
    # `np.split` cuts at all ends but the last.
    sides = [tuple(np.split(tensors[f"{side}_ids"], tensors[f"{side}_ends"][:-1])) for side in SIDES]
    return Pairs(*sides)


def read_vocabulary_sizes(data: Path) -> tuple[int, ...]:
    """Returns the sizes of the source and the target vocabulary from the tokenizers of a folder."""
    return tuple(Tokenizer.from_file(str(data / f"{side}.json")).get_vocab_size() for side in SIDES)
