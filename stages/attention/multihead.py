"""The operators with the arguments of nn.MultiheadAttention, for code that is written for that module."""

from typing import Any

import torch
from torch import Tensor, nn

from .base import SelfAttention
from .operators import build_attention
from .products import Mask, join_masks


def replace_attention(module: nn.Module, operator: str, **settings: Any) -> dict[str, nn.MultiheadAttention]:
    """Puts an operator in place of every nn.MultiheadAttention in a module, such as nn.TransformerEncoder.

    Every new layer has the width, heads, dropout, layout, device, type and mode of the replaced layer, and its own new
    weights and biases. An nn.TransformerEncoder stops using nested tensors, whose kernel reads the weights of
    nn.MultiheadAttention.

    Args:
        module: the module, which is changed.
        operator: a name in SELF_ATTENTION, such as `pairwise`.
        settings: further settings of `build_attention`, such as `positions`.

    Returns:
        The replaced layers by name, such as `layers.0.self_attn`.

    Raises:
        ValueError: there is nothing to replace; a layer has hooks, or is of a subclass; a layer has keys or values of
            another width, or added keys; or `build_attention` refuses a setting. The module is then unchanged.
    """
    replaced = {}
    new: dict[nn.Module, AsMultiheadAttention] = {}
    # A layer that stands in two places has two names.
    for name, layer in module.named_modules(remove_duplicate=False):
        if not isinstance(layer, nn.MultiheadAttention):
            continue
        if type(layer) is not nn.MultiheadAttention or layer._forward_hooks or layer._forward_pre_hooks:
            raise ValueError(f"{name}: a {type(layer).__name__} with its own code or with hooks, which would be lost")
        if not layer._qkv_same_embed_dim or layer.bias_k is not None or layer.add_zero_attn:
            raise ValueError(f"{name}: keys or values of another width, or added keys, which the operators do not have")
        replaced[name] = layer
        if layer not in new:
            attention = build_attention(operator, layer.embed_dim, layer.num_heads, dropout=layer.dropout, **settings)
            ours = AsMultiheadAttention(attention, layer.batch_first, layer)
            new[layer] = ours.to(layer.out_proj.weight).train(layer.training)
    # A module that is itself an nn.MultiheadAttention cannot be replaced in place.
    if not replaced or module in new:
        raise ValueError(f"module: expected a module that holds nn.MultiheadAttention, given {type(module).__name__}")
    for name, layer in replaced.items():
        module.set_submodule(name, new[layer])
    for part in module.modules():
        if isinstance(part, nn.TransformerEncoder):
            part.use_nested_tensor = False
    return replaced


class NotFused:
    """A stand-in for a weight that PyTorch's layers take for a tensor with its own operations, and do not fuse."""

    __torch_function__ = None


class AsMultiheadAttention(nn.Module):
    """An operator with an output projection in place of nn.MultiheadAttention; `replace_attention` replaces all layers.

    Args:
        attention: an operator with an output projection.
        batch_first: whether hidden states are [batch, n, h]; false, PyTorch's default: [n, batch, h].
        replaced: the layer in whose place the module will stand, if any, to check `batch_first`.

    Raises:
        ValueError: `replaced` has another layout.
    """

    # PyTorch's layers read these three; the values keep PyTorch from fused paths that bypass `forward`.
    _qkv_same_embed_dim = True
    in_proj_bias = None
    in_proj_weight = NotFused()

    def __init__(self, attention: SelfAttention, batch_first: bool, replaced: nn.MultiheadAttention | None = None):
        super().__init__()
        self.attention = attention
        self.batch_first = batch_first
        self.embed_dim = attention.hidden
        self.num_heads = attention.heads
        if replaced is not None and replaced.batch_first != batch_first:
            raise ValueError(f"batch_first {batch_first}: the replaced layer has batch_first={replaced.batch_first}")

    @property
    def out_proj(self) -> nn.Module | None:
        """The output projection, under PyTorch's name."""
        return self.attention.output

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Mask = None,
        need_weights: bool = True,
        attn_mask: Mask = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Applies the operator; arguments and results are as in nn.MultiheadAttention.

        `value` must be the same tensor as `key`. Boolean masks hide keys where True; numbers are added to the scores.
        `is_causal` is ignored with an `attn_mask`.

        Returns:
            The output in the layout of `query`; and the weights before dropout, [batch, n, m] if averaged or
            [batch, heads, n, m], or `None`. A single sequence [n, h] has no batch in masks and weights.

        Raises:
            ValueError: key is not value, a mask does not fit, or cross-attention is to be causal.
        """
        if key is not value:
            raise ValueError("key and value: expected the same tensor; the operators attend to a single sequence")
        X = self._bring_to_batches(query)
        memory = None if key is query else self._bring_to_batches(key)
        batch, n = X.shape[:2]
        m = n if memory is None else memory.shape[1]
        causal = is_causal and attn_mask is None
        # Masks become [batch, heads, n, m], with size 1 for batch or heads if a mask is the same for all.
        if attn_mask is not None:
            self._check_mask("attn_mask", attn_mask, (n, m), (batch * self.num_heads, n, m))
            heads = self.num_heads if attn_mask.dim() == 3 else 1
            attn_mask = attn_mask.reshape(-1, heads, n, m)
        if key_padding_mask is not None:
            self._check_mask("key_padding_mask", key_padding_mask, (m,) if query.dim() == 2 else (batch, m))
            key_padding_mask = key_padding_mask.reshape(-1, 1, 1, m)
        mask = join_masks(_negate_mask(attn_mask), _negate_mask(key_padding_mask))
        output = self.attention(X, mask, memory, causal)
        weights = None
        if need_weights:
            weights = self.attention(X, mask, memory, causal, weights=True)
            if average_attn_weights:
                weights = weights.mean(1)
        if query.dim() == 2:
            return output[0], weights if weights is None else weights[0]
        return output if self.batch_first else output.transpose(0, 1), weights

    def _bring_to_batches(self, T: Tensor) -> Tensor:
        """Brings hidden states to [batch, n, h]; a single sequence [n, h] becomes [1, n, h]."""
        if T.dim() != 3:
            return T[None]
        return T if self.batch_first else T.transpose(0, 1)

    def _check_mask(self, name: str, mask: Tensor, *shapes: tuple[int, ...]) -> None:
        """Raises ValueError unless a mask has one of the allowed shapes, and booleans or floating-point numbers."""
        if tuple(mask.shape) in shapes and (mask.dtype == torch.bool or mask.is_floating_point()):
            return
        expected = " or ".join(map(str, shapes))
        raise ValueError(
            f"{name} of shape {tuple(mask.shape)} and type {mask.dtype}; expected {expected} with "
            f"batch_first={self.batch_first}, and torch.bool, True where a key is not seen, or numbers to be added"
        )


def _negate_mask(mask: Mask) -> Mask:
    """Negates a boolean mask: [True, False] becomes [False, True]; numbers stay."""
    # True hides a key in nn.MultiheadAttention, and shows the key in the operators.
    if mask is None or mask.dtype != torch.bool:
        return mask
    return ~mask
