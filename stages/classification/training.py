"""Fine-tuning of one pre-trained model on one task from one seed, and its predictions on the validation splits.

As the released code of Courtois et al. does: a fresh pooler and classifier, all weights trained, no early stopping, the
model after the last epoch is the one that counts. Unlike it, batches hold sequences of like length and are padded to
their longest, not to the maximum.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer
from torch.nn import functional
from transformers.utils import logging

from stages.attention.bert import OperatorBertForSequenceClassification, WithOperator
from stages.attention.configuration import OperatorConfig
from stages.attention.own import own_operators
from stages.benchmarks.glue import TASKS
from stages.classification.runs import FinetuningRun, TunedRun
from stages.plumbing.files import read_once, temporary_sibling
from stages.plumbing.settings import load_settings
from stages.training.batches import batches, sorted_batches
from stages.training.optimisation import (
    DROPOUT,
    INITIALISATION,
    ORDER,
    autocast,
    derived_seed,
    device,
    optimiser,
    require_finite,
    scheduled_rate,
    seed_torch,
    update,
)

EVALUATION_BATCH = 128  # examples, or windows of questions

logging.set_verbosity_error()  # the library warns of the fresh pooler and classifier at every load
logging.disable_progress_bar()


@dataclass(frozen=True)
class Encoded:
    """Examples as token ids [CLS] a [SEP] b [SEP], and their token types; labels, one an example."""

    ids: tuple[np.ndarray, ...]
    types: tuple[np.ndarray, ...]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> list[int]:
        """Of the examples, in tokens."""
        return [len(ids) for ids in self.ids]


def train_and_predict(
    run: FinetuningRun, tokenizer: Path, train: Path, validation: dict[str, Path], kept: Path | None = None
) -> tuple[dict[str, list], float]:
    """Trains a classifier, or a regression, and predicts validation examples.

    Args:
        run: says what is trained, and how.
        tokenizer: the file of the tokenizer.
        train: the table of examples to train on.
        validation: the tables of examples to predict, by name.
        kept: the folder to save the fine-tuned model in, if it is to be saved.

    Returns:
        By the names of `validation`, the class index of every example, or its score where the task is a regression;
        and the seconds of training.
    """
    recipe, task = run.training, TASKS[run.task]
    model = loaded(OperatorBertForSequenceClassification, run, num_labels=task.outputs)
    examples = encode(train, tokenizer, recipe.maximum_length)
    started = time.perf_counter()
    train_model(model, examples, run)
    seconds = time.perf_counter() - started
    predictions = {
        name: predict(model, encode(path, tokenizer, recipe.maximum_length), recipe.precision).tolist()
        for name, path in validation.items()
    }
    if kept:
        model.config.update(task.head)  # the names of its classes
        with temporary_sibling(kept) as folder:  # whole or not at all: what is there counts as left by the job
            model.save_pretrained(folder)
    return predictions, seconds


@read_once(8)
def encode(table: Path, tokenizer: Path, maximum_length: int) -> Encoded:
    """Reads a task table (text_a, text_b or null, label) and tokenises it.

    Args:
        table: the file of the table.
        tokenizer: the file of the tokenizer.
        maximum_length: tokens, to which longer examples are cut, the longer text first.
    """
    return encoded(pd.read_parquet(table), tokenizer, maximum_length)


def encoded(frame: pd.DataFrame, tokenizer: Path, maximum_length: int) -> Encoded:
    """Tokenises examples. frame: text_a, text_b and label of these; other arguments as of `encode`."""
    words = Tokenizer.from_file(str(tokenizer))
    words.enable_truncation(maximum_length)
    words.no_padding()
    pairs = frame["text_b"].notna()
    texts = [(a, b) if paired else a for a, b, paired in zip(frame["text_a"], frame["text_b"], pairs, strict=True)]
    encodings = words.encode_batch(texts)
    return Encoded(
        ids=tuple(np.array(encoding.ids, dtype=np.int32) for encoding in encodings),
        types=tuple(np.array(encoding.type_ids, dtype=np.int32) for encoding in encodings),
        labels=frame["label"].to_numpy(),
    )


def loaded(model: type[WithOperator], run: TunedRun, **others: Any) -> WithOperator:
    """The pre-trained weights of a run under a fresh head, with the run's dropout.

    Args:
        model: the class of the model, head included.
        run: says where the weights are; its seed draws the head.
        others: further values of the model's configuration, such as `num_labels`.
    """
    weights = Path(run.weights)
    import_operator(weights)
    seed_torch(run.seed, INITIALISATION)
    config = OperatorConfig.from_pretrained(
        weights,
        hidden_dropout_prob=run.training.hidden_dropout,
        attention_probs_dropout_prob=run.training.attention_dropout,
        **others,
    )
    return model.from_pretrained(weights, config=config).to(device())


def import_operator(weights: Path) -> None:
    """Imports the operator of a model folder, where it is a user's own, from the file that params.yaml names."""
    sha256 = OperatorConfig.from_pretrained(weights).operators_sha256
    if sha256:
        own_operators(load_settings().operators_file, sha256)


