"""How an epoch is cut into batches of examples of like length, which need little padding."""

from collections.abc import Iterator, Sequence

import numpy as np

POOL = 32  # batches among which examples are sorted by length before they are cut into batches


def batches(lengths: Sequence[int], size: int, seed: int) -> Iterator[np.ndarray]:
    """Cuts one epoch into batches, in a random order of batches.

    Args:
        lengths: of the examples, in tokens; every example stands in one batch, beside others of like length.
        size: examples a batch, at most.
        seed: of the order.

    Yields:
        Indices of the examples of a batch.
    """
    generator = np.random.default_rng(seed)
    order, tokens = generator.permutation(len(lengths)), np.array(lengths)
    cut = []
    for start in range(0, len(order), POOL * size):
        pool = order[start : start + POOL * size]
        pool = pool[np.argsort(tokens[pool], kind="stable")]
        cut += [pool[i : i + size] for i in range(0, len(pool), size)]
    return (cut[i] for i in generator.permutation(len(cut)))
