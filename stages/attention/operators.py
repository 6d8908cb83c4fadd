"""The operators of the papers, each a class whose docstring has its equation; and the list of all operators.

The operators of the blog post, whose scores are no products of projections, are in hadamard.py; operators of a user
come from a file that params.yaml names (own.py). Parameters are counted for a single layer, biases included, without
the output projection. base.py explains the symbols, the arguments and the overridden methods.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from .base import Projection, SelfAttention, Shapes, scale_projection
from .hadamard import Fixed, Hadamard, HadamardByHead
from .over_parameters import AttentionOverParameters
from .own import find_imported_operators, import_own_operators
from .products import apply_linear_layers


class Original(SelfAttention):
    """Q = X W_q + b_q, K = X W_k + b_k, V = X W_v + b_v: 3 (h^2 + h) parameters.

    Fixed by Devlin et al. 2018 and the released code (biases, sqrt(d) of a head); Courtois et al. 2024, equation 1, is
    the same without biases.
    """

    linear_layers = ("query", "key", "value")
    roles = ("query", "key", "value")
    score_factors = ("query.weight", "key.weight")

    def initialise_parameters(self) -> None:
        """Copies W_q to W_k, if the setting `start` is `tied`."""
        if self.start == "tied":
            self.key.weight.copy_(self.query.weight)

    def compute_source_spread(self, deviation: float) -> float | None:
        """Computes the standard deviation of the scores before training."""
        # With the start `tied`, W_k equals W_q at first.
        if self.start == "tied":
            return self.compute_symmetric_spread(deviation)
        return super().compute_source_spread(deviation)


class Symmetric(SelfAttention):
    """K = Q = X W_q + b_q, V = X W_v + b_v; scores Q_i Q_i^T / sqrt(d): 2 (h^2 + h) parameters.

    Fixed by Courtois et al. 2024, equation 3, and by the released code: the bias enters on both sides, and d is the
    width of a head.
    """

    linear_layers = ("query", "value")
    # Q(x) Q(y)^T: the layer that gives the queries gives the keys (equation 3).
    roles = ("query", "query", "value")
    score_factors = ("query.weight", "query.weight")


class Pairwise(Symmetric):
    """Scores Q_i S_i Q_i^T / sqrt(d) with a free S_i [d, d] for every head: 2 (h^2 + h) + heads d^2 parameters.

    Fixed by Courtois et al. 2024, equations 4 to 6, and by the released code: a matrix S for every head and layer,
    without bias and constraint, which is multiplied before the division by sqrt(d).
    """

    S: Tensor
    score_factors = ("S",)

    @classmethod
    def list_parameter_shapes(cls, hidden: int, heads: int, positions: int) -> Shapes:
        """Returns {"S": (heads, d, d)}."""
        d = hidden // heads
        return {"S": (heads, d, d)}

    @classmethod
    def count_score_operations(cls, hidden: int, heads: int, length: int) -> int:
        """Counts floating-point operations per token of Q Q^T, and of Q S by head."""
        d = hidden // heads
        return super().count_score_operations(hidden, heads, length) + 2 * hidden * d

    def compute_heads(self, X: Tensor, memory: Tensor) -> tuple[Tensor, ...]:
        """Computes Q S [batch, heads, n, d], and K and V [batch, heads, m, d]."""
        # Equation 6 (Courtois et al. 2024) as (Q S) Q^T, which leaves the n^2 products to a fused kernel.
        Q, K, V = super().compute_heads(X, memory)
        return Q @ self.S, K, V

    def build_projections(self) -> tuple[Projection, ...]:
        """Builds (weight, bias) of queries, keys and values for a stock BERT: S goes into the queries."""
        # Q S = X (W_q S) + b_q S; nn.Linear stores W_q transposed.
        (W_q, b_q), key, value = super().build_projections()
        S = torch.block_diag(*self.S)
        return (S.T @ W_q, b_q @ S), key, value

    def initialise_parameters(self) -> None:
        """Starts the matrices S [d, d] at the identity, or at normal random numbers."""
        if self.start == "identity":
            self.S.copy_(torch.eye(self.width).expand_as(self.S))
        else:
            self.S.normal_(std=self._compute_deviation())

    def _compute_deviation(self) -> float:
        """Returns the standard deviation of new entries of S, 1 / sqrt(d) for the start `scaled`."""
        return 1.0 if self.start == "normal" else self.width**-0.5

    def compute_source_spread(self, deviation: float) -> float | None:
        """Computes the standard deviation of the scores x^T W S W^T y / sqrt(d) before training."""
        # Without S, the scores are those of Symmetric.
        if self.start == "identity":
            return super().compute_source_spread(deviation)
        # S from N(0, sigma^2): E |W S W^T|^2 = sigma^2 ((h d)^2 + 2 h d) r^4. The variance is this divided by d.
        return self._compute_deviation() * deviation**2 * math.sqrt(self.hidden * (self.hidden * self.width + 2))


class PartialQK(Symmetric):
    """S = X W + b; Q = S D, K = S with a diagonal D; V = X W_v + b_v: 2 (h^2 + h) + h parameters.

    Kowsher et al. 2025, Table 7, names "partial QK sharing" and counts 2 h^2 + h weights, the count of two projections
    and a diagonal.
    """

    # Another row of the same table says that no diagonal scales; the count is followed here. The source leaves open
    # where the diagonal stands (here on the queries), how the diagonal starts (here at 1), and the biases (here as in
    # Shared).
    D: Tensor
    score_factors = ("D",)

    @classmethod
    def list_parameter_shapes(cls, hidden: int, heads: int, positions: int) -> Shapes:
        """Returns {"D": (h,)}."""
        return {"D": (hidden,)}

    def compute_diagonal(self) -> Tensor:
        """Returns the diagonal D [h] of the queries."""
        return self.D

    def initialise_parameters(self) -> None:
        """Starts the diagonal D at 1, so that queries equal keys at first."""
        self.D.fill_(1.0)


class Shared(SelfAttention):
    """S = X W_s + b_s; Q = S D_q, K = S D_k, V = S D_v with diagonals D: h^2 + h + 3 h parameters.

    Fixed by Kowsher et al., section 2.3 (a single projection, three diagonals), and by the count of 95,337,218
    parameters (the bias; diagonals of the whole width, three per layer).
    """

    # The source leaves open how the diagonals start (here at 1, so training begins at Q = K = V), and whether d in
    # sqrt(d) is the width of a head (here, as in BERT) or of the model.
    # S is computed once and serves as queries, keys and values. Outputs and gradients equal the definition; two
    # products of [n, h] with a diagonal are saved.
    linear_layers = ("shared",)
    # W_q = W_k = W_v = W_s (section 2.3)
    roles = ("shared", "shared", "shared")
    D_q: Tensor
    D_k: Tensor
    D_v: Tensor
    score_factors = ("D_q", "D_k")

    @classmethod
    def list_parameter_shapes(cls, hidden: int, heads: int, positions: int) -> Shapes:
        """Returns (h,) for each of the diagonals D_q, D_k and D_v, by name."""
        return dict.fromkeys(("D_q", "D_k", "D_v"), (hidden,))

    def compute_diagonal(self) -> Tensor:
        """Returns D_q D_k [h], the factors on the queries."""
        # Q K^T = S (D_q D_k) S^T
        return self.D_q * self.D_k

    def compute_output_scale(self) -> Tensor:
        """Returns D_v [h], the factors on the weighted values."""
        # D_v scales channels while the weighted sum adds tokens, so D_v moves past the sum into the output projection.
        return self.D_v

    def build_projections(self) -> tuple[Projection, ...]:
        """Builds (weight, bias) of queries, keys and values for a stock BERT."""
        # The export follows the definition: D_k on the keys, D_v on the values.
        W_s = self.shared.weight, self.shared.bias
        return scale_projection(W_s, self.D_q), scale_projection(W_s, self.D_k), scale_projection(W_s, self.D_v)

    def initialise_parameters(self) -> None:
        """Starts all three diagonals at 1."""
        for D in (self.D_q, self.D_k, self.D_v):
            D.fill_(1.0)


class OverParameters(Original):
    """Original self-attention; the feed-forward network is AttentionOverParameters with BERT's number of heads."""

    # The pairs per head, (f - w) h / w rounded down with w the width of all heads, keep the number of weights of a
    # network of width f. At h = 512 and f = 2,048 these are the draft's 1,536 (and, for OverParametersWide, 512) pairs.
    # number of heads over parameters, as a multiple of the model's heads
    heads_multiple = 1

    @classmethod
    def count_pairs(cls, hidden: int, intermediate: int) -> int:
        """Counts the pairs of a learned key and a learned value per head, such as 1,536 for h = 512 and width 2,048.

        Raises:
            ValueError: the network's width `intermediate` is too small for a single pair.
        """
        # The replacement has 2 w (h + pairs) weights, with w = heads_multiple h: at most 2 h `intermediate`, as many as
        # BERT's network.
        pairs = intermediate // cls.heads_multiple - hidden
        if pairs < 1:
            raise ValueError(
                f"{cls.name}: the projections already have as many weights as a feed-forward network of width "
                f"{intermediate}; `intermediate` must be {cls.heads_multiple * (hidden + 1)} or more"
            )
        return pairs

    @classmethod
    def build_feed_forward(cls, hidden: int, heads: int, intermediate: int, dropout: float) -> tuple[nn.Module, int]:
        """Builds attention over learned pairs [batch, n, h] -> [batch, n, w]; returns the module and w."""
        all_heads = cls.heads_multiple * heads
        d = hidden // heads
        pairs = cls.count_pairs(hidden, intermediate)
        return AttentionOverParameters(hidden, all_heads, d, pairs, dropout), all_heads * d

    @classmethod
    def count_feed_forward_weights(cls, hidden: int, intermediate: int) -> tuple[int, int]:
        """Counts (weights, biases) that replace the feed-forward network: of W_q, K, V and the last layer."""
        width = cls.heads_multiple * hidden
        pairs = cls.count_pairs(hidden, intermediate)
        return 2 * width * (hidden + pairs), width + hidden


