"""Stock Hugging Face BERT trained the usual way, as in run_mlm.py and run_glue.py: what ours is compared with.

`Trainer` with its own AdamW, clipping and linear schedule; for pre-training the library's collator and the head over
all positions, for fine-tuning every example padded to the maximum length. Dropout as in the recipe that is timed.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from torch import nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    DataCollatorForLanguageModeling,
    PreTrainedTokenizerFast,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    default_data_collator,
    set_seed,
)

from stages.classification.training import Encoded
from stages.plumbing.model_folders import SPECIAL
from stages.training.machine import synchronise
from stages.training.optimisation import device

WARMUP = 0.1  # share of the steps of a fine-tuning
COMPILING = 4  # first steps, in which a model may still be compiled


class Clock(TrainerCallback):
    """Records when each step ends."""

    def __init__(self):
        self.ends: list[float] = []

    def on_step_end(self, *_, **__) -> None:
        synchronise()
        self.ends.append(time.perf_counter())


def configured(size: dict[str, int], recipe: dict, **others) -> BertConfig:
    """The configuration of stock BERT.

    Args:
        size: as section `models` of params.yaml has it.
        recipe: of training; its rates of dropout count.
        others: further fields of BertConfig.
    """
    return BertConfig(
        hidden_dropout_prob=recipe["hidden_dropout"],
        attention_probs_dropout_prob=recipe["attention_dropout"],
        num_hidden_layers=size["layers"],
        hidden_size=size["hidden"],
        num_attention_heads=size["heads"],
        intermediate_size=size["intermediate"],
        max_position_embeddings=size["positions"],
        **others,
    )


class Pretraining:
    """Masked-LM training of a new model, timed.

    Args:
        size: of the model, as section `models` has it.
        recipe: of pre-training; its rates of dropout count.
        vocabulary_size: word pieces.
        sequences: token ids [n, length].
        tokenizer: tokenizer.json of the ids.
    """

    def __init__(
        self, size: dict[str, int], recipe: dict, vocabulary_size: int, sequences: np.ndarray, tokenizer: Path
    ):
        self.words = PreTrainedTokenizerFast(tokenizer_file=str(tokenizer), **SPECIAL)
        self.configuration = configured(size, recipe, vocab_size=vocabulary_size)
        ends = np.isin(sequences, [self.words.cls_token_id, self.words.sep_token_id])
        columns = {
            "input_ids": sequences,
            "token_type_ids": np.zeros_like(sequences),
            "attention_mask": np.ones_like(sequences),
            "special_tokens_mask": ends.astype(np.int64),
        }
        self.dataset = examples_of(columns)

    def seconds(self, batch_size: int, precision: str, steps: int, compiled: bool = False) -> float:
        """Times steps, after a first one, or a first few where the model is compiled.

        Args:
            batch_size: sequences of a step.
            precision: float32 or bfloat16.
            steps: that are timed.
            compiled: whether Trainer compiles the model (its `torch_compile`).

        Returns:
            Seconds of one step, the mean.
        """
        collator = DataCollatorForLanguageModeling(self.words, mlm_probability=0.15)
        model = BertForMaskedLM(self.configuration)  # a new one: a model keeps the precision of its first training
        first = COMPILING if compiled else 1
        schedule = {"max_steps": steps + first, "torch_compile": compiled}
        ends = trained(model, self.dataset, collator, precision, batch_size, **schedule)
        return (ends[-1] - ends[first - 1]) / steps


class Finetuning:
    """Training of a new classifier, every example padded to the maximum length, timed.

    Args:
        size: of the model, as section `models` has it.
        recipe: of fine-tuning; maximum_length and the rates of dropout count.
        vocabulary_size: word pieces.
        labels: outputs of the classifier.
        precision: float32 or bfloat16.
        seed: of the weights and the order of examples.
    """

    def __init__(
        self, size: dict[str, int], recipe: dict, vocabulary_size: int, labels: int, precision: str, seed: int
    ):
        set_seed(seed)
        self.length, self.precision, self.seed = recipe["maximum_length"], precision, seed
        configuration = configured(size, recipe, vocab_size=vocabulary_size, num_labels=labels)
        self.model = BertForSequenceClassification(configuration)

    def train(self, examples: Encoded, batch_size: int, epochs: int, rate: float) -> float:
        """Trains the model.

        Args:
            examples: of the training split.
            batch_size: examples of a step.
            epochs: number of epochs.
            rate: peak of the learning rate.

        Returns:
            Seconds of an epoch: those between the ends of the first and the last step, scaled to all steps.

        Raises:
            ValueError: there is only one step.
        """
        schedule = {"num_train_epochs": epochs, "learning_rate": rate, "warmup_steps": WARMUP, "seed": self.seed}
        data = self.padded(examples)
        ends = trained(self.model, data, default_data_collator, self.precision, batch_size, **schedule)
        if len(ends) < 2:
            raise ValueError("timing.tasks: an epoch of one step cannot be timed; ask for more tasks.train_examples")
        return (ends[-1] - ends[0]) / (len(ends) - 1) * len(ends) / epochs

    def predict(self, examples: Encoded) -> np.ndarray:
        """Predicts the class index [n] of every example, or its score where the model has one output."""
        with tempfile.TemporaryDirectory() as folder:
            trainer = Trainer(self.model, arguments(folder, self.precision), data_collator=default_data_collator)
            logits = trainer.predict(self.padded(examples)).predictions
        return logits[:, 0] if logits.shape[-1] == 1 else logits.argmax(-1)

    def padded(self, examples: Encoded) -> list[dict]:
        """The examples in the form that Trainer takes, each of the maximum length."""

        def rows(sequences: tuple[np.ndarray, ...]) -> list[np.ndarray]:
            return [np.pad(ids, (0, self.length - len(ids))) for ids in sequences]

        mask = rows(tuple(np.ones_like(ids) for ids in examples.ids))
        columns = {"input_ids": rows(examples.ids), "token_type_ids": rows(examples.types), "attention_mask": mask}
        return examples_of(columns | {"label": examples.labels})


def examples_of(columns: dict[str, Sequence]) -> list[dict]:
    """The rows of equally long columns, in the form that Trainer takes."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def trained(
    model: nn.Module, dataset: list[dict], collator, precision: str, batch_size: int, **schedule
) -> list[float]:
    """Trains a model in place with Trainer.

    Args:
        model: is trained.
        dataset: as `examples_of` returns it.
        collator: makes a batch of examples.
        precision: float32 or bfloat16.
        batch_size: examples of a step.
        schedule: further TrainingArguments.

    Returns:
        The times at which the steps ended, in seconds.
    """
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        settings = arguments(folder, precision, per_device_train_batch_size=batch_size, **schedule)
        trainer = Trainer(model, settings, train_dataset=dataset, data_collator=collator, callbacks=[clock])
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return clock.ends


def arguments(folder: str, precision: str, **others) -> TrainingArguments:
    """TrainingArguments by the library's defaults, except for files that they write and devices other than ours."""
    settings = TrainingArguments(
        folder,
        bf16=precision == "bfloat16",
        use_cpu=device().type == "cpu",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        **others,
    )
    if settings.n_gpu > 1:  # Trainer would train on all of them
        settings._n_gpu = 1
    return settings
