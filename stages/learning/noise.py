"""Noise on the embeddings of a fine-tuned model, and predictions under it.

Kowsher et al. (section 3) compute the average L2 norm of the input embeddings and add spherical Gaussian noise "with a
standard deviation of 1" of 0 to 40 % of that norm, which does not fix the noise. `kind` names the reading, `place`
where the noise enters. The draws follow from the noise seed and the lengths of the examples alone: every operator, and
every level, meets the same ones.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from stages.attention.bert import OperatorBertForSequenceClassification
from stages.learning.finetuning import Encoded, predict
from stages.learning.optimisation import device


def load(folder: Path) -> OperatorBertForSequenceClassification:
    """A fine-tuned model, ready to predict."""
    return OperatorBertForSequenceClassification.from_pretrained(folder).to(device()).eval()


def predictions_under_noise(
    model: OperatorBertForSequenceClassification,
    examples: Encoded,
    settings: dict,
    spared: tuple[int, ...],
    precision: str,
) -> dict[float, list[np.ndarray]]:
    """Predictions [examples] by level, one array a noise seed; level 0 has one, the plain predictions.

    settings: the record `noise`. spared: ids whose embeddings stay clean, [PAD] among them.
    """
    norm = average_norm(model, examples, settings["place"], spared)
    result = {}
    for level in settings["levels"]:
        if level == 0.0:
            result[level] = [predict(model, examples, precision)]
            continue
        result[level] = []
        for seed in settings["seeds"]:
            with noise(model, settings["kind"], settings["place"], level, norm, seed, spared):
                result[level].append(predict(model, examples, precision))
    return result


def spared_ids(tokenizer: Path, special_tokens: bool) -> tuple[int, ...]:
    """Ids without noise: [PAD], and unless `special_tokens`, [CLS] and [SEP]."""
    from tokenizers import Tokenizer

    words = Tokenizer.from_file(str(tokenizer))
    names = ("[PAD]",) if special_tokens else ("[PAD]", "[CLS]", "[SEP]")
    return tuple(words.token_to_id(name) for name in names)


def noised_module(model: nn.Module, place: str) -> nn.Module:
    """The module whose output takes the noise."""
    embeddings = model.bert.embeddings
    return embeddings.word_embeddings if place == "word_embeddings" else embeddings


@torch.no_grad()
def average_norm(model: nn.Module, examples: Encoded, place: str, spared: tuple[int, ...]) -> float:
    """Mean L2 norm of the embeddings of all tokens of the examples that take noise."""
    total, count = 0.0, 0
    for ids, types in zip(examples.ids, examples.types, strict=True):
        ids_row, types_row = (torch.from_numpy(row)[None].to(device()) for row in (ids, types))
        embeddings = model.bert.embeddings
        if place == "word_embeddings":
            vectors = embeddings.word_embeddings(ids_row)
        else:
            vectors = embeddings(input_ids=ids_row, token_type_ids=types_row)
        noised = ~torch.isin(ids_row, torch.tensor(spared, device=ids_row.device))
        total += vectors.norm(dim=-1)[noised].sum().item()
        count += int(noised.sum())
    return total / count


@contextmanager
def noise(
    model: nn.Module, kind: str, place: str, level: float, norm: float, seed: int, spared: tuple[int, ...]
) -> Iterator[None]:
    """Adds noise of `level` times the average norm `norm` to the embeddings while the body runs."""
    generator = torch.Generator().manual_seed(seed)
    ignored = torch.tensor(spared, device=device())

    def add(_module: nn.Module, arguments: tuple, keywords: dict, output: Tensor) -> Tensor:
        ids = arguments[0] if arguments else keywords["input_ids"]
        drawn = scaled(torch.randn(output.shape, generator=generator).to(output.device), kind, level, norm)
        return output + drawn.masked_fill(torch.isin(ids, ignored)[..., None], 0.0).to(output.dtype)

    hook = noised_module(model, place).register_forward_hook(add, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


def scaled(G: Tensor, kind: str, level: float, norm: float) -> Tensor:
    """Noise vectors [..., h] from standard Gaussian ones.

    expected_norm: Gaussian, of expected norm level x norm. exact_norm: a uniformly random direction, of just that norm.
    unit: the standard Gaussian times the level.
    """
    if kind == "unit":
        return level * G
    if kind == "exact_norm":
        return G * (level * norm / G.norm(dim=-1, keepdim=True))
    h = G.shape[-1]
    expected = math.sqrt(2) * math.exp(math.lgamma((h + 1) / 2) - math.lgamma(h / 2))  # E |N(0, I_h)|
    return G * (level * norm / expected)
