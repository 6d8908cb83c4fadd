"""The encoder-decoder Transformer of Vaswani et al. 2017 with any self-attention operator.

As in the paper, and in the TensorFlow tutorial that the blog post on Hadamard attention follows: embeddings times
sqrt(h), sinusoidal positions, dropout on the sum of both and on the output of every sublayer, LayerNorm after every
residual sum and no LayerNorm at the end, ReLU in the feed-forward networks. The operator stands in encoder
self-attention, masked decoder self-attention and cross-attention, attention over parameters in place of every
feed-forward network.

Hidden states of the source, such as `memory`, are `[batch, n, h]`, and of the target `[batch, m, h]`. A mask is True
for seen tokens, and broadcasts to `[batch, heads, queries, keys]`.
"""

import math

import torch
from torch import Tensor, nn

from stages.attention.base import SelfAttention
from stages.encoder_decoder.pairs import PAD

# Epsilon of LayerNorm, as in the tutorial (Keras).
EPSILON = 1e-6


class Attention(nn.Module):
    """An operator with an output projection, then dropout, residual sum and LayerNorm."""

    def __init__(self, operator: SelfAttention, dropout: float):
        super().__init__()
        self.operator = operator
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(operator.hidden, eps=EPSILON)

    def forward(
        self,
        X: Tensor,
        mask: Tensor,
        memory: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """Computes hidden states; `memory` gives keys and values (`None`: X); `causal`: a token sees no later token."""
        attended = self.operator(X, mask, memory, causal)
        return self.norm(X + self.dropout(attended))


class FeedForward(nn.Module):
    """A network `inner` for every position, and a Linear layer back; then dropout, residual sum and LayerNorm."""

    def __init__(self, inner: nn.Module, width: int, hidden: int, dropout: float):
        super().__init__()
        self.inner = inner
        self.output = nn.Linear(width, hidden)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(hidden, eps=EPSILON)

    def forward(self, X: Tensor) -> Tensor:
        """Computes hidden states."""
        return self.norm(X + self.dropout(self.output(self.inner(X))))


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network."""

    def __init__(self, attention: Attention, feed_forward: FeedForward):
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward

    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        """Computes hidden states."""
        return self.feed_forward(self.attention(X, mask))


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, then a feed-forward network."""

    def __init__(self, attention: Attention, cross: Attention, feed_forward: FeedForward):
        super().__init__()
        self.attention = attention
        self.cross = cross
        self.feed_forward = feed_forward

    def forward(
        self,
        X: Tensor,
        mask: Tensor,
        memory: Tensor,
        memory_mask: Tensor,
    ) -> Tensor:
        """Computes hidden states; adds the causal mask to `mask`."""
        attended = self.attention(X, mask, causal=True)
        return self.feed_forward(self.cross(attended, memory_mask, memory))


class Transformer(nn.Module):
    """Encodes source ids, and decodes a target prefix to hidden states whose `output` scores the next target token.

    `words` are the sizes of both vocabularies; `positions` is the longest sequence, in tokens. If `shared`, a single
    matrix serves as both embeddings and, transposed, as the output (Vaswani et al., section 3.4); otherwise there are
    three matrices, and the output has a bias (the tutorial).
    """

    def __init__(
        self,
        encoder: list[EncoderLayer],
        decoder: list[DecoderLayer],
        words: tuple[int, int],
        hidden: int,
        positions: int,
        dropout: float,
        shared: bool,
    ):
        super().__init__()
        self.encoder = nn.ModuleList(encoder)
        self.decoder = nn.ModuleList(decoder)
        self.source = nn.Embedding(words[0], hidden)
        self.target = self.source if shared else nn.Embedding(words[1], hidden)
        self.output = nn.Linear(hidden, words[1], bias=not shared)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("places", compute_sinusoids(positions, hidden), persistent=False)
        initialise(self, hidden)
        if shared:
            # Tied after the initialisation, so that the matrix starts as an embedding.
            self.output.weight = self.source.weight

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Encodes padded token ids `[batch, n]` to hidden states and the mask `[batch, 1, 1, n]`, False at padding."""
        seen = (source != PAD)[:, None, None]
        X = self._embed(self.source, source)
        for layer in self.encoder:
            X = layer(X, seen)
        return X, seen

    def decode(self, target: Tensor, memory: Tensor, seen: Tensor) -> Tensor:
        """Computes hidden states of a target prefix, ids `[batch, m]`; a token sees no later token and no padding."""
        mask = (target != PAD)[:, None, None]
        X = self._embed(self.target, target)
        for layer in self.decoder:
            X = layer(X, mask, memory, seen)
        return X

    def _embed(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        # ids are [batch, n], with n at most `positions`.
        scaled = embedding(ids) * math.sqrt(embedding.embedding_dim)
        return self.dropout(scaled + self.places[: ids.shape[1]])


def compute_sinusoids(positions: int, hidden: int) -> Tensor:
    """Computes the position encodings `[positions, h]` (Vaswani et al. 2017, section 3.5).

    Channels 2 i and 2 i + 1 are sine and cosine of `position * 10,000^(-2 i / h)`. For h = 2, row p is (sin p, cos p).
    """
    # Float32 would round large angles.
    channels = torch.arange(0, hidden, 2, dtype=torch.float64)
    rates = 10_000.0 ** (-channels / hidden)
    angles = torch.arange(positions, dtype=torch.float64)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


@torch.no_grad()
def initialise(module: nn.Module, hidden: int) -> None:
    """Initialises Linear layers, embeddings and operators of a model of width `hidden`, from the global generator."""
    # As in the tutorial (Keras), because the draft section on attention over parameters does not say: Glorot-uniform
    # weights, and biases at 0. Embeddings start at N(0, 1 / h): of unit variance once scaled.
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        elif isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=part.embedding_dim**-0.5)
    # Operators and attention over parameters come last, as these may copy weights. hidden^-0.5 is the standard
    # deviation of Glorot-uniform weights [h, h].
    for part in module.modules():
        if hasattr(part, "initialise"):
            part.initialise(hidden**-0.5)
