"""Scaled dot-product attention, which the others are compared with; and a control with fewer parameters elsewhere."""

import math

from torch import Tensor

from .base import SelfAttention
from .products import project


class Original(SelfAttention):
    """Q = X W_q + b_q, K = X W_k + b_k, V = X W_v + b_v: 3 (h^2 + h) parameters.

    Fixed by Devlin et al. 2018 and their code (biases, sqrt(d) of a head); Courtois et al. 2024, equation 1, is the
    same without biases. `start` tied is a control of ours: W_k = W_q at the start and free afterwards (is a gain of
    Symmetric one of the start alone?).
    """

    name = "original"
    equation = "softmax(Q_i K_i^T / sqrt(d)) V_i, Q = X W_q, K = X W_k, V = X W_v"
    source = "Devlin et al. 2018; Courtois et al. 2024, equation 1"
    look = ("#5b6570", "solid")
    starts = ("default", "tied")
    linear_layers = ("query", "key", "value")

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, ...]:
        return project(X, self.query, self.key, self.value)

    def queries(self, X: Tensor) -> Tensor:
        return self.query(X)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, ...]:
        return project(memory, self.key, self.value)

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        return tuple((layer.weight, layer.bias) for layer in (self.query, self.key, self.value))

    def start_own(self) -> None:
        if self.start == "tied":
            self.key.weight.copy_(self.query.weight)

    def own_spread(self, deviation: float) -> float:
        return self.spread_of_squares(deviation) if self.start == "tied" else self.spread_of_products(deviation)

    def scale_scores(self, factor: float) -> None:
        """By the weights of queries and keys, by equal parts."""
        for layer in (self.query, self.key):
            layer.weight.mul_(math.sqrt(factor))


class OriginalNarrow(Original):
    """Original, with a feed-forward network h - 1 narrower: as few parameters as Shared, saved elsewhere.

    That saves (h - 1) (2 h + 1) parameters a layer, to one the 2 h^2 - h that Shared saves. A control of ours.
    """

    name = "original_narrow"
    equation = "original, with a feed-forward network h - 1 narrower"
    source = "a control of this project"
    label = "original, narrower"
    look = ()

    @classmethod
    def feed_forward_width(cls, hidden: int, intermediate: int) -> int:
        return intermediate - (hidden - 1)
