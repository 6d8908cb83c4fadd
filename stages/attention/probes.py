"""Measurements inside self-attention: what reaches the operators of a model, and how their weights spread over keys."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from .base import SelfAttention
from .products import masked


def operators_of(model: nn.Module) -> list[SelfAttention]:
    """Returns the self-attention modules of a model, layer by layer; `model.bert` is an OperatorBertModel."""
    return [layer.attention.self for layer in model.bert.encoder.layer]


@contextmanager
def inputs_of(modules: list[SelfAttention]) -> Iterator[list[Tensor]]:
    """Yields a list, to which each module's input [batch, n, h] is added when the body of the `with` calls it."""
    inputs: list[Tensor] = []
    hooks = [module.register_forward_pre_hook(lambda _module, args: inputs.append(args[0])) for module in modules]
    try:
        yield inputs
    finally:
        for hook in hooks:
            hook.remove()


def complete_scores(module: SelfAttention, X: Tensor) -> Tensor:
    """Returns the scores, `self_score` included, that a module's softmax receives for X [batch, n, h], no padding."""
    return masked(module.scores(X), module.complete_mask(X))


def of_weights(A: Tensor) -> dict[str, float]:
    """Measures softmax(A) over keys of scores A [..., n, n], n > 1, without padding, as means over all else.

    attention_entropy: entropy of a token's weights over keys, divided by log n, that of uniform weights; in [0, 1].
    self_weight: the weight of a token on itself, in [0, 1].
    """
    weights = torch.softmax(A.float(), dim=-1)
    entropy = -(weights * weights.clamp_min(1e-30).log()).sum(-1).mean().item()  # a weight of 0 adds 0, not NaN
    return {
        "attention_entropy": entropy / math.log(A.shape[-1]),
        "self_weight": weights.diagonal(dim1=-2, dim2=-1).mean().item(),
    }
