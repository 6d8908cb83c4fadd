"""Noise on the embeddings of a fine-tuned model and in its texts, and predictions under it.

Kowsher et al. (section 3) compute the average L2 norm of the input embeddings and add spherical Gaussian noise "with a
standard deviation of 1" of 0 to 40 % of that norm, which does not fix the noise. `kind` names the reading, `place`
where the noise enters. The draws follow from the noise seed, the lengths of the examples and the kind of device alone:
every operator, and every level, meets the same ones.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from stages.attention.bert import OperatorBertForSequenceClassification
from stages.classification.training import EVALUATION_BATCH, Encoded, encode, predict
from stages.noise.text import perturbed
from stages.training.optimisation import device


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


def predictions_under_text_noise(
    model: OperatorBertForSequenceClassification,
    table: Path,
    settings: dict,
    tokenizer: Path,
    maximum_length: int,
    precision: str,
    folder: Path,
) -> dict[tuple[str, float], list[np.ndarray]]:
    """Predictions [examples] by kind of noise and level above 0, one array a noise seed; folder: for noised tables."""
    frame, result = pd.read_parquet(table), {}
    for kind in settings["text"]:
        for level in settings["levels"]:
            for seed in settings["seeds"] if level > 0 else ():
                path = folder / f"{table.stem}-{kind}-{level:g}-{seed}.parquet"
                perturbed(frame, kind, level, seed).to_parquet(path, index=False)
                drawn = predict(model, encode(path, tokenizer, maximum_length), precision)
                result.setdefault((kind, level), []).append(drawn)
                path.unlink()
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
    ignored = torch.tensor(spared, device=device())
    total, count = 0.0, 0
    for rows in _of_one_length(examples):
        ids, types = (
            torch.from_numpy(np.stack([column[i] for i in rows])).to(device())
            for column in (examples.ids, examples.types)
        )
        embeddings = model.bert.embeddings
        if place == "word_embeddings":
            vectors = embeddings.word_embeddings(ids)
        else:
            vectors = embeddings(input_ids=ids, token_type_ids=types)
        noised = ~torch.isin(ids, ignored)
        total += vectors.norm(dim=-1)[noised].sum(dtype=torch.float64).item()
        count += int(noised.sum())
    return total / count


def _of_one_length(examples: Encoded) -> Iterator[np.ndarray]:
    """Indices of examples of equal length, at most EVALUATION_BATCH at a time: batches without padding."""
    lengths = np.array(examples.lengths)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        yield from np.split(rows, range(EVALUATION_BATCH, len(rows), EVALUATION_BATCH))


@contextmanager
def noise(
    model: nn.Module, kind: str, place: str, level: float, norm: float, seed: int, spared: tuple[int, ...]
) -> Iterator[None]:
    """Adds noise of `level` times the average norm `norm` to the embeddings while the body runs."""
    generator = torch.Generator(device()).manual_seed(seed)
    ignored = torch.tensor(spared, device=device())

    def add(_module: nn.Module, arguments: tuple, keywords: dict, output: Tensor) -> Tensor:
        ids = arguments[0] if arguments else keywords["input_ids"]
        G = torch.randn(output.shape, generator=generator, device=output.device)
        factors = factor(G, kind, level, norm) * ~torch.isin(ids, ignored)[..., None]
        return torch.addcmul(output, G.to(output.dtype), factors.to(output.dtype))

    hook = noised_module(model, place).register_forward_hook(add, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


def factor(G: Tensor, kind: str, level: float, norm: float) -> Tensor:
    """What standard Gaussian vectors G [..., h] are multiplied by to be the noise, [..., 1].

    expected_norm: Gaussian, of expected norm level x norm. exact_norm: a uniformly random direction, of just that norm.
    unit: the standard Gaussian times the level.
    """
    if kind == "exact_norm":
        return level * norm / G.norm(dim=-1, keepdim=True)
    h = G.shape[-1]
    expected = math.sqrt(2) * math.exp(math.lgamma((h + 1) / 2) - math.lgamma(h / 2))  # E |N(0, I_h)|
    return torch.full_like(G[..., :1], level if kind == "unit" else level * norm / expected)
