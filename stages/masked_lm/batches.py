"""The batches of pre-training: drawn from the seed and the step, cut into parts, and on a GPU prepared ahead."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from stages.masked_lm.corpus import Corpus
from stages.masked_lm.masking import count_padded, list_sparse_targets, mask_tokens
from stages.masked_lm.run import PretrainingRun
from stages.schema.training_sections import Pretraining
from stages.training import distributed
from stages.training.machine import has_gpu
from stages.training.optimisation import MASKING, ORDER, derive_seed


class Batch(NamedTuple):
    """This process's share of a batch, on the CPU."""

    # for each micro-batch the arguments of `MaskedLMLoss`: inputs [batch, n], positions [k], targets [k]
    parts: list[tuple[Tensor, ...]]
    # number of masked tokens of the whole batch, over all processes
    masked: int


def draw_batch(run: PretrainingRun, corpus: Corpus, steps: int, step: int) -> Batch:
    """Draws the sequences of update `step` of `steps`, hides tokens, and cuts this process's share into micro-batches.

    Raises:
        ValueError: No token is masked.
    """
    recipe = run.training
    # 1. Draw packed sequences. Short sequences are blocks of these, so every update has the same number of tokens.
    indices = draw_batch_indices(run.seed, step, recipe.batch_size, len(corpus.train))
    packed = torch.from_numpy(corpus.train[indices])
    length = choose_length(recipe, step, steps, packed.shape[1])
    sequences = packed.view(-1, length)
    # 2. Hide tokens.
    generator = torch.Generator().manual_seed(derive_seed(run.seed, MASKING, step))
    inputs, chosen = mask_tokens(sequences, corpus, recipe.mask_probability, generator)
    masked = int(chosen.sum())
    require_masked(masked, f"step {step + 1}", "pretraining.batch_size")
    # 3. Cut the share of this process into parts of `rows` rows. In a small batch, a share may be empty, but no
    # list is padded to a multiple of 0 rows.
    share = [distributed.take_share(tensor) for tensor in (inputs, sequences, chosen)]
    rows = max(len(share[0]), 1)
    if recipe.micro_batch_size:
        # The setting counts packed sequences. A part takes more of the shorter blocks, with as many tokens in all.
        rows = min(rows, recipe.micro_batch_size * corpus.train.sequence_length // length)
    # On a GPU, the lists of chosen tokens are padded to a fixed length, so that one compiled form serves all updates.
    multiple = count_padded(rows * length, recipe.mask_probability) if has_gpu() else 1
    parts = []
    for part_inputs, part_sequences, part_chosen in zip(*(tensor.split(rows) for tensor in share), strict=True):
        positions, targets = list_sparse_targets(part_sequences, part_chosen, multiple)
        parts.append((part_inputs, positions, targets))
    return Batch(parts, masked)


def draw_batch_indices(seed: int, step: int, batch_size: int, sequences: int) -> np.ndarray:
    """Returns the indices [batch_size] of the training sequences of an update; the split has `sequences` sequences.

    Every epoch is a new permutation of all sequences, and a batch may reach across the end of an epoch.
    """
    first = step * batch_size
    indices = []
    for position in range(first, first + batch_size):
        epoch, place = divmod(position, sequences)
        indices.append(_shuffle_indices(seed, epoch, sequences)[place])
    return np.array(indices)


# A batch needs two epochs at most, unless it has more sequences than an epoch.
@lru_cache(maxsize=2)
def _shuffle_indices(seed: int, epoch: int, sequences: int) -> np.ndarray:
    generator = np.random.default_rng(derive_seed(seed, ORDER, epoch))
    return generator.permutation(sequences)


def choose_length(recipe: Pretraining, step: int, steps: int, longest: int) -> int:
    """Returns the length in tokens of the sequences of an update: first short, if the recipe asks for short sequences.

    `longest` is a multiple of the short length.
    """
    # Before a model has learned to attend, a neighbour among n tokens has the weight 1/n, so learning is faster with
    # short sequences. Devlin et al. 2018 (appendix A.2) trained nine tenths of the steps on 128 tokens, the rest on
    # 512; Nagatsuka et al. 2021 made the length a curriculum. Every short block of a packed sequence has the positions
    # from 0. With positions that went on from block to block, a run of the default scale ended at 2.21 nats in place of
    # 1.15 (one seed of original).
    warmup = recipe.sequence_length_warmup
    if warmup and step < round(warmup.share * steps):
        return warmup.length
    return longest


def require_masked(masked: int, where: str, key: str) -> None:
    """Raises ValueError, with the name of the step and a key of params.yaml to raise, where no token is masked."""
    if not masked:
        raise ValueError(f"pre-training, {where}: no token is masked; raise pretraining.mask_probability or {key}")


class Ahead:
    """Prepares the batch of the next step in a thread, while a GPU computes the current step.

    `draw` returns the batch of a step; no batch is prepared after `steps`.
    """

    def __init__(self, draw: Callable[[int], Batch], steps: int):
        self._draw = draw
        self._steps = steps
        self._prepared: dict[int, Future[Batch]] = {}
        self._thread = ThreadPoolExecutor(1)
        if torch.cuda.is_available():
            # A new thread would use the first GPU, whatever the GPU of this process is.
            self._thread.submit(torch.cuda.set_device, torch.cuda.current_device())

    def __call__(self, step: int) -> Batch:
        """Returns the batch of a step; if another step was expected, the batch was not prepared, and is drawn now."""
        future = self._prepared.get(step)
        batch = future.result() if future else self._draw_pinned(step)
        # At most one batch is kept.
        self._prepared = {}
        if step + 1 < self._steps:
            self._prepared[step + 1] = self._thread.submit(self._draw_pinned, step + 1)
        return batch

    def _draw_pinned(self, step: int) -> Batch:
        batch = self._draw(step)
        if not torch.cuda.is_available():
            return batch
        parts = []
        for part in batch.parts:
            # From pinned memory, a GPU copies a tensor while the host goes on.
            parts.append(tuple(tensor.pin_memory() for tensor in part))
        return Batch(parts, batch.masked)
