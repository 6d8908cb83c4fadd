"""Measurements inside self-attention: the inputs of a model's operators, and how attention weights spread over keys."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from .base import SelfAttention
from .products import mask_scores


def list_operators(model: nn.Module) -> list[SelfAttention]:
    """Lists the self-attention modules of a BERT with a head (`model.bert` is the encoder), first layer first."""
    layers: Any = model.bert.encoder.layer
    return [layer.attention.self for layer in layers]


@contextmanager
def record_inputs(modules: list[SelfAttention]) -> Iterator[list[Tensor]]:
    """Records the inputs of self-attention modules during a `with` block.

    Yields:
        A list that is empty at first; every call of a module appends the hidden states [batch, n, h].
    """
    inputs: list[Tensor] = []

    def keep_input(_module, arguments):
        inputs.append(arguments[0])

    hooks = [module.register_forward_pre_hook(keep_input) for module in modules]
    try:
        yield inputs
    finally:
        for hook in hooks:
            hook.remove()


def complete_scores(module: SelfAttention, X: Tensor) -> Tensor:
    """Computes the scores [batch, heads, n, n] that a module's softmax receives, for measurements of the attention.

    Nothing is masked. If the module has the setting `self_score`, this number is added to the score of every token on
    itself.

    Args:
        module: a self-attention operator.
        X: hidden states [batch, n, h] without padding.
    """
    return mask_scores(module.compute_scores(X), module.complete_mask(X))


def measure_weights(A: Tensor) -> dict[str, float]:
    """Measures how attention weights, the softmax of scores over keys, spread over keys.

    Args:
        A: scores [..., n, n] of n > 1 tokens without padding.

    Returns:
        Means over tokens and all leading dimensions, each in [0, 1]:
        `attention_entropy`: entropy of a token's weights over keys, divided by log n, the entropy of uniform weights.
        `self_weight`: weight of a token on itself.
    """
    weights = torch.softmax(A.float(), dim=-1)
    # A weight of 0 adds 0 to the entropy, not NaN.
    logarithms = weights.clamp_min(1e-30).log()
    entropy = -(weights * logarithms).sum(-1).mean().item()
    self_weights = weights.diagonal(dim1=-2, dim2=-1)
    return {
        "attention_entropy": entropy / math.log(A.shape[-1]),
        "self_weight": self_weights.mean().item(),
    }
