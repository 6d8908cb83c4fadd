"""Cuts examples into batches of similar length, which need little padding, and pads the batches.

Fine-tuning and translation use these batches; pre-training draws batches in stages/masked_lm/batches.py.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from stages.training.machine import find_device

# Batches whose examples are sorted together. A smaller pool leaves more padding; in a larger pool, the same examples
# meet again in every epoch.
POOL = 32


def draw_batches(lengths: Sequence[int], size: int, seed: int) -> Iterator[np.ndarray]:
    """Cuts an epoch into batches of examples of similar length, in random order.

    `lengths` has the tokens of every example. Yields for each batch the indices of the examples, [size] or fewer.
    """
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(lengths))
    tokens = np.array(lengths)
    batches = []
    # Only pools of POOL = 32 batches are sorted: sorting the whole epoch would give the same batches in every epoch.
    for pool in _cut_indices(order, POOL * size):
        by_length = np.argsort(tokens[pool], kind="stable")
        batches += _cut_indices(pool[by_length], size)
    for number in generator.permutation(len(batches)):
        yield batches[number]


def sort_into_batches(lengths: Sequence[int], size: int) -> list[np.ndarray]:
    """Returns indices of all examples by rising length, in batches of at most `size` examples, for evaluation."""
    return _cut_indices(np.argsort(lengths, kind="stable"), size)


def _cut_indices(indices: np.ndarray, size: int) -> list[np.ndarray]:
    return [indices[start : start + size] for start in range(0, len(indices), size)]


def pad_sequences(sequences: Sequence[np.ndarray], indices: np.ndarray) -> Tensor:
    """Pads the chosen sequences of token ids with 0 to the longest: int64 [batch, longest], on this process's device.

    `indices`, [batch], are not empty.
    """
    rows = [sequences[i] for i in indices]
    lengths = np.array([len(row) for row in rows])
    longest = lengths.max()
    batch = np.zeros((len(rows), longest), dtype=np.int64)
    # Boolean [batch, longest], false at padding. One assignment for all rows takes a ninth of the time of
    # `torch.nn.utils.rnn.pad_sequence`.
    inside = np.arange(longest) < lengths[:, None]
    batch[inside] = np.concatenate(rows)
    return torch.from_numpy(batch).to(find_device())
