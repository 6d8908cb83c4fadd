"""The packed corpus, and the batches of a run, whose order follows from the seed and the step."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from stages.sequences.packing import Sequences, read_index
from stages.training.optimisation import ORDER, derive_seed


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


def draw_batch_indices(seed: int, step: int, batch_size: int, sequences: int) -> np.ndarray:
    """Returns the indices [batch_size] of the training sequences of an update, of `sequences` in all.

    Every epoch is a new permutation of all sequences, and a batch may reach across the end of an epoch.
    """
    first = step * batch_size
    indices = []
    for position in range(first, first + batch_size):
        epoch, place = divmod(position, sequences)
        indices.append(_shuffle_indices(seed, epoch, sequences)[place])
    return np.array(indices)


# A batch needs two epochs at most, unless it has more sequences than an epoch.
@lru_cache(maxsize=2)
def _shuffle_indices(seed: int, epoch: int, sequences: int) -> np.ndarray:
    generator = np.random.default_rng(derive_seed(seed, ORDER, epoch))
    return generator.permutation(sequences)
