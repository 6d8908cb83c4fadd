"""Attention over parameters: what stands in place of the feed-forward network in OverParameters (operators.py)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from .products import merge, split


class AttentionOverParameters(nn.Module):
    """softmax(Q_i K_i^T) V_i over p learned pairs (K_i, V_i [p, d]) a head, Q = X W_q + b_q, in place of BERT's
    feed-forward network; the projection back to h is the network's own last layer.

    Fixed by the draft: multi-head attention (and so a division by sqrt(d)) whose keys and values are parameters,
    multiplied by sqrt(h), its d_model: keys by sqrt(h / d), values by sqrt(h). At h = 512, d = 64, both 8 heads of
    1,536 pairs and 16 heads of 512 have the 2,097,152 weights of a network of width 2,048. Open there, and here as in
    tensor2tensor's parameter_attention: K and V are initialised at N(0, 1 / h) and have no biases, the projections
    have, and dropout drops a value for all positions at once. (Its keys are multiplied by the root of their number of
    heads, which is sqrt(h / d) unless the heads are wider together than the model; the draft's text decides here.)

    Args:
        hidden: width h of the model.
        heads: number of heads over parameters.
        d: width of a head.
        pairs: number p of keys and values a head.
        dropout: on the values, in training, in [0, 1).
    """

    def __init__(self, hidden: int, heads: int, d: int, pairs: int, dropout: float):
        super().__init__()
        self.hidden, self.heads, self.rate = hidden, heads, dropout
        self.query = nn.Linear(hidden, heads * d)
        self.K = nn.Parameter(torch.empty(heads, pairs, d))
        self.V = nn.Parameter(torch.empty(heads, pairs, d))

    def initialise(self, deviation: float) -> None:
        """Initialises K and V, whatever the `deviation` of Linear weights."""
        for T in (self.K, self.V):
            T.normal_(std=self.hidden**-0.5)

    def forward(self, X: Tensor) -> Tensor:
        """[batch, n, heads d] from X [batch, n, h]."""
        Q = split(self.query(X), self.heads)
        # K sqrt(h) / sqrt(d): the draft's factor and the division of the scores by the root of a head's width in one
        keys = self.K * (self.hidden / self.K.shape[-1]) ** 0.5
        weights = torch.softmax(Q @ keys.transpose(-2, -1), dim=-1)
        V = functional.dropout1d(self.V * self.hidden**0.5, self.rate, self.training)
        return merge(weights.to(Q.dtype) @ V.to(Q.dtype))
