"""The base class of all self-attention operators.

X [batch, n, h] are the hidden states; head i of `heads` owns the i-th slice of d = h / heads channels of every
projection (Courtois et al. 2024, section 2.4). A self-attention operator weighs values by a softmax over keys and
differs from the others in where the scores and the values come from. Unless an operator says otherwise, scores Q K^T
are divided by sqrt(d), masks act on keys, dropout on the weights, and Linear layers are initialised at N(0, 0.02) with
biases 0, all as in BERT (Devlin et al. 2018). The docstring of an operator says what in its source fixes it, and what
is open there.

First scores: an operator knows by closed formula how far its scores spread before any training, as the standard
deviation over weights and pairs of different tokens, for independent inputs of unit variance (what a LayerNorm gives),
with r the standard deviation of a new weight and biases 0. A variant (section `variants` of params.yaml) may ask for
another spread; the parameters that the operator names in `score_factors` are then initialised that much larger.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from .products import attend, checked_mask, masked, merge, project, split


class SelfAttention(nn.Module):
    """softmax(Q_i K_i^T / sqrt(d)) V_i for every head i, and the output projection after them.

    A subclass says which Linear layers it has and which of them gives the queries, the keys and the values, which
    further parameters it has, and describes itself; the description is read from the text of the class, so its values
    are literals.

    Args:
        hidden: width h.
        heads: number of heads, a divisor of h.
        positions: the longest sequence, which matters to operators with a weight for every pair of positions.
        dropout: on the attention weights, in training, in [0, 1).
        start: one of `starts`. None: as in the operator's source.
        score_spread: standard deviation of the first scores. None: as in the operator's source.
        score_rate: learning rate of the parameters in `scores_alone`, as a multiple of that of the others; an optimiser
            has to heed it. None: that of the others.
        output: whether the module has an output projection, `output`; without one it returns the weighted values.
        deviation: standard deviation r of the new weights of Linear layers. None: whoever builds the module initialises
            them and calls `initialise`; until then the parameters beside them are NaN, so that a call forgotten shows.

    Raises:
        ValueError: the heads do not divide the width, or the operator has no such setting.
    """

    name: str  # in params.yaml
    equation: str
    source: str
    label: str = ""  # in reports, where the name in words will not do
    look: tuple = ()  # colour and stroke in figures, as matplotlib takes them; () leaves them to the figure
    exportable: bool = True  # some W_q, W_k, W_v of BERT give its outputs: `projections` returns them
    starts: tuple[str, ...] = ("default",)  # values of `start`; the first is that of the source
    scores_alone: tuple[str, ...] = ()  # parameters that serve the scores and nothing else, beside Linear layers
    linear_layers: tuple[str, ...]  # names of its Linear layers h -> h with bias, without the output projection
    roles: tuple[str, ...] = ()  # the Linear layers that give the queries, the keys and the values, in this order
    score_factors: tuple[str, ...] = ()  # parameters whose product the scores are proportional to; a square: twice

    def __init__(
        self,
        hidden: int,
        heads: int,
        positions: int = 512,
        dropout: float = 0.0,
        start: str | None = None,
        score_spread: float | None = None,
        score_rate: float | None = None,
        output: bool = True,
        deviation: float | None = 0.02,
    ):
        super().__init__()
        self.hidden, self.heads, self.positions, self.rate = hidden, heads, positions, dropout
        if hidden % heads:
            raise ValueError(f"{heads} heads do not divide the hidden size {hidden}")
        self.width = hidden // heads
        self.start = start or self.starts[0]
        if self.start not in self.starts:
            raise ValueError(f"{self.name}: start {self.start!r}; allowed are {', '.join(self.starts)}")
        self.score_spread, self.score_rate = score_spread, score_rate
        if score_rate is not None and not self.scores_alone:
            raise ValueError(f"{self.name}: score_rate is for operators with a matrix or diagonals in the scores")
        for name in self.linear_layers:
            setattr(self, name, nn.Linear(hidden, hidden))
        for name, shape in self.parameter_shapes(hidden, heads, positions).items():
            setattr(self, name, nn.Parameter(torch.full(shape, math.nan)))
        self.output = nn.Linear(hidden, hidden) if output else None
        if deviation is not None:
            with torch.no_grad():
                for layer in self.children():
                    layer.weight.normal_(std=deviation)
                    layer.bias.zero_()
                self.initialise(deviation)

    # parameters and work, by closed formula

    @classmethod
    def parameter_shapes(cls, hidden: int, heads: int, positions: int) -> dict[str, tuple[int, ...]]:
        """The shapes of the parameters that one layer has beside its Linear layers, by name."""
        return {}

    @classmethod
    def score_work(cls, hidden: int, heads: int, length: int) -> int:
        """Floating-point operations a token of the forward pass, beside Linear layers and the weighted sum of values.

        In the form with the least work, which evaluates no projection twice. Here: the products of queries and keys.

        Args:
            hidden: width h.
            heads: number of heads.
            length: tokens of a sequence, n.

        Returns:
            Two for every multiplication with its addition.
        """
        return 2 * hidden * length

    @classmethod
    def feed_forward_width(cls, hidden: int, intermediate: int) -> int:
        """The width of the layer's feed-forward network, where BERT's is `intermediate`."""
        return intermediate

    @classmethod
    def feed_forward(cls, hidden: int, heads: int, intermediate: int, dropout: float) -> tuple[nn.Module, int] | None:
        """What stands in place of the first layer of BERT's feed-forward network and its activation, if anything.

        Args:
            hidden: width h of the model.
            heads: its number of heads.
            intermediate: width of the network that is replaced.
            dropout: on attention weights, in training, in [0, 1).

        Returns:
            A module [batch, n, h] -> [batch, n, w], and w; a Linear layer w -> h follows.
        """
        return None

    @classmethod
    def feed_forward_weights(cls, hidden: int, intermediate: int) -> tuple[int, int]:
        """Weights of one layer's feed-forward network, or of what stands in its place, and its biases; no LayerNorm.

        A token's forward pass multiplies every weight once, a bias never.
        """
        width = cls.feed_forward_width(hidden, intermediate)
        return 2 * hidden * width, width + hidden

    # initialisation

    def initialise(self, deviation: float) -> None:
        """Initialises the parameters beside the Linear layers. Called once, after the Linear layers are initialised.

        deviation: the standard deviation r of the Linear weights.
        """
        self.initialise_parameters()
        if self.score_spread is not None:
            spread = self.source_spread(deviation)
            if spread is None or not self.score_factors:
                raise ValueError(f"{self.name}: score_spread needs the operator's `source_spread` and `score_factors`")
            self._scale_scores(self.score_spread / spread)

    def initialise_parameters(self) -> None:
        """Initialises what no Linear layer holds, by `start`."""

    def _scale_scores(self, factor: float) -> None:
        """Multiplies the first scores by `factor`, of which each of `score_factors` takes an equal part."""
        for name in dict.fromkeys(self.score_factors):
            self.get_parameter(name).mul_(factor ** (1 / len(self.score_factors)))

    def first_spread(self, deviation: float) -> float | None:
        """The standard deviation of the first scores, as the module says above: the one asked for, or the source's."""
        return self.source_spread(deviation) if self.score_spread is None else self.score_spread

    def source_spread(self, deviation: float) -> float | None:
        """The closed formula of the spread as the source initialises the operator; None where there is no formula."""
        if not self.roles:
            return None
        query, key, _ = self.roles
        return self.spread_of_squares(deviation) if query == key else self.spread_of_products(deviation)

    def spread_of_products(self, deviation: float) -> float:
        """x^T W_q W_k^T y / sqrt(d) with independent W_q, W_k [h, d]: E |W_q W_k^T|^2 = h^2 d r^4, so r^2 h."""
        return deviation**2 * self.hidden

    def spread_of_squares(self, deviation: float) -> float:
        """x^T W W^T y / sqrt(d), x and y different tokens: E |W W^T|^2 = h d (h + d + 1) r^4."""
        return deviation**2 * math.sqrt(self.hidden * (self.hidden + self.width + 1))

    # the computation

    def queries_keys_values(self, X: Tensor, memory: Tensor) -> tuple[Tensor, ...]:
        """Q [batch, n, h] from X, and K and V [batch, m, h] from `memory`, which is X itself in self-attention.

        A Linear layer that has several roles is applied once.
        """
        if memory is X:
            Q, K, V = self._projected(X, *self.roles)
        else:
            [Q], (K, V) = self._projected(X, self.roles[0]), self._projected(memory, *self.roles[1:])
        D = self.diagonal()
        return Q if D is None else Q * D.to(Q.dtype), K, V  # D is float32 under autocast, and would make Q so

    def _projected(self, T: Tensor, *layers: str) -> tuple[Tensor, ...]:
        """T projected by each of these Linear layers; the same tensor where one is named twice."""
        names = dict.fromkeys(layers)
        projected = dict(zip(names, project(T, *(getattr(self, name) for name in names)), strict=True))
        return tuple(projected[name] for name in layers)

    def heads_of(self, X: Tensor, memory: Tensor | None) -> tuple[Tensor, ...]:
        """Q [batch, heads, n, d] from X [batch, n, h], and K and V [batch, heads, m, d] from `memory`, X where None."""
        return tuple(split(T, self.heads) for T in self.queries_keys_values(X, X if memory is None else memory))

    def forward(
        self,
        X: Tensor,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        causal: bool = False,
        output: nn.Linear | None = None,
    ) -> Tensor:
        """Weighs the values of all heads by the softmax of their scores, and projects them.

        Args:
            X: hidden states [batch, n, h], which give the queries.
            mask: [batch, heads, n, m], or 1 in place of any of them; True = seen, or numbers that are added to the
                scores. None: everything is seen.
            memory: hidden states [batch, m, h] that give keys and values: cross-attention. None: X itself.
            causal: whether a token sees only itself and what precedes it.
            output: a projection that another module holds, such as BERT's block. None: that of this module, if any.

        Returns:
            [batch, n, h].

        Raises:
            ValueError: for shapes that do not fit, and for a causal mask over another sequence.
        """
        mask = checked_mask(self.hidden, self.heads, X, mask, memory, causal)
        context, scale, layer = self.weighted_values(X, mask, memory), self.output_scale(), output or self.output
        if layer is None:
            return context if scale is None else context * scale.to(context.dtype)
        # (context D) W^T = context (W D)^T: the diagonal meets h^2 weights in place of batch n h activations
        weight = layer.weight if scale is None else layer.weight * scale
        return functional.linear(context, weight, layer.bias)

    def weighted_values(self, X: Tensor, mask: Tensor | None, memory: Tensor | None) -> Tensor:
        """The weighted values of all heads [batch, n, h], before the `output_scale`; arguments as `forward`."""
        return merge(attend(*self.heads_of(X, memory), mask, self.dropout))

    def scores(self, X: Tensor, memory: Tensor | None = None) -> Tensor:
        """The scores that the softmax takes, before any mask: [batch or 1, heads, n, m]; arguments as `forward`."""
        Q, K, _ = self.heads_of(X, memory)
        return Q @ K.transpose(-2, -1) / self.width**0.5

    def weights(
        self, X: Tensor, mask: Tensor | None = None, memory: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """The attention weights [batch, heads, n, m] before dropout, computed anew; arguments as `forward`."""
        mask = checked_mask(self.hidden, self.heads, X, mask, memory, causal)
        return torch.softmax(masked(self.scores(X, memory), mask), dim=-1).expand(len(X), -1, -1, -1)

    @property
    def dropout(self) -> float:
        """The rate that holds now: 0 in evaluation."""
        return self.rate if self.training else 0.0

    def diagonal(self) -> Tensor | None:
        """The factors [h] of the queries, where a learned diagonal is all that tells them from the keys; or None."""
        return None

    def output_scale(self) -> Tensor | None:
        """A factor [h] of the weighted values that the output projection is to absorb, or None."""
        return None

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """(weight [h, h], bias [h]) of the queries, keys and values of an Original with equal outputs.

        ValueError for an operator that no choice of W_q, W_k, W_v can express.
        """
        if not (self.exportable and self.roles):
            raise ValueError(f"{self.name}: {self.equation}; BERT cannot express it")
        query, key, value = ((layer.weight, layer.bias) for layer in map(self.get_submodule, self.roles))
        D = self.diagonal()
        return query if D is None else scaled(query, D), key, value


def scaled(projection: tuple[Tensor, Tensor], D: Tensor) -> tuple[Tensor, Tensor]:
    """The projection X W + b, followed by the diagonal D."""
    return projection[0] * D[:, None], projection[1] * D
