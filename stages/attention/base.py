"""The base class of all self-attention operators.

Head i of `heads` owns the i-th slice of d = h / heads channels of every projection (Courtois et al. 2024, section 2.4).
By default, scores Q K^T are divided by sqrt(d), masks act on keys, dropout acts on the weights, and Linear layers start
at N(0, 0.02^2) with biases 0, as in BERT (Devlin et al. 2018). The docstring and the comments of an operator say which
parts the source fixes and which parts the source leaves open.

Arguments of all methods:
    X: hidden states [batch, n, h], which give the queries.
    memory: hidden states [batch, m, h] that give keys and values: cross-attention. X itself or `None`: self-attention.
    mask: boolean (True = seen) or numbers to add, [batch, heads, n, m] or 1 for any of these. `None`: all seen.
    causal: whether a token sees no later token.
    hidden, heads, length: width h, number of heads (a divisor of h), number n of tokens of a sequence.
    intermediate: width of BERT's feed-forward network.
    deviation: standard deviation r of new weights of Linear layers.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from .catalogue import CATALOGUE
from .products import (
    Mask,
    apply_linear_layers,
    apply_scaled_layer,
    attend,
    check_inputs,
    join_masks,
    mask_scores,
    merge_heads,
    split_heads,
)

# shapes of parameters by name
Shapes = dict[str, tuple[int, ...]]
# (weight [out, in], bias [out]), as nn.Linear stores a projection
Projection = tuple[Tensor, Tensor]

# methods on which the scores before training depend
SCORES = (
    "compute_queries_keys_values",
    "compute_heads",
    "compute_diagonal",
    "compute_scores",
    "compute_products",
    "compute_weighted_values",
    "initialise_parameters",
)


def _know_no_spread(self, deviation: float) -> None:
    """Takes the place of an inherited formula for other scores."""


class SelfAttention(nn.Module):
    """softmax(Q_i K_i^T / sqrt(d)) V_i for every head i, and the output projection after the heads.

    A subclass sets the class attributes below, and lists parameters outside Linear layers in `list_parameter_shapes`.

    Args:
        positions: longest sequence, in tokens; only for operators with a weight for every pair of positions.
        dropout: rate on the attention weights during training, in [0, 1).
        start: how the parameters start, an element of `starts`. `None`: the first element, as in the source.
        score_spread: standard deviation of the scores before training. `None`: as in the operator's source.
        score_rate: learning rate of `scores_alone` as a multiple of the general rate, for the optimiser. `None`: 1.
        output: whether the module has an output projection.
        deviation: `None`: the caller initialises the Linear layers and then calls `initialise`; until then all other
            parameters are NaN.
        self_score: number added to the score of every token with itself before the softmax, except in cross-attention.

    Raises:
        ValueError: the heads do not divide the width, dropout is not in [0, 1), or the operator lacks a setting.
    """

    # `self_score`: Reformer (Kitaev et al. 2020, arXiv 2001.04451) masks the score of a token with itself, because a
    # query that equals the key matches itself best. In cross-attention no key is the query's own token.

    # catalogue.py explains `name`, `equation`, `source`, `label`, `look` and the next three, and has the values for the
    # operators of this package. A user's class sets literals, which the schema and the reports read from the text.
    exportable: bool = True
    starts: tuple[str, ...] = ("default",)
    scores_alone: tuple[str, ...] = ()

    # names of the Linear layers h -> h with bias, without the output projection
    linear_layers: tuple[str, ...]
    # names of the Linear layers that give queries, keys and values; () if `compute_queries_keys_values` is overridden
    roles: tuple[str, ...] = ()
    # parameters to whose product the scores are proportional; a parameter that enters squared is named twice
    score_factors: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        """Copies `name`, `equation` and so on from CATALOGUE to the attributes of a class of this package."""
        super().__init_subclass__()
        # A user's class takes nothing from the catalogue, even with the name of a class of this package.
        # "stages.attention.operators" gives "stages.attention".
        if cls.__module__.rpartition(".")[0] != __package__:
            # A formula of the spread holds for the scores of its own class only.
            owner = next(base for base in cls.__mro__ if "compute_source_spread" in vars(base))
            if any(getattr(cls, name, None) is not getattr(owner, name, None) for name in SCORES):
                cls.compute_source_spread = _know_no_spread
            return
        if cls.__name__ not in CATALOGUE:
            raise ValueError(f"{cls.__name__} is missing in CATALOGUE of catalogue.py; add an entry for the class")
        for name, value in vars(CATALOGUE[cls.__name__]).items():
            setattr(cls, name, value)

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
        require_divisor(hidden, heads)
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout {dropout}; expected a rate from 0 to less than 1")
        self.hidden = hidden
        self.heads = heads
        # d, the width of a head
        self.width = hidden // heads
        self.positions = positions
        self.rate = dropout
        self.start = start or self.starts[0]
        self.score_spread = score_spread
        self.score_rate = score_rate
        self.self_score = self_score
        self._check_settings()
        for name in self.linear_layers:
            setattr(self, name, nn.Linear(hidden, hidden))
        # NaN shows a forgotten call of `initialise` in the first output.
        for name, shape in self.list_parameter_shapes(hidden, heads, positions).items():
            setattr(self, name, nn.Parameter(torch.full(shape, math.nan)))
        self.output = nn.Linear(hidden, hidden) if output else None
        # `None`: the caller initialises the layer.
        if deviation is not None:
            self._initialise_all(deviation)

    def _check_settings(self) -> None:
        """Raises ValueError for a setting that the operator does not have."""
        if self.start not in self.starts:
            raise ValueError(f"{self.name}: start {self.start!r}; allowed are {', '.join(self.starts)}")
        if self.score_rate is not None and not self.scores_alone:
            raise ValueError(
                f"{self.name}: score_rate is for operators with a matrix or diagonals in the scores; remove score_rate"
            )
        if self.self_score is not None and type(self).forward is not SelfAttention.forward:
            raise ValueError(
                f"{self.name}: self_score is for operators that keep the `forward` of SelfAttention; remove self_score"
            )

    @torch.no_grad()
    def _initialise_all(self, deviation: float) -> None:
        """Starts Linear layers at N(0, deviation^2) with biases 0, then all other parameters."""
        # All submodules of an operator are Linear layers. These come first, because `initialise` may copy or scale
        # their weights.
        for layer in self.children():
            layer.weight.normal_(std=deviation)
            layer.bias.zero_()
        self.initialise(deviation)

    # parameters and work, by closed formula

    @classmethod
    def list_parameter_shapes(cls, hidden: int, heads: int, positions: int) -> Shapes:
        """Returns the shape of every parameter outside Linear layers by name, such as {"D": (768,)} for a diagonal."""
        return {}

    @classmethod
    def count_score_operations(cls, hidden: int, heads: int, length: int) -> int:
        """Counts floating-point operations per token, forward, of the matrix products that give the scores.

        A multiply-add counts as two operations. The base class counts Q K^T over all heads: 2 h n, such as 786,432 at
        h = 768, n = 512.
        """
        # Linear layers, the weighted sum of values, softmax, scaling and masks are not counted.
        return 2 * hidden * length

    @classmethod
    def compute_feed_forward_width(cls, hidden: int, intermediate: int) -> int:
        """Returns the width of the feed-forward network beside this operator; the base class keeps `intermediate`."""
        # A control that must have as many parameters as another model overrides this method.
        return intermediate

    @classmethod
    def build_feed_forward(
        cls, hidden: int, heads: int, intermediate: int, dropout: float
    ) -> tuple[nn.Module, int] | None:
        """Builds a module that replaces the first feed-forward layer of BERT and the activation after that layer.

        `dropout` is the rate of attention dropout during training, in [0, 1).

        Returns:
            The module [batch, n, h] -> [batch, n, w], not initialised, and w; the caller adds a Linear layer w -> h.
            `None`, as in the base class: BERT's network stays.
        """
        return None

    @classmethod
    def count_feed_forward_weights(cls, hidden: int, intermediate: int) -> tuple[int, int]:
        """Counts weights and biases of a layer's feed-forward network, or of the replacement, without LayerNorm.

        Returns:
            (weights, biases), such as (4718592, 3840) for h = 768 and the width 3,072.
        """
        # Two numbers, because the forward pass multiplies every weight once per token, a bias never.
        width = cls.compute_feed_forward_width(hidden, intermediate)
        return 2 * hidden * width, width + hidden

    # initialisation

    def initialise(self, deviation: float) -> None:
        """Initialises the parameters outside Linear layers, and scales the scores to the setting `score_spread`.

        Call once, under `torch.no_grad`, after the Linear layers were initialised.

        Raises:
            ValueError: a parameter has no first values; or `score_spread` is set, and the operator has no formula for
                the spread.
        """
        self.initialise_parameters()
        for name, parameter in self.named_parameters(recurse=False):
            # Models that are only counted are on the device `meta`, without values.
            if not parameter.is_meta and parameter.isnan().any():
                raise ValueError(f"{self.name}: `{name}` has no first values; set them in `initialise_parameters`")
        if self.score_spread is None:
            return
        spread = self.compute_source_spread(deviation)
        if spread is None or not self.score_factors:
            raise ValueError(
                f"{self.name}: score_spread needs the operator's `compute_source_spread` and `score_factors`"
            )
        # The scores are proportional to a product of k factors: every factor is scaled by the k-th root. A factor that
        # enters squared is listed twice, and scaled once.
        scale = (self.score_spread / spread) ** (1 / len(self.score_factors))
        for name in dict.fromkeys(self.score_factors):
            self.get_parameter(name).mul_(scale)

    def initialise_parameters(self) -> None:
        """Initialises the parameters outside Linear layers as `start` says; the base class has no such parameters."""

    def compute_first_spread(self, deviation: float) -> float | None:
        """Returns the standard deviation of the scores before training: `score_spread`, or else as in the source."""
        if self.score_spread is not None:
            return self.score_spread
        return self.compute_source_spread(deviation)

    def compute_source_spread(self, deviation: float) -> float | None:
        """Computes the standard deviation of the scores before training, with all weights started as in the source.

        Returns:
            The value of a closed formula, such as 0.3072 for h = 768 and r = 0.02; `None` without a formula.
        """
        # The deviation is over random weights and pairs of different tokens, for independent inputs of unit variance
        # (as from a LayerNorm), biases 0 and weights from N(0, r^2): x^T M y has the variance |M|^2, the sum of the
        # squares of M's entries.
        # An operator without roles computes queries and keys in another way.
        if not self.roles:
            return None
        query, key, _ = self.roles
        if query == key:
            return self.compute_symmetric_spread(deviation)
        # x^T W_q W_k^T y / sqrt(d) with independent W_q, W_k [h, d]: E |W_q W_k^T|^2 = h^2 d r^4. The variance is this
        # divided by d, h^2 r^4.
        return deviation**2 * self.hidden

    def compute_symmetric_spread(self, deviation: float) -> float:
        """Computes the standard deviation of the scores x^T W W^T y / sqrt(d) of different tokens before training."""
        # Queries equal keys: E |W W^T|^2 = h d (h + d + 1) r^4. The variance is this divided by d.
        return deviation**2 * math.sqrt(self.hidden * (self.hidden + self.width + 1))

    # the computation

    def compute_queries_keys_values(self, X: Tensor, memory: Tensor) -> tuple[Tensor, ...]:
        """Computes queries Q [batch, n, h], keys K and values V [batch, m, h] of all heads, side by side."""
        query, key, value = (getattr(self, role) for role in self.roles)
        if memory is X:
            # A single call computes a layer with two roles only once.
            Q, K, V = apply_linear_layers(X, query, key, value)
        else:
            Q = query(X)
            K, V = apply_linear_layers(memory, key, value)
        D = self.compute_diagonal()
        if D is not None:
            # Under autocast D is float32 and would make Q float32.
            Q = Q * D.to(Q.dtype)
        return Q, K, V

    def compute_heads(self, X: Tensor, memory: Tensor) -> tuple[Tensor, ...]:
        """Computes queries Q [batch, heads, n, d], keys K and values V [batch, heads, m, d]."""
        return tuple(split_heads(T, self.heads) for T in self.compute_queries_keys_values(X, memory))

    def forward(
        self,
        X: Tensor,
        mask: Mask = None,
        memory: Tensor | None = None,
        causal: bool = False,
        project: bool = True,
        weights: bool = False,
    ) -> Any:
        """Applies self-attention or cross-attention: weighted sums of values by head, then the output projection.

        Returns:
            [batch, n, h]; without an output projection, the weighted values of all heads side by side. If `project` is
            false: the weighted values, and the factors D [h] or `None`, for a caller with its own output projection
            (`apply_scaled_layer`). If `weights` is true: only the attention weights, as from `compute_weights`.

        Raises:
            ValueError: a shape or type does not fit, or `causal` is given with a `memory`.
        """
        # Models get the weights by this method, too: libraries that offload parameters bring the parameters to the
        # device only for a call of `forward`.
        if weights:
            return self.compute_weights(X, mask, memory, causal)
        mask = self.complete_mask(X, mask, memory, causal)
        weighted = self.compute_weighted_values(X, mask, X if memory is None else memory)
        D = self.compute_output_scale()
        if not project:
            # A copy, because FSDP frees parameters after the call.
            return weighted, None if D is None else D.clone()
        if self.output is None:
            return weighted if D is None else weighted * D.to(weighted.dtype)
        return apply_scaled_layer(weighted, D, self.output)

    def compute_weighted_values(self, X: Tensor, mask: Mask, memory: Tensor) -> Tensor:
        """Computes weighted sums of values, all heads side by side [batch, n, h], before the output projection.

        `mask` is the whole mask, causal mask and `self_score` included.
        """
        Q, K, V = self.compute_heads(X, memory)
        return merge_heads(attend(Q, K, V, mask, self.dropout))

    def complete_mask(
        self,
        X: Tensor,
        mask: Mask = None,
        memory: Tensor | None = None,
        causal: bool = False,
    ) -> Mask:
        """Joins a mask, the causal mask and `self_score` into a single mask for the scores.

        A `self_score` of 2 gives [[2, 0], [0, 2]] for two tokens.

        Raises:
            ValueError: a shape or type does not fit, or `causal` is given with a `memory`.
        """
        check_inputs(X, mask, X if memory is None else memory, self.hidden, self.heads)
        n = X.shape[1]
        if causal and memory is not None:
            raise ValueError("causal: keys of a memory do not follow the queries; give a mask instead")
        if causal:
            past = torch.ones(n, n, dtype=torch.bool, device=X.device).tril()
            mask = join_masks(mask, past[None, None])
        crossed = memory is not None and memory is not X
        if self.self_score is not None and not crossed:
            own_token = torch.eye(n, dtype=X.dtype, device=X.device)
            mask = join_masks(mask, self.self_score * own_token[None, None])
        return mask

    def compute_scores(self, X: Tensor, memory: Tensor | None = None) -> Tensor:
        """Computes the scores that the softmax turns into attention weights, before mask and `self_score`.

        Returns:
            [batch, heads, n, m]; [1, heads, n, m] if the scores do not depend on X.
        """
        Q, K, _ = self.compute_heads(X, X if memory is None else memory)
        return Q @ K.transpose(-2, -1) / self.width**0.5

    def compute_weights(
        self,
        X: Tensor,
        mask: Mask = None,
        memory: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """Computes the attention weights [batch, heads, n, m], before dropout, for the same arguments as `forward`."""
        mask = self.complete_mask(X, mask, memory, causal)
        weights = torch.softmax(mask_scores(self.compute_scores(X, memory), mask), dim=-1)
        return weights.expand(X.shape[0], -1, -1, -1)

    @property
    def dropout(self) -> float:
        """The current dropout rate: 0 in evaluation mode."""
        return self.rate if self.training else 0.0

    def compute_diagonal(self) -> Tensor | None:
        """Returns factors [h] by which the queries are multiplied, or `None`."""
        return None

    def compute_output_scale(self) -> Tensor | None:
        """Returns factors [h] on the weighted values, applied with the output projection; or `None`."""
        return None

    def build_projections(self) -> tuple[Projection, ...]:
        """Builds the projections with which an ordinary BERT gives the same outputs, apart from `self_score`.

        Returns:
            Queries, keys and values, each a pair of weight [out, in] and bias [out].

        Raises:
            ValueError: BERT cannot express the operator, or the operator has neither layers by role (query, key, value)
                nor its own version of this method.
        """
        if not (self.exportable and self.roles):
            raise ValueError(f"{self.name}: {self.equation}; BERT cannot express it")
        layers: list[Any] = [self.get_submodule(role) for role in self.roles]
        query, key, value = [(layer.weight, layer.bias) for layer in layers]
        D = self.compute_diagonal()
        if D is not None:
            query = scale_projection(query, D)
        scale = self.compute_output_scale()
        if scale is not None:
            value = scale_projection(value, scale)
        return query, key, value


def require_divisor(hidden: int, heads: int) -> None:
    """Raises ValueError unless the number of heads, 1 or more, divides the width `hidden`."""
    if not 1 <= heads <= hidden or hidden % heads:
        raise ValueError(f"{heads} heads do not divide the hidden size {hidden}; expected a divisor, 1 or more")


def scale_projection(projection: Projection, D: Tensor) -> Projection:
    """Multiplies a projection (weight [out, in], bias [out]) by the diagonal D [out]."""
    weight, bias = projection
    return weight * D[:, None], bias * D
