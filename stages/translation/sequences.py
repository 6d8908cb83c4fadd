"""Two exact sequence tasks behind claims of the blog post: one that position alone solves, and one that it cannot.

Recurrence: x(t+1) = k0 x(t) + k1 x(t-1) + k2 x(t-2). Given x up to t, every position predicts the next value. The
weights of the lags are the same at every position, so attention by positions alone is enough; the post names this task
for its fixed attention. The first values are random and not predicted. Error: the root of the mean squared error, over
the standard deviation of the values.

Copy: every position has a key and a value, drawn anew in every sequence; the last has only a key, whose value is to be
predicted. The position of that key differs from sequence to sequence, so position alone cannot solve it. Error: the
share of wrong values; the commonest value of a sequence of 12 positions, which needs no key, is wrong in 0.78 of them.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.encoder_decoder.run import TranslationRun
from stages.encoder_decoder.steps import NO_CLIPPING, attention, feed_forward
from stages.encoder_decoder.transformer import EncoderLayer, initialise, sinusoids
from stages.training.optimisation import (
    INITIALISATION,
    ORDER,
    derived_seed,
    device,
    linear_rate,
    optimiser,
    seed_torch,
    update,
)

COEFFICIENTS = (2.06, -1.74, 0.48)  # k0, k1, k2: a root 0.5; two of 0.98 exp(+-0.65i), a wave that hardly fades
LAGS = len(COEFFICIENTS)
FIRST = LAGS - 1  # the first position whose next value follows from those that are given
KEYS, VALUES = 16, 16
HELD_OUT = 1000  # sequences
HELD_OUT_STEP = 2**31  # a step that no training reaches, for the seed of the held-out sequences


class SequenceModel(nn.Module):
    """Encoder layers of the translation model between an input layer of the task and a linear output.

    Args:
        run: on a sequence task.
    """

    def __init__(self, run: TranslationRun):
        super().__init__()
        self.task, recipe = run.task, run.training
        hidden, length = recipe.hidden, recipe.positions
        self.embed = nn.Linear(1, hidden) if self.task == "recurrence" else nn.Embedding(KEYS + VALUES + 1, hidden)
        self.layers = nn.ModuleList(EncoderLayer(attention(run), feed_forward(run)) for _ in range(recipe.layers))
        self.output = nn.Linear(hidden, 1 if self.task == "recurrence" else VALUES)
        self.register_buffer("places", sinusoids(length, hidden), persistent=False)
        seen = torch.ones(length, length, dtype=torch.bool)
        seen = seen.tril() if self.task == "recurrence" else seen
        self.register_buffer("mask", seen[None, None], persistent=False)  # of every sequence and every head
        initialise(self, hidden)

    def forward(self, inputs: Tensor) -> Tensor:
        """Recurrence: [batch, n] -> [batch, n]. Copy: [batch, n, 2] -> scores of the last position [batch, VALUES]."""
        if self.task == "recurrence":
            X = self.embed(inputs[..., None])
        else:
            X = self.embed(inputs).sum(-2) * math.sqrt(self.places.shape[-1])
        X = X + self.places
        for layer in self.layers:
            X = layer(X, self.mask)
        return self.output(X).squeeze(-1) if self.task == "recurrence" else self.output(X[:, -1])


def train(run: TranslationRun) -> dict:
    """Trains on sequences drawn anew at every step; returns the `error` on held-out ones, as the module defines it."""
    recipe, seed = run.training, run.seed
    seed_torch(seed, INITIALISATION)
    model = SequenceModel(run).to(device())
    adam = optimiser(model, recipe.betas, recipe.epsilon, weight_decay=0.0)
    for step in range(recipe.steps):
        inputs, expected = drawn(run.task, recipe.batch_size, recipe.positions, seed, step)
        rate = linear_rate(step, recipe.steps, recipe.warmup_steps, recipe.learning_rate)
        update(model, adam, loss_of(model(inputs), expected), rate, NO_CLIPPING, f"{run.name}, step {step + 1}")
    model.eval()
    with torch.no_grad():
        inputs, expected = drawn(run.task, HELD_OUT, recipe.positions, seed, HELD_OUT_STEP)
        return {"error": error_of(model(inputs), expected)}


def loss_of(outputs: Tensor, expected: Tensor) -> Tensor:
    """Mean squared error of values, cross-entropy of classes."""
    if outputs.shape == expected.shape:
        return functional.mse_loss(outputs[:, FIRST:], expected[:, FIRST:])
    return functional.cross_entropy(outputs, expected)


def error_of(outputs: Tensor, expected: Tensor) -> float:
    """Relative error of values, share of wrong classes."""
    if outputs.shape == expected.shape:
        return (loss_of(outputs, expected).sqrt() / expected[:, FIRST:].std()).item()
    return (outputs.argmax(-1) != expected).float().mean().item()


def drawn(task: str, number: int, positions: int, seed: int, step: int) -> tuple[Tensor, Tensor]:
    """Draws sequences.

    Args:
        task: recurrence or copy.
        number: of sequences.
        positions: of each.
        seed: of the run.
        step: for which they are drawn.

    Returns:
        Inputs and expected outputs, as the function of the task's name returns them, on this process's device.
    """
    generator = torch.Generator().manual_seed(derived_seed(seed, ORDER, step))
    make = recurrence if task == "recurrence" else copy
    return tuple(T.to(device()) for T in make(number, positions, generator))


def recurrence(number: int, positions: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draws x(t) and x(t+1), both [number, positions]; the first LAGS values are from N(0, 1)."""
    values = list(torch.randn(LAGS, number, generator=generator))
    while len(values) < positions + 1:
        values.append(sum(k * x for k, x in zip(COEFFICIENTS, reversed(values[-LAGS:]), strict=True)))
    x = torch.stack(values, dim=1)
    return x[:, :-1], x[:, 1:]


def copy(number: int, positions: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draws symbols [number, positions, 2], a key and a value each, and the value [number] of the last position's key.

    The keys of a sequence differ. At the last position a symbol of its own stands in place of the value.
    """
    keys = torch.rand(number, KEYS, generator=generator).argsort(1)[:, : positions - 1]
    values = torch.randint(VALUES, (number, positions - 1), generator=generator)
    place = torch.randint(positions - 1, (number, 1), generator=generator)
    asked, expected = keys.gather(1, place), values.gather(1, place).squeeze(1)
    question = torch.full_like(asked, KEYS + VALUES)
    pairs = torch.stack([torch.cat([keys, asked], 1), torch.cat([KEYS + values, question], 1)], dim=-1)
    return pairs, expected
