"""Measurements inside a fine-tuned model that may explain how well it stands noise and transfers to other tasks.

Each is one value per layer, averaged over heads, positions and examples, or one value of the whole model. A probe of a
part that an operator lacks is left out.
"""

import torch
from torch import Tensor, nn

from stages.attention.base import SelfAttention
from stages.attention.probes import complete_scores, inputs_of, of_weights, operators_of
from stages.classification.training import Encoded
from stages.training.optimisation import device

EXAMPLES = 64  # of a validation split; averages over so many differ little from those over all
STEP = 1e-3  # of a difference, as a share of an example's norm of word embeddings; float32 rounds much smaller ones off


@torch.no_grad()
def probe(model: nn.Module, examples: Encoded, seed: int) -> dict[str, dict[str, float]]:
    """Measures a model on the first EXAMPLES examples.

    Args:
        model: a fine-tuned model, in evaluation mode.
        examples: the first of them are run through the model one by one, so without padding.
        seed: decides the directions in which sensitivity is measured.

    Returns:
        {"layer=1": {probe: value}, ..., "model": {"sensitivity": value}}, layers from 1. Probes of a layer:
        attention_entropy, the entropy of the weights over keys, as a share of that of uniform weights, in [0, 1];
        self_weight, the weight of a token on itself, in [0, 1]; score_asymmetry, |A - A^T| / (2 |A|) of the scores A of
        all heads (Frobenius norms), in [0, 1], 0 where A is 0; negative_diagonal_share, the share of entries below 0 of
        the diagonal between queries and keys, such as D_q D_k of `shared`, where there is one. sensitivity: the norm of
        an example's word embeddings, times that of the derivative of the logits along a random unit vector in them.
    """
    modules = operators_of(model)
    sums: list[dict[str, float]] = [{} for _ in modules]
    sensitivity, count = 0.0, min(EXAMPLES, len(examples))
    generator = torch.Generator().manual_seed(seed)  # the CPU's: the same directions on any device
    for row in zip(examples.ids[:count], examples.types[:count], strict=True):
        ids, types = (torch.from_numpy(column)[None].to(device()) for column in row)
        with inputs_of(modules) as inputs:
            model(ids, token_type_ids=types)
        for total, module, X in zip(sums, modules, inputs, strict=True):
            for name, value in of_scores(complete_scores(module, X)[0]).items():
                total[name] = total.get(name, 0.0) + value / count
        sensitivity += _sensitivity(model, ids, types, generator) / count
    result = {f"layer={number}": total for number, total in enumerate(sums, 1)}
    for entry, module in zip(result.values(), modules, strict=True):
        entry |= of_diagonal(module)
    return result | {"model": {"sensitivity": sensitivity}}


def of_scores(A: Tensor) -> dict[str, float]:
    """Computes attention_entropy, self_weight and score_asymmetry of the scores A [heads, n, n] of one sequence."""
    return of_weights(A) | {"score_asymmetry": ((A - A.mT).norm() / (2 * A.norm()).clamp_min(1e-30)).item()}


def of_diagonal(module: SelfAttention) -> dict[str, float]:
    """Returns negative_diagonal_share, or nothing where the operator has no diagonal between queries and keys."""
    diagonal = module.diagonal()
    return {} if diagonal is None else {"negative_diagonal_share": (diagonal < 0).float().mean().item()}


def _sensitivity(model, ids: Tensor, types: Tensor, generator: torch.Generator) -> float:
    """Computes the sensitivity, as `probe` defines it, of one example [1, n] by a central difference of STEP."""
    embeddings = model.bert.embeddings.word_embeddings(ids)
    direction = torch.randn(embeddings.shape, generator=generator).to(embeddings.device)
    step = STEP * embeddings.norm() * direction / direction.norm()
    ahead, behind = (model(inputs_embeds=embeddings + sign * step, token_type_ids=types).logits for sign in (1, -1))
    return ((ahead - behind).norm() / (2 * STEP)).item()
