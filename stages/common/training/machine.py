"""The machine that trains: its clock, and the peak of its matrix products."""

import time
from collections.abc import Callable

import torch

from stages.common.training.optimisation import device

SIDE = {"cpu": 2048, "cuda": 8192}  # of the square matrices whose product gives the machine's peak
PRODUCTS = 4  # the fastest of which counts


def peak(precision: str) -> float:
    """Floating-point operations a second of a large matrix product; precision: float32 or bfloat16."""
    side = SIDE[device().type]
    # random numbers: a GPU multiplies zeros and ones some ten per cent faster, as fewer bits of it switch
    generator = torch.Generator(device()).manual_seed(0)
    drawn = (torch.randn(side, side, device=device(), generator=generator) for _ in range(2))
    A, B = (matrix.to(getattr(torch, precision)) for matrix in drawn)
    return 2 * side**3 / min(clocked(lambda: A @ B) for _ in range(PRODUCTS))


def clocked(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    synchronise()
    started = time.perf_counter()
    call()
    synchronise()
    return time.perf_counter() - started


def synchronise() -> None:
    """Waits until a GPU has done what it was asked to; a CPU has."""
    if device().type == "cuda":
        torch.cuda.synchronize()


class Pace:
    """How fast steps of `tokens` tokens go, of `flops` operations a token, on a machine that does `limit` a second."""

    def __init__(self, tokens: int, flops: float, limit: float):
        self._tokens, self._flops, self._limit = tokens, flops, limit
        self.start()

    def start(self) -> None:
        """Begins a lap; `steps` is to be counted up by whoever takes them."""
        self.steps, self._started = 0, time.perf_counter()

    def lap(self) -> dict[str, float]:
        """tokens_per_second and model_flop_utilisation, a share of the machine's peak, since the lap began."""
        rate = self.steps * self._tokens / (time.perf_counter() - self._started)
        return {"tokens_per_second": rate, "model_flop_utilisation": rate * self._flops / self._limit}
