"""Masking: the tokens that a model predicts, and what the model sees in place of these tokens."""

import torch
from torch import Tensor

from stages.masked_lm.corpus import Corpus


def mask_tokens(
    sequences: Tensor,
    corpus: Corpus,
    share: float,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Chooses tokens of sequences [batch, n] to predict, and hides these tokens.

    Independent coin flips choose a `share` (15 % in BERT) of the tokens that are not special. Of the chosen tokens, 80
    % become [MASK], 10 % a random token, special tokens included, and 10 % stay (Devlin et al. 2018, section 3.1).
    Every batch has new draws, as in Courtois et al.'s code.

    Returns:
        The ids [batch, n] that the model sees, and the chosen tokens [batch, n], boolean.
    """
    uniform = torch.rand(sequences.shape, generator=generator)
    chosen = (uniform < share) & ~torch.isin(sequences, corpus.special)
    fate = torch.rand(sequences.shape, generator=generator)
    random_tokens = torch.randint(corpus.vocabulary_size, sequences.shape, generator=generator)
    inputs = torch.where(chosen & (fate < 0.8), corpus.mask_id, sequences)
    inputs = torch.where(chosen & (fate >= 0.9), random_tokens, inputs)
    return inputs, chosen
