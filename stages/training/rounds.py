"""Several ways of doing one thing, timed in turn, round by round, so that a machine's drift affects all alike."""

import statistics
from collections.abc import Callable, Hashable, Sequence


def interleaved(calls: dict[Hashable, Callable[[], float]], rounds: int) -> dict[Hashable, list[float]]:
    """Calls one after the other within a round; returns for each what it returned in every round."""
    values = {key: [] for key in calls}
    for _ in range(rounds):
        for key, call in calls.items():
            values[key].append(call())
    return values


def median_ratio(values: Sequence[float], others: Sequence[float]) -> float:
    """The median over the rounds of the ratio of two values of one round."""
    return statistics.median(value / other for value, other in zip(values, others, strict=True))
