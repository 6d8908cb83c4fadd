"""One training run of translation in its parts: the model, its rate, one update, and the scores of held-out pairs."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.attention.configuration import OperatorConfig, configuration
from stages.encoder_decoder.pairs import PAD, Pairs, padded
from stages.encoder_decoder.run import TranslationRun
from stages.encoder_decoder.transformer import Attention, DecoderLayer, EncoderLayer, FeedForward, Transformer
from stages.plumbing.training_sections import Sized
from stages.training.optimisation import DROPOUT, INITIALISATION, autocast, device, seed_torch, update

HELD_OUT_BATCH = 128  # pairs
NO_CLIPPING = math.inf  # neither source clips gradients


@dataclass
class Counts:
    """What batches add up to.

    loss: summed over the real target tokens, in nats. right: real tokens that were the most likely ones. tokens: real
    target tokens, END among them. pairs: sentence pairs.
    """

    loss: float = 0.0
    right: int = 0
    tokens: int = 0
    pairs: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(one + two for one, two in zip(vars(self).values(), vars(other).values(), strict=True)))


def built(run: TranslationRun, words: tuple[int, int]) -> Transformer:
    """The model of a run, with new weights drawn from its seed.

    Args:
        run: what is trained.
        words: sizes of the source and the target vocabulary.
    """
    seed_torch(run.seed, INITIALISATION)
    return assembled(run, words).to(device())


def assembled(run: TranslationRun, words: tuple[int, int]) -> Transformer:
    """The same, its weights drawn from the global generator, on torch's current device."""
    recipe = run.training
    encoder = [EncoderLayer(attention(run), feed_forward(run)) for _ in range(recipe.layers)]
    decoder = [DecoderLayer(attention(run), attention(run), feed_forward(run)) for _ in range(recipe.layers)]
    sizes = recipe.hidden, recipe.positions, recipe.dropout
    return Transformer(encoder, decoder, words, *sizes, recipe.vocabulary == "shared")


def configured(run: TranslationRun) -> OperatorConfig:
    """The operator of a run at its size; neither source has dropout on the attention weights."""
    sizes = run.training.model_dump(include={*Sized.model_fields})
    return configuration(run.operator, **sizes, attention_probs_dropout_prob=0.0)


def attention(run: TranslationRun) -> Attention:
    """One attention sublayer with the operator of a run; with the original where that replaces the feed-forward."""
    return Attention(configured(run).self_attention(output=True), run.training.dropout)


def feed_forward(run: TranslationRun) -> FeedForward:
    """One feed-forward sublayer, or attention over as many parameters as it has weights (the draft section)."""
    config = configured(run)
    replacement = config.feed_forward()
    if replacement is not None:
        inner, width = replacement
    else:
        width = config.intermediate_size
        inner = nn.Sequential(nn.Linear(config.hidden_size, width), nn.ReLU())
    return FeedForward(inner, width, config.hidden_size, run.training.dropout)


def rate(step: int, hidden: int, warmup: int) -> float:
    """Of update `step` (from 0): h^-0.5 min(s^-0.5, s warmup^-1.5) with s = step + 1 (Vaswani et al., equation 3)."""
    return hidden**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5)


def advance(
    model: Transformer, adam: torch.optim.AdamW, step: int, pairs: Pairs, indices: np.ndarray, run: TranslationRun
) -> Counts:
    """One update by the mean loss a real token.

    Args:
        model: is trained in place.
        adam: its optimiser.
        step: number of the update, from 0.
        pairs: of the training split.
        indices: of the batch among these.
        run: whose recipe and seed count.

    Returns:
        The Counts of the batch; of the model in training, with dropout, as the tutorial's accuracy is.
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
    """The Counts of held-out pairs, without dropout and label smoothing."""
    model.eval()
    order = np.argsort([len(sentence) for sentence in pairs.target], kind="stable")
    total = Counts()
    for start in range(0, len(order), HELD_OUT_BATCH):
        indices = order[start : start + HELD_OUT_BATCH]
        with autocast(precision):
            scores, labels = scored(model, pairs, indices)
        loss = functional.cross_entropy(scores.float(), labels, reduction="sum").item()
        total += Counts(loss, int((scores.argmax(-1) == labels).sum()), len(labels), len(indices))
    return total


def scored(model: Transformer, pairs: Pairs, indices: np.ndarray) -> tuple[Tensor, Tensor]:
    """Scores [tokens, words] of the real target tokens of some pairs, and these tokens.

    Padding needs no scores: it never enters the loss, and the tutorial's accuracy counts it as wrong.
    """
    source, target = (
        torch.from_numpy(padded([side[i] for i in indices])).to(device()) for side in (pairs.source, pairs.target)
    )
    labels = target[:, 1:]
    hidden = model.decode(target[:, :-1], *model.encode(source))
    real = labels != PAD
    return model.output(hidden[real]), labels[real]
