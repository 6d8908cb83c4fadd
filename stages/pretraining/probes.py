"""Probes of the attention during pre-training: how widely scores spread, and how much a token attends to itself.

The probes are measured at every evaluation if `pretraining.probes` is true, on the same unmasked validation sequences
for every run. A softmax over nearly equal scores averages all tokens, and a softmax over widely spread scores sees only
a single token, which may explain how fast an operator learns.
"""

from collections import defaultdict

import torch
from torch import Tensor, nn

from stages.attention.products import mask_scores
from stages.masked_lm.corpus import Corpus
from stages.training.machine import find_device

# The first sequences of the validation split; averages over them differ little from averages over all sequences.
SEQUENCES = 32


@torch.no_grad()
def measure_probes(model: nn.Module, corpus: Corpus) -> dict[str, float]:
    """Measures a model, which is left in evaluation mode; each value is a mean over layers.

    Returns:
        `score_spread` and `self_weight`, as in `measure_scores`.
    """
    model.eval()
    first = range(len(corpus.validation))[:SEQUENCES]
    sequences = torch.from_numpy(corpus.validation[first])
    outputs = model.bert(sequences.to(find_device()), output_hidden_states=True)
    probes = defaultdict(list)
    # Entry i of the hidden states is the input of layer i. A further entry is the output of the last layer.
    for layer, X in zip(model.bert.encoder.layer, outputs.hidden_states, strict=False):
        operator = layer.attention.self
        # the scores that the softmax receives; the mask adds `self_score`, a setting, to the diagonal
        A = mask_scores(operator.compute_scores(X), operator.complete_mask(X))
        for name, value in measure_scores(A).items():
            probes[name].append(value)
    return {name: sum(values) / len(values) for name, values in probes.items()}


def measure_scores(A: Tensor) -> dict[str, float]:
    """Measures attention scores A [batch, heads, n, n] before the softmax, n > 2, without padding.

    Returns:
        score_spread: the standard deviation over keys of a token's scores on other tokens.
        self_weight: the weight of a token on itself after the softmax, in [0, 1].
    """
    n = A.shape[-1]
    off_diagonal = ~torch.eye(n, dtype=torch.bool, device=A.device)
    # [batch, heads, n, n - 1]: the scores of each token on the other tokens
    others = A.float()[..., off_diagonal].unflatten(-1, (n, n - 1))
    weights = torch.softmax(A.float(), dim=-1)
    return {
        "score_spread": others.std(-1).mean().item(),
        "self_weight": weights.diagonal(dim1=-2, dim2=-1).mean().item(),
    }
