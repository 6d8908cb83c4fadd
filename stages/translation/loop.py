"""Trains a Transformer by a protocol of `translation`, from one seed, and translates the scored split.

A job saves a checkpoint after every epoch, and an interrupted job resumes bit for bit. Real tokens are the target's
tokens that are no padding, the end token included; the tutorial is TensorFlow's.
"""

import math
import re
import sys
from pathlib import Path

import pandas as pd
from sacrebleu.metrics.bleu import BLEU

from stages.encoder_decoder import pairs as sentence_pairs
from stages.encoder_decoder.run import TranslationRun
from stages.encoder_decoder.steps import Counts, build_model, evaluate_held_out, make_update
from stages.encoder_decoder.transformer import Transformer
from stages.runner.bars import Bar
from stages.training import checkpoints
from stages.training.batches import draw_batches
from stages.training.optimisation import ORDER, build_optimiser, derive_seed
from stages.translation.decoding import translate_pairs

# Largest loss, in nats, whose exponential is still a finite float.
LARGEST_LOSS = math.log(sys.float_info.max)

# how sacrebleu cuts languages without spaces between words, by the code of the language without country and script
UNSPACED = {"zh": "zh", "zho": "zh", **dict.fromkeys(("ja", "jpn", "ko", "kor", "th", "tha"), "char")}


def train(run: TranslationRun, folder: Path) -> dict:
    """Trains a model, resuming from a checkpoint in the job's `folder`, and translates the scored split.

    Returns:
        `log`, the entries of all epochs; `greedy` and `beam`, the translations by either search; `greedy_bleu`,
            `beam_bleu` and `copy_bleu` (of the source texts), the BLEU of sacrebleu (Post 2018), from 0 to 100, against
            the references as written; `signature`, sacrebleu's text on how BLEU was computed.

    Raises:
        ValueError: gradients are not finite, or the checkpoint has other settings.
    """
    recipe = run.training
    model = build_model(run, sentence_pairs.read_vocabulary_sizes(run.data))
    adam = build_optimiser(model, recipe.betas, recipe.epsilon, weight_decay=0.0)
    pairs = sentence_pairs.load_pairs(run.data / "train.safetensors")
    validation = sentence_pairs.load_pairs(run.data / "validation.safetensors")
    path = folder / "checkpoint.safetensors"
    checkpoints.clear_temporary_files(folder)
    progress = {"epoch": 0, "step": 0, "log": []}
    if path.exists():
        # A damaged checkpoint gives no progress, and training starts anew.
        progress = checkpoints.load(path, model, adam, run.content) or progress
    for epoch in range(progress["epoch"] + 1, recipe.epochs + 1):
        step = progress["step"]
        counts = Counts()
        seed = derive_seed(run.seed, ORDER, epoch - 1)
        batches = list(draw_batches(pairs.lengths, recipe.batch_size, seed))
        title = f"{run.name}, epoch {epoch} of {recipe.epochs}"
        for indices in Bar(batches, title, unit="batch", leave=False):
            counts += make_update(model, adam, step, pairs, indices, run)
            step += 1
        evaluated = evaluate_held_out(model, validation, recipe.precision)
        entry = make_log_entry(epoch, counts, evaluated, recipe.positions)
        progress = {"epoch": epoch, "step": step, "log": [*progress["log"], entry]}
        checkpoints.save(path, model, adam, run.content, progress)
    translations = _translate_scored_split(model, run)
    return {"log": progress["log"], **translations}


def make_log_entry(epoch: int, counts: Counts, evaluated: Counts, positions: int) -> dict:
    """Computes the metrics of an epoch from sums over the training batches and over the held-out pairs.

    Returns:
        `epoch`; `training_loss`, the mean over the real tokens in nats, with label smoothing; `training_accuracy`, the
            share of *all* positions that are right, as the tutorial measures, and `accuracy_ceiling`, the share of real
            tokens among these; and of the held-out pairs `tokens`, `accuracy` and `perplexity`, all of real tokens and
            without label smoothing.
    """
    # The tutorial pads every target to `positions`, of which the first is not predicted. A padded position is always
    # wrong, since the loss never teaches padding.
    counted_positions = counts.pairs * (positions - 1)
    held_out_loss = evaluated.loss / evaluated.tokens
    return {
        "epoch": epoch,
        "training_loss": counts.loss / counts.tokens,
        "training_accuracy": counts.right / counted_positions,
        "accuracy_ceiling": counts.tokens / counted_positions,
        "accuracy": evaluated.right / evaluated.tokens,
        # An infinite value ends the job with a clear error.
        "perplexity": math.exp(held_out_loss) if held_out_loss < LARGEST_LOSS else math.inf,
        "tokens": evaluated.tokens,
    }


def _translate_scored_split(model: Transformer, run: TranslationRun) -> dict:
    """Translates the split `scored` of the recipe by both searches; returns translations, BLEU and `signature`."""
    recipe = run.training
    # SPLIT.safetensors has the ids of the split, SPLIT.parquet the texts as written: `source` and `target`.
    split = run.data / recipe.scored
    pairs = sentence_pairs.load_pairs(split.with_suffix(".safetensors"))
    texts = pd.read_parquet(split.with_suffix(".parquet"))
    tokenizer = run.data / "target.json"
    result = {
        "greedy": translate_pairs(model, pairs, tokenizer, recipe.precision, beams=1, length_penalty=0.0),
        "beam": translate_pairs(model, pairs, tokenizer, recipe.precision, recipe.beams, recipe.length_penalty),
    }
    # "zh-Hant" gives "zh".
    language = re.split("[-_@]", recipe.target.lower())[0]
    # `force` turns off the warning that the texts look tokenised: a generated sentence ends in a separate full stop.
    metric = BLEU(force=True, tokenize=UNSPACED.get(language, "13a"))
    references = [texts["target"].tolist()]
    for name, sentences in {**result, "copy": texts["source"].tolist()}.items():
        result[f"{name}_bleu"] = metric.corpus_score(sentences, references).score
    result["signature"] = str(metric.get_signature())
    return result
