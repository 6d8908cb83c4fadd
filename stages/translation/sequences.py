"""Two exact sequence tasks behind claims of the blog post: one that position alone solves, and one that it cannot.

Recurrence: x(t+1) = k0 x(t) + k1 x(t-1) + k2 x(t-2). Given x up to t, every position predicts the next value. The
weights of the lags are the same at every position, so attention by positions alone is enough; the post names this task
for its fixed attention. The first three values are random, and not predicted. Error: the root of the mean squared error
of the predicted values, divided by the standard deviation of the right ones.

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
KEYS, VALUES = 16, 16  # how many different ones there are
HELD_OUT = 1000  # sequences that the error is measured on
HELD_OUT_STEP = 2**31  # a step that no training reaches, for the seed of the held-out sequences


class SequenceModel(nn.Module):
    """The translation model's encoder layers, causal in the recurrence, between a task's input and a linear output."""

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
        """Recurrence: values [batch, n] -> the next values [batch, n], of which those before FIRST mean nothing.

        Copy: symbols [batch, n, 2] -> scores of the last position's value [batch, VALUES]. n: the recipe's `positions`.
        """
        if self.task == "recurrence":
            X = self.embed(inputs[..., None])
        else:
            X = self.embed(inputs).sum(-2) * math.sqrt(self.places.shape[-1])  # sqrt(h), as in the translation model
        X = X + self.places
        for layer in self.layers:
            X = layer(X, self.mask)
        return self.output(X).squeeze(-1) if self.task == "recurrence" else self.output(X[:, -1])


def train(run: TranslationRun) -> dict:
    """Trains on new sequences at every step; returns {"error": the module's error measure, on HELD_OUT others}.

    ValueError where gradients are not finite.
    """
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
        outputs = model(inputs)
        if run.task == "recurrence":
            return {"error": (loss_of(outputs, expected).sqrt() / expected[:, FIRST:].std()).item()}
        return {"error": (outputs.argmax(-1) != expected).float().mean().item()}


def loss_of(outputs: Tensor, expected: Tensor) -> Tensor:
    """Mean squared error, from position FIRST on, in the recurrence; mean cross-entropy in the copy.

    The shapes tell the task: both [batch, n] in the recurrence; outputs [batch, VALUES], classes [batch] in the copy.
    """
    if outputs.shape == expected.shape:
        return functional.mse_loss(outputs[:, FIRST:], expected[:, FIRST:])
    return functional.cross_entropy(outputs, expected)


def drawn(task: str, number: int, positions: int, seed: int, step: int) -> tuple[Tensor, Tensor]:
    """Draws the sequences of one step, which follow from the seed and the step alone.

    Args:
        task, number, positions: recurrence or copy, how many sequences are drawn, and the length of each.
        seed, step: the seed of the run, and the training step that they are for, or HELD_OUT_STEP.

    Returns:
        Inputs and expected outputs, as the function of the task's name returns them, on this process's device.
    """
    generator = torch.Generator().manual_seed(derived_seed(seed, ORDER, step))
    make = recurrence if task == "recurrence" else copy
    return tuple(T.to(device()) for T in make(number, positions, generator))


def recurrence(number: int, positions: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draws inputs x(t) and expected x(t+1), both [number, positions]; the first LAGS values of x are from N(0, 1)."""
    values = list(torch.randn(LAGS, number, generator=generator))
    while len(values) < positions + 1:
        values.append(sum(k * x for k, x in zip(COEFFICIENTS, reversed(values[-LAGS:]), strict=True)))
    x = torch.stack(values, dim=1)
    return x[:, :-1], x[:, 1:]


def copy(number: int, positions: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draws symbols [number, positions, 2], a key and a value each, and the value [number] of the last position's key.

    The keys of a sequence differ, but the last position repeats one of them, with the symbol KEYS + VALUES in place of
    the value. Keys are symbols from 0, values symbols from KEYS; the second tensor counts values from 0, as classes.
    """
    # the first keys of a random order of all; params.yaml allows at most KEYS + 1 positions
    keys = torch.rand(number, KEYS, generator=generator).argsort(1)[:, : positions - 1]
    values = torch.randint(VALUES, (number, positions - 1), generator=generator)
    place = torch.randint(positions - 1, (number, 1), generator=generator)
    asked, expected = keys.gather(1, place), values.gather(1, place).squeeze(1)
    question = torch.full_like(asked, KEYS + VALUES)
    pairs = torch.stack([torch.cat([keys, asked], 1), torch.cat([KEYS + values, question], 1)], dim=-1)
    return pairs, expected
