"""Measurements inside a fine-tuned model that may explain how it stands noise and transfer.

Averages over heads, positions and examples, one value a layer; a probe that an operator has no use for is left out.
"""

import torch
from torch import Tensor, nn

from stages.attention.base import SelfAttention
from stages.attention.probes import inputs_of, of_weights, operators_of
from stages.classification.training import Encoded
from stages.training.optimisation import device

EXAMPLES = 64  # of a validation split; averages of so many differ little from those of all
STEP = 1e-3  # of the finite difference, as a share of the embeddings' norm


@torch.no_grad()
def probe(model: nn.Module, examples: Encoded, seed: int) -> dict[str, dict[str, float]]:
    """Measures a model on the first EXAMPLES examples.

    Args:
        model: a fine-tuned model.
        examples: the first of which are taken, one by one, so without padding.
        seed: draws the directions in which sensitivity is measured.

    Returns:
        By layer, {"layer=1": {probe: value}, ...}, and for the whole model under "model".

    attention_entropy: of the weights over keys, as a share of the uniform one's, in [0, 1]. self_weight: weight of a
    token on itself. score_asymmetry: |A - A^T| / 2 |A| (Frobenius) of the scores, in [0, 1]. negative_diagonal_share:
    entries of D_q D_k (or D) below 0. sensitivity: norm of the Jacobian-vector product of the logits, for a random
    direction of the embeddings of unit length, times the embeddings' norm.
    """
    modules = operators_of(model)
    sums: list[dict[str, float]] = [{} for _ in modules]
    sensitivity, count = 0.0, min(EXAMPLES, len(examples))
    generator = torch.Generator().manual_seed(seed)
    for row in zip(examples.ids[:count], examples.types[:count], strict=True):
        ids, types = (torch.from_numpy(column)[None].to(device()) for column in row)
        with inputs_of(modules) as inputs:
            model(ids, token_type_ids=types)
        for total, module, X in zip(sums, modules, inputs, strict=True):
            for name, value in of_scores(module.scores(X)[0]).items():
                total[name] = total.get(name, 0.0) + value / count
        sensitivity += _sensitivity(model, ids, types, generator) / count
    result = {f"layer={number}": total for number, total in enumerate(sums, 1)}
    for entry, module in zip(result.values(), modules, strict=True):
        entry |= of_diagonal(module)
    return result | {"model": {"sensitivity": sensitivity}}


def of_scores(A: Tensor) -> dict[str, float]:
    """Probes of the scores A [heads, n, n] of one sequence without padding."""
    return of_weights(A) | {"score_asymmetry": ((A - A.mT).norm() / (2 * A.norm()).clamp_min(1e-30)).item()}


def of_diagonal(module: SelfAttention) -> dict[str, float]:
    """The probe of the diagonal between queries and keys, where the operator has one."""
    diagonal = module.diagonal()
    return {} if diagonal is None else {"negative_diagonal_share": (diagonal < 0).float().mean().item()}


def _sensitivity(model, ids: Tensor, types: Tensor, generator: torch.Generator) -> float:
    embeddings = model.bert.embeddings.word_embeddings(ids)
    direction = torch.randn(embeddings.shape, generator=generator).to(embeddings.device)
    step = STEP * embeddings.norm() * direction / direction.norm()
    ahead, behind = (model(inputs_embeds=embeddings + sign * step, token_type_ids=types).logits for sign in (1, -1))
    return ((ahead - behind).norm() / (2 * STEP)).item()
