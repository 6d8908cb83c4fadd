"""Linear layers, plain and wrapped; dropout on a CPU: rate, scale and repeatability."""

import pytest
import torch
from torch import nn
from torch.nn.modules import module as modules
from torch.nn.utils import parametrize

from stages.attention.products import Dropout, apply_linear_layers, apply_scaled_layer, drop_elements, is_plain


class OnGpu(torch.Tensor):
    """A tensor of the CPU that takes the branch of a GPU."""

    device = torch.device("cuda")


class Doubled(nn.Linear):
    def forward(self, X):
        return 2 * super().forward(X)


class Twice(nn.Module):
    def forward(self, W):
        return 2 * W


def replace_forward(layer: nn.Linear) -> None:
    layer.forward = lambda X: 2 * nn.Linear.forward(layer, X)


# each doubles what a call returns or takes
WRAPPINGS = {
    "none": lambda layer: None,
    "hook": lambda layer: layer.register_forward_hook(lambda layer, X, Y: 2 * Y),
    "hook before": lambda layer: layer.register_forward_pre_hook(lambda layer, X: 2 * X[0]),
    "hook before backward": lambda layer: layer.register_full_backward_pre_hook(lambda layer, outer: (2 * outer[0],)),
    "hook backward": lambda layer: layer.register_full_backward_hook(lambda layer, inner, outer: (2 * inner[0],)),
    "forward": replace_forward,
    "parametrisation": lambda layer: parametrize.register_parametrization(layer, "weight", Twice()),
    "subclass": lambda layer: setattr(layer, "__class__", Doubled),
    "weight": lambda layer: setattr(layer, "weight", nn.Parameter(layer.weight.detach().as_subclass(OnGpu))),
    "no bias": lambda layer: layer.register_parameter("bias", None),
}


@pytest.mark.parametrize("wrap", WRAPPINGS)
def test_a_layer_gives_what_its_call_gives_in_values_and_gradients(wrap):
    torch.manual_seed(0)
    layer, other = nn.Linear(4, 4), nn.Linear(4, 7)
    WRAPPINGS[wrap](layer)
    assert is_plain(layer) == (wrap == "none")
    X, D = torch.randn(3, 4, requires_grad=True), torch.rand(4)
    first, second, again = apply_linear_layers(X.as_subclass(OnGpu), layer, other, layer)
    pairs = {"first": (first, layer(X)), "second": (second, other(X)), "again": (again, layer(X))}
    pairs["scaled"] = apply_scaled_layer(X, D, layer), layer(X * D)
    for pair in pairs.values():
        found, wanted = (Y.as_subclass(torch.Tensor) for Y in pair)
        torch.testing.assert_close(found, wanted)
        gradients = [torch.autograd.grad(Y.square().sum(), X, retain_graph=True)[0] for Y in (found, wanted)]
        torch.testing.assert_close(*gradients)


HOOKS = ["forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook"]


@pytest.mark.parametrize("kind", HOOKS)
def test_no_layer_is_plain_while_a_hook_is_on_all_modules(kind):
    layer = nn.Linear(2, 2)
    hook = getattr(modules, f"register_module_{kind}")(lambda *arguments: None)
    assert not is_plain(layer)
    hook.remove()
    assert is_plain(layer)


def test_a_diagonal_in_float32_leaves_the_precision_of_the_activations():
    layer = nn.Sequential(nn.Linear(4, 4)).bfloat16()
    assert apply_scaled_layer(torch.ones(3, 4, dtype=torch.bfloat16), torch.ones(4), layer).dtype == torch.bfloat16


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
