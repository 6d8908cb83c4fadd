"""Trains one Transformer by a protocol of `translation`, from one seed, and translates with it.

A job saves its state after every epoch, and one that was stopped continues from there, bit for bit. Real tokens are
those of the target that are no padding, END among them; the tutorial is TensorFlow's on translation.
"""

import time
from math import exp
from pathlib import Path

import pandas as pd
from sacrebleu.metrics import BLEU

from stages.encoder_decoder import pairs as sentence_pairs
from stages.encoder_decoder.run import TranslationRun
from stages.encoder_decoder.steps import Counts, advance, built, held_out
from stages.encoder_decoder.transformer import Transformer
from stages.runner.bars import Bar
from stages.training import checkpoints
from stages.training.batches import batches
from stages.training.optimisation import ORDER, derived_seed, optimiser
from stages.translation.decoding import translate


def train(run: TranslationRun, folder: Path) -> dict:
    """Trains to the end, from the checkpoint in the job's `folder` where there is one; translates the scored split.

    Returns:
        log: for every epoch what `measured` returns. greedy and beam: lists of the translations of the split
        `run.training.scored`, by either search. greedy_bleu, beam_bleu and copy_bleu (of the source texts taken as
        translations): the BLEU of sacrebleu (Post 2018), from 0 to 100, against the references as they were written.
        signature: sacrebleu's text that says how BLEU was computed. seconds: of training, without any evaluation.

    Raises:
        ValueError: gradients are not finite, or the checkpoint is of other settings.
    """
    recipe = run.training
    model = built(run, sentence_pairs.vocabulary_sizes(run.data))
    adam = optimiser(model, recipe.betas, recipe.epsilon, weight_decay=0.0)
    path, progress = folder / "checkpoint.safetensors", {"epoch": 0, "step": 0, "log": [], "seconds": 0.0}
    checkpoints.clear(folder)
    if path.exists():
        progress = checkpoints.load(path, model, adam, run.content) or progress  # None: the file is damaged
    pairs, validation = (sentence_pairs.load(run.data / f"{split}.safetensors") for split in ("train", "validation"))
    while progress["epoch"] < recipe.epochs:
        started, counts = time.perf_counter(), Counts()
        epoch, step = progress["epoch"] + 1, progress["step"]
        order = list(batches(pairs.lengths, recipe.batch_size, derived_seed(run.seed, ORDER, progress["epoch"])))
        for indices in Bar(order, f"{run.name}, epoch {epoch} of {recipe.epochs}", unit="batch", leave=False):
            counts += advance(model, adam, step, pairs, indices, run)
            step += 1
        seconds = progress["seconds"] + time.perf_counter() - started
        evaluated = held_out(model, validation, recipe.precision)
        log = [*progress["log"], measured(epoch, counts, evaluated, recipe.positions)]
        progress = {"epoch": epoch, "step": step, "log": log, "seconds": seconds}
        checkpoints.save(path, model, adam, run.content, progress)
    return {"log": progress["log"], "seconds": progress["seconds"]} | _translated(model, run)


def measured(epoch: int, counts: Counts, evaluated: Counts, positions: int) -> dict:
    """Computes the entry of one epoch in the log.

    Args:
        epoch, positions: the number of the epoch, from 1, and the longest sequence of the model.
        counts, evaluated: sums over the training batches, in training mode, and over the held-out pairs.

    Returns:
        epoch, and training_loss: mean over the real tokens of the training batches, in nats, with label smoothing.
        training_accuracy: share of *all* positions that are right, as the tutorial measures it: every target padded to
        `positions` and shifted by one, and a padded position always wrong, since the loss never teaches padding.
        accuracy_ceiling: share of real tokens among these, all that can be right. tokens: number of real tokens of
        held-out pairs; accuracy: share of these that are right; perplexity: per token of these, without label
        smoothing.
    """
    places = counts.pairs * (positions - 1)
    return {
        "epoch": epoch,
        "training_loss": counts.loss / counts.tokens,
        "training_accuracy": counts.right / places,
        "accuracy_ceiling": counts.tokens / places,
        "accuracy": evaluated.right / evaluated.tokens,
        "perplexity": exp(evaluated.loss / evaluated.tokens),
        "tokens": evaluated.tokens,
    }


def _translated(model: Transformer, run: TranslationRun) -> dict:
    """Translates the scored split by both searches; returns all of the result of `train` but `log` and `seconds`.

    SPLIT.safetensors has the ids of the split, SPLIT.parquet the texts as they were written: `source` and `target`.
    """
    recipe, split = run.training, run.data / run.training.scored
    pairs = sentence_pairs.load(split.with_suffix(".safetensors"))
    texts = pd.read_parquet(split.with_suffix(".parquet"))
    arguments = model, pairs, run.data / "target.json", recipe.precision
    translations = {
        "greedy": translate(*arguments, beams=1, length_penalty=0.0),
        "beam": translate(*arguments, recipe.beams, recipe.length_penalty),
    }
    metric = BLEU(force=True)  # no warning that the texts look tokenised: a generated sentence ends in a separate stop
    scores = {
        f"{name}_bleu": metric.corpus_score(sentences, [texts["target"].tolist()]).score
        for name, sentences in (translations | {"copy": texts["source"].tolist()}).items()
    }
    return translations | scores | {"signature": str(metric.get_signature())}
