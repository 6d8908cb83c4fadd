"""The steps of training for translation: building a model, one update, and the evaluation of held-out pairs.

`words` are the sizes of source and target vocabulary; `indices` are positions of a batch's pairs in a split.
"""

import math
from dataclasses import astuple, dataclass
from operator import add

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from stages.encoder_decoder.pairs import PAD, Pairs
from stages.encoder_decoder.run import TranslationRun
from stages.encoder_decoder.transformer import Transformer
from stages.training.batches import pad_sequences, sort_into_batches
from stages.training.machine import find_device, open_autocast
from stages.training.optimisation import DROPOUT, INITIALISATION, require_finite_gradient, seed_torch, update_weights

# Neither source (Vaswani et al. 2017, TensorFlow's tutorial on translation) clips gradients.
NO_CLIPPING = math.inf


@dataclass
class Counts:
    """Sums over batches.

    Attributes:
        loss: sum over the real target tokens (no padding), in nats.
        right: number of real tokens to which the model gives the highest probability.
        tokens: number of real target tokens, the end token included.
        pairs: number of sentence pairs.
    """

    loss: float = 0.0
    right: int = 0
    tokens: int = 0
    pairs: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*map(add, astuple(self), astuple(other)))


def build_model(run: TranslationRun, words: tuple[int, int]) -> Transformer:
    """Builds a run's model from the seed, on this process's device."""
    seed_torch(run.seed, INITIALISATION)
    return Transformer(run, words).to(find_device())


def compute_rate(step: int, hidden: int, warmup: int) -> float:
    """Computes the learning rate `h^-0.5 min(s^-0.5, s warmup^-1.5)`, s = step + 1 (Vaswani et al., equation 3)."""
    return hidden**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5)


def make_update(
    model: Transformer,
    adam: torch.optim.AdamW,
    step: int,
    pairs: Pairs,
    indices: np.ndarray,
    run: TranslationRun,
) -> Counts:
    """Makes update number `step`, from 0, on the pairs at `indices`, by the mean loss of the real target tokens.

    Returns sums over the batch before the update, with dropout and a label-smoothed loss. ValueError if the gradients
    are not finite.
    """
    recipe = run.training
    seed_torch(run.seed, DROPOUT, step)
    model.train()
    with open_autocast(recipe.precision):
        scores, labels = score_pairs(model, pairs, indices)
    loss = functional.cross_entropy(scores.float(), labels, label_smoothing=recipe.label_smoothing)
    learning_rate = compute_rate(step, recipe.hidden, recipe.warmup_steps)
    norm = update_weights(model, adam, loss, learning_rate, NO_CLIPPING)
    mean_loss = loss.item()
    require_finite_gradient(norm.item(), f"{run.name}, step {step + 1}: loss {mean_loss}")
    # The scores have dropout, as in the accuracy of TensorFlow's tutorial.
    right = int((scores.argmax(-1) == labels).sum())
    return Counts(loss=mean_loss * len(labels), right=right, tokens=len(labels), pairs=len(indices))


@torch.no_grad()
def evaluate_held_out(model: Transformer, pairs: Pairs, precision: str) -> Counts:
    """Evaluates held-out pairs without label smoothing; sets the model to evaluation mode."""
    model.eval()
    total = Counts()
    for indices in sort_into_batches([len(sentence) for sentence in pairs.target], size=128):
        with open_autocast(precision):
            scores, labels = score_pairs(model, pairs, indices)
        loss = functional.cross_entropy(scores.float(), labels, reduction="sum")
        right = int((scores.argmax(-1) == labels).sum())
        total += Counts(loss=loss.item(), right=right, tokens=len(labels), pairs=len(indices))
    return total


def score_pairs(model: Transformer, pairs: Pairs, indices: np.ndarray) -> tuple[Tensor, Tensor]:
    """Scores the real target tokens (no padding) of the pairs at `indices`, given the source and the earlier tokens.

    Returns scores `[tokens, words]` of all words, before the softmax, and the right ids `[tokens]`.
    """
    memory, seen = model.encode(pad_sequences(pairs.source, indices))
    target = pad_sequences(pairs.target, indices)
    labels = target[:, 1:]
    # The prefix of a label is every token before the label.
    hidden = model.decode(target[:, :-1], memory, seen)
    # Padding needs no scores: the loss leaves padding out, and the accuracy of the TensorFlow tutorial counts every
    # padded position as wrong for any prediction.
    real = labels != PAD
    return model.output(hidden[real]), labels[real]
