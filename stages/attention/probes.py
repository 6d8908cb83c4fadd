"""Measurements inside self-attention: the inputs and the scores of a model's operators."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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
