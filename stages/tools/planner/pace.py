"""How fast this machine trains and predicts: seconds a floating-point operation, by timing a few steps of `original`.

Models are fresh, sequences random. The functions are jobs, so that as many are timed at once as will run at once.
"""

import time
from pathlib import Path

import numpy as np
import torch

from stages.common.attention.counts import training_flops
from stages.common.classification import training as finetuning
from stages.common.classification.training import Encoded
from stages.common.embedded.corpus import write_corpus
from stages.common.masked_lm.corpus import Corpus
from stages.common.training.machine import clocked
from stages.common.training.optimisation import device
from stages.filtering import rules
from stages.filtering import shards as filtering
from stages.plumbing.settings import Settings
from stages.timing import speed
from stages.tokenization import streams as tokens
from stages.tokenization import vocabulary

TOKENS = 4096  # of a batch on a CPU, at most (and one sequence at least): BERT-base then takes seconds
SECONDS = 1.5  # that a timing lasts, or one step where that is longer
STEPS = 50  # at most
SPECIAL, FIRST = (2, 3, 0), 5  # [CLS], [SEP], [PAD]; ids of words
MASK = 4
ORIGINAL = {"operator": "original"}


def timed(work: dict, folder: Path) -> dict:
    """Job: seconds a floating-point operation of training and of evaluation, and seconds that building a model takes.

    work: size (a record of `models`), training (the recipe), vocabulary_size, length (tokens of a sequence), masked
    (share of tokens that the masked-LM head predicts; 0: fine-tuning, whose prediction is timed too), copy (tells apart
    what is timed several times at once). Gives these seconds, and the share of a core that the timing got on a CPU:
    less than 1 where other processes wanted it too. Nothing is left in `folder`.
    """
    if device().type == "cpu":
        torch.set_num_threads(1)  # as every worker
    what = {name: value for name, value in work.items() if name != "copy"} | {"length": round(work["length"])}
    started, used = time.perf_counter(), time.process_time()
    result = of_pretraining(**what) if work["masked"] else of_finetuning(**what)
    share = (time.process_time() - used) / (time.perf_counter() - started)
    return result | {"share": min(1.0, share) if device().type == "cpu" else 1.0}


def of_pretraining(size: dict, training: dict, vocabulary_size: int, length: int, masked: float) -> dict[str, float]:
    """Our training step; evaluation, of the same model, is taken to be as fast an operation."""
    batch = batch_size(training["micro_batch_size"] or training["batch_size"], length)
    recipe = {"steps": 4 * STEPS, "warmup_steps": 2 * STEPS, "batch_size": batch, "micro_batch_size": None}
    run = {"operator": "original", "variant": ORIGINAL, "seed": 0, "model": size, "training": training | recipe}
    sequences = np.random.default_rng(0).integers(FIRST, vocabulary_size, (batch, length))
    corpus = Corpus(sequences, sequences, vocabulary_size, MASK, torch.tensor(SPECIAL))
    made = []
    load = clocked(lambda: made.append(speed.Pretraining(run, corpus)))
    seconds = made[0].seconds(1)
    if seconds < SECONDS:
        seconds = made[0].seconds(repeats(seconds))
    a_flop = seconds / (batch * length * training_flops("original", size, vocabulary_size, length, masked))
    return {"training": a_flop, "evaluation": a_flop, "load": load}


def of_finetuning(size: dict, training: dict, vocabulary_size: int, length: int, masked: float) -> dict[str, float]:
    """Our epoch on equal lengths, and our predictions. Of question answering too, which differs in its head alone."""
    batch = batch_size(training["batch_size"], length)
    recipe = training | {"epochs": 1, "batch_size": batch}
    run = {"name": "timing", "seed": 0, "labels": 2, "training": recipe}
    made = []
    load = clocked(lambda: made.append(speed.Finetuning(run, ORIGINAL, size, vocabulary_size)))
    [model] = made
    first = model.train(examples(batch, length, vocabulary_size))
    trained = examples(batch * repeats(first), length, vocabulary_size)
    seconds = model.train(trained)
    a_token = training_flops("original", size, vocabulary_size, length, masked)
    batch = batch_size(finetuning.EVALUATION_BATCH, length)
    few = examples(batch, length, vocabulary_size)
    first = clocked(lambda: finetuning.predict(model.model, few, training["precision"]))
    tested = examples(batch * repeats(first), length, vocabulary_size)
    predicting = clocked(lambda: finetuning.predict(model.model, tested, training["precision"]))
    return {
        "training": seconds / (len(trained) * length * a_token),
        "evaluation": predicting / (len(tested) * length * a_token / 3),
        "load": load,
    }


def batch_size(wanted: int, length: int) -> int:
    """Sequences: those of the recipe, on a CPU fewer."""
    return wanted if device().type == "cuda" else max(1, min(wanted, TOKENS // length))


def repeats(seconds: float) -> int:
    """Steps to time, where one takes so long."""
    return min(STEPS, max(1, round(SECONDS / seconds)))


def examples(number: int, length: int, vocabulary_size: int) -> Encoded:
    """Random examples of equal length, all of class 0."""
    ids = np.random.default_rng(0).integers(FIRST, vocabulary_size, (number, length))
    return Encoded(tuple(ids), tuple(np.zeros_like(ids)), np.zeros(number, dtype=np.int64))


def sampled(settings: Settings, folder: Path, documents: int) -> tuple[list[float], list[int]]:
    """Seconds to write, filter and tokenise so many embedded documents in `folder`; bytes written and kept."""
    asked = rules.asked(settings.filtering)
    unknown = {"blocklists_folder": None, "kenlm_model": None, "quality_rules": False}
    shard, kept, words = folder / "part_1.jsonl.zst", folder / filtering.KEPT, folder / "tokenizer.json"
    trained = {"shards": [str(kept)], "size": settings.tokenization.vocabulary_size}
    cut = {"shard": str(kept), "tokenizer": str(words), "validation": [], "cut": None}
    calls = (
        lambda: write_corpus(folder, documents, 1, settings.corpus.seed),
        lambda: filtering.filter_shard({"shard": str(shard), "rules": asked, "annotation": unknown}, folder),
        lambda: (vocabulary.train(trained, folder), tokens.tokenize_shard(cut, folder)),
    )
    seconds = [clocked(call) for call in calls]
    return seconds, [path.stat().st_size for path in (shard, kept)]
