"""What the self-attention operators share.

X [batch, n, h] are the hidden states; head i of `heads` owns the i-th slice of d = h / heads channels of every
projection (Courtois et al. 2024, section 2.4). A self-attention operator weighs values by a softmax over keys and
differs from the others in where the scores and the values come from. Unless an operator says otherwise, scores Q K^T
are divided by sqrt(d), masks act on keys, dropout on the weights, and Linear layers start at
N(0, 0.02) with biases 0, all as in BERT (Devlin et al. 2018). The docstring of an operator says what in its source
fixes it, and what is open there.

First scores: an operator knows by closed formula how far its scores spread before any training, as the standard
deviation over weights and pairs of different tokens, for independent inputs of unit variance (what a LayerNorm gives),
with r the standard deviation of a new weight and biases 0. A variant (section `variants` of params.yaml) may ask for
another spread; the operator then scales the start of the parameters that its `scale_scores` names.
"""

import math

from torch import Tensor, nn
from transformers import BertConfig

from .products import attend, merge, split


class SelfAttention(nn.Module):
    """softmax(Q_i K_i^T / sqrt(d)) V_i for every head i. A subclass gives Q, K and V, and describes itself.

    The description is read from the text of the class (descriptions.py), so its values are literals.

    Args:
        config: an OperatorConfig: width, heads, dropout and the longest sequence (which matters to operators with a
            weight for every pair of positions) under BERT's names; and the settings of a variant, `start`,
            `score_spread` and `score_rate`, each None where the operator starts and learns as in its source.

    Raises:
        ValueError: the heads do not divide the width, or the operator has no such setting.
    """

    name: str  # in params.yaml
    equation: str
    source: str
    exportable: bool = True  # some W_q, W_k, W_v of BERT give its outputs: `projections` returns them
    starts: tuple[str, ...] = ("default",)  # values of `start`; the first is that of the source
    scores_alone: tuple[str, ...] = ()  # parameters that serve the scores and nothing else, beside Linear layers
    linear_layers: int  # Linear layers h -> h with bias, without the output projection

    def __init__(self, config: BertConfig):
        super().__init__()
        self.hidden, self.heads = config.hidden_size, config.num_attention_heads
        self.rate, self.positions = config.attention_probs_dropout_prob, config.max_position_embeddings
        if self.hidden % self.heads:
            raise ValueError(f"{self.heads} heads do not divide the hidden size {self.hidden}")
        self.width = self.hidden // self.heads
        self.start = config.start or self.starts[0]
        if self.start not in self.starts:
            raise ValueError(f"{self.name}: start {self.start!r}; allowed are {', '.join(self.starts)}")
        self.score_spread, self.score_rate = config.score_spread, config.score_rate
        if self.score_rate is not None and not self.scores_alone:
            raise ValueError(f"{self.name}: score_rate is for operators with a matrix or diagonals in the scores")

    # parameters and work, by closed formula

    @classmethod
    def own_parameters(cls, hidden: int, heads: int, positions: int) -> int:
        """Parameters of one layer beside its Linear layers."""
        return 0

    @classmethod
    def own_work(cls, hidden: int, heads: int, length: int) -> int:
        """Multiply-adds times two a token, forward, beside the Linear layers and the weighted sum of values.

        In the least-work form: no projection evaluated twice. As here: the products of queries and keys.
        """
        return 2 * hidden * length

    @classmethod
    def feed_forward_width(cls, hidden: int, intermediate: int) -> int:
        """The width of the layer's feed-forward network, where BERT's is `intermediate`."""
        return intermediate

    @classmethod
    def feed_forward(cls, config: BertConfig) -> tuple[nn.Module, int] | None:
        """What stands in place of the first layer of BERT's feed-forward network and its activation, if anything.

        A module [batch, n, h] -> [batch, n, w], and w; a Linear layer w -> h follows.
        """
        return None

    @classmethod
    def feed_forward_parameters(cls, hidden: int, heads: int, intermediate: int) -> int:
        """Parameters of one layer's feed-forward network, or of what stands in its place, without the LayerNorm."""
        width = cls.feed_forward_width(hidden, intermediate)
        return 2 * hidden * width + width + hidden

    @classmethod
    def feed_forward_work(cls, hidden: int, heads: int, intermediate: int) -> int:
        """Multiply-adds times two a token, forward: every weight is multiplied once, a bias never."""
        return 4 * hidden * cls.feed_forward_width(hidden, intermediate)

    # the start

    def initialise(self, deviation: float) -> None:
        """Starts the parameters that no Linear layer holds. Called once, after the Linear layers have started.

        deviation: the standard deviation r that the Linear weights started with.
        """
        self.start_own()
        if self.score_spread is not None:
            own = self.own_spread(deviation)
            if own is None:
                raise ValueError(f"{self.name}: score_spread needs the operator's `own_spread` and `scale_scores`")
            self.scale_scores(self.score_spread / own)

    def start_own(self) -> None:
        """Starts what no Linear layer holds, by `start`."""

    def first_spread(self, deviation: float) -> float | None:
        """The standard deviation of the first scores, as the module says above: the one asked for, or its own."""
        return self.own_spread(deviation) if self.score_spread is None else self.score_spread

    def own_spread(self, deviation: float) -> float | None:
        """The closed formula of the spread at the operator's own start; None where it has none."""
        return None

    def scale_scores(self, factor: float) -> None:
        """Multiplies the first scores by `factor`, at the start of training."""
        raise NotImplementedError

    def spread_of_products(self, deviation: float) -> float:
        """x^T W_q W_k^T y / sqrt(d) with independent W_q, W_k [h, d]: E |W_q W_k^T|^2 = h^2 d r^4, so r^2 h."""
        return deviation**2 * self.hidden

    def spread_of_squares(self, deviation: float) -> float:
        """x^T W W^T y / sqrt(d), x and y different tokens: E |W W^T|^2 = h d (h + d + 1) r^4."""
        return deviation**2 * math.sqrt(self.hidden * (self.hidden + self.width + 1))

    # the computation

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, ...]:
        """Q, K, V, each [batch, n, h], from X [batch, n, h]."""
        raise NotImplementedError

    def queries(self, X: Tensor) -> Tensor:
        """Q alone [batch, n, h], for cross-attention, whose keys come from elsewhere."""
        return self.queries_keys_values(X)[0]

    def keys_values(self, memory: Tensor) -> tuple[Tensor, ...]:
        """K and V alone, each [batch, m, h], for cross-attention."""
        return self.queries_keys_values(memory)[1:]

    def heads_of(self, X: Tensor, memory: Tensor | None) -> tuple[Tensor, ...]:
        """Q [batch, heads, n, d] from X [batch, n, h], and K and V [batch, heads, m, d] from `memory`, X where None."""
        made = self.queries_keys_values(X) if memory is None else (self.queries(X), *self.keys_values(memory))
        return tuple(split(T, self.heads) for T in made)

    def forward(self, X: Tensor, mask: Tensor | None = None, memory: Tensor | None = None) -> Tensor:
        """Weighs the values of all heads.

        Args:
            X: hidden states [batch, n, h], which give the queries.
            mask: broadcasts to [batch, heads, n, m]; True = seen. None: everything is.
            memory: hidden states [batch, m, h] that give keys and values: cross-attention. None: X itself.

        Returns:
            [batch, n, h].
        """
        return merge(attend(*self.heads_of(X, memory), mask, self.dropout))

    def scores(self, X: Tensor, memory: Tensor | None = None) -> Tensor:
        """The scores that the softmax takes, before any mask: [batch or 1, heads, n, m]; arguments as `forward`."""
        Q, K, _ = self.heads_of(X, memory)
        return Q @ K.transpose(-2, -1) / self.width**0.5

    @property
    def dropout(self) -> float:
        return self.rate if self.training else 0.0

    def diagonal(self) -> Tensor | None:
        """The factors [h] between queries and keys, where a learned diagonal is all that tells one from the other."""
        return None

    def output_scale(self) -> Tensor | None:
        """A factor [h] of the weighted values that the output projection is to absorb, or None."""
        return None

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """(weight [h, h], bias [h]) of the queries, keys and values of an Original with equal outputs.

        ValueError for an operator that no choice of W_q, W_k, W_v can express.
        """
        raise ValueError(f"{self.name}: its scores are no product of queries and keys; BERT cannot express it")


def scaled(projection: tuple[Tensor, Tensor], D: Tensor) -> tuple[Tensor, Tensor]:
    """The projection X W + b, followed by the diagonal D."""
    return projection[0] * D[:, None], projection[1] * D
