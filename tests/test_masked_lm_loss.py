"""The loss at the chosen tokens alone: the library's values and gradients, whatever is padded."""

import pytest
import torch
from torch.nn import functional

from stages.masked_lm.loss import IGNORED, SummedCrossEntropy
from stages.masked_lm.masking import list_sparse_targets


def test_the_summed_cross_entropy_is_the_librarys_with_its_gradient_in_lower_precision():
    logits = (5 * torch.randn(37, 50, generator=torch.Generator().manual_seed(1))).bfloat16()
    targets = torch.arange(37)
    targets[[3, 36]] = IGNORED
    own = logits.clone().requires_grad_()
    reference = logits.clone().requires_grad_()
    loss = SummedCrossEntropy.apply(own * 1, targets)
    expected = functional.cross_entropy(reference.float(), targets, ignore_index=IGNORED, reduction="sum")
    torch.testing.assert_close(loss, expected)
    (loss / 35).backward()
    (expected / 35).backward()
    torch.testing.assert_close(own.grad, reference.grad, atol=1e-3, rtol=1e-2)


def test_large_logits_do_not_overflow():
    logits = torch.tensor([[1e4, -1e4], [1e4, -1e4]])
    assert SummedCrossEntropy.apply(logits.clone(), torch.tensor([0, 1])).item() == pytest.approx(2e4)


def test_positions_are_padded_to_a_multiple_that_the_loss_ignores():
    sequences = torch.arange(12).reshape(2, 6)
    chosen = torch.zeros(2, 6, dtype=torch.bool)
    chosen[0, 2] = chosen[1, [0, 5]] = True
    positions, targets = list_sparse_targets(sequences, chosen, 4)
    assert positions.tolist() == [2, 6, 11, 0]
    assert targets.tolist() == [2, 6, 11, IGNORED]
