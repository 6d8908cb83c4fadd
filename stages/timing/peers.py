"""Stock Hugging Face BERT trained the usual way, as in run_mlm.py and run_glue.py: the baseline of our speed.

`Trainer` with default AdamW, clipping and linear schedule. Pre-training uses the library's collator and a head over all
positions; fine-tuning pads every example to the maximum length. Dropout is the dropout of the timed recipe.
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

from stages.attention.configuration import configuration
from stages.benchmarks.glue import TASKS
from stages.classification.training import Encoded
from stages.files.model_folders import SPECIAL
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.schema.training_sections import Finetuning as Recipe
from stages.schema.training_sections import Training
from stages.training.machine import synchronise
from stages.training.optimisation import device

# share of the steps of a fine-tuning
WARMUP = 0.1
# share of tokens that BERT masks
MASKED = 0.15


class Clock(TrainerCallback):
    """Records the end of every training step in `ends`, in seconds of time.perf_counter, on a GPU too."""

    def __init__(self):
        self.ends: list[float] = []

    def on_step_end(self, *_, **__) -> None:
        """Appends the time, once a GPU has finished the step."""
        synchronise()
        self.ends.append(time.perf_counter())


def make_configuration(size: dict[str, int], recipe: Training, **others: int) -> BertConfig:
    """Returns the configuration of stock BERT with the dropout of a recipe.

    Args:
        size: an entry of section `models` of params.yaml, as a dict.
        recipe: gives both rates of dropout.
        others: further fields of BertConfig, such as vocab_size.
    """
    config = configuration(
        "original",
        **size,
        hidden_dropout_prob=recipe.hidden_dropout,
        attention_probs_dropout_prob=recipe.attention_dropout,
        **others,
    )
    return BertConfig(**config.to_dict())


class Pretraining:
    """Masked-LM training of new models, timed.

    Args:
        run: gives the size of the model, and batch size, precision and dropout of the recipe.
        corpus: the packed sequences to train on.
        tokenizer: the tokenizer.json of the sequences.
    """

    def __init__(self, run: PretrainingRun, corpus: Corpus, tokenizer: Path):
        self.recipe = run.training
        self.sequences = corpus.train
        self.words = PreTrainedTokenizerFast(tokenizer_file=str(tokenizer), **SPECIAL)
        size = run.model.model_dump()
        self.configuration = make_configuration(size, run.training, vocab_size=corpus.vocabulary_size)

    def seconds(self, steps: int) -> float:
        """Trains a new model; returns the mean seconds of `steps` steps after the first step.

        The corpus provides `steps` + 1 batches; a smaller corpus is repeated.
        """
        batch_size = self.recipe.batch_size
        number = min(len(self.sequences), batch_size * (steps + 1))
        sequences = self.sequences[range(number)]
        special = np.isin(sequences, [self.words.cls_token_id, self.words.sep_token_id])
        columns = {
            "input_ids": sequences,
            "token_type_ids": np.zeros_like(sequences),
            "attention_mask": np.ones_like(sequences),
            "special_tokens_mask": special.astype(int),
        }
        collator = DataCollatorForLanguageModeling(self.words, mlm_probability=MASKED)
        model = BertForMaskedLM(self.configuration)
        examples = make_examples(columns)
        ends = train(model, examples, collator, self.recipe.precision, batch_size, max_steps=steps + 1)
        return (ends[-1] - ends[0]) / steps


class Finetuning:
    """Training of a new classifier with every example padded to the maximum length, timed.

    Args:
        task: the GLUE task, which decides the number of outputs.
        recipe: gives batch size, precision, maximum length, dropout and the peak learning rate (the first of
            `learning_rates`). The schedule is linear after a warm-up of WARMUP, for every recipe.
        size: an entry of section `models` of params.yaml, as a dict.
        vocabulary_size: number of word pieces.
    """

    def __init__(self, task: str, recipe: Recipe, size: dict[str, int], vocabulary_size: int):
        set_seed(1)
        self.recipe = recipe
        config = make_configuration(size, recipe, vocab_size=vocabulary_size, num_labels=TASKS[task].outputs)
        self.model = BertForSequenceClassification(config)

    def train(self, examples: Encoded, steps: int) -> float:
        """Trains the model for `steps` steps after the first step; returns the seconds that an epoch takes.

        An epoch takes the mean seconds of a step times (examples / batch size), as all examples are equally long.
        """
        recipe = self.recipe
        # the steps take no more examples
        first = slice(recipe.batch_size * (steps + 1))
        taken = Encoded(examples.ids[first], examples.types[first], examples.labels[first])
        ends = train(
            self.model,
            self.pad(taken),
            default_data_collator,
            recipe.precision,
            recipe.batch_size,
            max_steps=steps + 1,
            learning_rate=recipe.learning_rates[0],
            warmup_steps=WARMUP,
        )
        return (ends[-1] - ends[0]) / steps * len(examples) / recipe.batch_size

    def pad(self, examples: Encoded) -> list[dict]:
        """Returns the examples as Trainer takes them, each padded with 0 to the recipe's maximum length."""
        columns = {"input_ids": [], "token_type_ids": [], "attention_mask": []}
        for ids, types in zip(examples.ids, examples.types, strict=True):
            padding = (0, self.recipe.maximum_length - len(ids))
            columns["input_ids"].append(np.pad(ids, padding))
            columns["token_type_ids"].append(np.pad(types, padding))
            columns["attention_mask"].append(np.pad(np.ones_like(ids), padding))
        return make_examples({**columns, "label": examples.labels})


def make_examples(columns: dict[str, Sequence]) -> list[dict]:
    """Turns equally long columns into rows: {"a": [1, 2], "b": [3, 4]} gives [{"a": 1, "b": 3}, {"a": 2, "b": 4}]."""
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def train(model: nn.Module, examples: list[dict], collator, precision: str, batch_size: int, **schedule) -> list[float]:
    """Trains a model in place with Trainer; returns the end of every step, in seconds of time.perf_counter.

    Args:
        model: trained on this process's device.
        examples: as `make_examples` returns them.
        collator: the function by which Trainer turns a list of examples into a batch.
        precision: float32, or bfloat16 for the library's mixed precision.
        batch_size: number of examples of a step.
        schedule: further TrainingArguments, such as max_steps.
    """
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            folder,
            per_device_train_batch_size=batch_size,
            bf16=precision == "bfloat16",
            use_cpu=device().type == "cpu",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            **schedule,
        )
        # on several GPUs, Trainer would train on all of them
        if settings.n_gpu > 1:
            settings._n_gpu = 1
        trainer = Trainer(model, settings, train_dataset=examples, data_collator=collator, callbacks=[clock])
        # the callback prints every logged value
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return clock.ends
