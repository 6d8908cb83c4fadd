"""Noise on the embeddings of a fine-tuned model and in its texts, and predictions under it.

Kowsher et al. (section 3) compute the average L2 norm of the input embeddings and add spherical Gaussian noise "with a
standard deviation of 1" of 0 to 40 % of that norm, which does not fix the noise. `kind` names the reading, `place`
where the noise enters. The draws follow from the noise seed, the lengths of the examples and the kind of device alone:
every operator, and every level, meets the same ones.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from stages.attention.bert import OperatorBertForSequenceClassification
from stages.classification.training import EVALUATION_BATCH, Encoded, predict
from stages.noise.text import perturbed
from stages.plumbing.testing_sections import Noise
from stages.training.optimisation import device


def predictions_under_noise(
    model: OperatorBertForSequenceClassification, examples: Encoded, tokenizer: Path, setting: Noise, precision: str
) -> dict[str, list[np.ndarray]]:
    """Predicts examples under noise on their embeddings.

    Args:
        model: that is evaluated.
        examples: that it predicts.
        tokenizer: the file of the tokenizer.
        setting: kinds, levels and seeds of noise, as params.yaml has them.
        precision: float32 or bfloat16.

    Returns:
        Predictions [examples] by `noise=LEVEL`, one array a noise seed; level 0 has one, the plain predictions.
    """
    spared = spared_ids(tokenizer, setting.special_tokens)
    norm, result = average_norm(model, examples, setting.place, spared), {}
    for level in setting.levels:
        by_seed = result[f"noise={level:g}"] = []
        for seed in setting.seeds if level else setting.seeds[:1]:
            with noise(model, setting.kind, setting.place, level, norm, seed, spared) if level else nullcontext():
                by_seed.append(predict(model, examples, precision))
    return result


def predictions_under_text_noise(
    frame: pd.DataFrame, setting: Noise, predicted: Callable[[pd.DataFrame], np.ndarray]
) -> dict[str, list[np.ndarray]]:
    """Predicts examples with noise in their text.

    Args:
        frame: of the examples.
        setting: kinds, levels and seeds of noise, as params.yaml has them.
        predicted: gives the predictions [examples] for such a frame.

    Returns:
        Predictions by `KIND=LEVEL`, such as `typos=0.1`, of every level above 0, one array a noise seed.
    """
    result = {}
    for kind, level, seed in product(setting.text, filter(None, setting.levels), setting.seeds):
        result.setdefault(f"{kind}={level:g}", []).append(predicted(perturbed(frame, kind, level, seed)))
    return result


def spared_ids(tokenizer: Path, special_tokens: bool) -> tuple[int, ...]:
    """Ids without noise: [PAD], and unless `special_tokens`, [CLS] and [SEP]."""
    words = Tokenizer.from_file(str(tokenizer))
    names = ("[PAD]",) if special_tokens else ("[PAD]", "[CLS]", "[SEP]")
    return tuple(words.token_to_id(name) for name in names)


def noised_module(model: nn.Module, place: str) -> nn.Module:
    """The module whose output takes the noise."""
    embeddings = model.bert.embeddings
    return embeddings.word_embeddings if place == "word_embeddings" else embeddings


@torch.no_grad()
def average_norm(model: nn.Module, examples: Encoded, place: str, spared: tuple[int, ...]) -> float:
    """Mean L2 norm of the embeddings of all tokens that take noise.

    Args:
        model: a fine-tuned model.
        examples: whose tokens count.
        place: where the noise enters, word_embeddings or embedding_output.
        spared: ids of the tokens that take no noise.
    """
    ignored = torch.tensor(spared, device=device())
    total, count = 0.0, 0
    for rows in _of_one_length(examples):
        ids, types = (
            torch.from_numpy(np.stack([column[i] for i in rows])).to(device())
            for column in (examples.ids, examples.types)
        )
        module = noised_module(model, place)
        vectors = module(ids) if place == "word_embeddings" else module(input_ids=ids, token_type_ids=types)
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
    """Adds noise to the embeddings of a model while the body runs.

    Args:
        model: a fine-tuned model.
        kind: the reading of the paper's words, as `factor` has it.
        place: where the noise enters, word_embeddings or embedding_output.
        level: of the noise, as a share of the norm.
        norm: the average norm of the embeddings.
        seed: of the noise.
        spared: ids of the tokens that take no noise.
    """
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
    """What standard Gaussian vectors are multiplied by to be the noise.

    Args:
        G: [..., h], standard Gaussian vectors.
        kind: expected_norm, Gaussian noise of expected norm level x norm; exact_norm, noise in a uniformly random
            direction, of exactly that norm; unit, standard Gaussian noise times the level.
        level: of the noise, as a share of the norm.
        norm: the average norm of the embeddings.

    Returns:
        [..., 1]
    """
    if kind == "exact_norm":
        return level * norm / G.norm(dim=-1, keepdim=True)
    h = G.shape[-1]
    expected = math.sqrt(2) * math.exp(math.lgamma((h + 1) / 2) - math.lgamma(h / 2))  # E |N(0, I_h)|
    return torch.full_like(G[..., :1], level if kind == "unit" else level * norm / expected)
