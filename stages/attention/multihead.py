"""The operators with the arguments of nn.MultiheadAttention, for code that is written for that module."""

import torch
from torch import Tensor, nn

from .base import SelfAttention
from .products import joined


class AsMultiheadAttention(nn.Module):
    """Puts an operator with an output projection of its own in the place of nn.MultiheadAttention with `batch_first`.

    In PyTorch's encoder and decoder layers, `layer.self_attn = AsMultiheadAttention(attention("pairwise", 64, 4))`.
    Put a new operator into each of an encoder's `layers`: nn.TransformerEncoder makes them as copies of one layer, so
    an operator that was put into that one would have equal weights in all of them at first.
    """

    batch_first = True
    _qkv_same_embed_dim = True
    in_proj_bias = None  # PyTorch's layers read these three; None keeps them from a fused path that bypasses `forward`

    def __init__(self, attention: SelfAttention):
        super().__init__()
        self.attention = attention
        self.embed_dim, self.num_heads = attention.hidden, attention.heads

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attends as nn.MultiheadAttention does.

        Args:
            query: hidden states [batch, n, h].
            key, value: one and the same sequence of hidden states [batch, m, h], which gives keys and values.
            key_padding_mask: [batch, m]; boolean (True = not seen), or numbers that are added to the scores.
            attn_mask: [n, m] or [batch * heads, n, m]; boolean (True = not seen), or numbers that are added.
            need_weights, average_attn_weights: whether the weights are returned, too, and averaged over heads.
            is_causal: without an `attn_mask`, whether a token sees only itself and what precedes it; with one, ignored.

        Returns:
            The output [batch, n, h]; and the weights before dropout, [batch, n, m] if averaged or [batch, heads, n, m],
            or None where they are not needed.

        Raises:
            ValueError: key is not value, a mask's shape or type does not fit, or cross-attention is to be causal.
        """
        if key is not value:
            raise ValueError("key and value: expected one and the same tensor; the operators attend to one sequence")
        memory = None if key is query else key
        if attn_mask is not None:
            batched = attn_mask.dim() == 3
            attn_mask = attn_mask.unflatten(0, (-1, self.num_heads)) if batched else attn_mask[None, None]
        mask = joined(_seen(attn_mask), _seen(None if key_padding_mask is None else key_padding_mask[:, None, None]))
        arguments = query, mask, memory, is_causal and attn_mask is None
        output = self.attention(*arguments)
        if not need_weights:
            return output, None
        weights = self.attention.weights(*arguments)
        return output, weights.mean(1) if average_attn_weights else weights


def _seen(mask: Tensor | None) -> Tensor | None:
    """Negates a boolean mask, as True hides in PyTorch's module and shows in ours; returns any other as it is."""
    return ~mask if mask is not None and mask.dtype == torch.bool else mask
