"""Hadamard and fixed attention: a learned weight for every head and pair of positions.

Both are from "the blog", the post Hadamard Attentions: The Mighty Attentions Optimized. Parameters are counted for
n = `positions`, without the output projection. base.py explains the symbols, the arguments and the overridden methods.
"""

import math

from torch import Tensor

from .base import SelfAttention, Shapes
from .products import Mask, merge_heads, split_heads, weigh_values


class Fixed(SelfAttention):
    """Scores W_i, which do not depend on X, and values V = X W_v + b_v: h^2 + h + heads n^2 parameters.

    The blog has a learned square matrix in place of Q K^T. A sequence shorter than `positions` uses the first rows and
    columns of W (the blog's sequences all have the same length).
    """

    # The blog gives no code and leaves open: heads (here a matrix W for each head and split values, as in the blog's
    # Hadamard layer), and how W starts: here as that layer's Keras kernel [1, heads, n, n], Glorot-uniform with limit
    # sqrt(6 / (2 heads n)), so that var W = 1 / (heads n).
    linear_layers = ("value",)
    score_factors = ("W",)

    @classmethod
    def list_parameter_shapes(cls, hidden: int, heads: int, positions: int) -> Shapes:
        """Returns {"W": (heads, n, n)} with n = `positions`."""
        return {"W": (heads, positions, positions)}

    @classmethod
    def count_score_operations(cls, hidden: int, heads: int, length: int) -> int:
        """Returns 0, because learned scores W need no matrix product."""
        return 0

    def compute_scores(self, X: Tensor, memory: Tensor | None = None) -> Tensor:
        """Cuts the learned scores W to [1, heads, n, m]."""
        n = X.shape[1]
        m = n if memory is None else memory.shape[1]
        longest = max(n, m)
        if longest > self.positions:
            raise ValueError(
                f"{self.name}: weights for {self.positions} positions; a sequence has {longest}: shorten the sequence, "
                "or build the model with more `positions`"
            )
        return self.W[None, :, :n, :m]

    def compute_weighted_values(self, X: Tensor, mask: Mask, memory: Tensor) -> Tensor:
        """Weighs values by the softmax of learned scores; returns the sums of all heads side by side [batch, n, h]."""
        # Not `attend`, because PyTorch's fused kernels take queries and keys, not scores.
        V = split_heads(self.value(memory), self.heads)
        scores = self.compute_scores(X, memory)
        return merge_heads(weigh_values(scores, V, mask, self.dropout))

    def initialise_parameters(self) -> None:
        """Draws the learned scores W uniformly, as Keras does in the blog's code."""
        limit = math.sqrt(6 / (2 * self.heads * self.positions))
        self.W.uniform_(-limit, limit)

    def compute_source_spread(self, deviation: float) -> float:
        """Returns the standard deviation of a score before training."""
        return math.sqrt(1 / (self.heads * self.positions))


class Hadamard(Fixed):
    """Scores W_i * (X X^T) / s, elementwise, with a learned scalar s: h^2 + h + heads n^2 + 1 parameters.

    As in the blog's code, queries and keys are X itself, neither projected nor split, so that a single product over the
    whole width serves all heads (`qk_T` [batch, n, n], then `Hadamard(num_heads)`). A learned `scale`, here s, 1 at
    first, replaces sqrt(d).
    """

    # The blog's count of 538,113 with the output projection, at h = 512, n = 40, implies 8 heads and biases.
    s: Tensor

    @classmethod
    def list_parameter_shapes(cls, hidden: int, heads: int, positions: int) -> Shapes:
        """Returns {"W": (heads, n, n), "s": ()} with n = `positions`."""
        return {"W": (heads, positions, positions), "s": ()}

    @classmethod
    def count_score_operations(cls, hidden: int, heads: int, length: int) -> int:
        """Counts X X^T: two operations per pair of tokens and channel, by head or once for all heads."""
        return 2 * hidden * length

    def compute_scores(self, X: Tensor, memory: Tensor | None = None) -> Tensor:
        """Multiplies the products of hidden states by W / s: scores [batch, heads, n, m] before any mask."""
        if memory is None:
            memory = X
        products = self.compute_products(X, memory)
        # The base class gives W. W / s takes heads n^2 divisions; the products / s would take batch heads n^2.
        factors = super().compute_scores(X, memory) / self.s
        # Under autocast W is float32; scores in float32 would take twice the memory of the products.
        return products * factors.to(products.dtype)

    def compute_products(self, X: Tensor, memory: Tensor) -> Tensor:
        """Computes X memory^T [batch, 1, n, m] over the whole width, the same for every head."""
        return (X @ memory.transpose(-2, -1))[:, None]

    def initialise_parameters(self) -> None:
        """Draws W from a uniform distribution, and starts s at 1."""
        super().initialise_parameters()
        self.s.fill_(1.0)

    def compute_source_spread(self, deviation: float) -> float:
        """Returns the standard deviation of a score before training."""
        # The product of two tokens [h] of unit variance has the variance h, and s starts at 1.
        return super().compute_source_spread(deviation) * math.sqrt(self.hidden)


class HadamardByHead(Hadamard):
    """Scores W_i * (X_i X_i^T) / s, a product per head: a control that fits the blog's formula, but not its code."""

    def compute_products(self, X: Tensor, memory: Tensor) -> Tensor:
        """Computes X_i memory_i^T of every head i, [batch, heads, n, m]."""
        Q = split_heads(X, self.heads)
        K = split_heads(memory, self.heads)
        return Q @ K.transpose(-2, -1)

    def compute_source_spread(self, deviation: float) -> float:
        """Returns the standard deviation of a score before training."""
        # The product of two slices [d] of unit variance has the variance d.
        return Fixed.compute_source_spread(self, deviation) * math.sqrt(self.width)
