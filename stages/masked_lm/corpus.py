"""The packed corpus, and its batches, whose order is a function of the seed and the step alone."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from stages.masked_lm.masking import mask_tokens
from stages.sequences.packing import Sequences, read_index
from stages.training.optimisation import ORDER, derived_seed


@dataclass(frozen=True)
class Corpus:
    """Packed sequences of both splits, and the ids that masking has to know.

    vocabulary_size: word pieces. mask_id: of [MASK]. special: ids [3] that are never masked: [CLS], [SEP] and [PAD].
    """

    train: Sequences
    validation: Sequences
    vocabulary_size: int
    mask_id: int
    special: Tensor

    @classmethod
    def of(cls, folder: Path) -> "Corpus":
        """Opens a folder such as data/tokens, as stage tokenization writes it."""
        index = read_index(folder)
        ids = index["special"]
        return cls(
            train=Sequences(folder, "train"),
            validation=Sequences(folder, "validation"),
            vocabulary_size=index["vocabulary_size"],
            mask_id=ids["[MASK]"],
            special=torch.tensor([ids[name] for name in ("[CLS]", "[SEP]", "[PAD]")]),
        )

    def masked(self, sequences: Tensor, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Calls `mask_tokens` on sequences [batch, n] with the ids of this corpus, and returns its result."""
        return mask_tokens(sequences, share, self.vocabulary_size, self.special, self.mask_id, generator)


def batch_indices(seed: int, step: int, batch_size: int, sequences: int) -> np.ndarray:
    """Returns the indices [batch_size] of the training sequences of one update.

    Every epoch is a new permutation of all sequences, and a batch may reach across the end of an epoch.

    Args:
        seed, step: the run's seed, and the number of the update, from 0.
        batch_size, sequences: numbers of sequences in a batch, and in the whole training split.
    """
    positions = step * batch_size + np.arange(batch_size)
    epochs = positions // sequences
    return np.array([_order(seed, int(e), sequences)[p % sequences] for e, p in zip(epochs, positions, strict=True)])


@lru_cache(maxsize=2)  # the epochs that one batch may need, unless it has more sequences than an epoch
def _order(seed: int, epoch: int, sequences: int) -> np.ndarray:
    return np.random.default_rng(derived_seed(seed, ORDER, epoch)).permutation(sequences)
