"""The packed corpus as batches, whose order and masks follow from a seed and a step alone."""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from stages.masked_lm.masking import mask_tokens
from stages.sequences.packing import Sequences
from stages.training.optimisation import ORDER, derived_seed


@dataclass(frozen=True)
class Corpus:
    """Packed sequences and what their ids mean."""

    train: Sequences
    validation: Sequences
    vocabulary_size: int
    mask_id: int
    special: Tensor

    @classmethod
    def of(cls, folder: Path) -> "Corpus":
        """data/tokens, as stage tokenization leaves it."""
        index = json.loads((folder / "index.json").read_text())
        ids = index["special"]
        return cls(
            train=Sequences(folder, "train"),
            validation=Sequences(folder, "validation"),
            vocabulary_size=index["vocabulary_size"],
            mask_id=ids["[MASK]"],
            special=torch.tensor([ids[name] for name in ("[CLS]", "[SEP]", "[PAD]")]),
        )

    def masked(self, sequences: Tensor, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Inputs, and which tokens of the sequences [batch, n] were chosen."""
        return mask_tokens(sequences, share, self.vocabulary_size, self.special, self.mask_id, generator)


def batch_indices(seed: int, step: int, batch_size: int, sequences: int) -> np.ndarray:
    """Indices [batch_size] of step `step` (from 0): every epoch is a new permutation; batches run across its end."""
    positions = step * batch_size + np.arange(batch_size)
    epochs = positions // sequences
    return np.array([_order(seed, int(e), sequences)[p % sequences] for e, p in zip(epochs, positions, strict=True)])


@lru_cache(maxsize=2)
def _order(seed: int, epoch: int, sequences: int) -> np.ndarray:
    return np.random.default_rng(derived_seed(seed, ORDER, epoch)).permutation(sequences)