class OverParametersWide(OverParameters):
    """OverParameters with twice as many heads, as in the table of the draft's second experiment.

    The draft's text says 8 heads, which would halve the weights.
    """

    heads_multiple = 2


# Controls: IdentityQuery is published; no publication trained the others.


class SharedKV(SelfAttention):
    """Q = X W_q + b_q, K = V = X W_s + b_s: 2 (h^2 + h) parameters. Sharing without symmetric scores."""

    linear_layers = ("query", "shared")
    roles = ("query", "shared", "shared")
    # Not `shared.weight`, which also gives the values: the size of values shall not change.
    score_factors = ("query.weight",)


class IdentityQuery(SelfAttention):
    """Q = X, K = X W_k + b_k, V = X W_v + b_v: 2 (h^2 + h) parameters. Original with W_q = I, asymmetric scores.

    Karbevski and Mijoski 2025 prove that W_q, W_k or W_v can be the identity.
    """

    # The authors adjust the scaling of scores and the weight decay. Neither is adjusted here, so that W_q is the only
    # difference from Original.
    linear_layers = ("key", "value")
    score_factors = ("key.weight",)

    def compute_queries_keys_values(self, X: Tensor, memory: Tensor) -> tuple[Tensor, ...]:
        """Returns X as queries, and projects keys and values [batch, m, h] from `memory`."""
        K, V = apply_linear_layers(memory, self.key, self.value)
        # Under autocast X is float32, and the keys are bfloat16.
        return X.to(K.dtype), K, V

    def build_projections(self) -> tuple[Projection, ...]:
        """Builds (weight, bias) of queries, keys and values for a stock BERT: W_q = I and b_q = 0."""
        layers: list[Any] = [self.key, self.value]
        key, value = [(layer.weight, layer.bias) for layer in layers]
        identity = torch.eye(self.hidden).to(self.key.weight)
        zeros = torch.zeros(self.hidden).to(self.key.bias)
        return (identity, zeros), key, value

    def compute_source_spread(self, deviation: float) -> float:
        """Computes the standard deviation of the scores x^T W_k^T y / sqrt(d) before training."""
        # For W_k [h, d] and the slice x [d], E |W_k|^2 = h d r^2. The variance is this divided by d.
        return deviation * math.sqrt(self.hidden)


