"""Attention over parameters, from "the draft": a draft section of Attention Is All You Need.

The operators OverParameters and OverParametersWide (operators.py) use the module.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from .products import merge_heads, split_heads


class AttentionOverParameters(nn.Module):
    """softmax(Q_i K_i^T) V_i over p learned pairs (K_i, V_i [p, d]) for every head i, with Q = X W_q + b_q.

    The module replaces the first layer of BERT's feed-forward network and the activation; the projection back to h is
    the network's own last layer. Fixed by the draft: multi-head attention (and so a division by sqrt(d)) whose keys and
    values are parameters, both multiplied by sqrt(h), the draft's d_model.

    Args:
        hidden: width h of the model.
        heads: number of heads over parameters, of width `d`.
        pairs: number p of pairs per head.
        dropout: rate at which values are dropped during training, in [0, 1).
    """

    # At h = 512, d = 64, both 8 heads of 1,536 pairs and 16 heads of 512 pairs have the 2,097,152 weights of a network
    # of width 2,048.
    # Open in the draft, and here as in tensor2tensor's parameter_attention: K and V start at N(0, 1 / h) and have no
    # biases, the projections have biases, and dropout drops a value for all positions at once.

    def __init__(
        self,
        hidden: int,
        heads: int,
        d: int,
        pairs: int,
        dropout: float,
    ):
        super().__init__()
        self.hidden = hidden
        self.heads = heads
        self.rate = dropout
        self.query = nn.Linear(hidden, heads * d)
        # K and V have no values until `initialise` is called.
        self.K = nn.Parameter(torch.empty(heads, pairs, d))
        self.V = nn.Parameter(torch.empty(heads, pairs, d))

    def initialise(self, deviation: float) -> None:
        """Draws the learned keys K and values V from N(0, 1 / h); call under `torch.no_grad`."""
        for T in (self.K, self.V):
            T.normal_(std=self.hidden**-0.5)

    def forward(self, X: Tensor) -> Tensor:
        """Attends from X [batch, n, h] to the learned pairs; returns all heads side by side, [batch, n, heads d]."""
        Q = split_heads(self.query(X), self.heads)
        d = self.K.shape[-1]
        # K sqrt(h) / sqrt(d): the draft's factor, and the division of the scores by the root of a head's width.
        # tensor2tensor multiplies keys by the root of the number of heads, which differs if the heads are together
        # wider than the model; the draft decides here.
        K = self.K * (self.hidden / d) ** 0.5
        V = self.V * self.hidden**0.5
        weights = torch.softmax(Q @ K.transpose(-2, -1), dim=-1)
        # Drops whole rows [d], the values of pairs, for all positions.
        V = functional.dropout1d(V, self.rate, self.training)
        # Under autocast V is float32, and so is the softmax of a GPU.
        return merge_heads(weights.to(Q.dtype) @ V.to(Q.dtype))
