"""The operators with the arguments of nn.MultiheadAttention, for code that is written for that module."""

import torch
from torch import Tensor, nn

from .base import SelfAttention
from .products import Mask, joined


class AsMultiheadAttention(nn.Module):
    """Replaces nn.MultiheadAttention with `batch_first` by an operator that has an output projection.

    In PyTorch's encoder and decoder layers, `layer.self_attn = AsMultiheadAttention(attention("pairwise", 64, 4))`.
    Put a new operator into each of an encoder's `layers`: nn.TransformerEncoder copies a single layer, so an operator
    inside that layer would start with equal weights in all copies.

    Args:
        attention: an operator with an output projection.
    """

    batch_first = True
    # PyTorch's layers read these two; the values keep PyTorch from a fused path that bypasses `forward`.
    _qkv_same_embed_dim = True
    in_proj_bias = None

    def __init__(self, attention: SelfAttention):
        super().__init__()
        self.attention = attention
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
        """Attends as nn.MultiheadAttention does.

        Args:
            query: hidden states [batch, n, h].
            key: hidden states [batch, m, h], which give keys and values.
            value: the same tensor as `key`.
            key_padding_mask: [batch, m]; boolean (True = not seen), or numbers that are added to the scores.
            need_weights: whether the weights are returned, too.
            attn_mask: [n, m] or [batch * heads, n, m]; boolean (True = not seen), or numbers that are added.
            average_attn_weights: whether the returned weights are averaged over heads.
            is_causal: without an `attn_mask`, whether a token sees only itself and the tokens before it; ignored with
                an `attn_mask`.

        Returns:
            The output [batch, n, h]; and the weights before dropout, [batch, n, m] if averaged or [batch, heads, n, m],
            or `None` if not needed.

        Raises:
            ValueError: key is not value, a mask's shape or type does not fit, or cross-attention is to be causal.
        """
        if key is not value:
            raise ValueError("key and value: expected one and the same tensor; the operators attend to one sequence")
        memory = None if key is query else key
        causal = is_causal and attn_mask is None
        # Masks are brought to [batch, heads, n, m], with 1 for whatever a mask does not distinguish.
        if attn_mask is not None:
            batched = attn_mask.dim() == 3
            attn_mask = attn_mask.unflatten(0, (-1, self.num_heads)) if batched else attn_mask[None, None]
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask[:, None, None]
        mask = joined(_seen(attn_mask), _seen(key_padding_mask))
        output = self.attention(query, mask, memory, causal)
        if not need_weights:
            return output, None
        weights = self.attention.weights(query, mask, memory, causal)
        return output, weights.mean(1) if average_attn_weights else weights


def _seen(mask: Mask) -> Mask:
    """Negates a boolean mask, as True hides in PyTorch's module and shows in ours; returns any other mask as given."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    return ~mask
