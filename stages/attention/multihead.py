"""The operators with the arguments of nn.MultiheadAttention, for code that is written for that module."""

import torch
from torch import Tensor, nn

from .base import SelfAttention
from .products import Mask, join_masks


class AsMultiheadAttention(nn.Module):
    """Replaces nn.MultiheadAttention by an operator that has an output projection.

    In PyTorch's encoder and decoder layers, keep the layout of batches:
    `layer.self_attn = AsMultiheadAttention(build_attention("pairwise", 64, 4), layer.self_attn.batch_first)`.
    Put a new operator into each of an encoder's `layers`: nn.TransformerEncoder copies a single layer, with equal
    weights.

    Args:
        attention: an operator with an output projection.
        batch_first: whether hidden states are [batch, n, h]; false, PyTorch's default: [n, batch, h].
    """

    # PyTorch's layers read these two; the values keep PyTorch from a fused path that bypasses `forward`.
    _qkv_same_embed_dim = True
    in_proj_bias = None

    def __init__(self, attention: SelfAttention, batch_first: bool = False):
        super().__init__()
        self.attention = attention
        self.batch_first = batch_first
        self.embed_dim = attention.hidden
        self.num_heads = attention.heads

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
            weights = self.attention.compute_weights(X, mask, memory, causal)
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
        """Raises ValueError for a mask of another shape or type."""
        if tuple(mask.shape) in shapes and (mask.dtype == torch.bool or mask.is_floating_point()):
            return
        expected = " or ".join(map(str, shapes))
        raise ValueError(
            f"{name} of shape {tuple(mask.shape)} and type {mask.dtype}; expected {expected} with "
            f"batch_first={self.batch_first}, and torch.bool, True where a key is not seen, or numbers to be added"
        )


def _negate_mask(mask: Mask) -> Mask:
    """Negates a boolean mask: [True, False] becomes [False, True]."""
    # True hides a key in nn.MultiheadAttention, and shows the key in the operators.
    if mask is None or mask.dtype != torch.bool:
        return mask
    return ~mask
