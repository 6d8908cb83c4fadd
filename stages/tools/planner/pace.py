"""How fast this machine trains: seconds a floating-point operation, by timing a few steps of `original`.

What is timed is a fresh classifier of two layers at most, for layers are alike, on random sequences. A CPU is timed by
the seconds that it computes, so that waiting for other processes does not count.
"""

import time

import numpy as np
import pandas as pd
import torch

from stages.attention.counts import training_flops
from stages.classification.training import Encoded
from stages.plumbing.settings import REFERENCE, Settings
from stages.timing.speed import Finetuning
from stages.training.optimisation import device

SECONDS = 2.0  # of one timing, unless two steps take longer
STEPS = 50  # at most, of one timing
LAYERS = 2
TOKENS = 1024  # of a batch on a CPU, at most, and one sequence at least
FIRST = 5  # id of a word


def measured(settings: Settings, vocabulary_size: int, planned: pd.DataFrame) -> pd.Series:
    """Seconds an operation of every job, by its size and recipe at the mean length of what such jobs train on first.

    Args:
        settings: of params.yaml.
        vocabulary_size: word pieces.
        planned: the jobs; what is not counted is not timed either, and is NaN.
    """
    by = ["size", "recipe"]
    lengths = planned.groupby(by, sort=False)["length"].mean().dropna()
    seconds = {key: timed(settings, vocabulary_size, *key, round(length)) for key, length in lengths.items()}
    return planned.join(pd.Series(seconds, lengths.index, float, "pace"), on=by)["pace"]


def timed(settings: Settings, vocabulary_size: int, size: str, recipe: str, length: int) -> float:
    """Times training.

    Args:
        settings: of params.yaml.
        vocabulary_size: word pieces.
        size: in `models`.
        recipe: `pretraining`, `question_answering` or a name in `finetuning`.
        length: tokens of a sequence.

    Returns:
        Seconds a floating-point operation.
    """
    shape = settings.models[size].model_dump()
    shape["layers"] = min(shape["layers"], LAYERS)
    section = settings.finetuning.get(recipe) or getattr(settings, recipe)
    batch = getattr(section, "micro_batch_size", None) or section.batch_size
    if device().type == "cpu":
        torch.set_num_threads(1)  # as every worker
        batch = max(1, min(batch, TOKENS // length))
    changes = section.model_dump(include={"precision", "hidden_dropout", "attention_dropout"})
    changes |= {"epochs": 1, "batch_size": batch}
    training = settings.finetuning[settings.timing.protocol].model_copy(update=changes)
    model = Finetuning({"operator": REFERENCE}, "sst2", training, shape, vocabulary_size)

    def seconds(steps: int) -> float:
        ids = np.random.default_rng(0).integers(FIRST, vocabulary_size, (steps * batch, length))
        examples = Encoded(tuple(ids), tuple(np.zeros_like(ids)), np.zeros(len(ids), dtype=np.int64))
        began = time.process_time()
        elapsed = model.train(examples)
        return time.process_time() - began if device().type == "cpu" else elapsed

    steps = max(1, min(STEPS, int(SECONDS / seconds(1))))  # the first step allocates memory
    operations = training_flops(REFERENCE, shape, vocabulary_size, length, masked=0.0)
    return seconds(steps) / (steps * batch * length * operations)
