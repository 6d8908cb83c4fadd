"""The machine that trains: device, memory and precision, clock, peak of matrix products, and calls timed in turn.

Alternatives are timed round by round, so that a drift of the machine's speed affects all alternatives alike.
"""

import ctypes
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch

# Options of `mallopt` in malloc.h, with the values that `reuse_memory` sets.
M_MMAP_MAX = (-4, 0)
M_TRIM_THRESHOLD = (-1, 2**30)
M_TOP_PAD = (-2, 2**26)

# Sides of the square matrices that `measure_peak` multiplies; the fastest side is not known beforehand.
SIDES = {"cpu": (256, 512, 1024, 2048), "cuda": (2048, 8192)}
PRODUCTS = 4  # of each side; the fastest counts
# Seconds of a product after which no larger one is tried: a CPU may take minutes for a product in bfloat16.
ENOUGH = 0.1


# No constant, because importing a module must not initialise a GPU: the process may yet be forked or bound to another.
@cache
def find_device() -> torch.device:
    """Returns the device that this process computes on: a GPU, if the machine has a GPU.

    The first call also sets up memory (`reuse_memory`) and a GPU (`_fix_kernels`).
    """
    reuse_memory()
    if not torch.cuda.is_available():
        return torch.device("cpu")
    _fix_kernels()
    return torch.device("cuda")


def has_gpu() -> bool:
    """Whether this process computes on a GPU."""
    return find_device().type == "cuda"


def open_autocast(precision: str) -> torch.autocast:
    """Returns a context in which matrix products are in `precision`, float32 or bfloat16; weights stay in float32."""
    return torch.autocast(find_device().type, torch.bfloat16, enabled=precision == "bfloat16")


def reuse_memory() -> None:
    """Has the C library keep the memory of freed tensors, up to 1 GiB, for the next step."""
    # By default glibc returns every large block to the system and gets zeroed pages back: 6 % of a small CPU
    # step. Here no block is mapped separately, free memory above 1 GiB is returned, and the heap grows by 64 MiB.
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        # each constant is a pair: number of the option, value
        for option, value in (M_MMAP_MAX, M_TRIM_THRESHOLD, M_TOP_PAD):
            library.mallopt(option, value)


def _fix_kernels() -> None:
    """Asks a GPU for kernels that always add in the same order, and for the same kernels of attention everywhere."""
    # Without a fixed workspace, cuBLAS may add in varying order.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # With `warn_only`, kernels of attention would add gradients in varying order.
    torch.use_deterministic_algorithms(True)
    # Deterministic algorithms also fill new memory, for code that reads before it writes; no code here does.
    torch.utils.deterministic.fill_uninitialized_memory = False
    # Without cuDNN's kernels, PyTorch takes FlashAttention, or the memory-efficient kernel if a mask or float32 forbids
    # FlashAttention. With cuDNN's, the choice would also depend on strides and versions, and so on the operator.
    torch.backends.cuda.enable_cudnn_sdp(False)


def measure_peak(precision: str) -> float:
    """Measures the device's highest rate of matrix products in `precision`, in floating-point operations per second.

    The speed of training is reported as a share of this rate. Square matrices of growing size are multiplied, PRODUCTS
    times each, and the fastest product counts; the sizes end once a product takes more than ENOUGH seconds.
    """
    # Random numbers, because a GPU multiplies zeros and ones some ten per cent faster: fewer of its bits switch.
    generator = torch.Generator(find_device()).manual_seed(0)
    dtype = getattr(torch, precision)
    # The rate holds for short bursts: an H100 that reached 781 TFLOP/s in bfloat16 sustained 686 for a second
    # (reports/examples/h100/peaks.csv).
    rate = 0.0
    for side in SIDES[find_device().type]:
        A, B = torch.randn(2, side, side, device=find_device(), generator=generator).to(dtype)
        multiply = partial(torch.matmul, A, B)
        seconds = min(measure_seconds(multiply) for _ in range(PRODUCTS))
        # A product takes side^3 multiplications and as many additions.
        rate = max(rate, 2 * side**3 / seconds)
        if seconds > ENOUGH:
            break
    return rate


def measure_seconds(call: Callable[[], object]) -> float:
    """Returns the seconds that a call takes, until a GPU has finished the work."""
    synchronise_gpu()
    started = time.perf_counter()
    call()
    synchronise_gpu()
    return time.perf_counter() - started


def synchronise_gpu() -> None:
    """Waits until a GPU, if any, has finished all work."""
    if has_gpu():
        torch.cuda.synchronize()


def call_in_turn(calls: dict[Any, Callable[[], float]], rounds: int) -> dict[Any, list[float]]:
    """Calls every function once per round, in turn; returns the list [rounds] of returned numbers by key."""
    values = {key: [] for key in calls}
    for _ in range(rounds):
        for key, call in calls.items():
            values[key].append(call())
    return values


def compute_median_ratio(values: Sequence[float], others: Sequence[float]) -> float:
    """Returns the median over rounds of value / other; each argument has a number for each round."""
    return statistics.median(value / other for value, other in zip(values, others, strict=True))
