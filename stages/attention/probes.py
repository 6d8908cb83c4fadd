"""Measurements inside self-attention: the inputs and the scores of a model's operators."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from .base import SelfAttention
from .products import mask_scores


def list_operators(model: nn.Module) -> list[SelfAttention]:
    """Lists the self-attention modules of a BERT with a head, first layer first."""
    layers: Any = model.bert.encoder.layer
    return [layer.attention.self for layer in layers]


@contextmanager
def record_inputs(modules: list[SelfAttention]) -> Iterator[list[Tensor]]:
    """Records the inputs of self-attention modules during a `with` block.

    Yields:
        A list, to which every call of a module appends the hidden states [batch, n, h].
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
    """Computes the scores [batch, heads, n, n] that a module's softmax receives, `self_score` included.

    X are hidden states [batch, n, h] without padding; nothing is masked.
    """
    return mask_scores(module.compute_scores(X), module.complete_mask(X))
