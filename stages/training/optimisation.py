"""AdamW, the learning-rate schedules, precision, devices, and the seeds of all that is drawn at random.

The learning rate and the seeds of a step are functions of the run's settings and the step alone. So a resumed run needs
the weights, the optimiser's state and the number of the step, and no state of a scheduler, sampler or generator.
"""

import ctypes
import math
import os
import sys
from functools import cache

import numpy as np
import torch
from torch import nn

from stages.attention.base import SelfAttention

# what a seed is for; draws for one purpose never move those for another
INITIALISATION, ORDER, MASKING, DROPOUT = range(4)
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # of malloc.h: options of `mallopt`


def reuse_memory() -> None:
    """Has the C library keep the memory that freed tensors had, up to 1 GiB, for the tensors of the next step.

    By default glibc returns every large block to the system, which hands it out again zeroed, page by page: 6 % of a
    CPU step (4 layers of width 256, batches of 4,096 tokens). Here no block is mapped by itself, only free memory above
    1 GiB is returned, and the heap grows by at least 64 MiB at a time. C libraries without `mallopt` stay as they are.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        for option, value in ((M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**30), (M_TOP_PAD, 2**26)):
            library.mallopt(option, value)


def derived_seed(seed: int, purpose: int, step: int = 0) -> int:
    """Derives an independent 32-bit seed for a purpose (INITIALISATION, ...) and a step or epoch of a run's `seed`."""
    return int(np.random.SeedSequence([seed, purpose, step]).generate_state(1)[0])


def seed_torch(seed: int, purpose: int, step: int = 0) -> None:
    """Seeds PyTorch's global generators with the `derived_seed` of the same arguments.

    Without a GPU it seeds the CPU's generator alone. `torch.manual_seed` would also record, for every kind of device
    that is missing, the seed and the stack of its caller: 1.3 ms, a twelfth of a small model's step.
    """
    on_cpu = device().type == "cpu"
    (torch.default_generator.manual_seed if on_cpu else torch.manual_seed)(derived_seed(seed, purpose, step))


def optimiser(model: nn.Module, betas: tuple[float, float], epsilon: float, weight_decay: float) -> torch.optim.AdamW:
    """Builds AdamW, fused, without weight decay on biases and LayerNorm (as the released code of Courtois et al.).

    All other parameters decay, the operators' own among them: the matrix S of pairwise, as in that code, and diagonals
    likewise. Where an operator was given a `score_rate`, the parameters that its `scores_alone` names, which influence
    its scores and nothing else, learn at that multiple of the rate.

    Args:
        model: what it trains.
        betas: decay rates of the two moments.
        epsilon: added to the root of the second moment.
        weight_decay: an update subtracts the share (learning rate) * weight_decay of a weight from it.

    Returns:
        The optimiser, with a rate of 0, in place of which `apply_gradients` sets the rate times a group's `multiple`.
    """
    multiples = {
        id(parameter): module.score_rate
        for module in model.modules()
        if isinstance(module, SelfAttention) and module.score_rate is not None
        for parameter in (getattr(module, name) for name in module.scores_alone)
    }
    groups = {}
    for name, parameter in model.named_parameters():
        exempt = name.endswith("bias") or "LayerNorm" in name
        key = 0.0 if exempt else weight_decay, multiples.get(id(parameter), 1.0)
        groups.setdefault(key, []).append(parameter)
    described = [{"params": group, "weight_decay": decay, "multiple": m} for (decay, m), group in groups.items()]
    return torch.optim.AdamW(described, lr=0.0, betas=betas, eps=epsilon, fused=True)


def linear_rate(step: int, steps: int, warmup: int, peak: float) -> float:
    """Returns the rate of update `step` (from 0): goes linearly from 0 to `peak` at `warmup`, then to 0 at `steps`."""
    if step < warmup:
        return peak * step / warmup
    return peak * (steps - step) / (steps - warmup)


def stepped_rate(step: int, steps: int, warmup: int, rates: tuple[float, ...]) -> float:
    """Returns the rate of update `step` (from 0): each of `rates`, in turn, for an equal part of all `steps` updates.

    In the first `warmup` updates, the rate is scaled by a factor that rises linearly from 0 to 1.
    """
    rate = rates[len(rates) * step // steps]
    return rate * step / warmup if step < warmup else rate


def update(
    model: nn.Module, adamw: torch.optim.AdamW, loss: torch.Tensor, rate: float, clipping: float, where: str
) -> float:
    """Computes the gradients of `loss`, a scalar, then does what `apply_gradients` does; its errors name the loss."""
    loss.backward()
    return apply_gradients(model, adamw, rate, clipping, f"{where}: loss {loss.item()}")


def apply_gradients(model: nn.Module, adamw: torch.optim.AdamW, rate: float, clipping: float, where: str) -> float:
    """Updates the weights from the gradients, which are then deleted.

    Args:
        model, adamw: what is trained, and its optimiser, as `optimiser` builds it.
        rate: learning rate, which every group of the optimiser takes times its `multiple`.
        clipping: the norm of all gradients together, to which a larger one is reduced; infinity reduces none.
        where: names the update in an error.

    Returns:
        The norm of all gradients together, before clipping.

    Raises:
        ValueError: the gradients are not finite; the weights are then as before.
    """
    norm = nn.utils.clip_grad_norm_(model.parameters(), clipping).item()
    if not math.isfinite(norm):
        raise ValueError(
            f"{where}, gradient norm {norm}: the run has diverged; lower the learning rate, lengthen the warm-up, or "
            "set precision: float32"
        )
    for group in adamw.param_groups:
        group["lr"] = rate * group["multiple"]
    adamw.step()
    adamw.zero_grad(set_to_none=True)
    return norm


def require_finite(values: torch.Tensor, where: str) -> torch.Tensor:
    """Returns `values` as they are. ValueError, which names `where`, if one of them is not finite."""
    if not torch.isfinite(values).all():
        raise ValueError(
            f"{where}: a value that is not finite; the training has diverged: lower its learning rate, or set "
            "precision: float32"
        )
    return values


@cache
def device() -> torch.device:
    """Returns the device that this process computes on: a GPU where there is one.

    A function and no constant: importing a module must not initialise a GPU, for the process may yet be forked or bound
    to another one. The first call also asks a GPU for kernels that always add in the same order, where there are any; a
    CPU's kernels do anyway.
    """
    if not torch.cuda.is_available():
        return torch.device("cpu")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without which cuBLAS may add in varying order
    torch.use_deterministic_algorithms(True, warn_only=True)
    return torch.device("cuda")


def autocast(precision: str) -> torch.autocast:
    """Returns a context in which matrix products are in `precision`, float32 or bfloat16; weights stay in float32."""
    return torch.autocast(device().type, torch.bfloat16, enabled=precision == "bfloat16")


reuse_memory()  # whatever trains imports this module, before there is a tensor
