"""Pairwise attention: a free matrix between one projection and itself."""

import math

import torch
from torch import Tensor

from .symmetric import Symmetric


class Pairwise(Symmetric):
    """Scores Q_i S_i Q_i^T / sqrt(d) with a free S_i [d, d] for every head: 2 (h^2 + h) + heads d^2 parameters.

    Fixed by Courtois et al. 2024, equations 4 to 6, and by their released code where the paper is silent: one S for
    every head and layer, no bias and no constraint on it, started at N(0, 1), untouched by BERT's own start (`start`
    normal), and multiplied before the division by sqrt(d). Controls of ours: identity, and scaled, N(0, 1 / d).
    """

    name = "pairwise"
    equation = "softmax(Q_i S_i Q_i^T / sqrt(d)) V_i, Q = X W_q, V = X W_v, S_i [d, d]"
    source = "Courtois et al. 2024, equations 4 to 6"
    look = ("#d55e00", "dashdot")
    starts = ("normal", "identity", "scaled")
    scores_alone = ("S",)

    @classmethod
    def own_shapes(cls, hidden: int, heads: int, positions: int) -> dict[str, tuple[int, ...]]:
        return {"S": (heads, hidden // heads, hidden // heads)}

    @classmethod
    def own_work(cls, hidden: int, heads: int, length: int) -> int:
        return super().own_work(hidden, heads, length) + 2 * hidden * (hidden // heads)

    def heads_of(self, X: Tensor, memory: Tensor | None) -> tuple[Tensor, ...]:
        """As in the other operators, with Q S in place of Q."""
        Q, K, V = super().heads_of(X, memory)
        return Q @ self.S, K, V

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        query, key, value = super().projections()
        S = torch.block_diag(*self.S)  # Q S = X (W_q S) + b_q S
        return (S.T @ query[0], query[1] @ S), key, value

    def start_own(self) -> None:
        if self.start == "identity":
            self.S.copy_(torch.eye(self.width).expand_as(self.S))
        else:
            self.S.normal_(std=self._deviation())

    def _deviation(self) -> float:
        """The standard deviation of an entry of S at the start."""
        return 1.0 if self.start == "normal" else self.width**-0.5

    def own_spread(self, deviation: float) -> float:
        """x^T W S W^T y / sqrt(d): E |W S W^T|^2 = sigma^2 ((h d)^2 + 2 h d) r^4 for S from N(0, sigma^2)."""
        if self.start == "identity":
            return self.spread_of_squares(deviation)
        return self._deviation() * deviation**2 * math.sqrt(self.hidden * (self.hidden * self.width + 2))

    def scale_scores(self, factor: float) -> None:
        self.S.mul_(factor)
