"""The parts of training for translation: the model, its learning rate, one update, the evaluation of held-out pairs."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.attention.configuration import OperatorConfig, configuration
from stages.encoder_decoder.pairs import PAD, Pairs
from stages.encoder_decoder.run import TranslationRun
from stages.encoder_decoder.transformer import Attention, DecoderLayer, EncoderLayer, FeedForward, Transformer
from stages.schema.training_sections import Sized
from stages.training.batches import padded, sorted_batches
from stages.training.optimisation import DROPOUT, INITIALISATION, autocast, device, seed_torch, update

HELD_OUT_BATCH = 128  # pairs
NO_CLIPPING = math.inf  # neither source (Vaswani et al. 2017, TensorFlow's tutorial on translation) clips gradients


@dataclass
class Counts:
    """Sums over batches; the sums of several can be added.

    loss: over the real target tokens (those that are no padding), in nats. right: number of real tokens that the model
    finds the most likely. tokens: number of real target tokens, END among them. pairs: number of sentence pairs.
    """

    loss: float = 0.0
    right: int = 0
    tokens: int = 0
    pairs: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(one + two for one, two in zip(vars(self).values(), vars(other).values(), strict=True)))


def built(run: TranslationRun, words: tuple[int, int]) -> Transformer:
    """Builds a run's model from its seed, on this process's device. words: sizes of source and target vocabulary."""
    seed_torch(run.seed, INITIALISATION)
    return assembled(run, words).to(device())


def assembled(run: TranslationRun, words: tuple[int, int]) -> Transformer:
    """Builds the model of `built` on torch's current device (`meta` takes no memory), from the global generator."""
    recipe = run.training
    encoder = [EncoderLayer(attention(run), feed_forward(run)) for _ in range(recipe.layers)]
    decoder = [DecoderLayer(attention(run), attention(run), feed_forward(run)) for _ in range(recipe.layers)]
    sizes = recipe.hidden, recipe.positions, recipe.dropout
    return Transformer(encoder, decoder, words, *sizes, recipe.vocabulary == "shared")


def configured(run: TranslationRun) -> OperatorConfig:
    """Returns the configuration of the operator of a run; neither source has dropout on the attention weights."""
    sizes = run.training.model_dump(include={*Sized.model_fields})  # layers, hidden, heads, intermediate, positions
    return configuration(run.operator, **sizes, attention_probs_dropout_prob=0.0)


def attention(run: TranslationRun) -> Attention:
    """Builds one attention sublayer with the operator of a run, which with OverParameters attends as Original does."""
    return Attention(configured(run).self_attention(output=True), run.training.dropout)


def feed_forward(run: TranslationRun) -> FeedForward:
    """Builds one feed-forward sublayer; with OverParameters, attention over as many weights takes its place."""
    config = configured(run)
    hidden, width = config.hidden_size, config.intermediate_size
    inner, width = config.feed_forward() or (nn.Sequential(nn.Linear(hidden, width), nn.ReLU()), width)
    return FeedForward(inner, width, hidden, run.training.dropout)


def rate(step: int, hidden: int, warmup: int) -> float:
    """Returns the learning rate h^-0.5 min(s^-0.5, s warmup^-1.5), s = step + 1 (Vaswani et al. 2017, equation 3)."""
    return hidden**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5)


def advance(
    model: Transformer, adam: torch.optim.AdamW, step: int, pairs: Pairs, indices: np.ndarray, run: TranslationRun
) -> Counts:
    """Makes one update by the mean loss of the real target tokens.

    Args:
        model, adam: the model, which is trained in place, and its optimiser.
        step: the number of the update, from 0.
        pairs, indices: the training split, and the places of the batch in it.
        run: its `training` is the recipe; its `seed`, with the step, decides the dropout.

    Returns:
        The batch's Counts before the update, with dropout, as in the tutorial's accuracy; the loss is label-smoothed.

    Raises:
        ValueError: the gradients are not finite.
    """
    recipe = run.training
    seed_torch(run.seed, DROPOUT, step)
    model.train()
    with autocast(recipe.precision):
        scores, labels = scored(model, pairs, indices)
    loss = functional.cross_entropy(scores.float(), labels, label_smoothing=recipe.label_smoothing)
    where = f"{run.name}, step {step + 1}"
    update(model, adam, loss, rate(step, recipe.hidden, recipe.warmup_steps), NO_CLIPPING, where)
    right = int((scores.argmax(-1) == labels).sum())
    return Counts(loss.item() * len(labels), right, len(labels), len(indices))


@torch.no_grad()
def held_out(model: Transformer, pairs: Pairs, precision: str) -> Counts:
    """Evaluates held-out pairs in float32 or bfloat16, without label smoothing; sets the model to evaluation mode."""
    model.eval()
    total = Counts()
    for indices in sorted_batches([len(sentence) for sentence in pairs.target], HELD_OUT_BATCH):
        with autocast(precision):
            scores, labels = scored(model, pairs, indices)
        loss = functional.cross_entropy(scores.float(), labels, reduction="sum").item()
        total += Counts(loss, int((scores.argmax(-1) == labels).sum()), len(labels), len(indices))
    return total


def scored(model: Transformer, pairs: Pairs, indices: np.ndarray) -> tuple[Tensor, Tensor]:
    """Scores the real target tokens of some pairs.

    Padding needs no scores: the loss leaves it out, and the accuracy of the TensorFlow tutorial, which is reported of
    training, counts every padded position as wrong whatever is predicted there.

    Args:
        model, pairs, indices: the model, the pairs of one split, and the places of the batch among them.

    Returns:
        Scores [tokens, words] before the softmax, and the ids of the right words [tokens]: each real target token after
        BEGIN, given the source and the tokens before it.
    """
    source, target = (padded(side, indices) for side in (pairs.source, pairs.target))
    labels = target[:, 1:]
    hidden = model.decode(target[:, :-1], *model.encode(source))
    real = labels != PAD
    return model.output(hidden[real]), labels[real]
