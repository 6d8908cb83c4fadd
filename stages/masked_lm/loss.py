"""The masked-LM loss, computed only at the chosen tokens."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

IGNORED = -100  # target of a padding position, as in PyTorch's own losses
ROWS = 16  # rows of logits over BERT's vocabulary that fit into a core's cache
ALIGNED = 64  # sizes of matrix products that suit a GPU are multiples of this number


class MaskedLMLoss(nn.Module):
    """The masked-LM loss of a BertForMaskedLM as a module, which can be compiled and trained on several devices.

    The head, which projects to the whole vocabulary, sees only the chosen positions. Loss and gradients are the same as
    with the head at all positions.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor, positions: Tensor, targets: Tensor) -> Tensor:
        """Sums the cross-entropy over the chosen tokens, in nats, to a float32 scalar.

        Args:
            inputs: Token ids [batch, n] after masking. Packed sequences have no padding: attention sees all tokens.
            positions: [k], the chosen tokens in the flattened inputs.
            targets: Ids [k]; -100 at a position that does not count.
        """
        hidden = self.model.bert(inputs).last_hidden_state.flatten(0, 1)[positions]
        # The first form is faster on a CPU, the second on a GPU.
        if hidden.device.type == "cpu":
            return SummedCrossEntropy.apply(self.model.cls(hidden), targets)
        logits = compute_padded_logits(self.model.cls, hidden)
        return functional.cross_entropy(logits.float(), targets, ignore_index=IGNORED, reduction="sum")


def compute_padded_logits(head: nn.Module, hidden: Tensor) -> Tensor:
    """Computes the logits [k, padded vocabulary] of a BertOnlyMLMHead for hidden states [k, h].

    A word of the padding has the logit minus infinity, hence probability 0 and no gradient.
    """
    predictions: Any = head.predictions
    weight, bias = predictions.decoder.weight, predictions.decoder.bias
    # GPUs multiply matrices faster if the sizes are multiples of 64. BERT's vocabulary of 30,522 is not.
    padding = -len(bias) % ALIGNED
    weight = functional.pad(weight, (0, 0, 0, padding))
    bias = functional.pad(bias, (0, padding), value=-math.inf)
    return functional.linear(predictions.transform(hidden), weight, bias)


class SummedCrossEntropy(torch.autograd.Function):
    """Sum of the cross-entropy in nats, a float32 scalar, of logits [k, classes] and targets [k]; -100 does not count.

    The function overwrites the logits, which the preceding Linear layer does not need again.
    """

    @staticmethod
    def forward(ctx, logits: Tensor, targets: Tensor) -> Tensor:
        """Returns the sum, and overwrites `logits` with the gradient for `backward`."""
        gradient = logits.detach()
        total = torch.zeros(())
        # Passes over all logits in float32 are a tenth of a step on a CPU. A few rows at a time stay in a core's cache,
        # and the gradient, softmax(logits) - one-hot(target), replaces the rows in the same pass.
        for rows, row_targets in zip(gradient.split(ROWS), targets.split(ROWS), strict=True):
            # An ignored row (target -100) takes the column 0, and its loss and gradient are multiplied by 0.
            counted = (row_targets != IGNORED).float()[:, None]
            column = row_targets.clamp(min=0)[:, None]
            # The logits minus the largest of each row, so that no exponential overflows.
            buffer = rows.float()
            buffer -= buffer.amax(-1, keepdim=True)
            target_logits = buffer.gather(1, column)
            # From here on, the buffer has the exponentials.
            sums = buffer.exp_().sum(-1, keepdim=True)
            losses = sums.log() - target_logits
            total += (losses * counted).sum()
            # The softmax, and then 1 less at the target.
            buffer.mul_(counted / sums)
            buffer.scatter_add_(1, column, -counted)
            rows.copy_(buffer)
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx, outer: Tensor) -> tuple[Tensor, None]:
        """Returns the gradient of the logits, and `None` for the targets. outer: the gradient of the sum, a scalar."""
        (gradient,) = ctx.saved_tensors
        return gradient * outer, None
