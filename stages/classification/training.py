"""Fine-tuning of a pre-trained model on a task from a seed, and the fine-tuned model's validation predictions.

As in the released code of Courtois et al., pooler and classifier are new, all weights are trained, no training stops
early, and the model after the last epoch counts. Different from that code, batches hold sequences of similar length and
are padded to the longest sequence of the batch, not to the maximum length.
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
from torch import Tensor
from torch.nn import functional
from transformers.utils import logging

from stages.attention.bert import OperatorBertForSequenceClassification, WithOperator
from stages.attention.configuration import OperatorConfig
from stages.attention.own import import_own_operators
from stages.benchmarks.glue import TASKS
from stages.classification.runs import FinetuningRun, TunedRun
from stages.files.storage import make_temporary_sibling, read_once
from stages.schema.settings import load_settings
from stages.training.batches import draw_batches, pad_sequences, sort_into_batches
from stages.training.machine import find_device, open_autocast
from stages.training.optimisation import (
    DROPOUT,
    INITIALISATION,
    ORDER,
    READ_INTERVAL,
    UnreadLosses,
    build_optimiser,
    compute_linear_rate,
    compute_stepped_rate,
    derive_seed,
    require_finite,
    seed_torch,
    update_weights,
)

# Examples in a batch, or windows of questions. Another number would change the draws of noise.
EVALUATION_BATCH = 128

# The library warns of the new pooler and classifier at every load.
logging.set_verbosity_error()
logging.disable_progress_bar()


@dataclass(frozen=True)
class Encoded:
    """Tokenised examples."""

    # For every example an array of token ids, [CLS] a [SEP] or [CLS] a [SEP] b [SEP].
    ids: tuple[np.ndarray, ...]
    # Arrays of the same lengths, 1 at b and the [SEP] after b, 0 elsewhere.
    types: tuple[np.ndarray, ...]
    # [examples], class indices, or numbers in a regression.
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> list[int]:
        """The lengths of the examples, in tokens."""
        return [len(ids) for ids in self.ids]


def train_and_predict(
    run: FinetuningRun, tokenizer_file: Path, train: Path, validation: dict[str, Path], kept: Path | None = None
) -> tuple[dict[str, list], float]:
    """Trains a classifier, or a regression, and predicts the examples of every validation split.

    `train` and `validation` (by split, such as `mnli_m`) are Parquet files with the columns text_a, text_b and label;
    `kept` is a folder for the fine-tuned model, if any.

    Returns:
        By split, a float per example: the class index, or the score in a regression. And the seconds of the updates.

    Raises:
        ValueError: The training diverges, or the code of a user's own operator has changed.
    """
    recipe = run.training
    task = TASKS[run.task]
    model = load_weights(OperatorBertForSequenceClassification, run, num_labels=task.outputs)
    # Only the updates are timed.
    examples = encode_table(train, tokenizer_file, recipe.maximum_length)
    started = time.perf_counter()
    train_model(model, examples, run)
    seconds = time.perf_counter() - started
    predictions = {}
    for name, table in validation.items():
        examples = encode_table(table, tokenizer_file, recipe.maximum_length)
        predictions[name] = predict_examples(model, examples, recipe.precision).tolist()
    if kept:
        # The configuration of the saved model names the classes.
        model.config.update(task.head)
        # The folder appears only when complete, because a resumed job takes an existing folder as complete.
        with make_temporary_sibling(kept) as folder:
            model.save_pretrained(folder)
    return predictions, seconds


@read_once(8)
def encode_table(table: Path, tokenizer_file: Path, maximum_length: int) -> Encoded:
    """Reads and tokenises the table of a task. The result is cached and must not be changed.

    The columns are text_a, text_b (null for a single text) and label. An example has at most `maximum_length` tokens,
    [CLS] and [SEP] included; the longer text is cut first.
    """
    frame = pd.read_parquet(table)
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    # "[MASK]" in a text is ordinary text, not the special token.
    tokenizer.encode_special_tokens = True
    tokenizer.enable_truncation(maximum_length)
    tokenizer.no_padding()
    # The tokenizer takes a text or a pair of texts.
    texts = []
    for first, second in zip(frame["text_a"], frame["text_b"], strict=True):
        texts.append(first if pd.isna(second) else (first, second))
    encodings = tokenizer.encode_batch(texts)
    return Encoded(
        ids=tuple(np.array(encoding.ids, dtype=np.int32) for encoding in encodings),
        types=tuple(np.array(encoding.type_ids, dtype=np.int32) for encoding in encodings),
        labels=frame["label"].to_numpy(),
    )


def load_weights(model: type[WithOperator], run: TunedRun, **others: Any) -> WithOperator:
    """Loads the pre-trained weights of a run into a model on this process's device.

    Parameters that the weights lack, such as a new head, are drawn from the seed. `others` are further values of the
    model's configuration, such as `num_labels`.
    """
    weights = Path(run.weights)
    import_operator(weights)
    # A new head draws its weights while the model is built.
    seed_torch(run.seed, INITIALISATION)
    config = OperatorConfig.from_pretrained(
        weights,
        hidden_dropout_prob=run.training.hidden_dropout,
        attention_probs_dropout_prob=run.training.attention_dropout,
        **others,
    )
    return model.from_pretrained(weights, config=config).to(find_device())


def import_operator(weights: Path) -> None:
    """Imports a model folder's operator, if a user's own, from `operators_file`. ValueError if the code has changed."""
    sha256 = OperatorConfig.from_pretrained(weights).operators_sha256
    if sha256:
        import_own_operators(load_settings().operators_file, sha256)


def train_model(model: WithOperator, examples: Encoded, run: TunedRun) -> None:
    """Trains a classifier by cross-entropy or, where the model has a single output, a regression by squared error."""

    def compute_loss(indices: np.ndarray) -> Tensor:
        with open_autocast(run.training.precision):
            logits = compute_logits(model, examples, indices).float()
        labels = torch.from_numpy(examples.labels[indices]).to(find_device())
        if logits.shape[-1] == 1:
            return functional.mse_loss(logits.squeeze(-1), labels.float())
        return functional.cross_entropy(logits, labels)

    train_epochs(model, examples.lengths, run, compute_loss)


def train_epochs(
    model: WithOperator, lengths: list[int], run: TunedRun, loss_of: Callable[[np.ndarray], Tensor]
) -> None:
    """Trains a model in place for all epochs of a recipe; the model is left in training mode.

    `lengths` has the number of tokens of every example; examples of similar length share a batch. `loss_of` takes the
    indices of a batch and returns the mean loss, a scalar.

    Raises:
        ValueError: The gradients of an update are not finite; the error may come some updates later.
    """
    recipe = run.training
    adamw = build_optimiser(model, recipe.betas, recipe.epsilon, recipe.weight_decay)
    batches_per_epoch = -(-len(lengths) // recipe.batch_size)
    steps = recipe.epochs * batches_per_epoch
    warmup = round(recipe.warmup_share * steps)
    # collects the losses and norms, and raises an error if a norm is not finite
    unread = UnreadLosses(lambda step, loss: f"fine-tuning {run.name}, step {step + 1}: loss {loss}")
    model.train()
    step = 0
    for epoch in range(recipe.epochs):
        for indices in draw_batches(lengths, recipe.batch_size, derive_seed(run.seed, ORDER, epoch)):
            # Draws of dropout depend only on the run's seed and the step.
            seed_torch(run.seed, DROPOUT, step)
            if recipe.schedule == "linear":
                rate = compute_linear_rate(step, steps, warmup, recipe.learning_rates[0])
            else:
                rate = compute_stepped_rate(step, steps, warmup, recipe.learning_rates)
            loss = loss_of(indices)
            norm = update_weights(model, adamw, loss, rate, recipe.gradient_clipping)
            unread.add(step, loss, norm)
            step += 1
            if step % READ_INTERVAL == 0:
                unread.read()
    unread.read()


def compute_logits(model, examples: Encoded, indices: np.ndarray) -> Tensor:
    """Returns the logits [len(indices), outputs] of the examples at `indices`, padded to the longest example."""
    ids = pad_sequences(examples.ids, indices)
    types = pad_sequences(examples.types, indices)
    lengths = np.array([len(examples.ids[i]) for i in indices])
    mask = np.arange(lengths.max()) < lengths[:, None]
    attention_mask = None
    # The library would read the mask back from a GPU to find out that nothing is padded.
    if not mask.all():
        attention_mask = torch.from_numpy(mask.astype(np.int64)).to(ids.device)
    return model(ids, attention_mask=attention_mask, token_type_ids=types).logits


@torch.no_grad()
def predict_examples(model, examples: Encoded, precision: str) -> np.ndarray:
    """Predicts n examples in evaluation mode; ValueError for a prediction that is not finite.

    Returns:
        [n] float64: class indices, or the scores of a regression (single output).
    """
    model.eval()
    predictions = np.empty(len(examples), dtype=np.float64)
    for indices in sort_into_batches(examples.lengths, EVALUATION_BATCH):
        with open_autocast(precision):
            logits = compute_logits(model, examples, indices).float().cpu()
        require_finite(logits, f"example {indices[0]}, or another of its batch")
        is_regression = logits.shape[-1] == 1
        predictions[indices] = logits.squeeze(-1) if is_regression else logits.argmax(-1)
    return predictions
