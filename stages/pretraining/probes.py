"""Probes of the attention while a model is pre-trained: how its scores spread, and how far its weights move.

Measured at every evaluation where `pretraining.probes` is true, on the same unmasked validation sequences for every
operator and seed. They may explain how fast an operator learns: a softmax over nearly equal scores averages all tokens,
and one over widely spread scores sees one token alone.
"""

import torch
from torch import Tensor, nn

from stages.attention.probes import complete_scores, inputs_of, of_weights, operators_of
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.masked_lm.steps import built
from stages.training.optimisation import device

SEQUENCES = 32  # the first of the validation split; averages over them differ little from those over all


class Probes:
    """The probes of one run, whose model is measured on the first SEQUENCES validation sequences of the corpus."""

    def __init__(self, run: PretrainingRun, corpus: Corpus):
        self._sequences = torch.from_numpy(corpus.validation[range(min(SEQUENCES, len(corpus.validation)))])
        initial = built(run, corpus.vocabulary_size)  # drawn again: a resumed job has no other copy of them
        self._initial = {name: value.detach() for name, value in _weights(initial)}

    @torch.no_grad()
    def measure(self, model: nn.Module) -> dict[str, float]:
        """Measures a model, which is left in evaluation mode; each value is a mean over layers, heads and tokens.

        Returns:
            score_spread: the standard deviation over keys of a token's scores on other tokens, before the softmax.
            attention_entropy: of a token's weights over keys, as a share of that of uniform weights, in [0, 1].
            self_weight: the weight of a token on itself, in [0, 1].
            movement_NAME, for every parameter NAME of the operator but biases, such as `query`: |W - W_0| / |W_0|
                (Frobenius), with W_0 its initial value, as a mean over layers. One that is 0 at first has none.
        """
        model.eval()
        modules = operators_of(model)
        with inputs_of(modules) as inputs:
            model.bert(self._sequences.to(device()))
        measured = [of_scores(complete_scores(module, X)) for module, X in zip(modules, inputs, strict=True)]
        values = {name: sum(layer[name] for layer in measured) / len(measured) for name in measured[0]}
        movements: dict[str, list[float]] = {}
        for name, weight in _weights(model):
            initial = self._initial[name].to(weight.device)
            if initial.norm():
                key = f"movement_{name.removesuffix('.weight').rpartition('.')[2]}"  # 0.query.weight: movement_query
                movements.setdefault(key, []).append(((weight - initial).norm() / initial.norm()).item())
        return values | {name: sum(layers) / len(layers) for name, layers in movements.items()}


def of_scores(A: Tensor) -> dict[str, float]:
    """Returns score_spread, attention_entropy and self_weight, as `measure` does, of scores A before the softmax.

    A: [batch, heads, n, n], 1 in place of batch where the scores do not depend on the input; n > 2, without padding.
    Scores of a token on itself do not enter the spread, but enter the weights.
    """
    n = A.shape[-1]
    others = A.float()[..., ~torch.eye(n, dtype=torch.bool, device=A.device)].unflatten(-1, (n, n - 1))
    return {"score_spread": others.std(-1).mean().item()} | of_weights(A)


def _weights(model: nn.Module) -> list[tuple[str, Tensor]]:
    """Lists (LAYER.NAME, parameter) of all parameters of the operators except biases, which are 0 at first."""
    return [
        (f"{number}.{name}", parameter)
        for number, module in enumerate(operators_of(model))
        for name, parameter in module.named_parameters()
        if not name.endswith("bias")
    ]
