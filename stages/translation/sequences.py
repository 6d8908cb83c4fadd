"""Trains models of two exact sequence tasks, which test claims of the blog post on attention by position.

Recurrence: `x(t+1) = k0 x(t) + k1 x(t-1) + k2 x(t-2)`. Every position predicts the next value. The weights of the lags
are the same at every position, so attention by positions is enough; the post names this task for fixed attention. The
first three values are random, and not predicted.

Copy: every position has a key and a value, drawn anew in every sequence; the last position has only a key, whose value
is to be predicted. The position of that key differs, so position alone cannot solve the task.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.encoder_decoder.run import TranslationRun
from stages.encoder_decoder.steps import NO_CLIPPING
from stages.encoder_decoder.transformer import EncoderLayer, compute_sinusoids, initialise
from stages.training.machine import find_device
from stages.training.optimisation import (
    INITIALISATION,
    ORDER,
    READ_INTERVAL,
    UnreadLosses,
    build_optimiser,
    compute_linear_rate,
    derive_seed,
    seed_torch,
    update_weights,
)

# k0, k1, k2: the roots are 0.5 and 0.98 exp(+-0.65i), a wave that hardly fades.
COEFFICIENTS = (2.06, -1.74, 0.48)
# The first position whose next value follows from the given values.
FIRST = 2
# Numbers of different keys and values in the task Copy.
KEYS, VALUES = 16, 16
# The error is measured on this many sequences, drawn with the number of a step that no training reaches.
HELD_OUT_SEQUENCES = 1000
HELD_OUT_STEP = 2**31


# Inputs and expected outputs of a step.
Batch = tuple[Tensor, Tensor]


class SequenceModel(nn.Module):
    """The translation model's encoder layers, between a task's input layer `embed` and a linear output.

    If `causal`, a position attends only to the same and earlier positions.
    """

    places: Tensor

    def __init__(
        self,
        run: TranslationRun,
        embed: nn.Module,
        outputs: int,
        causal: bool,
    ):
        super().__init__()
        recipe = run.training
        n = recipe.positions
        seen = torch.ones(n, n, dtype=torch.bool)
        if causal:
            seen = seen.tril()
        self.embed = embed
        self.layers = nn.ModuleList(EncoderLayer(run) for _ in range(recipe.layers))
        self.output = nn.Linear(recipe.hidden, outputs)
        self.register_buffer("places", compute_sinusoids(n, recipe.hidden), persistent=False)
        # The same mask serves all sequences and heads.
        self.register_buffer("mask", seen[None, None], persistent=False)
        initialise(self, recipe.hidden)

    def encode(self, X: Tensor) -> Tensor:
        """Computes the last layer's hidden states from embedded inputs, both `[batch, n, h]`."""
        X = X + self.places
        for layer in self.layers:
            X = layer(X, self.mask)
        return X


class Recurrence(SequenceModel):
    """Predicts the next value of a recurrence at every position."""

    def __init__(self, run: TranslationRun):
        embed = nn.Linear(1, run.training.hidden)
        super().__init__(run, embed, outputs=1, causal=True)

    def forward(self, values: Tensor) -> Tensor:
        """Predicts the next values, `[batch, n]` like the values; the first two predictions have no meaning."""
        X = self.embed(values[..., None])
        return self.output(self.encode(X)).squeeze(-1)

    @staticmethod
    def draw(number: int, positions: int, generator: torch.Generator) -> Batch:
        """Draws inputs x(t) and expected x(t+1), both `[number, positions]`."""
        values = list(torch.randn(3, number, generator=generator))
        k0, k1, k2 = COEFFICIENTS
        while len(values) < positions + 1:
            values.append(k0 * values[-1] + k1 * values[-2] + k2 * values[-3])
        x = torch.stack(values, dim=1)
        return x[:, :-1], x[:, 1:]

    @staticmethod
    def compute_loss(outputs: Tensor, expected: Tensor) -> Tensor:
        """Computes the mean squared error from the third prediction on."""
        return functional.mse_loss(outputs[:, FIRST:], expected[:, FIRST:])

    @classmethod
    def compute_error(cls, outputs: Tensor, expected: Tensor) -> Tensor:
        """Computes the root mean squared error, divided by the standard deviation of the right values."""
        return cls.compute_loss(outputs, expected).sqrt() / expected[:, FIRST:].std()


