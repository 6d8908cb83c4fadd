"""How fast this machine trains: seconds a floating-point operation, by timing a few steps of `original`.

What is timed is a fresh classifier of two layers at most, for layers are alike, on random sequences. A CPU is timed by
the seconds that it computes, so that waiting for other processes does not count.
"""

import time
from collections import defaultdict
from statistics import mean

import numpy as np
import torch

from stages.attention.counts import training_flops
from stages.classification.training import Encoded
from stages.plumbing.settings import REFERENCE, Settings
from stages.timing.speed import Finetuning
from stages.tools.planner.work import Work
from stages.training.machine import synchronise
from stages.training.optimisation import device

SECONDS = 2.0  # of one timing, unless two steps take longer
STEPS = 50  # at most, of one timing
LAYERS = 2
TOKENS = 1024  # of a batch on a CPU, at most, and one sequence at least
FIRST = 5  # id of a word


def measured(settings: Settings, vocabulary_size: int, planned: list[Work]) -> dict[tuple[str, str], float]:
    """Seconds an operation, by size and recipe, each at the mean length of what its jobs train on first.

    Args:
        settings: of params.yaml.
        vocabulary_size: word pieces.
        planned: the jobs; what is not counted is not timed either.
    """
    lengths = defaultdict(list)
    for job in planned:
        if job.tokens > 0:  # not NaN
            lengths[job.size, job.recipe].append(job.length)
    return {key: timed(settings, vocabulary_size, *key, round(mean(tokens))) for key, tokens in lengths.items()}


def timed(settings: Settings, vocabulary_size: int, size: str, recipe: str, length: int) -> float:
    """Seconds an operation of training.

    Args:
        settings: of params.yaml.
        vocabulary_size: word pieces.
        size: in `models`.
        recipe: `pretraining`, `question_answering` or a name in `finetuning`.
        length: tokens of a sequence.
    """
    width = settings.models[size].model_dump()
    width["layers"] = min(width["layers"], LAYERS)
    wanted = settings.finetuning.get(recipe) or getattr(settings, recipe)
    batch = getattr(wanted, "micro_batch_size", None) or wanted.batch_size
    if device().type == "cpu":
        torch.set_num_threads(1)  # as every worker
        batch = max(1, min(batch, TOKENS // length))
    changes = wanted.model_dump(include={"precision", "hidden_dropout", "attention_dropout"})
    changes |= {"epochs": 1, "batch_size": batch}
    training = settings.finetuning[settings.timing.protocol].model_copy(update=changes)
    model = Finetuning("sst2", training, {"operator": REFERENCE}, width, vocabulary_size)
    first = _steps(model, 1, batch, length, vocabulary_size)  # which allocates memory
    number = max(1, min(STEPS, int(SECONDS / first)))
    seconds = _steps(model, number, batch, length, vocabulary_size) / number
    return seconds / (batch * length * training_flops(REFERENCE, width, vocabulary_size, length, masked=0.0))


def _steps(model: Finetuning, number: int, batch: int, length: int, vocabulary_size: int) -> float:
    """Seconds of some steps on examples of equal length."""
    ids = np.random.default_rng(0).integers(FIRST, vocabulary_size, (number * batch, length))
    examples = Encoded(tuple(ids), tuple(np.zeros_like(ids)), np.zeros(len(ids), dtype=np.int64))
    clock = time.process_time if device().type == "cpu" else time.perf_counter
    began = clock()
    model.train(examples)
    synchronise()
    return clock() - began
