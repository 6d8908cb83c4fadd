"""Sentence pairs as token ids, and their form on the disk."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

from stages.files.storage import read_once, temporary_sibling

PAD, UNKNOWN, BEGIN, END = range(4)  # PAD is 0, with which `padded` fills
SPECIAL = ("[PAD]", "[UNK]", "[BEGIN]", "[END]")  # their ids are the places in this list
SIDES = ("source", "target")


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs of one split. source, target: an array of token ids per sentence, BEGIN and END included."""

    source: tuple[np.ndarray, ...]
    target: tuple[np.ndarray, ...]

    def __len__(self) -> int:
        return len(self.source)

    @property
    def lengths(self) -> list[int]:
        """The lengths of the pairs: for each, the tokens of its longer sentence."""
        return [max(map(len, pair)) for pair in zip(self.source, self.target, strict=True)]

    def save(self, path: Path) -> None:
        """Writes, for either side, all ids in one array, and where sentences end in it. ValueError without any pair."""
        tensors = {}
        for side in SIDES:
            sentences = getattr(self, side)
            tensors[f"{side}_ids"] = np.concatenate(sentences).astype(np.uint16)  # params.yaml allows no larger ids
            tensors[f"{side}_ends"] = np.cumsum([len(sentence) for sentence in sentences])  # places after the last ids
        with temporary_sibling(path) as temporary:
            save_file(tensors, temporary)


@read_once(8)  # the eight files that were read last: of two protocols, all splits fit
def load(path: Path) -> Pairs:
    """Reads what `Pairs.save` wrote, ids as uint16; callers share the result."""
    tensors = load_file(path)
    return Pairs(*(tuple(np.split(tensors[f"{side}_ids"], tensors[f"{side}_ends"][:-1])) for side in SIDES))


def vocabulary_sizes(data: Path) -> tuple[int, ...]:
    """Returns the sizes of the source and the target vocabulary. data: the folder of a protocol's sentence pairs."""
    return tuple(Tokenizer.from_file(str(data / f"{side}.json")).get_vocab_size() for side in SIDES)
