"""Measurements inside a fine-tuned model that may explain how well the model stands noise and transfers to other tasks.

A probe is a value per layer, averaged over heads, positions and examples, or a value of the whole model.
"""

from collections import defaultdict

import torch
from torch import Tensor, nn

from stages.attention.base import SelfAttention
from stages.attention.probes import complete_scores, list_operators, measure_weights, record_inputs
from stages.classification.training import Encoded
from stages.training.optimisation import find_device

# Number of examples of a validation split; averages over 64 examples differ little from averages over all examples.
EXAMPLES = 64
# Step of a difference, as a share of an example's norm of word embeddings; float32 rounds much smaller steps off.
STEP = 1e-3


@torch.no_grad()
def measure_probes(model: nn.Module, examples: Encoded, seed: int) -> dict[str, dict[str, float]]:
    """Measures attention and sensitivity of a model on the first 64 examples.

    Args:
        model: A fine-tuned model, in evaluation mode.
        examples: The examples; the model sees each separately, and therefore without padding.
        seed: Seed of the directions in which sensitivity is measured.

    Returns:
        {"layer=1": {probe: value}, ..., "model": {"sensitivity": value}}, layers from 1. The probes of a layer:
        attention_entropy: the entropy of the weights over keys, divided by the entropy of uniform weights, in [0, 1].
        self_weight: the weight of a token on itself, in [0, 1].
        score_asymmetry: |A - A^T| / (2 |A|) of the scores A of all heads (Frobenius norms), in [0, 1]; 0 for A = 0.
        negative_diagonal_share: the share of negative entries of the diagonal between queries and keys, such as D_q D_k
            of `shared`, if the operator has a diagonal.
        The probe of the model, sensitivity: how strongly the logits react to a small random change of the word
        embeddings; the norm of the embeddings, times the norm of the logits' derivative along a random unit vector.
    """
    modules = list_operators(model)
    result: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    count = min(EXAMPLES, len(examples))
    # A generator of the CPU gives the same directions on any device.
    generator = torch.Generator().manual_seed(seed)
    sensitivity = 0.0
    for number in range(count):
        ids = torch.from_numpy(examples.ids[number])[None].to(find_device())
        types = torch.from_numpy(examples.types[number])[None].to(find_device())
        with record_inputs(modules) as inputs:
            model(ids, token_type_ids=types)
        for layer, (module, X) in enumerate(zip(modules, inputs, strict=True), start=1):
            scores = complete_scores(module, X)[0]
            for name, value in measure_scores(scores).items():
                result[f"layer={layer}"][name] += value / count
        sensitivity += measure_sensitivity(model, ids, types, generator) / count
    for layer, module in enumerate(modules, start=1):
        result[f"layer={layer}"].update(measure_diagonal(module))
    result["model"]["sensitivity"] = sensitivity
    return result


def measure_scores(A: Tensor) -> dict[str, float]:
    """Computes `attention_entropy`, `self_weight` and `score_asymmetry` of the scores A [heads, n, n] of a sequence."""
    # The bound avoids a division by 0: scores of 0 have the asymmetry 0.
    largest = (2 * A.norm()).clamp_min(1e-30)
    asymmetry = (A - A.mT).norm() / largest
    return {**measure_weights(A), "score_asymmetry": asymmetry.item()}


def measure_diagonal(module: SelfAttention) -> dict[str, float]:
    """Computes {"negative_diagonal_share": share of negative entries}; {} for an operator without a diagonal."""
    diagonal = module.compute_diagonal()
    if diagonal is None:
        return {}
    return {"negative_diagonal_share": (diagonal < 0).float().mean().item()}


def measure_sensitivity(
    model,
    ids: Tensor,
    types: Tensor,
    generator: torch.Generator,
) -> float:
    """Computes how strongly the logits of an example react to a small change of the word embeddings.

    Args:
        model: A fine-tuned model, in evaluation mode.
        ids: Token ids [1, n].
        types: Token types [1, n].
        generator: Draws the direction of the change.

    Returns:
        The norm of the embeddings, times the norm of the logits' derivative along the direction.
    """
    # A central difference approximates the derivative.
    embeddings = model.bert.embeddings.word_embeddings(ids)
    direction = torch.randn(embeddings.shape, generator=generator).to(embeddings.device)
    step = STEP * embeddings.norm() * direction / direction.norm()
    ahead = model(inputs_embeds=embeddings + step, token_type_ids=types)
    behind = model(inputs_embeds=embeddings - step, token_type_ids=types)
    change = (ahead.logits - behind.logits).norm()
    return (change / (2 * STEP)).item()
