"""The masked-LM loss, at the chosen tokens alone."""

import torch
from torch import Tensor, nn
from torch.nn import functional

IGNORED = -100  # target of a padding position, as PyTorch's own losses have it
ROWS = 16  # rows of logits over BERT's vocabulary that fit into a core's cache


def sparse_targets(sequences: Tensor, chosen: Tensor, multiple: int = 1) -> tuple[Tensor, Tensor]:
    """Lists the chosen tokens.

    Args:
        sequences, chosen: token ids before any were hidden, and which of them are predicted, boolean; [batch, n] each.
        multiple: the lists are padded to a multiple k of this, so that code compiled for every size meets few sizes.

    Returns:
        Positions [k] in the flattened sequences, and the tokens [k] there; padding has position 0 and target IGNORED.
    """
    positions = chosen.flatten().nonzero().squeeze(-1)
    targets = sequences.flatten()[positions]
    padding = -len(positions) % multiple
    return functional.pad(positions, (0, padding)), functional.pad(targets, (0, padding), value=IGNORED)


class MaskedLMLoss(nn.Module):
    """The masked-LM loss of a model as a module, so that it can be compiled and trained on several devices.

    The head, which projects to the whole vocabulary, sees the chosen positions alone. Loss and gradients are the same
    as if it saw all of them, and its work shrinks to the chosen share. model: a BertForMaskedLM.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, positions: Tensor, targets: Tensor) -> Tensor:
        """Sums the cross-entropy over the chosen tokens, in nats, to a float32 scalar.

        Args:
            inputs: token ids [batch, n] after masking; as packed sequences have no padding, attention sees all of them.
            positions: [k] of the chosen tokens in the flattened inputs.
            targets: ids [k]; IGNORED where a position does not count.
        """
        hidden = self.model.bert(inputs).last_hidden_state.flatten(0, 1)
        logits = self.model.cls(hidden[positions])
        if logits.device.type == "cpu":
            return SummedCrossEntropy.apply(logits, targets)
        return functional.cross_entropy(logits.float(), targets, ignore_index=IGNORED, reduction="sum")


class SummedCrossEntropy(torch.autograd.Function):
    """Sum of the cross-entropy in nats, a float32 scalar, of logits [k, classes] and targets [k], which may be IGNORED.

    It overwrites the logits, which the Linear layer that made them does not need again. Passes over all logits in
    float32 are a tenth of a step on a CPU: here a few rows at a time stay in the cache, and their gradient,
    softmax(logits) - one-hot(target), replaces them in the same pass.
    """

    @staticmethod
    def forward(ctx, logits: Tensor, targets: Tensor) -> Tensor:
        gradient, total = logits.detach(), torch.zeros(())
        for rows, classes in zip(gradient.split(ROWS), targets.split(ROWS), strict=True):
            counted = (classes != IGNORED).float()[:, None]
            column = classes.clamp(min=0)[:, None]  # any valid one where IGNORED, which `counted` sets to 0
            exponents = rows.float()
            exponents -= exponents.amax(-1, keepdim=True)  # no exponent above 0, so that none overflows
            right = exponents.gather(1, column)
            sums = exponents.exp_().sum(-1, keepdim=True)
            total += ((sums.log() - right) * counted).sum()
            rows.copy_(exponents.mul_(counted / sums).scatter_add_(1, column, -counted))
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx, outer: Tensor) -> tuple[Tensor, None]:  # outer: gradient with respect to the sum, a scalar
        (gradient,) = ctx.saved_tensors
        return gradient * outer, None
