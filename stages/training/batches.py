"""Cuts examples into batches of similar length, which need little padding, and pads them."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from stages.training.optimisation import device

POOL = 32  # batches whose examples are sorted together: fewer leave more padding; in more, the same examples meet again


def batches(lengths: Sequence[int], size: int, seed: int) -> Iterator[np.ndarray]:
    """Cuts one epoch into batches of examples of similar length, in random order.

    Args:
        lengths: of the examples, in tokens; every example is in one batch.
        size: examples of a batch, at most.
        seed: of the order.

    Yields:
        For each batch, the indices of its examples, [size] or fewer.
    """
    generator = np.random.default_rng(seed)
    order, tokens = generator.permutation(len(lengths)), np.array(lengths)
    epoch = []
    for start in range(0, len(order), POOL * size):  # sorted by pools: sorting the whole epoch would fix the batches
        pool = order[start : start + POOL * size]
        pool = pool[np.argsort(tokens[pool], kind="stable")]
        epoch += [pool[i : i + size] for i in range(0, len(pool), size)]
    return (epoch[i] for i in generator.permutation(len(epoch)))


def sorted_batches(lengths: Sequence[int], size: int) -> list[np.ndarray]:
    """Returns indices of all examples by rising length, in batches of at most `size` examples, for evaluation."""
    order = np.argsort(lengths, kind="stable")
    return [order[start : start + size] for start in range(0, len(order), size)]


def padded(sequences: Sequence[np.ndarray], indices: np.ndarray) -> torch.Tensor:
    """Returns token ids as int64 [batch, longest], 0 after the end of each sequence, on this process's device.

    sequences: an array of ids per example. indices: [batch], the examples that are wanted, at least one.
    """
    rows = [sequences[i] for i in indices]
    lengths = np.array([len(row) for row in rows])
    batch = np.zeros((len(rows), lengths.max()), dtype=np.int64)
    batch[np.arange(lengths.max()) < lengths[:, None]] = np.concatenate(rows)  # a ninth of `pad_sequence`'s time
    return torch.from_numpy(batch).to(device())
