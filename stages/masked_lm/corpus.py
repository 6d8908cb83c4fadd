"""The packed corpus, its batches, whose order is a function of the seed and the step alone, and their masks."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

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

    def masked(self, sequences: Tensor, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Chooses tokens to predict, and hides them.

        Of the tokens that are not special, a share (15 % in BERT) is chosen by independent coin flips; of the chosen
        tokens, 80 % become [MASK], 10 % a random token, special ones included, and 10 % stay (Devlin et al. 2018,
        section 3.1). All is drawn afresh for every batch, as Courtois et al.'s code does.

        Args:
            sequences: token ids [batch, n], int64, on the CPU.
            share: probability with which a token is chosen, in [0, 1].
            generator: gives all random numbers; it is advanced.

        Returns:
            The ids [batch, n] that the model is to see, and which tokens were chosen [batch, n], boolean.
        """
        uniform = torch.rand(sequences.shape, generator=generator)
        chosen = (uniform < share) & ~torch.isin(sequences, self.special)
        fate = torch.rand(sequences.shape, generator=generator)
        random_tokens = torch.randint(self.vocabulary_size, sequences.shape, generator=generator)
        inputs = torch.where(chosen & (fate < 0.8), self.mask_id, sequences)
        inputs = torch.where(chosen & (fate >= 0.9), random_tokens, inputs)
        return inputs, chosen


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
    """Returns the indices [sequences] of all training sequences in the random order of one epoch."""
    return np.random.default_rng(derived_seed(seed, ORDER, epoch)).permutation(sequences)
