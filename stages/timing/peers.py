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

from stages.attention.configuration import configuration
from stages.benchmarks.glue import TASKS
from stages.classification.training import Encoded
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.plumbing.model_folders import SPECIAL
from stages.plumbing.training_sections import Finetuning as Recipe
from stages.plumbing.training_sections import Training
from stages.training.machine import synchronise
from stages.training.optimisation import device

WARMUP = 0.1  # share of the steps of a fine-tuning
COMPILING = 4  # first steps, in which a model may still be compiled


class Clock(TrainerCallback):
    """Records when each step ends, in `ends`: seconds of the performance counter."""

    def __init__(self):
        self.ends: list[float] = []

    def on_step_end(self, *_, **__) -> None:
        synchronise()
        self.ends.append(time.perf_counter())


def configured(size: dict[str, int], recipe: Training, **others: int) -> BertConfig:
    """The configuration of stock BERT.

    Args:
        size: as section `models` of params.yaml has it.
        recipe: of training; its rates of dropout count.
        others: further fields of BertConfig.
    """
    dropout = {"hidden_dropout_prob": recipe.hidden_dropout, "attention_probs_dropout_prob": recipe.attention_dropout}
    return BertConfig(**configuration("original", **size, **dropout, **others).to_dict())


class Pretraining:
    """Masked-LM training of new models, timed.

    Args:
        run: whose model is trained; of its recipe the batch size, the precision and the rates of dropout count.
        corpus: the data.
        tokenizer: tokenizer.json of the corpus.
        compiled: whether Trainer compiles the model (its `torch_compile`).
    """

    def __init__(self, run: PretrainingRun, corpus: Corpus, tokenizer: Path, compiled: bool = False):
        self.recipe, self.sequences, self.compiled = run.training, corpus.train, compiled
        self.words = PreTrainedTokenizerFast(tokenizer_file=str(tokenizer), **SPECIAL)
        self.configuration = configured(run.model.model_dump(), run.training, vocab_size=corpus.vocabulary_size)

    def seconds(self, steps: int) -> float:
        """Seconds of one step: the mean of `steps` after a first one, or a first few where the model is compiled."""
        first, batch_size = COMPILING if self.compiled else 1, self.recipe.batch_size
        sequences = self.sequences[range(min(len(self.sequences), batch_size * (steps + 1)))]
        columns = {
            "input_ids": sequences,
            "token_type_ids": np.zeros_like(sequences),
            "attention_mask": np.ones_like(sequences),
            "special_tokens_mask": np.isin(sequences, [self.words.cls_token_id, self.words.sep_token_id]).astype(int),
        }
        collator = DataCollatorForLanguageModeling(self.words, mlm_probability=0.15)
        model = BertForMaskedLM(self.configuration)
        schedule = {"max_steps": steps + first, "torch_compile": self.compiled}
        ends = trained(model, examples_of(columns), collator, self.recipe.precision, batch_size, **schedule)
        return (ends[-1] - ends[first - 1]) / steps


class Finetuning:
    """Training of a new classifier, every example padded to the maximum length, timed.

    Args:
        task: of GLUE.
        recipe: of fine-tuning; its schedule is linear, with the first of its rates.
        size: of the model, as section `models` has it.
        vocabulary_size: word pieces.
        seed: of the weights and the order of examples.
    """

    def __init__(self, task: str, recipe: Recipe, size: dict[str, int], vocabulary_size: int, seed: int = 1):
        set_seed(seed)
        self.recipe, self.seed = recipe, seed
        labels = TASKS[task].outputs
        self.model = BertForSequenceClassification(
            configured(size, recipe, vocab_size=vocabulary_size, num_labels=labels)
        )

    def train(self, examples: Encoded) -> float:
        """Trains the model.

        Returns:
            Seconds of an epoch: those between the ends of the first and the last step, scaled to all steps.

        Raises:
            ValueError: there is only one step.
        """
        recipe = self.recipe
        schedule = {"num_train_epochs": recipe.epochs, "learning_rate": recipe.learning_rates[0], "seed": self.seed}
        schedule |= {"warmup_steps": WARMUP}
        data = self.padded(examples)
        ends = trained(self.model, data, default_data_collator, recipe.precision, recipe.batch_size, **schedule)
        if len(ends) < 2:
            raise ValueError("timing.tasks: an epoch of one step cannot be timed; ask for more tasks.train_examples")
        return (ends[-1] - ends[0]) / (len(ends) - 1) * len(ends) / recipe.epochs

    def predict(self, examples: Encoded) -> np.ndarray:
        """Predicts the class index [n] of every example, or its score where the model has one output."""
        with tempfile.TemporaryDirectory() as folder:
            settings = arguments(folder, self.recipe.precision)
            trainer = Trainer(self.model, settings, data_collator=default_data_collator)
            logits = trainer.predict(self.padded(examples)).predictions
        return logits[:, 0] if logits.shape[-1] == 1 else logits.argmax(-1)

    def padded(self, examples: Encoded) -> list[dict]:
        """The examples in the form that Trainer takes, each of the maximum length."""

        def rows(sequences: Sequence[np.ndarray]) -> list[np.ndarray]:
            return [np.pad(ids, (0, self.recipe.maximum_length - len(ids))) for ids in sequences]

        mask = rows([np.ones_like(ids) for ids in examples.ids])
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