class TiedQKV(SelfAttention):
    """Q = K = V = X W_s + b_s: h^2 + h parameters. Shared without the diagonals, to measure their effect."""

    linear_layers = ("shared",)
    roles = ("shared", "shared", "shared")
    # Values grow by the root of the factor, too.
    score_factors = ("shared.weight", "shared.weight")


class OriginalNarrow(Original):
    """Original with a feed-forward network h - 1 narrower, for 2 h^2 - h - 1 parameters less; Shared has one less."""

    @classmethod
    def compute_feed_forward_width(cls, hidden: int, intermediate: int) -> int:
        """Returns the narrower width: 2,305 for h = 768 and BERT's width 3,072."""
        return intermediate - (hidden - 1)


SELF_ATTENTION: dict[str, type[SelfAttention]] = {
    kind.name: kind
    for kind in (
        Original,
        Symmetric,
        Pairwise,
        Shared,
        PartialQK,
        Hadamard,
        Fixed,
        SharedKV,
        TiedQKV,
        HadamardByHead,
        IdentityQuery,
    )
}
# original self-attention with another feed-forward network
FEED_FORWARD: dict[str, type[SelfAttention]] = {
    kind.name: kind
    for kind in (
        OverParameters,
        OverParametersWide,
        OriginalNarrow,
    )
}
OPERATORS = SELF_ATTENTION | FEED_FORWARD


