"""Stock Hugging Face BERT trained the usual way, as in run_mlm.py and run_glue.py: the baseline of our speed.

The functions run in a separate process, because our training changes settings of PyTorch and of the C library for the
whole process.
"""

import gc
import os
import tempfile
import time
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from transformers import (
    BertConfig,
    DataCollatorForLanguageModeling,
    PreTrainedTokenizerFast,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerState,
    TrainingArguments,
    default_data_collator,
    set_seed,
)

# share of tokens that BERT masks
MASKED_SHARE = 0.15


class Training(NamedTuple):
    """A training of stock BERT, as values that can be sent to another process.

    Attributes:
        model: name of the class in `transformers`, such as BertForMaskedLM.
        configuration: fields of BertConfig.
        examples: the arguments of the model by name, for every example.
        tokenizer: arguments of PreTrainedTokenizerFast for a training that masks tokens, or `None`.
        precision: float32, or bfloat16 for the library's mixed precision.
        batch_size: number of examples that the model takes at once.
        schedule: further TrainingArguments, such as learning_rate.
    """

    model: str
    configuration: dict[str, Any]
    examples: list[dict[str, np.ndarray]]
    tokenizer: dict[str, Any] | None
    precision: str
    batch_size: int
    schedule: dict[str, float | int]


class Clock(TrainerCallback):
    """Records when the first and the last update of a training end, by time.perf_counter."""

    def __init__(self):
        self.ends: list[float] = []

    def on_step_end(self, _arguments: TrainingArguments, state: TrainerState, *_, **__) -> None:
        """Appends the time, once a GPU has finished; Trainer calls this method."""
        if state.global_step in (1, state.max_steps):
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.ends.append(time.perf_counter())


def time_steps(training: Training, steps: int) -> float:
    """Trains a new stock BERT for `steps` + 1 updates; returns the mean seconds of an update after the first.

    The time includes the collator, which runs between the updates, as in run_mlm.py.
    """
    torch.set_num_threads(1)
    # This process inherits the variable, which our training sets for deterministic kernels.
    os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)
    # Every training compiles in the step that is not timed. Without this, PyTorch stops compiling after eight models.
    torch.compiler.reset()
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    set_seed(1)
    clock = Clock()
    # The first update, which `clock` leaves out, compiles on a GPU.
    train_model(training, steps + 1, clock)
    # Our training, in another process, needs the memory of the GPU.
    gc.collect()
    torch.cuda.empty_cache()
    first, last = clock.ends
    return (last - first) / steps


def train_model(training: Training, updates: int, clock: Clock) -> None:
    """Trains a new stock BERT with transformers' Trainer; `clock` records times."""
    config = BertConfig(**training.configuration)
    model = getattr(transformers, training.model)(config)
    collator = default_data_collator
    if training.tokenizer:
        tokenizer = PreTrainedTokenizerFast(**training.tokenizer)
        collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=MASKED_SHARE)
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            folder,
            max_steps=updates,
            per_device_train_batch_size=training.batch_size,
            # a smaller last batch would be compiled anew, and is dropped if there are full batches
            dataloader_drop_last=len(training.examples) >= training.batch_size,
            # the collator reads special_tokens_mask, which is no argument of the model
            remove_unused_columns=False,
            bf16=training.precision == "bfloat16",
            use_cpu=not torch.cuda.is_available(),
            # compiling pays on a GPU only
            torch_compile=torch.cuda.is_available(),
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            **training.schedule,
        )
        # Trainer would use all GPUs.
        if settings.n_gpu > 1:
            settings._n_gpu = 1
        # Default AdamW, clipping and linear schedule.
        trainer = Trainer(model, settings, train_dataset=training.examples, data_collator=collator, callbacks=[clock])
        # the callback prints every logged value
        trainer.remove_callback(PrinterCallback)
        trainer.train()
