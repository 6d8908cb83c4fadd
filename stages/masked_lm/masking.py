"""Masking: the tokens that a model predicts, what the model sees instead, and the lists of targets for the loss."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from stages.masked_lm.corpus import Corpus
from stages.masked_lm.loss import ALIGNED, IGNORED


def mask_tokens(
    sequences: Tensor,
    corpus: Corpus,
    share: float,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Chooses tokens to predict, and hides these tokens.

    Independent coin flips choose a share (15 % in BERT) of the tokens that are not special. Of the chosen tokens, 80 %
    become [MASK], 10 % a random token, special tokens included, and 10 % stay (Devlin et al. 2018, section 3.1). Every
    batch has new draws, as in Courtois et al.'s code.

    Args:
        sequences: Token ids [batch, n], int64, on the CPU.
        corpus: Names the ids of [MASK] and of the special tokens, and the size of the vocabulary.
        share: Probability with which a token is chosen.
        generator: Source of all random numbers.

    Returns:
        The ids [batch, n] that the model sees, and the chosen tokens [batch, n], boolean.
    """
    uniform = torch.rand(sequences.shape, generator=generator)
    chosen = (uniform < share) & ~torch.isin(sequences, corpus.special)
    # Decides whether a chosen token becomes [MASK] (below 0.8), stays, or becomes random (from 0.9).
    fate = torch.rand(sequences.shape, generator=generator)
    random_tokens = torch.randint(corpus.vocabulary_size, sequences.shape, generator=generator)
    inputs = torch.where(chosen & (fate < 0.8), corpus.mask_id, sequences)
    inputs = torch.where(chosen & (fate >= 0.9), random_tokens, inputs)
    return inputs, chosen


def list_sparse_targets(sequences: Tensor, chosen: Tensor, multiple: int = 1) -> tuple[Tensor, Tensor]:
    """Lists the positions and ids of the tokens that are `chosen`, boolean [batch, n], in the unmasked `sequences`.

    Returns:
        Positions [k] in the flattened sequences, and the targets [k], padded until k is a multiple of `multiple`;
        padding has the target -100. For the sequences [[5, 6], [7, 8]] with 6 and 7 chosen, and multiple 4:
        [1, 2, 0, 1] and [6, 7, -100, -100].
    """
    positions = chosen.flatten().nonzero().squeeze(-1)
    targets = sequences.flatten()[positions]
    # How many positions are missing up to the next multiple: 2 for the multiple 4 and 6 positions.
    missing = -len(positions) % multiple
    # Padding takes the positions 0, 1, 2, …: a GPU adds the gradients of equal positions one after another.
    padding = torch.arange(missing) % chosen.numel()
    positions = torch.cat([positions, padding])
    return positions, functional.pad(targets, (0, missing), value=IGNORED)


def count_padded(tokens: int, share: float) -> int:
    """Computes the length to which lists of chosen tokens are padded, so that nearly all lists fit.

    A list has the chosen tokens among `tokens` tokens; each is chosen with the probability `share`.
    """
    # Lists of equal length let compiled code run without compiling again. The number of chosen tokens is binomial, or
    # smaller, because special tokens are never chosen.
    mean = tokens * share
    # 8,192 tokens and 0.15 give 1,229 on average, 1,423 with six standard deviations, and so the length 1,472. A batch
    # has more masked tokens than that once in a billion batches.
    largest = mean + 6 * math.sqrt(mean * (1 - share))
    return math.ceil(largest / ALIGNED) * ALIGNED
