"""The self-attention operators, each beside its equation.

X [batch, n, h] are the hidden states; a head i of `heads` owns the i-th slice of d = h / heads channels of every
projection. All operators weigh values by softmax(scores_i / sqrt(d)) and differ in where queries Q, keys K and values V
come from. Scores are divided by sqrt(d) after the whole product, masks act on keys, dropout acts on the weights, as in
BERT (Devlin et al. 2018; Courtois et al. 2024, section 2.4, sets d = h / heads).
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


class DotProduct(nn.Module):
    """softmax(Q_i K_i^T / sqrt(d)) V_i: what the operators share. A subclass says what Q, K and V are."""

    def __init__(self, hidden: int, heads: int, dropout: float):
        super().__init__()
        if hidden % heads:
            raise ValueError(f"{heads} heads do not divide the hidden size {hidden}")
        self.heads = heads
        self.dropout = dropout

    def initialise(self) -> None:
        """Sets the parameters that are no Linear layer's; those start as all of BERT does: N(0, 0.02), biases 0."""

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Q, K, V, each [batch, n, h], from X [batch, n, h]."""
        raise NotImplementedError

    def context(self, X: Tensor, mask: Tensor | None) -> Tensor:
        """The weighted values [batch, n, h]; mask [batch, 1, 1 or n, n] is boolean (True = seen) or additive."""
        Q, K, V = (split(T, self.heads) for T in self.queries_keys_values(X))
        return merge(attend(Q, K, V, mask, self.dropout if self.training else 0.0))

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, **_
    ) -> tuple[Tensor, None]:
        """As Hugging Face's BertSelfAttention; attention weights are not returned."""
        return self.context(hidden_states, attention_mask), None


class Original(DotProduct):
    """Q = X W_q + b_q, K = X W_k + b_k, V = X W_v + b_v: 3 (h^2 + h) parameters.

    Devlin et al. 2018; Courtois et al. 2024, equation 1.
    """

    def __init__(self, hidden: int, heads: int, dropout: float):
        super().__init__(hidden, heads, dropout)
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return project(X, self.query, self.key, self.value)


class Symmetric(DotProduct):
    """K = Q = X W_q + b_q, V = X W_v + b_v; scores Q_i Q_i^T: 2 (h^2 + h) parameters.

    Courtois et al. 2024, equation 3. The bias enters on both sides, as in their released code.
    """

    def __init__(self, hidden: int, heads: int, dropout: float):
        super().__init__(hidden, heads, dropout)
        self.query = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        Q, V = project(X, self.query, self.value)
        return Q, Q, V


class Pairwise(DotProduct):
    """Scores Q_i S_i Q_i^T with a free S_i [d, d] for every head: 2 (h^2 + h) + heads d^2 parameters.

    Courtois et al. 2024, equations 4 to 6. The paper does not say how S starts; their released code draws it from
    N(0, 1), which BERT's own initialisation does not touch.
    """

    def __init__(self, hidden: int, heads: int, dropout: float):
        super().__init__(hidden, heads, dropout)
        self.query = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.S = nn.Parameter(torch.empty(heads, hidden // heads, hidden // heads))
        self.initialise()

    def initialise(self) -> None:
        nn.init.normal_(self.S)

    def context(self, X: Tensor, mask: Tensor | None) -> Tensor:
        Q, V = (split(T, self.heads) for T in project(X, self.query, self.value))
        return merge(attend(Q @ self.S, Q, V, mask, self.dropout if self.training else 0.0))


class Shared(DotProduct):
    """S = X W_s + b_s; Q = S D_q, K = S D_k, V = S D_v with diagonal D: h^2 + h + 3 h parameters.

    Kowsher et al., section 2.3. Not stated there: the bias (their count of 95,337,218 parameters has one), the diagonals'
    start (1 here, so that training begins at Q = K = V), one vector a layer (the count again). Since
    Q K^T = S (D_q D_k) S^T and the weighted sum commutes with D_v, one product of S serves all three:
    queries S D_q D_k, keys S, values S, and D_v last. Outputs and gradients are those of the definition.
    """

    def __init__(self, hidden: int, heads: int, dropout: float):
        super().__init__(hidden, heads, dropout)
        self.shared = nn.Linear(hidden, hidden)
        self.D_q = nn.Parameter(torch.empty(hidden))
        self.D_k = nn.Parameter(torch.empty(hidden))
        self.D_v = nn.Parameter(torch.empty(hidden))
        self.initialise()

    def initialise(self) -> None:
        for diagonal in (self.D_q, self.D_k, self.D_v):
            nn.init.ones_(diagonal)

    def queries_keys_values(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        S = self.shared(X)
        return S * (self.D_q * self.D_k).to(S.dtype), S, S

    def context(self, X: Tensor, mask: Tensor | None) -> Tensor:
        C = super().context(X, mask)
        return C * self.D_v.to(C.dtype)


OPERATORS: dict[str, type[DotProduct]] = {
    "original": Original,
    "symmetric": Symmetric,
    "pairwise": Pairwise,
    "shared": Shared,
}


def project(X: Tensor, *layers: nn.Linear) -> tuple[Tensor, ...]:
    """X W + b for each of several layers, in one matrix product."""
    weight = torch.cat([layer.weight for layer in layers])
    bias = torch.cat([layer.bias for layer in layers])
    return functional.linear(X, weight, bias).chunk(len(layers), dim=-1)


def split(T: Tensor, heads: int) -> Tensor:
    """[batch, n, h] -> [batch, heads, n, d]."""
    return T.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge(T: Tensor) -> Tensor:
    """[batch, heads, n, d] -> [batch, n, h]."""
    return T.transpose(1, 2).flatten(2)


def attend(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """softmax(Q K^T / sqrt(d)) V for every head; all [batch, heads, n, d].

    The fused kernel serves GPUs and float32 without dropout. Elsewhere on a CPU it has no fast path, and the product
    written out is faster.
    """
    if Q.device.type != "cpu" or (Q.dtype == torch.float32 and dropout == 0.0):
        return functional.scaled_dot_product_attention(Q, K, V, attn_mask=mask, dropout_p=dropout)
    scores = (Q * Q.shape[-1] ** -0.5) @ K.transpose(-2, -1)
    if mask is not None:
        lowest = torch.finfo(scores.dtype).min
        scores = scores.masked_fill(~mask, lowest) if mask.dtype == torch.bool else scores + mask
    return functional.dropout(torch.softmax(scores, dim=-1), dropout) @ V