class Copy(SequenceModel):
    """Predicts the value that belongs to the last position's key."""

    def __init__(self, run: TranslationRun):
        embed = nn.Embedding(KEYS + VALUES + 1, run.training.hidden)
        super().__init__(run, embed, outputs=VALUES, causal=False)

    def forward(self, symbols: Tensor) -> Tensor:
        """Computes scores `[batch, 16]` of the possible values of the last key, from symbols `[batch, n, 2]`."""
        # Embeddings are scaled by sqrt(h), as in the translation model.
        X = self.embed(symbols).sum(-2) * math.sqrt(self.places.shape[-1])
        return self.output(self.encode(X)[:, -1])

    @staticmethod
    def draw(number: int, positions: int, generator: torch.Generator) -> Batch:
        """Draws sequences of keys and values, and the value that each sequence asks for.

        Returns symbols `[number, positions, 2]`, a key (0 to 15) and a value (16 to 31) for each position, and the
        value `[number]` of the last key as a class from 0 to 15. The last position repeats a key, with the symbol 32 in
        place of the value.
        """
        before = positions - 1
        # Different keys, the first of a random order of all keys; params.yaml allows at most KEYS + 1 positions.
        orders = torch.rand(number, KEYS, generator=generator).argsort(1)
        keys = orders[:, :before]
        values = torch.randint(VALUES, (number, before), generator=generator)
        asked_place = torch.randint(before, (number, 1), generator=generator)
        asked = keys.gather(1, asked_place)
        answers = values.gather(1, asked_place)
        question = torch.full_like(asked, KEYS + VALUES)
        key_symbols = torch.cat([keys, asked], dim=1)
        value_symbols = torch.cat([KEYS + values, question], dim=1)
        symbols = torch.stack([key_symbols, value_symbols], dim=-1)
        return symbols, answers.squeeze(1)

    # The arguments are scores [batch, VALUES] and classes [batch].
    compute_loss = staticmethod(functional.cross_entropy)

    @staticmethod
    def compute_error(outputs: Tensor, expected: Tensor) -> Tensor:
        """Computes the share of wrong values."""
        # A model that answers with the commonest value of a sequence, whatever the key, is wrong in 0.78 of all
        # sequences of 12 positions.
        return (outputs.argmax(-1) != expected).float().mean()


TASKS = {"recurrence": Recurrence, "copy": Copy}


def train(run: TranslationRun) -> dict:
    """Trains a small model on new sequences in every step; measures the error on HELD_OUT_SEQUENCES further sequences.

    Returns `{"error": ...}`, such as the share of wrong values. ValueError if gradients are not finite.
    """
    recipe = run.training
    seed_torch(run.seed, INITIALISATION)
    model = TASKS[run.task](run).to(find_device())
    adam = build_optimiser(model, recipe.betas, recipe.epsilon, weight_decay=0.0)
    # Losses are read rarely, because a read makes a GPU wait; a read raises ValueError after a divergence.
    unread = UnreadLosses(lambda step, loss: f"{run.name}, step {step + 1}: loss {loss}")
    for step in range(recipe.steps):
        inputs, expected = draw_batch(run, recipe.batch_size, step)
        loss = model.compute_loss(model(inputs), expected)
        rate = compute_linear_rate(step, recipe.steps, recipe.warmup_steps, recipe.learning_rate)
        norm = update_weights(model, adam, loss, rate, NO_CLIPPING)
        unread.add(step, loss, norm)
        if (step + 1) % READ_INTERVAL == 0:
            unread.read()
    unread.read()
    model.eval()
    inputs, expected = draw_batch(run, HELD_OUT_SEQUENCES, HELD_OUT_STEP)
    with torch.no_grad():
        outputs = model(inputs)
    return {"error": model.compute_error(outputs, expected).item()}


def draw_batch(run: TranslationRun, number: int, step: int) -> Batch:
    """Draws inputs and expected outputs of `number` sequences, on this process's device.

    Equal seed, `step`, `number` and recipe give equal sequences on every device.
    """
    # Numbers are drawn on the CPU, and so are the same on every device.
    generator = torch.Generator().manual_seed(derive_seed(run.seed, ORDER, step))
    inputs, expected = TASKS[run.task].draw(number, run.training.positions, generator)
    return inputs.to(find_device()), expected.to(find_device())
