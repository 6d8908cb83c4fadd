"""Probes of the attention during pre-training: the spread of scores, and the movement of weights.

The probes are measured at every evaluation if `pretraining.probes` is true, on the same unmasked validation sequences
for every operator and seed. The values may explain how fast an operator learns: a softmax over nearly equal scores
averages all tokens, and a softmax over widely spread scores sees only a single token.
"""

from collections import defaultdict
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from stages.attention.probes import complete_scores, list_operators, measure_weights, record_inputs
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.masked_lm.steps import build_model
from stages.training.optimisation import find_device

# The first sequences of the validation split; averages over them differ little from averages over all sequences.
SEQUENCES = 32


class Probes:
    """Measures the attention of a model during pre-training, on the first validation sequences of the corpus."""

    def __init__(self, run: PretrainingRun, corpus: Corpus):
        first = range(len(corpus.validation))[:SEQUENCES]
        self._sequences = torch.from_numpy(corpus.validation[first])
        # The initial weights are drawn again, because a resumed job has no other copy of them.
        initial = build_model(run, corpus.vocabulary_size)
        self._initial = {name: weight.detach() for name, weight in _list_weights(initial)}

    @torch.no_grad()
    def measure(self, model: nn.Module) -> dict[str, float]:
        """Measures a model, which is left in evaluation mode; each value is a mean over layers, heads and tokens.

        Returns:
            score_spread: the standard deviation over keys of a token's scores on other tokens, before the softmax.
            attention_entropy: the entropy of a token's weights over keys, divided by the entropy of uniform weights.
            self_weight: the weight of a token on itself, in [0, 1].
            movement_NAME: for every parameter NAME of the operator except biases, such as `query`: |W - W_0| / |W_0|
                (Frobenius), with the initial value W_0, as a mean over layers. A parameter that starts at 0 is left
                out.
        """
        model.eval()
        modules = list_operators(model)
        with record_inputs(modules) as inputs:
            model.bert(self._sequences.to(find_device()))
        layers = defaultdict(list)
        for module, X in zip(modules, inputs, strict=True):
            scores = complete_scores(module, X)
            for name, value in measure_scores(scores).items():
                layers[name].append(value)
        for name, weight in _list_weights(model):
            initial = self._initial[name].to(weight.device)
            if initial.norm():
                distance = (weight - initial).norm()
                movement = distance / initial.norm()
                # The parameter 0.query.weight belongs to movement_query.
                parameter = name.removesuffix(".weight").split(".")[-1]
                layers[f"movement_{parameter}"].append(movement.item())
        return {name: sum(values) / len(values) for name, values in layers.items()}


def measure_scores(A: Tensor) -> dict[str, float]:
    """Measures attention scores A before the softmax.

    Args:
        A: [batch, heads, n, n], n > 2, without padding; batch is 1 if scores do not depend on the input.

    Returns:
        score_spread: the standard deviation over keys of a token's scores on other tokens.
        attention_entropy: the entropy of a token's weights over keys, divided by the entropy of uniform weights.
        self_weight: the weight of a token on itself.
    """
    n = A.shape[-1]
    off_diagonal = ~torch.eye(n, dtype=torch.bool, device=A.device)
    others = A.float()[..., off_diagonal]
    others = others.unflatten(-1, (n, n - 1))
    spread = others.std(-1).mean().item()
    return {"score_spread": spread, **measure_weights(A)}


def _list_weights(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yields name and tensor of all parameters of the operators except biases, such as `0.query.weight` in layer 0."""
    for number, module in enumerate(list_operators(model)):
        for name, parameter in module.named_parameters():
            if not name.endswith("bias"):
                yield f"{number}.{name}", parameter
