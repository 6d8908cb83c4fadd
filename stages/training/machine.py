"""The machine that trains: clock, peak speed of matrix products, and calls that are timed in turn.

Alternatives are timed round by round, so that a drift of the machine's speed affects all alternatives alike.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from stages.training.optimisation import find_device, has_gpu

# Sides of the square matrices that `measure_peak` multiplies; the fastest side is not known beforehand.
SIDES = {"cpu": (256, 512, 1024, 2048), "cuda": (2048, 8192)}
PRODUCTS = 4  # of each side; the fastest counts
# Seconds of a product after which no larger one is tried: a CPU may take minutes for a product in bfloat16.
ENOUGH = 0.1


def measure_peak(precision: str) -> float:
    """Measures the device's highest rate of matrix products in `precision`, in floating-point operations per second.

    The speed of training is reported as a share of this rate, a burst of a second. Square matrices of growing size are
    multiplied, PRODUCTS times each, and the fastest product counts; the sizes end once a product takes more than ENOUGH
    seconds.
    """
    # Random numbers, because a GPU multiplies zeros and ones some ten per cent faster: fewer of its bits switch.
    generator = torch.Generator(find_device()).manual_seed(0)
    dtype = getattr(torch, precision)
    # For a second, an H100 sustained 686 of 781 TFLOP/s in bfloat16 (reports/examples/h100/peaks.csv).
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
