"""The masked-LM objective: which tokens are hidden, and the loss at those tokens alone.

15 % of the tokens that are not special are chosen by independent coin flips; of these 80 % become [MASK], 10 % a random
token, 10 % stay (Devlin et al. 2018, section 3.1; drawn afresh for every batch, as Courtois et al.'s code does).
"""

import torch
from torch import Tensor
from torch.nn import functional


def mask_tokens(
    sequences: Tensor,
    share: float,
    vocabulary_size: int,
    special: Tensor,
    mask_id: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Inputs and the boolean mask of chosen tokens, both shaped as `sequences` [batch, n] (int64, on the CPU).

    special: ids that are never chosen, [CLS] and [SEP] among them.
    """
    uniform = torch.rand(sequences.shape, generator=generator)
    chosen = (uniform < share) & ~torch.isin(sequences, special)
    fate = torch.rand(sequences.shape, generator=generator)
    random_tokens = torch.randint(vocabulary_size, sequences.shape, generator=generator)
    inputs = torch.where(chosen & (fate < 0.8), mask_id, sequences)
    inputs = torch.where(chosen & (fate >= 0.9), random_tokens, inputs)
    return inputs, chosen


def masked_lm_loss(model: torch.nn.Module, inputs: Tensor, targets: Tensor, chosen: Tensor) -> Tensor:
    """Sum over the chosen tokens of the cross-entropy in nats, in float32.

    The head, which projects to the whole vocabulary, sees the chosen positions only: same loss and gradients as over
    all positions, at 15 % of the work.
    """
    hidden = model.bert(inputs).last_hidden_state[chosen]
    logits = model.cls(hidden)
    return functional.cross_entropy(logits.float(), targets[chosen], reduction="sum")
