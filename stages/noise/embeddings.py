"""Predictions of a fine-tuned model under noise on the embeddings.

Kowsher et al. (section 3) compute the average L2 norm of the input embeddings and add spherical Gaussian noise "with a
standard deviation of 1" of 0 to 40 % of that norm, which does not define the noise. The draws depend only on noise
seed, lengths of examples, width of the model and kind of device, so every operator and level meets the same draws.

Arguments:
    model: a fine-tuned model, in evaluation mode, because dropout would change the norms.
    kind: interpretation of the noise: expected_norm, Gaussian noise of expected norm level x norm; exact_norm, noise in
        a uniformly random direction, of exactly the norm level x norm; unit, standard Gaussian noise times the level.
    place: word_embeddings, or embedding_output for the sum of all embeddings after LayerNorm.
    level: strength of the noise, as a share of `norm`, the average norm of the embeddings; for `unit`, the standard
        deviation.
    spared: [k], ids of the tokens that take no noise, [PAD] included.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from stages.attention.bert import OperatorBertForSequenceClassification
from stages.classification.training import EVALUATION_BATCH, Encoded, predict_examples
from stages.schema.testing_sections import Noise
from stages.training.batches import pad_sequences, sort_into_batches
from stages.training.machine import find_device


def predict_under_noise(
    model: OperatorBertForSequenceClassification,
    examples: Encoded,
    tokenizer_file: Path,
    setting: Noise,
    precision: str,
) -> dict[str, list[np.ndarray]]:
    """Predicts examples under noise on the embeddings, for every level and noise seed in section `noise`.

    Returns:
        By level, such as "noise=0.1", an array of predictions [examples] for every noise seed; level 0 has a single
        array, the predictions without noise.
    """
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    # The tokens that take no noise.
    names = ["[PAD]"] if setting.special_tokens else ["[PAD]", "[CLS]", "[SEP]"]
    spared = torch.tensor([tokenizer.token_to_id(name) for name in names], device=find_device())
    # The level of noise is a share of this norm.
    norm = measure_average_norm(model, examples, setting.place, spared)
    # The first level is 0. Without noise, all noise seeds would give the same predictions.
    predictions = {"noise=0": [predict_examples(model, examples, precision)]}
    for level in setting.levels[1:]:
        by_seed = []
        for seed in setting.seeds:
            with add_noise(model, setting, level, norm, seed, spared):
                by_seed.append(predict_examples(model, examples, precision))
        predictions[f"noise={level:g}"] = by_seed
    return predictions


def find_noised_module(model: nn.Module, place: str) -> nn.Module:
    """Returns the module of a BERT to whose output noise is added."""
    embeddings: Any = model.bert.embeddings
    return embeddings.word_embeddings if place == "word_embeddings" else embeddings


@torch.no_grad()
def measure_average_norm(
    model: nn.Module,
    examples: Encoded,
    place: str,
    spared: Tensor,
) -> float:
    """Computes the mean L2 norm of the embeddings of all tokens except the ids in `spared`."""
    module = find_noised_module(model, place)
    total = 0.0
    count = 0
    for rows in sort_into_batches(examples.lengths, EVALUATION_BATCH):
        ids = pad_sequences(examples.ids, rows)
        if place == "word_embeddings":
            vectors = module(ids)
        else:
            vectors = module(input_ids=ids, token_type_ids=pad_sequences(examples.types, rows))
        noised = ~torch.isin(ids, spared)
        norms = vectors.norm(dim=-1)[noised]
        total += norms.sum(dtype=torch.float64).item()
        count += int(noised.sum())
    return total / count


@contextmanager
def add_noise(
    model: nn.Module,
    setting: Noise,
    level: float,
    norm: float,
    seed: int,
    spared: Tensor,
) -> Iterator[None]:
    """Adds noise to the embeddings of a model during a `with` block; token ids in `spared` take no noise.

    `level` is the strength of the noise; `norm` is the average norm of the embeddings.
    """
    # Every batch has new draws. A new generator per call gives every operator and level the same draws.
    generator = torch.Generator(find_device()).manual_seed(seed)

    def add_to_output(
        _module: nn.Module,
        arguments: tuple,
        keywords: dict,
        output: Tensor,
    ) -> Tensor:
        # BERT passes the ids to its embeddings by keyword.
        ids = arguments[0] if arguments else keywords["input_ids"]
        G = torch.randn(output.shape, generator=generator, device=output.device)
        noised = ~torch.isin(ids, spared)[..., None]
        factors = compute_factors(G, setting.kind, level, norm) * noised
        # output + G * factors
        return torch.addcmul(output, G.to(output.dtype), factors.to(output.dtype))

    hook = find_noised_module(model, setting.place).register_forward_hook(add_to_output, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


def compute_factors(
    G: Tensor,
    kind: str,
    level: float,
    norm: float,
) -> Tensor:
    """Computes factors [..., 1] that turn standard Gaussian vectors G [..., h] into the noise.

    At level 0.2 and kind `unit`, the factors are 0.2.
    """
    # Every vector of noise gets exactly the norm level * norm.
    if kind == "exact_norm":
        return level * norm / G.norm(dim=-1, keepdim=True)
    factor = level
    # The expected norm of a vector of noise is level * norm.
    if kind == "expected_norm":
        h = G.shape[-1]
        # The expected norm of a standard Gaussian vector of width h: sqrt(2) gamma((h + 1) / 2) / gamma(h / 2).
        log_ratio = math.lgamma((h + 1) / 2) - math.lgamma(h / 2)
        expected = math.sqrt(2) * math.exp(log_ratio)
        factor = level * norm / expected
    return torch.full_like(G[..., :1], factor)
