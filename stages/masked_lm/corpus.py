"""The packed corpus: the sequences of both splits, and the token ids that masking needs."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from stages.sequences.packing import Sequences, read_index


@dataclass(frozen=True)
class Corpus:
    """Packed sequences of both splits, and the token ids that masking needs.

    `special` are the ids [3] that are never masked: [CLS], [SEP] and [PAD].
    """

    train: Sequences
    validation: Sequences
    vocabulary_size: int
    mask_id: int
    special: Tensor

    @classmethod
    def open(cls, folder: Path) -> "Corpus":
        """Opens a folder such as data/tokens, as stage tokenization writes it. ValueError for a missing or cut file."""
        index = read_index(folder)
        ids = index["special"]
        return cls(
            train=Sequences(folder, "train"),
            validation=Sequences(folder, "validation"),
            vocabulary_size=index["vocabulary_size"],
            mask_id=ids["[MASK]"],
            special=torch.tensor([ids[name] for name in ("[CLS]", "[SEP]", "[PAD]")]),
        )
