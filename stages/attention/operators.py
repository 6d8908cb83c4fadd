"""The operators of the papers, each a class whose docstring has its equation; and the list of all operators.

Original attention, Symmetric and Pairwise (Courtois et al. 2024), Shared and PartialQK (Kowsher et al. 2024, 2025), and
attention over parameters in place of the feed-forward network (a draft section of Attention Is All You Need). Controls:
IdentityQuery (Karbevski and Mijoski 2025), and SharedKV, TiedQKV and OriginalNarrow, which no source trained. The
operators of the blog post, whose scores are no products of projections, are in hadamard.py; a user's own come from a
file that params.yaml names (own.py).

X [batch, n, h] are the hidden states, X_i the i-th of `heads` slices of d = h / heads channels; `memory` [batch, m, h]
gives keys and values: None or X itself but in cross-attention. r is the standard deviation of new Linear weights.
Parameters are counted for one layer, biases included, without the output projection. SelfAttention (base.py) has what
operators share, and explains the methods that they override and the spread of first scores.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from .base import SelfAttention, scaled
from .hadamard import Fixed, Hadamard, HadamardByHead
from .over_parameters import AttentionOverParameters
from .own import imported, own_operators
from .products import project


class Original(SelfAttention):
    """Q = X W_q + b_q, K = X W_k + b_k, V = X W_v + b_v: 3 (h^2 + h) parameters.

    Fixed by Devlin et al. 2018 and their code (biases, sqrt(d) of a head); Courtois et al. 2024, equation 1, is the
    same without biases. `start` tied is a control of this project: W_k is initialised as W_q and free afterwards, which
    asks whether a gain of Symmetric comes from its initialisation alone.
    """

    name = "original"
    equation = "softmax(Q_i K_i^T / sqrt(d)) V_i, Q = X W_q, K = X W_k, V = X W_v"
    source = "Devlin et al. 2018; Courtois et al. 2024, equation 1"
    look = ("#5b6570", "solid")
    starts = ("default", "tied")
    linear_layers = ("query", "key", "value")
    roles = ("query", "key", "value")
    score_factors = ("query.weight", "key.weight")

    def initialise_parameters(self) -> None:
        if self.start == "tied":
            self.key.weight.copy_(self.query.weight)

    def source_spread(self, deviation: float) -> float | None:
        return self.spread_of_squares(deviation) if self.start == "tied" else super().source_spread(deviation)


class Symmetric(SelfAttention):
    """K = Q = X W_q + b_q, V = X W_v + b_v; scores Q_i Q_i^T / sqrt(d): 2 (h^2 + h) parameters.

    Fixed by Courtois et al. 2024, equation 3, and by their released code where the paper is silent: the bias is present
    and enters on both sides, and d is the width of a head.
    """

    name = "symmetric"
    equation = "softmax(Q_i Q_i^T / sqrt(d)) V_i, Q = X W_q, V = X W_v"
    source = "Courtois et al. 2024, equation 3"
    look = ("#0072b2", "dashed")
    linear_layers = ("query", "value")
    roles = ("query", "query", "value")  # Q(x) Q(y)^T: what gives the queries gives the keys (equation 3)
    score_factors = ("query.weight", "query.weight")


class Pairwise(Symmetric):
    """Scores Q_i S_i Q_i^T / sqrt(d) with a free S_i [d, d] for every head: 2 (h^2 + h) + heads d^2 parameters.

    Fixed by Courtois et al. 2024, equations 4 to 6, and by their released code where the paper is silent: one S for
    every head and layer, without bias and constraint, initialised at N(0, 1) whatever BERT's deviation is (`start`
    normal), and multiplied before the division by sqrt(d). Controls of this project: identity, and scaled, N(0, 1 / d).
    """

    name = "pairwise"
    equation = "softmax(Q_i S_i Q_i^T / sqrt(d)) V_i, Q = X W_q, V = X W_v, S_i [d, d]"
    source = "Courtois et al. 2024, equations 4 to 6"
    look = ("#d55e00", "dashdot")
    starts = ("normal", "identity", "scaled")
    scores_alone = ("S",)
    score_factors = ("S",)

    @classmethod
    def parameter_shapes(cls, hidden: int, heads: int, positions: int) -> dict[str, tuple[int, ...]]:
        return {"S": (heads, hidden // heads, hidden // heads)}

    @classmethod
    def score_work(cls, hidden: int, heads: int, length: int) -> int:
        return super().score_work(hidden, heads, length) + 2 * hidden * (hidden // heads)  # Q Q^T, and Q S by head

    def heads_of(self, X: Tensor, memory: Tensor | None) -> tuple[Tensor, ...]:
        Q, K, V = super().heads_of(X, memory)
        return Q @ self.S, K, V  # equation 6 as (Q S) Q^T: the n^2 products are left to the fused kernel

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        (W_q, b_q), key, value = super().projections()  # W_q is transposed, as nn.Linear stores it
        S = torch.block_diag(*self.S)
        return (S.T @ W_q, b_q @ S), key, value  # Q S = X (W_q S) + b_q S

    def initialise_parameters(self) -> None:
        if self.start == "identity":
            self.S.copy_(torch.eye(self.width).expand_as(self.S))
        else:
            self.S.normal_(std=self._deviation())

    def _deviation(self) -> float:
        """Returns the standard deviation with which an entry of S is drawn, for all values of `start` but identity."""
        return 1.0 if self.start == "normal" else self.width**-0.5

    def source_spread(self, deviation: float) -> float | None:
        """Spread of x^T W S W^T y / sqrt(d), S from N(0, sigma^2): E |W S W^T|^2 = sigma^2 ((h d)^2 + 2 h d) r^4."""
        if self.start == "identity":
            return super().source_spread(deviation)
        return self._deviation() * deviation**2 * math.sqrt(self.hidden * (self.hidden * self.width + 2))


class PartialQK(Symmetric):
    """S = X W + b; Q = S D, K = S with a diagonal D; V = X W_v + b_v: 2 (h^2 + h) + h parameters.

    Kowsher et al. 2025, Table 7, names "partial QK sharing" and counts 2 h^2 + h weights, which two projections and one
    diagonal have; another row of the same table says that it scales by no diagonal. The count is followed here. Open:
    where the diagonal stands (on the queries here), how it is initialised (at 1 here), the biases (as in Shared).
    """

    name = "partial_qk"
    equation = "softmax(S_i D_i S_i^T / sqrt(d)) V_i, S = X W, V = X W_v, D diagonal"
    source = "Kowsher et al. 2025, Table 7"
    label = "partial QK sharing"
    look = ("#cc79a7", "solid")
    scores_alone = ("D",)
    score_factors = ("D",)

    @classmethod
    def parameter_shapes(cls, hidden: int, heads: int, positions: int) -> dict[str, tuple[int, ...]]:
        return {"D": (hidden,)}

    def diagonal(self) -> Tensor:
        return self.D

    def initialise_parameters(self) -> None:
        self.D.fill_(1.0)


class Shared(SelfAttention):
    """S = X W_s + b_s; Q = S D_q, K = S D_k, V = S D_v with diagonals D: h^2 + h + 3 h parameters.

    Fixed by Kowsher et al., section 2.3 (one projection, three diagonals), and by their count of 95,337,218 parameters
    (the bias; diagonals of the whole width, one of each per layer). Open: how the diagonals are initialised (at 1 here,
    so training begins at Q = K = V), and whether d in sqrt(d) is the width of a head (here, as in BERT) or the model.

    S is computed once and serves as queries, keys and values: Q K^T = S (D_q D_k) S^T, so one diagonal on the queries
    is enough; and D_v scales channels while the weighted sum adds tokens, so D_v moves past the sum into the output
    projection. Outputs and gradients are those of the definition; two products of [n, h] with a diagonal are saved.
    """

    name = "shared"
    equation = "softmax(Q_i K_i^T / sqrt(d)) V_i, Q = S D_q, K = S D_k, V = S D_v, S = X W_s, D diagonal"
    source = "Kowsher et al. 2024 and 2025, section 2.3"
    look = ("#009e73", (0, (1, 1)))
    linear_layers = ("shared",)
    roles = ("shared", "shared", "shared")  # W_q = W_k = W_v = W_s (section 2.3)
    scores_alone = ("D_q", "D_k")
    score_factors = ("D_q", "D_k")

    @classmethod
    def parameter_shapes(cls, hidden: int, heads: int, positions: int) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("D_q", "D_k", "D_v"), (hidden,))

    def diagonal(self) -> Tensor:
        return self.D_q * self.D_k

    def output_scale(self) -> Tensor:
        return self.D_v

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        S = self.shared.weight, self.shared.bias
        return scaled(S, self.D_q), scaled(S, self.D_k), scaled(S, self.D_v)  # by the definition, with D_k and D_v

    def initialise_parameters(self) -> None:
        for D in (self.D_q, self.D_k, self.D_v):
            D.fill_(1.0)


class OverParameters(Original):
    """Original self-attention; the feed-forward network is AttentionOverParameters with BERT's number of heads.

    The pairs per head, (f - w) h / w rounded down with w the width of all heads, keep the number of weights of a
    network of width f. At h = 512 and f = 2,048 these are the draft's 1,536 (and, for OverParametersWide, 512) pairs.
    """

    name = "over_parameters"
    equation = "original; in place of the feed-forward network softmax(Q_i K_i^T) V_i over learned pairs (K_i, V_i)"
    source = "draft section Two Feed-Forward Layers = Attention over Parameters, first experiment"
    label = "attention over parameters"
    look = ("#3aa0a0", "solid")
    exportable = False
    heads_multiple = 1  # number of heads over parameters, as a multiple of that of the model

    @classmethod
    def pairs(cls, hidden: int, intermediate: int) -> int:
        """Returns the number of pairs (K, V) per head for BERT's width `intermediate`; ValueError if none is left."""
        pairs = intermediate // cls.heads_multiple - hidden
        if pairs < 1:
            raise ValueError(
                f"{cls.name}: its projections alone have the weights of a feed-forward network of width "
                f"{intermediate}; `intermediate` must be {cls.heads_multiple * (hidden + 1)} or more"
            )
        return pairs

    @classmethod
    def feed_forward(cls, hidden: int, heads: int, intermediate: int, dropout: float) -> tuple[nn.Module, int]:
        many, d = cls.heads_multiple * heads, hidden // heads
        return AttentionOverParameters(hidden, many, d, cls.pairs(hidden, intermediate), dropout), many * d

    @classmethod
    def feed_forward_weights(cls, hidden: int, intermediate: int) -> tuple[int, int]:
        width = cls.heads_multiple * hidden  # of all heads together
        return 2 * width * (hidden + cls.pairs(hidden, intermediate)), width + hidden  # W_q, last layer, K and V


