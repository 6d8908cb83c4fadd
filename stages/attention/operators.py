"""The operators, each beside its equation.

X [batch, n, h] are the hidden states; head i of `heads` owns the i-th slice of d = h / heads channels of every
projection (Courtois et al. 2024, section 2.4). A self-attention operator weighs values by a softmax over keys and
differs from the others in where the scores and the values come from. Scores Q K^T are divided by sqrt(d) after the
whole product, masks act on keys, dropout on the weights, as in BERT (Devlin et al. 2018); Linear layers start at
N(0, 0.02) with biases 0. Where a source leaves something open, the docstring says what and what was chosen.

The operators of the sources: Original, Symmetric, Pairwise, Shared, PartialQK, Hadamard, Fixed and
AttentionOverParameters. Controls that no source ran: OriginalTiedInit, SharedKV, TiedQKV.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.attention.products import attend, merge, project, split, weigh


class SelfAttention(nn.Module):
    """softmax(Q_i K_i^T / sqrt(d)) V_i for every head i: what the operators share. A subclass gives Q, K and V.

    positions: the longest sequence, which matters to operators with a weight for every pair of positions.
    """

    def __init__(self, hidden: int, heads: int, dropout: float, positions: int):
        super().__init__()
        if hidden % heads:
            raise ValueError(f"{heads} heads do not divide the hidden size {hidden}")
        self.hidden, self.heads, self.rate, self.positions = hidden, heads, dropout, positions

    def initialise(self) -> None:
        """Starts the parameters that no Linear layer holds. Called once, after the Linear layers have started."""

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Q, K, V, each [batch, n, h], from X [batch, n, h]."""
        raise NotImplementedError

    def forward(self, X: Tensor, mask: Tensor | None = None) -> Tensor:
        """The weighted values of all heads [batch, n, h]. mask: broadcasts to [batch, heads, n, n], True = seen."""
        Q, K, V = (split(T, self.heads) for T in self.queries_keys_values(X))
        return merge(attend(Q, K, V, mask, self.dropout))

    @property
    def dropout(self) -> float:
        return self.rate if self.training else 0.0

    def output_scale(self) -> Tensor | None:
        """A factor [h] of the weighted values that the output projection is to absorb, or None."""
        return None

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """(weight [h, h], bias [h]) of the queries, keys and values of an Original with equal outputs.

        ValueError for an operator that no choice of W_q, W_k, W_v can express.
        """
        raise ValueError(
            f"{type(self).__name__}: its scores are no product of queries and keys; BERT cannot express it"
        )


class Original(SelfAttention):
    """Q = X W_q + b_q, K = X W_k + b_k, V = X W_v + b_v: 3 (h^2 + h) parameters.

    Devlin et al. 2018; Courtois et al. 2024, equation 1.
    """

    def __init__(self, hidden: int, heads: int, dropout: float, positions: int):
        super().__init__(hidden, heads, dropout, positions)
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return project(X, self.query, self.key, self.value)

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        return tuple((layer.weight, layer.bias) for layer in (self.query, self.key, self.value))


class OriginalTiedInit(Original):
    """Original, with W_k = W_q at the start and free afterwards: is a gain of Symmetric one of the start alone?"""

    def initialise(self) -> None:
        self.key.weight.copy_(self.query.weight)


class Symmetric(SelfAttention):
    """K = Q = X W_q + b_q, V = X W_v + b_v; scores Q_i Q_i^T: 2 (h^2 + h) parameters.

    Courtois et al. 2024, equation 3. The bias enters on both sides, as in their released code.
    """

    def __init__(self, hidden: int, heads: int, dropout: float, positions: int):
        super().__init__(hidden, heads, dropout, positions)
        self.query = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        Q, V = project(X, self.query, self.value)
        return Q, Q, V

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        query = (self.query.weight, self.query.bias)
        return query, query, (self.value.weight, self.value.bias)


