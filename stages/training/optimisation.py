"""AdamW, the learning-rate schedules, checks for divergence, and the seeds of all random draws.

The learning rate and the seeds of a step are functions of the run's settings and the step only. So a resumed run needs
the weights, the optimiser's state and the number of the step, but no state of a scheduler, sampler or generator. `seed`
is the seed of the run, `purpose` a constant of this module such as DROPOUT, and `step` the step, from 0, or the epoch.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from stages.attention.base import SelfAttention
from stages.training.machine import has_gpu

# Purposes of a seed. Draws for one purpose never change the draws for another.
INITIALISATION = 0
ORDER = 1
MASKING = 2
DROPOUT = 3

# Updates after which a training that needs no losses looks whether it has diverged.
READ_INTERVAL = 100


def derive_seed(seed: int, purpose: int, step: int = 0) -> int:
    """Derives an independent 32-bit seed from the seed of a run."""
    sequence = np.random.SeedSequence([seed, purpose, step])
    return int(sequence.generate_state(1)[0])


def seed_torch(seed: int, purpose: int, step: int = 0) -> None:
    """Seeds PyTorch's global generators for a step of a run, which can then be repeated without the steps before."""
    derived = derive_seed(seed, purpose, step)
    # Without a GPU, `torch.manual_seed` would waste 1.3 ms on generators of missing devices, a twelfth of the time of a
    # small model's step.
    if has_gpu():
        torch.manual_seed(derived)
    else:
        torch.default_generator.manual_seed(derived)


def build_optimiser(
    model: nn.Module,
    betas: tuple[float, float],
    epsilon: float,
    weight_decay: float,
) -> torch.optim.AdamW:
    """Builds fused AdamW, without weight decay on biases and LayerNorm (as the released code of Courtois et al.).

    All other parameters decay, also the operators' own, such as the matrix S of pairwise. Parameters on which only the
    scores depend (`scores_alone`) learn at `score_rate` times the rate. The rate is 0 until `apply_gradients`.
    """
    # parameter -> multiple of the rate, if not 1
    multiples = {}
    for module in model.modules():
        if isinstance(module, SelfAttention) and module.score_rate is not None:
            for name in module.scores_alone:
                multiples[getattr(module, name)] = module.score_rate
    # (weight decay, multiple) -> parameter group of PyTorch
    groups = {}
    for name, parameter in model.named_parameters():
        exempt = name.endswith("bias") or "LayerNorm" in name
        decay = 0.0 if exempt else weight_decay
        multiple = multiples.get(parameter, 1.0)
        new_group = {"params": [], "weight_decay": decay, "multiple": multiple}
        group = groups.setdefault((decay, multiple), new_group)
        group["params"].append(parameter)
    return torch.optim.AdamW(list(groups.values()), lr=0.0, betas=betas, eps=epsilon, fused=True)


def compute_linear_rate(
    step: int,
    steps: int,
    warmup: int,
    peak: float,
) -> float:
    """Returns the rate of an update: goes linearly from 0 to `peak` at step `warmup`, then to 0 at `steps`."""
    if step < warmup:
        return peak * step / warmup
    return peak * (steps - step) / (steps - warmup)


def compute_stepped_rate(
    step: int,
    steps: int,
    warmup: int,
    rates: tuple[float, ...],
) -> float:
    """Returns the rate of an update: each of `rates`, in turn, for an equal part of all `steps` updates.

    During the first `warmup` updates, the rate is scaled by a factor that rises linearly from 0 to 1.
    """
    rate = rates[len(rates) * step // steps]
    if step < warmup:
        return rate * step / warmup
    return rate


def update_weights(
    model: nn.Module,
    adamw: torch.optim.AdamW,
    loss: Tensor,
    rate: float,
    clipping: float,
) -> Tensor:
    """Computes the gradients of `loss`, the mean loss of a batch, and updates the weights as `apply_gradients`."""
    loss.backward()
    return apply_gradients(model, adamw, rate, clipping)


def apply_gradients(
    model: nn.Module,
    adamw: torch.optim.AdamW,
    rate: float,
    clipping: float,
) -> Tensor:
    """Updates the weights from the gradients, which are then deleted. Gradients that are not finite change no weight.

    `clipping` is the upper limit for the norm of all gradients together; infinity for no limit. Returns that norm
    before clipping, a scalar on the device.
    """
    # Nothing is read from the device, because a GPU would wait for the host after every update.
    norm = nn.utils.clip_grad_norm_(model.parameters(), clipping)
    for group in adamw.param_groups:
        group["lr"] = rate * group["multiple"]
    # Fused AdamW skips the update if `found_inf` is 1; PyTorch's GradScaler uses this attribute after an overflow.
    adamw.found_inf = (~norm.isfinite()).float()
    adamw.step()
    adamw.zero_grad(set_to_none=True)
    return norm


class UnreadLosses:
    """Losses and gradient norms of updates, which stay on the device until the host reads all of them together.

    `describe` returns the name of an update for errors, from its step and loss.
    """

    def __init__(self, describe: Callable[[int, float], str]):
        self._describe = describe
        self._unread: list[tuple[int, Tensor]] = []

    def add(self, step: int, loss: Tensor, norm: Tensor) -> None:
        """Adds the loss and the norm of the gradient, both scalars, of an update."""
        self._unread.append((step, torch.stack([loss.detach(), norm])))

    def read(self) -> list[list[float]]:
        """Returns the pair [loss, norm of the gradient] of every update added since the last call, in order.

        Raises:
            ValueError: A norm is not finite. The message describes the first update with such a norm.
        """
        if not self._unread:
            return []
        steps, values = zip(*self._unread, strict=True)
        self._unread = []
        # A GPU is read once for many updates, because each read makes the GPU wait.
        pairs = torch.stack(values).tolist()
        for step, (loss, norm) in zip(steps, pairs, strict=True):
            # checked here, too, so that `describe`, which takes time, is called only for a bad norm
            if not math.isfinite(norm):
                require_finite_gradient(norm, self._describe(step, loss))
        return pairs


def require_finite_gradient(norm: float, where: str) -> None:
    """Raises ValueError if the norm of a gradient is not finite; `where` names the update in the message."""
    if not math.isfinite(norm):
        raise ValueError(
            f"{where}, gradient norm {norm}: the run has diverged; lower the learning rate, lengthen the warm-up, or "
            "set precision: float32"
        )


def require_finite(values: Tensor, where: str) -> Tensor:
    """Returns `values` unchanged; ValueError, which names `where`, if a value is not finite."""
    if not torch.isfinite(values).all():
        raise ValueError(
            f"{where}: a value that is not finite; the training has diverged: lower the learning rate, or set "
            "precision: float32"
        )
    return values