class OverParametersWide(OverParameters):
    """Twice as many heads, as in the table of the draft's second experiment; its text's 8 would halve the weights."""

    name = "over_parameters_wide"
    source = "draft section Two Feed-Forward Layers = Attention over Parameters, second experiment"
    label = "attention over parameters, wide"
    look = ("#3aa0a0", "dashed")
    heads_multiple = 2


# controls: of this project, which no source trained, and IdentityQuery


class SharedKV(SelfAttention):
    """Q = X W_q + b_q, K = V = X W_s + b_s: 2 (h^2 + h) parameters. Sharing without symmetric scores."""

    name = "shared_kv"
    equation = "softmax(Q_i S_i^T / sqrt(d)) S_i, Q = X W_q, S = X W_s"
    source = "a control of this project"
    label = "one matrix for keys and values"
    linear_layers = ("query", "shared")
    roles = ("query", "shared", "shared")
    score_factors = ("query.weight",)  # not the keys: these are the values, too, which shall stay as they are


class IdentityQuery(SelfAttention):
    """Q = X, K = X W_k + b_k, V = X W_v + b_v: 2 (h^2 + h) parameters. Original with W_q = I, asymmetric scores.

    Karbevski and Mijoski 2025 prove that one of the three matrices can be the identity, and train it with an adjusted
    scaling of scores and weight decay. Neither is adjusted here, so that W_q is the only difference from Original.
    """

    name = "identity_query"
    equation = "softmax(X_i K_i^T / sqrt(d)) V_i, K = X W_k, V = X W_v"
    source = "Karbevski and Mijoski 2025, arXiv 2510.23912"
    label = "queries not projected"
    look = ("#56b4e9", "dashdot")
    linear_layers = ("key", "value")
    score_factors = ("key.weight",)

    def queries_keys_values(self, X: Tensor, memory: Tensor) -> tuple[Tensor, ...]:
        K, V = project(memory, self.key, self.value)
        return X.to(K.dtype), K, V  # X is float32 under autocast

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        identity = torch.eye(self.hidden).to(self.key.weight), torch.zeros(self.hidden).to(self.key.bias)
        return identity, (self.key.weight, self.key.bias), (self.value.weight, self.value.bias)

    def source_spread(self, deviation: float) -> float:
        """Spread of x^T W_k^T y / sqrt(d), W_k [h, d] and the slice x [d]: E |W_k|^2 = h d r^2, so r sqrt(h)."""
        return deviation * math.sqrt(self.hidden)


