"""What happens inside the attention while a model is pre-trained: how its scores spread, and how far its weights move.

Measured at every evaluation where `pretraining.probes` asks for it, on the same unmasked validation sequences for every
operator and seed. They are the mechanism that an operator's speed of learning may rest on: a softmax over nearly equal
scores averages all tokens, and one over widely spread scores sees one token alone.
"""

import torch
from torch import Tensor, nn

from stages.attention.probes import inputs_of, of_weights, operators_of
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.masked_lm.steps import built
from stages.training.optimisation import device

SEQUENCES = 32  # of the validation split; averages of so many differ little from those of all


class Probes:
    """The measurements of one run.

    Args:
        run: its seed gives the weights that training starts from.
        corpus: its validation split holds the sequences that are measured on.
    """

    def __init__(self, run: PretrainingRun, corpus: Corpus):
        self._sequences = torch.from_numpy(corpus.validation[range(min(SEQUENCES, len(corpus.validation)))])
        start = built(run, corpus.vocabulary_size)  # drawn again, so that a resumed job measures from the same start
        self._start = {name: value.detach() for name, value in _weights(start)}

    @torch.no_grad()
    def measure(self, model: nn.Module) -> dict[str, float]:
        """Measures a model, each value the mean over layers, and over heads and tokens.

        Returns:
            score_spread: the standard deviation over keys of a token's scores on other tokens, before the softmax.
            attention_entropy: of the weights over keys, as a share of the uniform one's, in [0, 1].
            self_weight: the weight of a token on itself.
            movement_NAME, for every weight NAME of the operator: |W - W_0| / |W_0| (Frobenius), with W_0 its start.
                A weight that starts at 0 has none.
        """
        model.eval()
        modules = operators_of(model)
        with inputs_of(modules) as inputs:
            model.bert(self._sequences.to(device()))
        measured = [of_scores(module.scores(X)) for module, X in zip(modules, inputs, strict=True)]
        values = {name: sum(layer[name] for layer in measured) / len(measured) for name in measured[0]}
        moved: dict[str, list[float]] = {}
        for name, weight in _weights(model):
            start = self._start[name].to(weight.device)
            own = name.removesuffix(".weight").rpartition(".")[2]
            if not start.norm():
                continue
            moved.setdefault(f"movement_{own}", []).append(((weight - start).norm() / start.norm()).item())
        return values | {name: sum(layers) / len(layers) for name, layers in moved.items()}


def of_scores(A: Tensor) -> dict[str, float]:
    """The probes of scores A [batch, heads, n, n], before the softmax, of sequences without padding."""
    n = A.shape[-1]
    others = A.float()[..., ~torch.eye(n, dtype=torch.bool, device=A.device)].unflatten(-1, (n, n - 1))
    return {"score_spread": others.std(-1).mean().item()} | of_weights(A)


def _weights(model: nn.Module) -> list[tuple[str, Tensor]]:
    """Every weight of the self-attention operators, biases left out: they start at 0."""
    return [
        (f"{number}.{name}", parameter)
        for number, module in enumerate(operators_of(model))
        for name, parameter in module.named_parameters()
        if not name.endswith("bias")
    ]
