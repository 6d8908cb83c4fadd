"""One training job of translation in its parts: the model, its rate, one update, and the scores of held-out pairs."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.attention.configuration import OperatorConfig, configuration
from stages.encoder_decoder.pairs import PAD, Pairs, padded
from stages.encoder_decoder.transformer import Attention, DecoderLayer, EncoderLayer, FeedForward, Transformer
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


def built(job: dict, words: tuple[int, int]) -> Transformer:
    """The model of a job, with new weights drawn from its seed.

    Args:
        job: operator, seed and training (a protocol of `translation`).
        words: sizes of the source and the target vocabulary.
    """
    seed_torch(job["seed"], INITIALISATION)
    return assembled(job, words).to(device())


def assembled(job: dict, words: tuple[int, int]) -> Transformer:
    """The same, its weights drawn from the global generator, on torch's current device."""
    training = job["training"]
    encoder = [EncoderLayer(attention(job), feed_forward(job)) for _ in range(training["layers"])]
    decoder = [DecoderLayer(attention(job), attention(job), feed_forward(job)) for _ in range(training["layers"])]
    sizes = (training[name] for name in ("hidden", "positions", "dropout"))
    return Transformer(encoder, decoder, words, *sizes, training["vocabulary"] == "shared")


def configured(job: dict) -> OperatorConfig:
    """The operator of a job at its size; neither source has dropout on the attention weights."""
    sizes = {name: job["training"][name] for name in ("layers", "hidden", "heads", "intermediate", "positions")}
    return configuration(job["operator"], **sizes, attention_probs_dropout_prob=0.0)


def attention(job: dict) -> Attention:
    """One attention sublayer with the operator of a job; with the original where that replaces the feed-forward."""
    return Attention(configured(job).self_attention(output=True), job["training"]["dropout"])


def feed_forward(job: dict) -> FeedForward:
    """One feed-forward sublayer, or attention over as many parameters as it has weights (the draft section)."""
    config = configured(job)
    replacement = config.feed_forward()
    if replacement is not None:
        inner, width = replacement
    else:
        width = config.intermediate_size
        inner = nn.Sequential(nn.Linear(config.hidden_size, width), nn.ReLU())
    return FeedForward(inner, width, config.hidden_size, job["training"]["dropout"])


def rate(step: int, hidden: int, warmup: int) -> float:
    """Of update `step` (from 0): h^-0.5 min(s^-0.5, s warmup^-1.5) with s = step + 1 (Vaswani et al., equation 3)."""
    return hidden**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5)


def advance(model: Transformer, adam: torch.optim.AdamW, step: int, pairs: Pairs, indices: np.ndarray, job: dict):
    """One update on the pairs at `indices`, by their mean loss a real token; gives the Counts of the batch.

    Counts are of the model in training, with dropout, as the tutorial's accuracy is.
    """
    training = job["training"]
    seed_torch(job["seed"], DROPOUT, step)
    model.train()
    with autocast(training["precision"]):
        scores, labels = scored(model, pairs, indices)
    loss = functional.cross_entropy(scores.float(), labels, label_smoothing=training["label_smoothing"])
    where = f"{job['name']}, step {step + 1}"
    update(model, adam, loss, rate(step, training["hidden"], training["warmup_steps"]), NO_CLIPPING, where)
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
