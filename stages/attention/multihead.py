"""The operators behind the arguments of nn.MultiheadAttention, for code that is written for it."""

import torch
from torch import Tensor, nn

from .base import SelfAttention
from .products import joined


class AsMultiheadAttention(nn.Module):
    """Puts an operator in the place of nn.MultiheadAttention with `batch_first`.

    In nn.TransformerEncoderLayer and nn.TransformerDecoderLayer:

        layer.self_attn = AsMultiheadAttention(attention("pairwise", hidden=64, heads=4))

    Replace it in each of an encoder's `layers`: nn.TransformerEncoder copies one layer, and the weights of all copies
    would be equal at first.
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
            key_padding_mask: [batch, m]; True = not seen, or numbers that are added to the scores.
            need_weights: whether the attention weights are returned, too.
            attn_mask: [n, m] or [batch heads, n, m]; True = not seen, or numbers that are added.
            average_attn_weights: whether these are averaged over heads.
            is_causal: beside an `attn_mask`, a hint that it is causal; without one, whether to mask what follows.

        Returns:
            [batch, n, h]; and None, or the weights before dropout, [batch, n, m] or [batch, heads, n, m].

        Raises:
            ValueError: keys and values that differ, and shapes that do not fit.
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
    """A mask of PyTorch's module, where True hides, as one of ours, where True shows; one to be added as it is."""
    return ~mask if mask is not None and mask.dtype == torch.bool else mask
