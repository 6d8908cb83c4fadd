"""Partial sharing: queries and keys from one projection, told apart by a diagonal."""

from torch import Tensor

from .base import scaled
from .products import project
from .symmetric import Symmetric


class PartialQK(Symmetric):
    """S = X W + b; Q = S D, K = S with a diagonal D; V = X W_v + b_v: 2 (h^2 + h) + h parameters.

    Kowsher et al. 2025, Table 7, names "partial QK sharing" and gives it 2 h^2 + h weights, which two projections and
    one diagonal have; in another row the same table says that it scales by no diagonal. The count is followed here.
    Open: where the diagonal stands (on the queries here), how it starts (1 here), the biases (as in their shared
    operator).
    """

    name = "partial_qk"
    equation = "softmax(S_i D_i S_i^T / sqrt(d)) V_i, S = X W, V = X W_v, D diagonal"
    source = "Kowsher et al. 2025, Table 7"
    label = "partial QK sharing"
    look = ("#cc79a7", "solid")
    scores_alone = ("D",)

    @classmethod
    def own_shapes(cls, hidden: int, heads: int, positions: int) -> dict[str, tuple[int, ...]]:
        return {"D": (hidden,)}

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, ...]:
        S, V = project(X, self.query, self.value)
        return S * self.D.to(S.dtype), S, V

    def queries(self, X: Tensor) -> Tensor:
        S = self.query(X)
        return S * self.D.to(S.dtype)

    def diagonal(self) -> Tensor:
        return self.D

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        S, _, value = super().projections()
        return scaled(S, self.D), S, value

    def start_own(self) -> None:
        self.D.fill_(1.0)

    def scale_scores(self, factor: float) -> None:
        self.D.mul_(factor)
