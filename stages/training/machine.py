"""The machine that trains: its clock, the peak speed of its matrix products, and calls that are timed in turn.

Several ways of doing one thing are timed round by round, so that a machine's drift affects all alike.
"""

import statistics
import time
from collections.abc import Callable, Hashable, Sequence

import torch

from stages.training.optimisation import device

SIDES = {"cpu": (256, 512, 1024, 2048), "cuda": (2048, 8192)}  # of square matrices; the fastest has to be found
PRODUCTS = 4  # of each size; the fastest counts
ENOUGH = 0.1  # seconds of a product, after which no larger one is tried: a CPU may take minutes for one in bfloat16


def peak(precision: str) -> float:
    """Measures the floating-point operations per second of the fastest square matrix product in float32 or bfloat16."""
    # random numbers: a GPU multiplies zeros and ones some ten per cent faster, as fewer bits of it switch
    generator, rate = torch.Generator(device()).manual_seed(0), 0.0
    for side in SIDES[device().type]:
        drawn = (torch.randn(side, side, device=device(), generator=generator) for _ in range(2))
        A, B = (matrix.to(getattr(torch, precision)) for matrix in drawn)
        seconds = min(clocked(lambda A=A, B=B: A @ B) for _ in range(PRODUCTS))
        rate = max(rate, 2 * side**3 / seconds)  # a multiplication and an addition for every side^3
        if seconds > ENOUGH:
            break
    return rate


def clocked(call: Callable[[], object]) -> float:
    """Returns the seconds that one call takes, until a GPU has finished what it was asked for."""
    synchronise()
    started = time.perf_counter()
    call()
    synchronise()
    return time.perf_counter() - started


def synchronise() -> None:
    """Waits until a GPU has finished what it was asked to compute; without one, does nothing."""
    if device().type == "cuda":
        torch.cuda.synchronize()


class Pace:
    """Speed of a run on devices whose peaks add up to `limit` floating-point operations per second."""

    def __init__(self, limit: float):
        self._limit = limit
        self.restart()

    def restart(self) -> None:
        """Begins a new interval of measuring."""
        self._tokens, self._flops, self._started = 0, 0.0, time.perf_counter()

    def count(self, tokens: int, flops: float) -> None:
        """Adds the tokens and the floating-point operations of one step to the interval."""
        self._tokens += tokens
        self._flops += flops

    def measure(self) -> dict[str, float]:
        """Returns tokens_per_second and model_flop_utilisation, the share of the peak, from `restart` until now."""
        seconds = time.perf_counter() - self._started
        return {
            "tokens_per_second": self._tokens / seconds,
            "model_flop_utilisation": self._flops / seconds / self._limit,
        }


def interleaved(calls: dict[Hashable, Callable[[], float]], rounds: int) -> dict[Hashable, list[float]]:
    """Makes every call once per round, in turn; returns, by key, the list [rounds] of what the call returned."""
    values = {key: [] for key in calls}
    for _ in range(rounds):
        for key, call in calls.items():
            values[key].append(call())
    return values


def median_ratio(values: Sequence[float], others: Sequence[float]) -> float:
    """Returns the median over rounds of value / other, both of the same round; each argument has one per round."""
    return statistics.median(value / other for value, other in zip(values, others, strict=True))
