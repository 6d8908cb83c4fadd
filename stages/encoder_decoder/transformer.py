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

from stages.attention.configuration import OperatorConfig, make_configuration
from stages.encoder_decoder.pairs import PAD
from stages.encoder_decoder.run import TranslationRun
from stages.schema.training_sections import Sized

# Epsilon of LayerNorm, as in the tutorial (Keras).
EPSILON = 1e-6


def configure_operator(run: TranslationRun) -> OperatorConfig:
    """Configures a run's operator without dropout on the attention weights, as in both sources."""
    # The fields of Sized are layers, hidden, heads, intermediate and positions.
    sizes = run.training.model_dump(include={*Sized.model_fields})
    return make_configuration(run.operator, **sizes, attention_probs_dropout_prob=0.0)


class Sublayer(nn.Module):
    """A part of a layer, whose output passes dropout, residual sum and LayerNorm."""

    def __init__(self, run: TranslationRun):
        super().__init__()
        self.dropout = nn.Dropout(run.training.dropout)
        self.norm = nn.LayerNorm(run.training.hidden, eps=EPSILON)

    def add_output(self, X: Tensor, output: Tensor) -> Tensor:
        """Adds the sublayer's output for X to X; returns hidden states."""
        return self.norm(X + self.dropout(output))


class Attention(Sublayer):
    """The operator of a run, with an output projection; OverParameters attends like the original."""

    def __init__(self, run: TranslationRun):
        super().__init__(run)
        self.operator = configure_operator(run).build_self_attention(output=True)

    def forward(
        self,
        X: Tensor,
        mask: Tensor,
        memory: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """Computes hidden states; `memory` gives keys and values (`None`: X); `causal`: a token sees no later token."""
        return self.add_output(X, self.operator(X, mask, memory, causal))


class FeedForward(Sublayer):
    """A module `inner`, which is a Linear layer with ReLU or attention over parameters, and a Linear layer."""

    def __init__(self, run: TranslationRun):
        super().__init__(run)
        config = configure_operator(run)
        hidden, width = config.hidden_size, config.intermediate_size
        # Only OverParameters and OverParametersWide have a replacement, attention over parameters.
        replacement = config.build_feed_forward()
        if replacement is None:
            self.inner = nn.Sequential(nn.Linear(hidden, width), nn.ReLU())
        else:
            self.inner, width = replacement
        self.output = nn.Linear(width, hidden)

    def forward(self, X: Tensor) -> Tensor:
        """Computes hidden states."""
        return self.add_output(X, self.output(self.inner(X)))


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network."""

    def __init__(self, run: TranslationRun):
        super().__init__()
        self.attention = Attention(run)
        self.feed_forward = FeedForward(run)

    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        """Computes hidden states."""
        return self.feed_forward(self.attention(X, mask))


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, then a feed-forward network."""

    def __init__(self, run: TranslationRun):
        super().__init__()
        self.attention = Attention(run)
        self.cross = Attention(run)
        self.feed_forward = FeedForward(run)

    def forward(
        self,
        X: Tensor,
        mask: Tensor,
        memory: Tensor,
        memory_mask: Tensor,
    ) -> Tensor:
        """Computes hidden states from X and from the source's `memory`; adds the causal mask to `mask`."""
        attended = self.attention(X, mask, causal=True)
        return self.feed_forward(self.cross(attended, memory_mask, memory))


class Transformer(nn.Module):
    """Encodes source ids, and decodes a target prefix to hidden states whose `output` scores the next target token.

    Weights are drawn from the global generator. `words` are the sizes of both vocabularies. With a shared vocabulary, a
    single matrix serves as both embeddings and, transposed, as the output (Vaswani et al., section 3.4); otherwise
    there are three matrices, and the output has a bias (the tutorial).
    """

    def __init__(self, run: TranslationRun, words: tuple[int, int]):
        super().__init__()
        recipe = run.training
        hidden = recipe.hidden
        shared = recipe.vocabulary == "shared"
        # The order of the constructors decides which random numbers each layer draws.
        self.encoder = nn.ModuleList(EncoderLayer(run) for _ in range(recipe.layers))
        self.decoder = nn.ModuleList(DecoderLayer(run) for _ in range(recipe.layers))
        self.source = nn.Embedding(words[0], hidden)
        self.target = self.source if shared else nn.Embedding(words[1], hidden)
        self.output = nn.Linear(hidden, words[1], bias=not shared)
        self.dropout = nn.Dropout(recipe.dropout)
        self.register_buffer("places", compute_sinusoids(recipe.positions, hidden), persistent=False)
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
        """Computes hidden states of target prefixes, ids `[batch, m]`, from the two results of `encode`.

        A token sees no later token and no padding.
        """
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
