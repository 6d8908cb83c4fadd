"""Symmetric attention: one projection serves as queries and keys."""

import math

from torch import Tensor

from .base import SelfAttention
from .products import project


class Symmetric(SelfAttention):
    """K = Q = X W_q + b_q, V = X W_v + b_v; scores Q_i Q_i^T / sqrt(d): 2 (h^2 + h) parameters.

    Fixed by Courtois et al. 2024, equation 3, and by their released code where it is silent: the bias is there and
    enters on both sides, and d is the width of a head.
    """

    name = "symmetric"
    equation = "softmax(Q_i Q_i^T / sqrt(d)) V_i, Q = X W_q, V = X W_v"
    source = "Courtois et al. 2024, equation 3"
    look = ("#0072b2", "dashed")
    linear_layers = ("query", "value")

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, ...]:
        Q, V = project(X, self.query, self.value)
        return Q, Q, V

    def queries(self, X: Tensor) -> Tensor:
        return self.query(X)

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        query = (self.query.weight, self.query.bias)
        return query, query, (self.value.weight, self.value.bias)

    def own_spread(self, deviation: float) -> float:
        return self.spread_of_squares(deviation)

    def scale_scores(self, factor: float) -> None:
        """By the weights of the one projection that is queries and keys."""
        self.query.weight.mul_(math.sqrt(factor))
