"""Shared weights: one projection serves as queries, keys and values, told apart by diagonals; and controls of it."""

import math

from torch import Tensor

from .base import SelfAttention, scaled
from .products import project


class TiedQKV(SelfAttention):
    """Q = K = V = X W_s + b_s: h^2 + h parameters. Shared without its diagonals: what do they add? A control."""

    name = "tied_qkv"
    equation = "softmax(S_i S_i^T / sqrt(d)) S_i, S = X W_s"
    source = "a control of this project"
    label = "shared without diagonals"
    look = ("#b07d62", (0, (5, 1, 1, 1)))
    linear_layers = ("shared",)

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, ...]:
        S = self.shared(X)
        return S, S, S

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        S = (self.shared.weight, self.shared.bias)
        return S, S, S

    def own_spread(self, deviation: float) -> float:
        return self.spread_of_squares(deviation)

    def scale_scores(self, factor: float) -> None:
        """By the one projection that there is, so the values start sqrt(factor) times as large too."""
        self.shared.weight.mul_(math.sqrt(factor))


class Shared(TiedQKV):
    """S = X W_s + b_s; Q = S D_q, K = S D_k, V = S D_v with diagonals D: h^2 + h + 3 h parameters.

    Fixed by Kowsher et al., section 2.3 (one projection, three diagonals), and by their count of 95,337,218 parameters
    (the bias; vectors of the whole width, one of each a layer). Open: how the diagonals start (1 here: training begins
    at Q = K = V), and whether d in sqrt(d) is that of a head (as here and in BERT) or of the model.

    Since Q K^T = S (D_q D_k) S^T and the weighted sum commutes with D_v, one S serves as all three: queries S D_q D_k,
    keys S, values S, and D_v in the output projection. Outputs and gradients are those of the definition.
    """

    name = "shared"
    equation = "softmax(Q_i K_i^T / sqrt(d)) V_i, Q = S D_q, K = S D_k, V = S D_v, S = X W_s, D diagonal"
    source = "Kowsher et al. 2024 and 2025, section 2.3"
    label = "shared"
    look = ("#009e73", (0, (1, 1)))
    scores_alone = ("D_q", "D_k")

    @classmethod
    def own_shapes(cls, hidden: int, heads: int, positions: int) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("D_q", "D_k", "D_v"), (hidden,))

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, ...]:
        S = self.shared(X)
        return S * self.diagonal().to(S.dtype), S, S

    def diagonal(self) -> Tensor:
        return self.D_q * self.D_k

    def output_scale(self) -> Tensor:
        return self.D_v

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        S, _, _ = super().projections()
        return scaled(S, self.D_q), scaled(S, self.D_k), scaled(S, self.D_v)

    def start_own(self) -> None:
        for D in (self.D_q, self.D_k, self.D_v):
            D.fill_(1.0)

    def scale_scores(self, factor: float) -> None:
        """By the diagonals of queries and keys, by equal parts; the values stay."""
        for D in (self.D_q, self.D_k):
            D.mul_(math.sqrt(factor))


class SharedKV(SelfAttention):
    """Q = X W_q + b_q, K = V = X W_s + b_s: 2 (h^2 + h) parameters. Sharing without symmetric scores: a control."""

    name = "shared_kv"
    equation = "softmax(Q_i S_i^T / sqrt(d)) S_i, Q = X W_q, S = X W_s"
    source = "a control of this project"
    label = "one matrix for keys and values"
    linear_layers = ("query", "shared")

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, ...]:
        Q, S = project(X, self.query, self.shared)
        return Q, S, S

    def queries(self, X: Tensor) -> Tensor:
        return self.query(X)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, ...]:
        S = self.shared(memory)
        return S, S

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        S = (self.shared.weight, self.shared.bias)
        return (self.query.weight, self.query.bias), S, S

    def own_spread(self, deviation: float) -> float:
        return self.spread_of_products(deviation)

    def scale_scores(self, factor: float) -> None:
        """By the queries alone, since the keys are the values too."""
        self.query.weight.mul_(factor)
