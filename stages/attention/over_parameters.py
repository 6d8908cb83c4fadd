"""Attention over parameters in place of the feed-forward network, beside original self-attention."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from .original import Original
from .products import merge, split


class OverParameters(Original):
    """Original self-attention; the feed-forward network is AttentionOverParameters with BERT's number of heads.

    There are as many pairs as keep the number of weights of a feed-forward network of width f: (f - w) h / w, with
    w = heads d the width of the heads together. At h = 512 and f = 2,048 these are the draft's 1,536 (and, for
    OverParametersWide, 512) pairs.
    """

    name = "over_parameters"
    equation = "original; in place of the feed-forward network softmax(Q_i K_i^T) V_i over learned pairs (K_i, V_i)"
    source = "draft section Two Feed-Forward Layers = Attention over Parameters, first experiment"
    label = "attention over parameters"
    look = ("#3aa0a0", "solid")
    exportable = False
    heads_multiple = 1  # heads over parameters, as a multiple of the model's

    @classmethod
    def pairs(cls, hidden: int, intermediate: int) -> int:
        """Pairs of a key and a value a head. ValueError where the projections alone have all the weights."""
        pairs = intermediate // cls.heads_multiple - hidden
        if pairs < 1:
            raise ValueError(
                f"{cls.name}: its projections alone have the weights of a feed-forward network of width "
                f"{intermediate}; `intermediate` must exceed {cls.heads_multiple} x `hidden`"
            )
        return pairs

    @classmethod
    def feed_forward(cls, hidden: int, heads: int, intermediate: int, dropout: float) -> tuple[nn.Module, int]:
        many, d = cls.heads_multiple * heads, hidden // heads
        return AttentionOverParameters(hidden, many, d, cls.pairs(hidden, intermediate), dropout), many * d

    @classmethod
    def feed_forward_parameters(cls, hidden: int, heads: int, intermediate: int) -> int:
        width = cls.heads_multiple * hidden
        return hidden * width + width + 2 * cls.pairs(hidden, intermediate) * width + width * hidden + hidden

    @classmethod
    def feed_forward_work(cls, hidden: int, heads: int, intermediate: int) -> int:
        width = cls.heads_multiple * hidden
        return 2 * (2 * hidden * width + 2 * cls.pairs(hidden, intermediate) * width)

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """None: ValueError."""
        raise ValueError(f"{self.name}: BERT has no attention over parameters in place of its feed-forward network")


class OverParametersWide(OverParameters):
    """With twice as many heads, and so fewer pairs: the draft's second experiment as its table has it.

    Its text says 8 heads, which would be a network of half the weights; 16 heads, as in the table, match.
    """

    name = "over_parameters_wide"
    source = "draft section Two Feed-Forward Layers = Attention over Parameters, second experiment"
    label = "attention over parameters, wide"
    look = ("#3aa0a0", "dashed")
    heads_multiple = 2


class AttentionOverParameters(nn.Module):
    """softmax(Q_i K_i^T) V_i over p learned pairs (K_i, V_i [p, d]) a head, Q = X W_q + b_q, in place of BERT's
    feed-forward network; the projection back to h is the network's own last layer.

    Fixed by the draft: multi-head attention (and so a division by sqrt(d)) whose keys and values are parameters,
    multiplied by sqrt(h), its d_model: keys by sqrt(h / d), values by sqrt(h). At h = 512, d = 64, both 8 heads of
    1,536 pairs and 16 heads of 512 have the 2,097,152 weights of a network of width 2,048. Open there, and here as in
    tensor2tensor's parameter_attention: K and V start at N(0, 1 / h) and have no biases, the projections have, and
    dropout drops a value for all positions at once. (Its keys are multiplied by the root of their number of heads,
    which is sqrt(h / d) unless the heads are wider together than the model; the draft's text decides here.)
    """

    def __init__(self, hidden: int, heads: int, d: int, pairs: int, dropout: float):
        super().__init__()
        self.hidden, self.heads, self.rate = hidden, heads, dropout
        self.query = nn.Linear(hidden, heads * d)
        self.K = nn.Parameter(torch.empty(heads, pairs, d))
        self.V = nn.Parameter(torch.empty(heads, pairs, d))

    def initialise(self, deviation: float) -> None:
        """Starts K and V, whatever the `deviation` of Linear weights."""
        for T in (self.K, self.V):
            T.normal_(std=self.hidden**-0.5)

    def forward(self, X: Tensor) -> Tensor:
        """[batch, n, heads d] from X [batch, n, h]."""
        Q = split(self.query(X), self.heads)
        keys = self.K * (self.hidden / self.K.shape[-1]) ** 0.5
        weights = torch.softmax(Q @ keys.transpose(-2, -1), dim=-1)
        V = functional.dropout1d(self.V * self.hidden**0.5, self.rate, self.training)
        return merge(weights.to(Q.dtype) @ V.to(Q.dtype))