class TiedQKV(SelfAttention):
    """Q = K = V = X W_s + b_s: h^2 + h parameters. Shared without its diagonals, to ask what those add."""

    name = "tied_qkv"
    equation = "softmax(S_i S_i^T / sqrt(d)) S_i, S = X W_s"
    source = "a control of this project"
    label = "shared without diagonals"
    look = ("#b07d62", (0, (5, 1, 1, 1)))
    linear_layers = ("shared",)
    roles = ("shared", "shared", "shared")
    score_factors = ("shared.weight", "shared.weight")  # so values grow by the root of the factor, too


class OriginalNarrow(Original):
    """Original with a feed-forward network h - 1 narrower, for 2 h^2 - h - 1 parameters less; Shared has one less."""

    name = "original_narrow"
    equation = "original, with a feed-forward network h - 1 narrower"
    source = "a control of this project"
    label = "original, narrower"
    look = ()

    @classmethod
    def feed_forward_width(cls, hidden: int, intermediate: int) -> int:
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
FEED_FORWARD: dict[str, type[SelfAttention]] = {  # original self-attention with another feed-forward network
    kind.name: kind for kind in (OverParameters, OverParametersWide, OriginalNarrow)
}
OPERATORS = SELF_ATTENTION | FEED_FORWARD


def attention(operator: str, hidden: int, heads: int, **settings: Any) -> SelfAttention:
    """Builds a self-attention layer with its output projection, initialised as in BERT unless `settings` say otherwise.

    Args:
        operator: a name in SELF_ATTENTION, such as `shared`.
        hidden, heads: width h, and number of heads, a divisor of h.
        settings: further arguments, which SelfAttention explains: `positions` (512), `dropout` (0), `output` (True),
            `deviation` (0.02), and `start`, `score_spread`, `score_rate` and `self_score` of a variant.

    Returns:
        A module [batch, n, h] -> [batch, n, h]; `SelfAttention.forward` says what else it takes.

    Raises:
        ValueError: the operator is unknown, in FEED_FORWARD, or lacks a setting, or heads do not divide the width.
    """
    if operator in FEED_FORWARD:
        raise ValueError(
            f"{operator}: attention is `original` there; take that, and for the feed-forward network, "
            f"which it changes, `feed_forward` or `feed_forward_width` of OPERATORS[{operator!r}]"
        )
    return operator_class(operator)(hidden, heads, **settings)


def operator_class(variant: dict[str, Any] | str) -> type[SelfAttention]:
    """Returns the class of an operator. variant: its name, or a dict that has the name as `operator`.

    For a user's own operator, the dict has `operators_sha256` and either `operators_file`, which is then imported, or
    no file, as in a model's configuration, where the process must have imported it. Other keys are ignored. ValueError:
    no operator has that name, or the user's file is gone, has changed or is not imported.
    """
    settings = {"operator": variant} if isinstance(variant, str) else variant
    name, operators = settings["operator"], OPERATORS
    if settings.get("operators_file"):
        operators = operators | own_operators(settings["operators_file"], settings["operators_sha256"])
    elif settings.get("operators_sha256"):
        operators = operators | imported(settings["operators_sha256"], name)
    if name not in operators:
        raise ValueError(f"unknown operator {name!r}; known: {', '.join(operators)}")
    return operators[name]