def build_attention(operator: str, hidden: int, heads: int, **settings: Any) -> SelfAttention:
    """Builds a self-attention layer with its output projection, initialised as in BERT by default.

    `operator` is a name in SELF_ATTENTION, such as `shared`. The further `settings` are `positions` (512), `dropout`
    (0), `output` (True), `deviation` (0.02), `start`, `score_spread`, `score_rate` and `self_score`, as in
    SelfAttention.

    Returns:
        A module [batch, n, h] -> [batch, n, h]; `SelfAttention.forward` explains further inputs.

    Raises:
        ValueError: the operator is unknown, changes only the feed-forward network or lacks a setting, or heads do not
            divide the width, or dropout is not in [0, 1).
        TypeError: the operator is a class, which builds a layer itself.
    """
    if isinstance(operator, type):
        build = f"{operator.__name__}({hidden}, {heads})"
        raise TypeError(f"operator: expected a name, given a class; build a layer of the class by {build}")
    if operator not in SELF_ATTENTION:
        raise ValueError(f"unknown self-attention {operator!r}; known: {', '.join(SELF_ATTENTION)}")
    return SELF_ATTENTION[operator](hidden, heads, **settings)


def find_operator_class(variant: dict[str, Any] | str) -> type[SelfAttention]:
    """Returns the class of an operator.

    Args:
        variant: a name, or a dict with the name as `operator`. For a user's own operator, the dict has
            `operators_sha256`, and `operators_file` unless the process imported the file before.

    Raises:
        ValueError: no operator has that name, or the user's file is missing, has changed or is not imported.
    """
    settings = {"operator": variant} if isinstance(variant, str) else variant
    name = settings["operator"]
    operators = dict(OPERATORS)
    sha256 = settings.get("operators_sha256")
    if settings.get("operators_file"):
        operators.update(import_own_operators(settings["operators_file"], sha256))
    elif sha256:
        operators.update(find_imported_operators(sha256, name))
    if name not in operators:
        raise ValueError(f"unknown operator {name!r}; known: {', '.join(operators)}")
    return operators[name]