def train_model(model: WithOperator, examples: Encoded, run: TunedRun) -> None:
    """Trains a classifier, or a regression.

    Args:
        model: is trained in place; one of one output is a regression.
        examples: that it is trained on.
        run: whose recipe and seed count.
    """

    def loss_of(indices: np.ndarray) -> torch.Tensor:
        with autocast(run.training.precision):
            logits = _logits(model, examples, indices)
        return _loss(logits.float(), torch.from_numpy(examples.labels[indices]).to(device()))

    train_epochs(model, examples.lengths, run, loss_of)


def train_epochs(
    model: WithOperator, lengths: list[int], run: TunedRun, loss_of: Callable[[np.ndarray], torch.Tensor]
) -> None:
    """Trains all epochs of a recipe.

    Args:
        model: is trained in place.
        lengths: of the examples, in tokens.
        run: whose seed gives their order and the dropout.
        loss_of: gives the mean loss of the examples at some indices.
    """
    recipe, seed = run.training, run.seed
    adamw = optimiser(model, recipe.betas, recipe.epsilon, recipe.weight_decay)
    steps = recipe.epochs * -(-len(lengths) // recipe.batch_size)
    warmup = round(recipe.warmup_share * steps)
    model.train()
    step = 0
    for epoch in range(recipe.epochs):
        for indices in batches(lengths, recipe.batch_size, derived_seed(seed, ORDER, epoch)):
            seed_torch(seed, DROPOUT, step)
            rate, where = scheduled_rate(recipe, step, steps, warmup), f"fine-tuning {run.name}, step {step + 1}"
            update(model, adamw, loss_of(indices), rate, recipe.gradient_clipping, where)
            step += 1


def _loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy over classes; squared error for a single output."""
    if logits.shape[-1] == 1:
        return functional.mse_loss(logits.squeeze(-1), labels.float())
    return functional.cross_entropy(logits, labels)


def _logits(model, examples: Encoded, indices: np.ndarray) -> torch.Tensor:
    """[len(indices), labels] for the examples at `indices`, padded to the longest of them."""
    rows, types = ([sequences[i] for i in indices] for sequences in (examples.ids, examples.types))
    lengths = np.array([len(row) for row in rows])
    seen = np.arange(lengths.max()) < lengths[:, None]
    batch = np.zeros((2, *seen.shape), dtype=np.int64)
    batch[0, seen], batch[1, seen] = np.concatenate(rows), np.concatenate(types)
    where = device()
    ids, types, mask = (torch.from_numpy(part).to(where) for part in (*batch, seen.astype(np.int64)))
    return model(ids, attention_mask=mask, token_type_ids=types).logits


@torch.no_grad()
def predict(model, examples: Encoded, precision: str) -> np.ndarray:
    """Predicts examples, without dropout, in batches of like length.

    Args:
        model: a classifier, or a regression of one output.
        examples: n of them.
        precision: float32 or bfloat16.

    Returns:
        [n], the class index of every example, or its score.

    Raises:
        ValueError: a prediction is not finite.
    """
    model.eval()
    predictions = np.empty(len(examples), dtype=np.float64)
    for indices in sorted_batches(examples.lengths, EVALUATION_BATCH):
        with autocast(precision):
            logits = _logits(model, examples, indices).float().cpu()
        require_finite(logits, f"example {indices[0]}, or another of its batch")
        predictions[indices] = logits.squeeze(-1) if logits.shape[-1] == 1 else logits.argmax(-1)
    return predictions
