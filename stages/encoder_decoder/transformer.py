"""The encoder-decoder Transformer of Vaswani et al. 2017 around any operator.

As in the paper, and in the TensorFlow tutorial that the blog post on Hadamard attention follows: embeddings times
sqrt(h), sinusoidal positions, dropout on their sum and on the output of every sublayer, LayerNorm after every residual
sum and none at the end, ReLU in the feed-forward networks. A self-attention operator stands in all three places:
encoder self-attention, masked decoder self-attention and cross-attention, where queries come from the decoder and keys
and values from the encoder. Attention over parameters stands in place of every feed-forward network.

Not stated by the draft section on attention over parameters, and as in the tutorial (Keras): Linear weights start
Glorot-uniform, biases at 0; LayerNorm's epsilon is 1e-6. Embeddings start at N(0, 1 / h): of unit variance once scaled.
"""

import math

import torch
from torch import Tensor, nn

from stages.attention.base import SelfAttention
from stages.encoder_decoder.pairs import PAD

EPSILON = 1e-6  # of LayerNorm


class Attention(nn.Module):
    """An operator, which projects its output itself, then dropout, residual sum and LayerNorm."""

    def __init__(self, operator: SelfAttention, dropout: float):
        super().__init__()
        self.operator = operator
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(operator.hidden, eps=EPSILON)

    def forward(self, X: Tensor, mask: Tensor, memory: Tensor | None = None) -> Tensor:
        """[batch, n, h] from X [batch, n, h]. mask: True = seen, broadcasts to [batch, heads, n, m].

        memory: hidden states [batch, m, h] that keys and values come from; X itself where None.
        """
        return self.norm(X + self.dropout(self.operator(X, mask, memory)))


class FeedForward(nn.Module):
    """A network for every position by itself, then dropout, residual sum and LayerNorm.

    The network is `inner`, [batch, n, h] -> [batch, n, width], and a Linear layer back to `hidden`, which is h.
    """

    def __init__(self, inner: nn.Module, width: int, hidden: int, dropout: float):
        super().__init__()
        self.inner = inner
        self.output = nn.Linear(width, hidden)
        self.dropout = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(hidden, eps=EPSILON)

    def forward(self, X: Tensor) -> Tensor:
        return self.norm(X + self.dropout(self.output(self.inner(X))))


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network."""

    def __init__(self, attention: Attention, feed_forward: FeedForward):
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward

    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        """[batch, n, h] from X [batch, n, h]. mask: True = seen, broadcasts to [batch, heads, n, n]."""
        return self.feed_forward(self.attention(X, mask))


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, then a feed-forward network."""

    def __init__(self, attention: Attention, cross: Attention, feed_forward: FeedForward):
        super().__init__()
        self.attention, self.cross, self.feed_forward = attention, cross, feed_forward

    def forward(self, X: Tensor, mask: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        """[batch, m, h] from X [batch, m, h] and the encoder's output `memory` [batch, n, h].

        Masks: True = seen; they broadcast to [batch, heads, m, m] and [batch, heads, m, n].
        """
        return self.feed_forward(self.cross(self.attention(X, mask), memory_mask, memory))


class Transformer(nn.Module):
    """From source ids and a target prefix to scores of the next target token.

    Args:
        encoder, decoder: the layers of each.
        words: sizes of the source and the target vocabulary, which are equal where `shared` is true.
        hidden, positions: width h, and the longest sequence, in tokens.
        dropout: rate on the sum of embeddings and positions, in [0, 1).
        shared: one matrix serves as both embeddings and, transposed, as the output (Vaswani et al., section 3.4);
            otherwise each has its own, and the output a bias (the tutorial).
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
        self.encoder, self.decoder = nn.ModuleList(encoder), nn.ModuleList(decoder)
        self.source = nn.Embedding(words[0], hidden)
        self.target = self.source if shared else nn.Embedding(words[1], hidden)
        self.output = nn.Linear(hidden, words[1], bias=not shared)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("places", sinusoids(positions, hidden), persistent=False)
        initialise(self, hidden)
        if shared:  # only now, so that the matrix is initialised as an embedding is
            self.output.weight = self.source.weight

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """The memory [batch, n, h] of source ids [batch, n], and the mask [batch, 1, 1, n], False at padding."""
        seen = (source != PAD)[:, None, None]
        X = self._embedded(self.source, source)
        for layer in self.encoder:
            X = layer(X, seen)
        return X, seen

    def decode(self, target: Tensor, memory: Tensor, seen: Tensor) -> Tensor:
        """Returns hidden states [batch, m, h] of target ids [batch, m], each of which sees itself and those before it.

        memory, seen: what `encode` returns. Padding is seen by none.
        """
        past = torch.ones(2 * target.shape[-1:], dtype=torch.bool, device=target.device).tril()  # [m, m]
        mask = past & (target != PAD)[:, None, None]
        X = self._embedded(self.target, target)
        for layer in self.decoder:
            X = layer(X, mask, memory, seen)
        return X

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Scores [batch, m, words] of the token after each one of target [batch, m], given source [batch, n]."""
        return self.output(self.decode(target, *self.encode(source)))

    def _embedded(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        """Returns the first layer's input [batch, n, h] for ids [batch, n], of which n is at most `positions`."""
        scaled = embedding(ids) * math.sqrt(embedding.embedding_dim)
        return self.dropout(scaled + self.places[: ids.shape[1]])


def sinusoids(positions: int, hidden: int) -> Tensor:
    """Returns [positions, h]: sine in even channels, cosine in odd ones (Vaswani et al. 2017, section 3.5).

    Channels 2 i and 2 i + 1 have the angle position * 10,000^(-2 i / h), in float64, as float32 rounds large ones.
    """
    rates = 10_000.0 ** (-torch.arange(0, hidden, 2, dtype=torch.float64) / hidden)
    angles = torch.arange(positions, dtype=torch.float64)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).float()


@torch.no_grad()
def initialise(module: nn.Module, hidden: int) -> None:
    """Initialises Linear layers, embeddings and operators in a model of width `hidden`, from the global generator."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        elif isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=part.embedding_dim**-0.5)
    for part in module.modules():
        if hasattr(part, "initialise"):  # operators, and attention over parameters: last, as they may copy weights
            part.initialise(hidden**-0.5)  # the standard deviation of Glorot-uniform weights [h, h]