class Pairwise(Symmetric):
    """Scores Q_i S_i Q_i^T with a free S_i [d, d] for every head: 2 (h^2 + h) + heads d^2 parameters.

    Courtois et al. 2024, equations 4 to 6. The paper does not say how S starts; their released code draws it from
    N(0, 1), untouched by BERT's own initialisation: `start` normal. Controls: identity, and scaled, N(0, 1 / d).
    """

    def __init__(self, hidden: int, heads: int, dropout: float, positions: int, start: str = "normal"):
        super().__init__(hidden, heads, dropout, positions)
        if start not in ("normal", "identity", "scaled"):
            raise ValueError(f"pairwise_init: {start!r}; allowed are normal, identity, scaled")
        self.start = start
        self.S = nn.Parameter(torch.empty(heads, hidden // heads, hidden // heads))

    def initialise(self) -> None:
        d = self.S.shape[-1]
        if self.start == "identity":
            self.S.copy_(torch.eye(d).expand_as(self.S))
        else:
            self.S.normal_(std=1.0 if self.start == "normal" else d**-0.5)

    def forward(self, X: Tensor, mask: Tensor | None = None) -> Tensor:
        Q, V = (split(T, self.heads) for T in project(X, self.query, self.value))
        return merge(attend(Q @ self.S, Q, V, mask, self.dropout))

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        query, key, value = super().projections()
        S = torch.block_diag(*self.S)  # Q S = X (W_q S) + b_q S
        return (S.T @ query[0], query[1] @ S), key, value


class PartialQK(Symmetric):
    """S = X W + b; Q = S D, K = S with a diagonal D; V = X W_v + b_v: 2 (h^2 + h) + h parameters.

    Kowsher et al. 2025, Table 7, "partial QK sharing", given there as 2 h^2 + h without biases. Not stated: where the
    one diagonal stands (on the query here) and how it starts (1 here).
    """

    def __init__(self, hidden: int, heads: int, dropout: float, positions: int):
        super().__init__(hidden, heads, dropout, positions)
        self.D = nn.Parameter(torch.empty(hidden))

    def initialise(self) -> None:
        self.D.fill_(1.0)

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        S, V = project(X, self.query, self.value)
        return S * self.D.to(S.dtype), S, V

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        S, _, value = super().projections()
        return scaled(S, self.D), S, value


class TiedQKV(SelfAttention):
    """Q = K = V = X W_s + b_s: h^2 + h parameters. Shared without its diagonals: what do they add?"""

    def __init__(self, hidden: int, heads: int, dropout: float, positions: int):
        super().__init__(hidden, heads, dropout, positions)
        self.shared = nn.Linear(hidden, hidden)

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        S = self.shared(X)
        return S, S, S

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        S = (self.shared.weight, self.shared.bias)
        return S, S, S


class Shared(TiedQKV):
    """S = X W_s + b_s; Q = S D_q, K = S D_k, V = S D_v with diagonals D: h^2 + h + 3 h parameters.

    Kowsher et al., section 2.3. Not stated there: the bias (their count of 95,337,218 parameters has one), one vector
    a layer (the count again), and how the diagonals start (1 here: training begins at Q = K = V). Since
    Q K^T = S (D_q D_k) S^T and the weighted sum commutes with D_v, one S serves as all three: queries S D_q D_k, keys
    S, values S, and D_v in the output projection. Outputs and gradients are those of the definition.
    """

    def __init__(self, hidden: int, heads: int, dropout: float, positions: int):
        super().__init__(hidden, heads, dropout, positions)
        self.D_q, self.D_k, self.D_v = (nn.Parameter(torch.empty(hidden)) for _ in range(3))

    def initialise(self) -> None:
        for D in (self.D_q, self.D_k, self.D_v):
            D.fill_(1.0)

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        S = self.shared(X)
        return S * (self.D_q * self.D_k).to(S.dtype), S, S

    def output_scale(self) -> Tensor:
        return self.D_v

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        S, _, _ = super().projections()
        return scaled(S, self.D_q), scaled(S, self.D_k), scaled(S, self.D_v)


class SharedKV(SelfAttention):
    """Q = X W_q + b_q, K = V = X W_s + b_s: 2 (h^2 + h) parameters. Sharing without symmetric scores."""

    def __init__(self, hidden: int, heads: int, dropout: float, positions: int):
        super().__init__(hidden, heads, dropout, positions)
        self.query = nn.Linear(hidden, hidden)
        self.shared = nn.Linear(hidden, hidden)

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        Q, S = project(X, self.query, self.shared)
        return Q, S, S

    def projections(self) -> tuple[tuple[Tensor, Tensor], ...]:
        S = (self.shared.weight, self.shared.bias)
        return (self.query.weight, self.query.bias), S, S


class Positional(SelfAttention):
    """A learned weight W_i [n, n] for every head and pair of positions, and projected values V = X W_v + b_v.

    A sequence shorter than `positions` uses the first rows and columns; a longer one is an error. W starts as the
    blog's Keras layer does, Glorot-uniform for a kernel [1, heads, n, n]: limit sqrt(6 / (2 heads n)).
    """

    def __init__(self, hidden: int, heads: int, dropout: float, positions: int):
        super().__init__(hidden, heads, dropout, positions)
        self.value = nn.Linear(hidden, hidden)
        self.W = nn.Parameter(torch.empty(heads, positions, positions))

    def initialise(self) -> None:
        limit = math.sqrt(6 / (2 * self.heads * self.positions))
        self.W.uniform_(-limit, limit)

    def scores(self, X: Tensor, W: Tensor) -> Tensor:
        """[batch or 1, heads, n, n] from X [batch, n, h] and the weights W [heads, n, n] of its positions."""
        raise NotImplementedError

    def forward(self, X: Tensor, mask: Tensor | None = None) -> Tensor:
        n = X.shape[1]
        if n > self.positions:
            raise ValueError(
                f"{type(self).__name__} has weights for {self.positions} positions; a sequence has {n}: shorten it, or "
                "build the model with more `positions`"
            )
        V = split(self.value(X), self.heads)
        return merge(weigh(self.scores(X, self.W[:, :n, :n]), V, mask, self.dropout))


class Hadamard(Positional):
    """Scores W_i * (X_i X_i^T) / s, elementwise, with a learned scalar s: h^2 + h + heads n^2 + 1 parameters.

    Blog "Hadamard Attentions": no query or key projection, no sqrt(d), s starts at 1; 538,113 parameters with the
    output projection at h = 512, n = 40 (8 heads, which the count implies).
    """

    def __init__(self, hidden: int, heads: int, dropout: float, positions: int):
        super().__init__(hidden, heads, dropout, positions)
        self.s = nn.Parameter(torch.empty(()))

    def initialise(self) -> None:
        super().initialise()
        self.s.fill_(1.0)

    def scores(self, X: Tensor, W: Tensor) -> Tensor:
        X = split(X, self.heads)
        return X @ X.transpose(-2, -1) * (W / self.s)


class Fixed(Positional):
    """Scores W_i alone, whatever X is: h^2 + h + heads n^2 parameters. The same blog, "fixed attention"."""

    def scores(self, X: Tensor, W: Tensor) -> Tensor:
        return W[None]


class AttentionOverParameters(nn.Module):
    """softmax(Q_i K_i^T) V_i over p learned pairs (K_i, V_i [p, d]) a head, Q = X W_q + b_q, in place of BERT's
    feed-forward network; the projection back to h is the network's own last layer.

    Draft section "Two Feed-Forward Layers = Attention over Parameters": at h = 512, d = 64, both 8 heads of 1,536 pairs
    and 16 heads of 512 (its text says 8, its table 16) have the 2,097,152 weights of a network of width 2,048. Not
    stated: start and biases. As tensor2tensor's parameter_attention: K and V start at N(0, 1 / (heads d)) and are
    multiplied by sqrt(heads) and sqrt(heads d); dropout drops a value for all positions at once. No bias in K and V.
    """

    def __init__(self, hidden: int, heads: int, d: int, pairs: int, dropout: float):
        super().__init__()
        self.heads, self.rate = heads, dropout
        self.query = nn.Linear(hidden, heads * d)
        self.K = nn.Parameter(torch.empty(heads, pairs, d))
        self.V = nn.Parameter(torch.empty(heads, pairs, d))

    def initialise(self) -> None:
        width = self.heads * self.K.shape[-1]
        for T in (self.K, self.V):
            T.normal_(std=width**-0.5)

    def forward(self, X: Tensor) -> Tensor:
        """[batch, n, heads d] from X [batch, n, h]."""
        Q = split(self.query(X), self.heads)
        width = self.heads * self.K.shape[-1]
        weights = torch.softmax(Q @ (self.K * self.heads**0.5).transpose(-2, -1), dim=-1)
        V = functional.dropout1d(self.V * width**0.5, self.rate, self.training)
        return merge(weights.to(Q.dtype) @ V.to(Q.dtype))


def scaled(projection: tuple[Tensor, Tensor], D: Tensor) -> tuple[Tensor, Tensor]:
    """The projection X W + b, followed by the diagonal D."""
    return projection[0] * D[:, None], projection[1] * D


SELF_ATTENTION: dict[str, type[SelfAttention]] = {
    "original": Original,
    "symmetric": Symmetric,
    "pairwise": Pairwise,
    "shared": Shared,
    "partial_qk": PartialQK,
    "hadamard": Hadamard,
    "fixed": Fixed,
    "original_tied_init": OriginalTiedInit,
    "shared_kv": SharedKV,
    "tied_qkv": TiedQKV,
}
