"""The base class of all self-attention operators.

X [batch, n, h] are the hidden states; head i of `heads` owns the i-th slice of d = h / heads channels of every
projection (Courtois et al. 2024, section 2.4); keys are m, as many as n but in cross-attention. Every operator weighs
values by a softmax over keys; they differ in where scores and values come from. Unless an operator says otherwise,
scores Q K^T are divided by sqrt(d), masks act on keys, dropout on the weights, and Linear layers are initialised at
N(0, 0.02^2) with biases 0, as in BERT (Devlin et al. 2018). Its docstring says what its source fixes and leaves open.

First scores: a closed formula gives the spread of an operator's scores before any training, which is their standard
deviation over random weights and pairs of different tokens, for independent inputs of unit variance (as from a
LayerNorm), biases 0 and weights from N(0, r^2): x^T M y has the variance |M|^2, the sum of the squares of M's entries.
A variant (`variants` of params.yaml) may ask for another spread, to which the parameters in `score_factors` are scaled.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from .products import attend, checked_mask, joined, masked, merge, project, split


class SelfAttention(nn.Module):
    """softmax(Q_i K_i^T / sqrt(d)) V_i for every head i, and the output projection after them.

    A subclass sets the class attributes below, and names in `parameter_shapes` its parameters outside Linear layers.
    Reports and checks of settings read `name` to `scores_alone` from the class's text: these must be literals.

    Args:
        hidden, heads: width h, and the number of heads, a divisor of h.
        positions: the longest sequence, in tokens; it matters only where every pair of positions has a weight.
        dropout: rate on the attention weights, in training alone, in [0, 1).
        start: how the parameters are initialised, one of `starts`. None: the first, as in the operator's source.
        score_spread: standard deviation that the first scores shall have. None: as in the operator's source.
        score_rate: learning rate of `scores_alone` as a multiple of all others', for the optimiser to apply; None: 1.
        self_score: a number that is added to the score of every token with itself, before the softmax; None: nothing.
            Cross-attention, where no key is the query's own token, is left as it is. Reformer (Kitaev et al. 2020,
            arXiv 2001.04451) masks this score, because a query that equals its key matches itself best.
        output: whether it has an output projection; if not, `forward` returns the weighted values unless given one.
        deviation: standard deviation r of new weights of Linear layers. None: whoever builds the module initialises
            these and then calls `initialise`; until then, all other parameters are NaN, so that a forgotten call shows.

    Raises:
        ValueError: the heads do not divide the width, or the operator has no such setting.
    """

    name: str  # in params.yaml
    equation: str  # as reports print it
    source: str  # what to cite for it
    label: str = ""  # its name in reports; "" takes `name`, in words
    look: tuple = ()  # (colour, stroke) in figures, as matplotlib takes them; () leaves both to the figure
    exportable: bool = True  # whether a BERT with some W_q, W_k, W_v, which `projections` returns, has equal outputs
    starts: tuple[str, ...] = ("default",)  # values of `start`; the first is that of the source
    scores_alone: tuple[str, ...] = ()  # parameters outside Linear layers that influence the scores and nothing else
    linear_layers: tuple[str, ...]  # names of its Linear layers h -> h with bias, without the output projection
    roles: tuple[str, ...] = ()  # names of the Linear layers that give queries, keys and values; (): computed otherwise
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
        self_score: float | None = None,
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
        if self_score is not None and type(self).forward is not SelfAttention.forward:
            raise ValueError(f"{self.name}: self_score is for operators that keep the `forward` of SelfAttention")
        self.self_score = self_score
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
        """Returns, by name, the shapes of the parameters that no Linear layer holds; arguments as of the class."""
        return {}

    @classmethod
    def score_work(cls, hidden: int, heads: int, length: int) -> int:
        """Counts the floating-point operations per token, forward, of the matrix products that give the scores.

        A multiplication and the addition of its product are two operations. Linear layers, the weighted sum of values,
        softmax, scaling and masks are not counted. Here: Q K^T over all heads, so `heads` has no part in it.

        Args:
            hidden, heads, length: width h, number of heads, and number n of the tokens of a sequence.
        """
        return 2 * hidden * length

    @classmethod
    def feed_forward_width(cls, hidden: int, intermediate: int) -> int:
        """Returns the width of the feed-forward network in a layer with this operator; `intermediate` is BERT's."""
        return intermediate

    @classmethod
    def feed_forward(cls, hidden: int, heads: int, intermediate: int, dropout: float) -> tuple[nn.Module, int] | None:
        """Builds what replaces the first layer of BERT's feed-forward network and the activation after it.

        Args:
            hidden, heads, intermediate: width h of the model, its number of heads, and width of the replaced network.
            dropout: rate of attention dropout, in training alone, in [0, 1).

        Returns:
            A module [batch, n, h] -> [batch, n, w], not initialised, and w; the caller adds a Linear layer w -> h.
            None, as here: BERT's network stays.
        """
        return None

    @classmethod
    def feed_forward_weights(cls, hidden: int, intermediate: int) -> tuple[int, int]:
        """Counts (weights, biases) of one layer's feed-forward network, or of what replaces it, without LayerNorm.

        The forward pass multiplies every weight once per token, a bias never. `intermediate`: BERT's width.
        """
        width = cls.feed_forward_width(hidden, intermediate)
        return 2 * hidden * width, width + hidden

    # initialisation

    def initialise(self, deviation: float) -> None:
        """Initialises the parameters that no Linear layer holds, and scales the first scores to `score_spread`, if set.

        Called once and without gradients, after the Linear layers were initialised, as it may copy or scale their
        weights. deviation: the standard deviation r of these. ValueError where the operator's scores cannot be scaled.
        """
        self.initialise_parameters()
        if self.score_spread is not None:
            spread = self.source_spread(deviation)
            if spread is None or not self.score_factors:
                raise ValueError(f"{self.name}: score_spread needs the operator's `source_spread` and `score_factors`")
            root = (self.score_spread / spread) ** (1 / len(self.score_factors))  # k factors take the k-th root each
            for name in dict.fromkeys(self.score_factors):  # once where it is named twice: the scores contain it twice
                self.get_parameter(name).mul_(root)

    def initialise_parameters(self) -> None:
        """Initialises the parameters that no Linear layer holds, as `start` says; here there are none."""

    def first_spread(self, deviation: float) -> float | None:
        """Returns the standard deviation of the first scores: `score_spread`, or `source_spread` where that is None."""
        return self.source_spread(deviation) if self.score_spread is None else self.score_spread

    def source_spread(self, deviation: float) -> float | None:
        """Returns the spread of first scores as the source initialises them, None without a formula. deviation: r."""
        if not self.roles:
            return None
        query, key, _ = self.roles
        return self.spread_of_squares(deviation) if query == key else self.spread_of_products(deviation)

    def spread_of_products(self, deviation: float) -> float:
        """Spread of x^T W_q W_k^T y / sqrt(d), W_q, W_k [h, d] independent: E |W_q W_k^T|^2 = h^2 d r^4, so r^2 h."""
        return deviation**2 * self.hidden

    def spread_of_squares(self, deviation: float) -> float:
        """Spread of x^T W W^T y / sqrt(d) for different tokens x and y: E |W W^T|^2 = h d (h + d + 1) r^4."""
        return deviation**2 * math.sqrt(self.hidden * (self.hidden + self.width + 1))

    # the computation

    def queries_keys_values(self, X: Tensor, memory: Tensor) -> tuple[Tensor, ...]:
        """Returns Q [batch, n, h] from X, times `diagonal`, and K and V [batch, m, h] from `memory`, which may be X."""
        if memory is X:  # in one call, so that a layer with two roles is computed once
            Q, K, V = self._projected(X, *self.roles)
        else:
            [Q], (K, V) = self._projected(X, self.roles[0]), self._projected(memory, *self.roles[1:])
        D = self.diagonal()
        return Q if D is None else Q * D.to(Q.dtype), K, V  # D is float32 under autocast, and would make Q so

    def _projected(self, T: Tensor, *layers: str) -> tuple[Tensor, ...]:
        """Returns T projected by each of the named Linear layers; a layer named twice gives the same tensor twice."""
        names = dict.fromkeys(layers)
        projected = dict(zip(names, project(T, *(getattr(self, name) for name in names)), strict=True))
        return tuple(projected[name] for name in layers)

    def heads_of(self, X: Tensor, memory: Tensor | None) -> tuple[Tensor, ...]:
        """Returns Q [batch, heads, n, d] from X, and K and V [batch, heads, m, d] from `memory`, or from X if None."""
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
            mask: boolean (True = seen) or numbers to add, [batch, heads, n, m] or 1 for any of these; None: all seen.
            memory: hidden states [batch, m, h] that give keys and values: cross-attention. None: X itself.
            causal: whether a token sees only itself and what precedes it.
            output: a projection that another module holds, as BERT's block does. None: that of this module, if any.

        Returns:
            [batch, n, h]; without any output projection, the weighted values of all heads side by side.

        Raises:
            ValueError: a shape or the type of the mask does not fit, or `causal` is given with a `memory`.
        """
        mask = self.complete_mask(X, mask, memory, causal)
        context, scale, layer = self.weighted_values(X, mask, memory), self.output_scale(), output or self.output
        if layer is None:
            return context if scale is None else context * scale.to(context.dtype)
        # (context D) W^T = context (W D)^T: the diagonal meets h^2 weights in place of batch n h activations
        weight = layer.weight if scale is None else layer.weight * scale
        return functional.linear(context, weight, layer.bias)

    def weighted_values(self, X: Tensor, mask: Tensor | None, memory: Tensor | None) -> Tensor:
        """Returns weighted values, all heads side by side [batch, n, h], not yet scaled; `mask` has any causal one."""
        return merge(attend(*self.heads_of(X, memory), mask, self.dropout))

    def complete_mask(
        self, X: Tensor, mask: Tensor | None = None, memory: Tensor | None = None, causal: bool = False
    ) -> Tensor | None:
        """Returns the whole mask of the scores: `mask`, the causal one and `self_score`; arguments as in `forward`.

        The result is boolean (True = seen) or numbers to add, and broadcasts to [batch, heads, n, m]; None: all seen.
        A `self_score` of 2 gives [[2, 0], [0, 2]] for two tokens. ValueError: as in `forward`.
        """
        mask = checked_mask(self.hidden, self.heads, X, mask, memory, causal)
        crossed = memory is not None and memory is not X
        if self.self_score is None or crossed:
            return mask
        own_token = torch.eye(X.shape[1], dtype=X.dtype, device=X.device)
        return joined(mask, self.self_score * own_token[None, None])

    def scores(self, X: Tensor, memory: Tensor | None = None) -> Tensor:
        """Returns the scores before mask and `self_score`, [batch, heads, n, m], or 1 for batch if they ignore X."""
        Q, K, _ = self.heads_of(X, memory)
        return Q @ K.transpose(-2, -1) / self.width**0.5

    def weights(
        self, X: Tensor, mask: Tensor | None = None, memory: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Computes the attention weights [batch, heads, n, m], before dropout; arguments and errors as in `forward`."""
        mask = self.complete_mask(X, mask, memory, causal)
        return torch.softmax(masked(self.scores(X, memory), mask), dim=-1).expand(len(X), -1, -1, -1)

    @property
    def dropout(self) -> float:
        """The dropout rate that applies now: 0 in evaluation mode."""
        return self.rate if self.training else 0.0

    def diagonal(self) -> Tensor | None:
        """Returns factors [h] that turn keys into queries, where a learned diagonal alone tells them apart; or None."""
        return None

    def output_scale(self) -> Tensor | None:
        """Returns factors [h] for the channels of the weighted values, which the output projection absorbs; or None."""
        return None

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """Returns (weight, bias) of W_q, W_k and W_v of a BERT with equal outputs; weights [out, in], as in nn.Linear.

        They lack `self_score`, which BERT cannot express. ValueError for an operator that is not `exportable`, or that
        has no `roles` and does not override this method.
        """
        if not (self.exportable and self.roles):
            raise ValueError(f"{self.name}: {self.equation}; BERT cannot express it")
        query, key, value = ((layer.weight, layer.bias) for layer in map(self.get_submodule, self.roles))
        D, scale = self.diagonal(), self.output_scale()
        return query if D is None else scaled(query, D), key, value if scale is None else scaled(value, scale)


def scaled(projection: tuple[Tensor, Tensor], D: Tensor) -> tuple[Tensor, Tensor]:
    """Returns (weight, bias) of a projection, given as such a pair, followed by the diagonal D [out]."""
    return projection[0] * D[:, None], projection[1] * D
