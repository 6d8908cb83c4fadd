"""Dropout on a CPU: rate, scale and repeatability."""

import pytest
import torch

from stages.attention.products import Dropout, drop_elements


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_zeroes_its_share_and_scales_the_rest(rate, dtype):
    torch.manual_seed(0)
    # no multiple of the four elements that are drawn at once
    X = torch.ones(1001, 203, dtype=dtype)
    Y = drop_elements(X, rate)
    torch.manual_seed(0)
    assert torch.equal(drop_elements(X, rate), Y)
    assert Y.dtype == dtype
    assert (Y == 0).float().mean().item() == pytest.approx(rate, abs=0.004)
    assert Y[Y != 0].unique().item() == pytest.approx(1 / (1 - rate), rel=2**-8)


def test_neighbouring_draws_are_independent():
    torch.manual_seed(0)
    dropped = (drop_elements(torch.ones(400_000), 0.5) == 0).float() - 0.5
    for lag in (1, 2, 3, 4, 8):
        assert abs((dropped[lag:] * dropped[:-lag]).mean().item()) < 0.002


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
def test_the_mean_stays_although_bfloat16_rounds_the_factor(rate):
    torch.manual_seed(0)
    Y = drop_elements(torch.ones(4_000_000, dtype=torch.bfloat16), rate)
    assert Y.float().mean().item() == pytest.approx(1, abs=5e-4)


def test_the_gradient_passes_where_the_value_does():
    torch.manual_seed(0)
    X = torch.ones(50, 50, requires_grad=True)
    Y = drop_elements(X, 0.3)
    Y.sum().backward()
    assert torch.equal(X.grad, Y.detach())


def test_dropout_at_rate_one_leaves_zeros_as_pytorchs_own_does():
    assert torch.equal(Dropout(1.0)(torch.ones(3)), torch.nn.Dropout(1.0)(torch.ones(3)))


def test_dropout_does_nothing_in_evaluation_and_at_rate_zero():
    X = torch.randn(5, 5)
    assert Dropout(0.5).eval()(X) is X
    assert torch.equal(drop_elements(X, 0.0), X)
