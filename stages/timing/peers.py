"""Stock Hugging Face BERT trained the usual way, as in run_mlm.py and run_glue.py: what our training is compared with.

`Trainer` with its own AdamW, clipping and linear schedule; for pre-training the library's collator and the head over
all positions, for fine-tuning every example padded to the maximum length. Dropout is as in the recipe that is timed.
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

WARMUP = 0.1  # share of the steps of a fine-tuning, which `warmup_steps` of TrainingArguments takes as well
COMPILING = 4  # number of first steps in which a compiled model may still be compiling, so that they do not count


class Clock(TrainerCallback):
    """Records in `ends` when each step (update) of a training ends, on a GPU too, in seconds of time.perf_counter."""

    def __init__(self):
        self.ends: list[float] = []

    def on_step_end(self, *_, **__) -> None:
        synchronise()
        self.ends.append(time.perf_counter())


def configured(size: dict[str, int], recipe: Training, **others: int) -> BertConfig:
    """The configuration of stock BERT, with the two rates of dropout of a recipe.

    size: an entry of section `models` of params.yaml, as a dict. others: further fields of BertConfig.
    """
    dropout = {"hidden_dropout_prob": recipe.hidden_dropout, "attention_probs_dropout_prob": recipe.attention_dropout}
    return BertConfig(**configuration("original", **size, **dropout, **others).to_dict())


class Pretraining:
    """Masked-LM training of new models, timed.

    Args:
        run: gives the model's size and, by its recipe, batch size, precision and dropout; nothing else of it counts.
        corpus, tokenizer: the packed sequences to train on, and their tokenizer.json.
        compiled: whether Trainer compiles the model (its `torch_compile`).
    """

    def __init__(self, run: PretrainingRun, corpus: Corpus, tokenizer: Path, compiled: bool = False):
        self.recipe, self.sequences, self.compiled = run.training, corpus.train, compiled
        self.words = PreTrainedTokenizerFast(tokenizer_file=str(tokenizer), **SPECIAL)
        self.configuration = configured(run.model.model_dump(), run.training, vocab_size=corpus.vocabulary_size)

    def seconds(self, steps: int) -> float:
        """Trains a new model; returns the seconds of one step, the mean of `steps` after the first one.

        Where the model is compiled, they come after the first COMPILING. The corpus, of which `steps` + 1 batches are
        taken, begins again where these do not suffice.
        """
        first, batch_size = COMPILING if self.compiled else 1, self.recipe.batch_size
        sequences = self.sequences[range(min(len(self.sequences), batch_size * (steps + 1)))]
        columns = {
            "input_ids": sequences,
            "token_type_ids": np.zeros_like(sequences),
            "attention_mask": np.ones_like(sequences),
            "special_tokens_mask": np.isin(sequences, [self.words.cls_token_id, self.words.sep_token_id]).astype(int),
        }
        collator = DataCollatorForLanguageModeling(self.words, mlm_probability=0.15)  # BERT's; the recipe's is not used
        model = BertForMaskedLM(self.configuration)
        schedule = {"max_steps": steps + first, "torch_compile": self.compiled}
        ends = trained(model, examples_of(columns), collator, self.recipe.precision, batch_size, **schedule)
        return (ends[-1] - ends[first - 1]) / steps


class Finetuning:
    """Training of a new classifier, every example padded to the maximum length, timed.

    Args:
        task: the GLUE task, which decides the number of outputs.
        recipe: gives epochs, batch size, precision, maximum length, dropout and, as its first one, the peak learning
            rate. The schedule is linear, after a warm-up of WARMUP, whatever that of the recipe.
        size, vocabulary_size: an entry of section `models` of params.yaml, as a dict; number of word pieces.
        seed: decides the weights, the order of the examples and the dropout.
    """

    def __init__(self, task: str, recipe: Recipe, size: dict[str, int], vocabulary_size: int, seed: int = 1):
        set_seed(seed)
        self.recipe, self.seed = recipe, seed
        labels = TASKS[task].outputs
        self.model = BertForSequenceClassification(
            configured(size, recipe, vocab_size=vocabulary_size, num_labels=labels)
        )

    def train(self, examples: Encoded) -> float:
        """Trains the model further, for all epochs of the recipe; returns the seconds of one epoch.

        It is the mean time of the steps after the first (ValueError if there are none), times the steps of an epoch.
        """
        recipe = self.recipe
        schedule = {"num_train_epochs": recipe.epochs, "learning_rate": recipe.learning_rates[0], "seed": self.seed}
        schedule |= {"warmup_steps": WARMUP}
        data = self.padded(examples)
        ends = trained(self.model, data, default_data_collator, recipe.precision, recipe.batch_size, **schedule)
        if len(ends) < 2:
            raise ValueError("a training of one step cannot be timed; give more examples, or a smaller batch")
        return (ends[-1] - ends[0]) / (len(ends) - 1) * len(ends) / recipe.epochs

    def predict(self, examples: Encoded) -> np.ndarray:
        """Predicts classes [n], or scores with one output, which tools/benchmarks compares with ours."""
        with tempfile.TemporaryDirectory() as folder:
            settings = arguments(folder, self.recipe.precision)
            trainer = Trainer(self.model, settings, data_collator=default_data_collator)
            logits = trainer.predict(self.padded(examples)).predictions
        return logits[:, 0] if logits.shape[-1] == 1 else logits.argmax(-1)

    def padded(self, examples: Encoded) -> list[dict]:
        """Returns the examples in the form that Trainer takes, each padded to the recipe's maximum length."""

        def rows(sequences: Sequence[np.ndarray]) -> list[np.ndarray]:  # 0 at padding, which the mask hides
            return [np.pad(ids, (0, self.recipe.maximum_length - len(ids))) for ids in sequences]

        mask = rows([np.ones_like(ids) for ids in examples.ids])
        columns = {"input_ids": rows(examples.ids), "token_type_ids": rows(examples.types), "attention_mask": mask}
        return examples_of(columns | {"label": examples.labels})


def examples_of(columns: dict[str, Sequence]) -> list[dict]:
    """Returns the rows of equally long columns as dicts by column, the form in which Trainer takes a data set."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def trained(
    model: nn.Module, dataset: list[dict], collator, precision: str, batch_size: int, **schedule
) -> list[float]:
    """Trains a model in place with Trainer; returns the times in seconds at which the steps ended, as `Clock` has them.

    Args:
        model, dataset: trained on this process's device; the examples, as `examples_of` returns them.
        collator: the function by which Trainer makes a batch of a list of examples.
        precision, batch_size: float32, or bfloat16 for the library's mixed precision; number of examples of a step.
        schedule: further TrainingArguments, such as max_steps.
    """
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        settings = arguments(folder, precision, per_device_train_batch_size=batch_size, **schedule)
        trainer = Trainer(model, settings, train_dataset=dataset, data_collator=collator, callbacks=[clock])
        trainer.remove_callback(PrinterCallback)  # it prints whatever is logged
        trainer.train()
    return clock.ends


def arguments(folder: str, precision: str, **others) -> TrainingArguments:
    """Returns the library's default TrainingArguments, except that they save and report nothing and use our device.

    folder: where Trainer may write. precision: as in `trained`. others: further TrainingArguments.
    """
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
