"""Predictions of a fine-tuned model under noise on its embeddings, and under noise in the texts.

Kowsher et al. (section 3) compute the average L2 norm of the input embeddings and add spherical Gaussian noise "with a
standard deviation of 1" of 0 to 40 % of that norm, which does not fix the noise. `kind` names the reading (see
`factor`), `place` says where the noise enters. The draws follow from the noise seed, the lengths of the examples, the
width of the model and the kind of device alone, so every operator, and every level, meets the same ones.
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
from stages.schema.testing_sections import Noise
from stages.training.batches import padded, sorted_batches
from stages.training.optimisation import device


def predictions_under_noise(
    model: OperatorBertForSequenceClassification, examples: Encoded, tokenizer: Path, setting: Noise, precision: str
) -> dict[str, list[np.ndarray]]:
    """Predicts examples under noise on their embeddings.

    Args:
        model, examples: the fine-tuned model, in evaluation mode; the examples that it predicts.
        tokenizer, setting: the file of the tokenizer; the section `noise` of params.yaml.
        precision: float32 or bfloat16.

    Returns:
        By `noise=LEVEL`, such as `noise=0.1`, one array of predictions [examples], as `predict` returns them, for every
        noise seed; at level 0 only one, the predictions without noise.
    """
    words = Tokenizer.from_file(str(tokenizer))
    names = ("[PAD]",) if setting.special_tokens else ("[PAD]", "[CLS]", "[SEP]")
    spared = tuple(words.token_to_id(name) for name in names)  # the tokens that take no noise
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
        frame: the examples, with columns text_a and text_b (null for an example of one text).
        setting: the section `noise` of params.yaml.
        predicted: takes such a frame with noise in its texts and returns the predictions [examples].

    Returns:
        By `KIND=LEVEL`, such as `typos=0.1`, for every level above 0, one array of predictions for every noise seed.
    """
    result = {}
    for kind, level, seed in product(setting.text, filter(None, setting.levels), setting.seeds):
        result.setdefault(f"{kind}={level:g}", []).append(predicted(perturbed(frame, kind, level, seed)))
    return result


def noised_module(model: nn.Module, place: str) -> nn.Module:
    """Returns the module whose output takes the noise. place: word_embeddings or embedding_output (all embeddings)."""
    embeddings = model.bert.embeddings
    return embeddings.word_embeddings if place == "word_embeddings" else embeddings


@torch.no_grad()
def average_norm(model: nn.Module, examples: Encoded, place: str, spared: tuple[int, ...]) -> float:
    """Computes the mean L2 norm of the embeddings of all tokens that take noise.

    Args:
        model: a fine-tuned model, in evaluation mode: dropout would change the norms.
        examples: the examples whose tokens are averaged over.
        place: where the noise enters, word_embeddings or embedding_output.
        spared: ids of the tokens that take no noise, 0 among them, that of [PAD].
    """
    ignored = torch.tensor(spared, device=device())
    total, count = 0.0, 0
    for rows in sorted_batches(examples.lengths, EVALUATION_BATCH):
        ids, types = (padded(column, rows) for column in (examples.ids, examples.types))
        module = noised_module(model, place)
        vectors = module(ids) if place == "word_embeddings" else module(input_ids=ids, token_type_ids=types)
        noised = ~torch.isin(ids, ignored)
        total += vectors.norm(dim=-1)[noised].sum(dtype=torch.float64).item()
        count += int(noised.sum())
    return total / count


@contextmanager
def noise(
    model: nn.Module, kind: str, place: str, level: float, norm: float, seed: int, spared: tuple[int, ...]
) -> Iterator[None]:
    """Adds noise to the embeddings of a model while the body of the `with` statement runs; every batch has new draws.

    Args:
        model: a fine-tuned model.
        kind: the reading of the paper's words, one of those that `factor` lists.
        place, spared: as in `average_norm`.
        level, norm: as in `factor`.
        seed: the noise seed.
    """
    generator = torch.Generator(device()).manual_seed(seed)
    ignored = torch.tensor(spared, device=device())

    def add(_module: nn.Module, arguments: tuple, keywords: dict, output: Tensor) -> Tensor:
        ids = arguments[0] if arguments else keywords["input_ids"]  # BERT passes all embeddings their ids by keyword
        G = torch.randn(output.shape, generator=generator, device=output.device)
        factors = factor(G, kind, level, norm) * ~torch.isin(ids, ignored)[..., None]
        return torch.addcmul(output, G.to(output.dtype), factors.to(output.dtype))  # output + G * factors

    hook = noised_module(model, place).register_forward_hook(add, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


def factor(G: Tensor, kind: str, level: float, norm: float) -> Tensor:
    """Computes the factors [..., 1], one per vector, by which standard Gaussian vectors are multiplied to be the noise.

    Args:
        G: [..., h], standard Gaussian vectors.
        kind: expected_norm, Gaussian noise of expected norm level x norm; exact_norm, noise in a uniformly random
            direction, of exactly the norm level x norm; unit, standard Gaussian noise times the level.
        level: the strength of the noise, as a share of the norm; of `unit`, its standard deviation.
        norm: the average norm of the embeddings, which `unit` does not use.
    """
    if kind == "exact_norm":
        return level * norm / G.norm(dim=-1, keepdim=True)
    h = G.shape[-1]
    expected = math.sqrt(2) * math.exp(math.lgamma((h + 1) / 2) - math.lgamma(h / 2))  # E |N(0, I_h)|
    return torch.full_like(G[..., :1], level if kind == "unit" else level * norm / expected)
