"""Masked-LM pre-training of one operator from one seed.

The batches, their order and their masks follow from the seed alone, so every operator sees the same data.
"""

import json
import time
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm
from transformers.utils import logging

from stages.attention.bert import OperatorBertForMaskedLM, configuration
from stages.documents.packing import Sequences
from stages.learning import checkpoints
from stages.learning.masking import mask_tokens, masked_lm_loss
from stages.learning.optimisation import (
    DROPOUT,
    INITIALISATION,
    MASKING,
    ORDER,
    autocast,
    derived_seed,
    device,
    linear_rate,
    optimiser,
    update,
)

VALIDATION_SEED = 0  # one masking of the validation sequences for every run, so that losses compare
VALIDATION_BATCH = 64  # sequences

logging.disable_progress_bar()  # the library draws one for every file that it saves


def pretrain(run: dict, tokens: Path, folder: Path) -> dict:
    """Trains to the end, or on from the checkpoint in `folder`; leaves the model in folder/model.

    run: operator, seed, model (a record of `models`), attention (settings of this operator), training (the record
    `pretraining`). Gives the seconds spent and a log of {step, training_loss, validation_loss, masked_tokens}, losses
    in nats per masked token.
    """
    index = json.loads((tokens / "index.json").read_text())
    train, validation = Sequences(tokens, "train"), Sequences(tokens, "validation")
    settings = run["training"]
    model = _model(run, index["vocabulary_size"]).to(device())
    adamw = optimiser(model, settings["betas"], settings["epsilon"], settings["weight_decay"])
    path = folder / "checkpoint.safetensors"
    progress = checkpoints.load(path, model, adamw) if path.exists() else {"step": 0, "log": [], "seconds": 0.0}
    _train(model, adamw, progress, run, index, train, validation, path)
    model.save_pretrained(folder / "model")
    return {"log": progress["log"], "seconds": progress["seconds"]}


def _model(run: dict, vocabulary_size: int) -> OperatorBertForMaskedLM:
    torch.manual_seed(derived_seed(run["seed"], INITIALISATION))
    return OperatorBertForMaskedLM(
        configuration(
            run["operator"],
            **run["model"],
            **run["attention"],
            vocab_size=vocabulary_size,
            initializer_range=run["training"]["initializer_range"],
            hidden_dropout_prob=run["training"]["hidden_dropout"],
            attention_probs_dropout_prob=run["training"]["attention_dropout"],
        )
    )


def _train(model, adamw, progress: dict, run: dict, index: dict, train: Sequences, validation: Sequences, path: Path):
    settings, seed, name = run["training"], run["seed"], f"{run['operator']} seed {run['seed']}"
    steps, every = settings["steps"], settings["evaluation_interval"]
    started = time.perf_counter() - progress["seconds"]
    losses, tokens = progress.pop("since_evaluation", (0.0, 0))
    remaining = range(progress["step"], steps)
    for step in tqdm(remaining, name, total=steps, initial=progress["step"], leave=False, disable=None):
        sequences = torch.from_numpy(train[batch_indices(seed, step, settings["batch_size"], len(train))])
        loss, count = _step(model, adamw, sequences, step, run, index)
        losses, tokens = losses + loss, tokens + count
        done = step + 1
        if done % every == 0 or done == steps:
            entry = {"step": done, "training_loss": losses / tokens}
            progress["log"].append(entry | validate(model, validation, index, settings))
            losses, tokens = 0.0, 0
        if done % settings["checkpoint_interval"] == 0 or done == steps:
            progress |= {"step": done, "seconds": time.perf_counter() - started}
            checkpoints.save(path, model, adamw, progress | {"since_evaluation": [losses, tokens]})


def _step(model, adamw, sequences: torch.Tensor, step: int, run: dict, index: dict) -> tuple[float, int]:
    """One update; gives the summed loss and the number of masked tokens."""
    settings, seed = run["training"], run["seed"]
    generator = torch.Generator().manual_seed(derived_seed(seed, MASKING, step))
    inputs, chosen = _masked(sequences, index, settings["mask_probability"], generator)
    torch.manual_seed(derived_seed(seed, DROPOUT, step))
    model.train()
    with autocast(settings["precision"]):
        total = masked_lm_loss(model, *(T.to(device(), non_blocking=True) for T in (inputs, sequences, chosen)))
    count = int(chosen.sum())
    rate = linear_rate(step, settings["steps"], settings["warmup_steps"], settings["learning_rate"])
    where = f"pre-training {run['operator']} seed {seed}, step {step + 1}"
    update(model, adamw, total / count, rate, settings["gradient_clipping"], where)
    return total.item(), count


@torch.no_grad()
def validate(model, validation: Sequences, index: dict, settings: dict) -> dict:
    """Mean loss over all masked tokens of the validation sequences, under their one fixed masking."""
    model.eval()
    generator = torch.Generator().manual_seed(VALIDATION_SEED)
    total, count = 0.0, 0
    for start in range(0, len(validation), VALIDATION_BATCH):
        indices = np.arange(start, min(start + VALIDATION_BATCH, len(validation)))
        sequences = torch.from_numpy(validation[indices])
        inputs, chosen = _masked(sequences, index, settings["mask_probability"], generator)
        with autocast(settings["precision"]):
            total += masked_lm_loss(model, *(T.to(device()) for T in (inputs, sequences, chosen))).item()
        count += int(chosen.sum())
    return {"validation_loss": total / count, "masked_tokens": count}


def _masked(sequences: torch.Tensor, index: dict, share: float, generator: torch.Generator):
    special = torch.tensor([index["special"][name] for name in ("[CLS]", "[SEP]", "[PAD]")])
    mask_id = index["special"]["[MASK]"]
    return mask_tokens(sequences, share, index["vocabulary_size"], special, mask_id, generator)


def batch_indices(seed: int, step: int, batch_size: int, sequences: int) -> np.ndarray:
    """Indices [batch_size] of step `step` (from 0): every epoch is a new permutation; batches run across its end."""
    positions = step * batch_size + np.arange(batch_size)
    epochs = positions // sequences
    return np.array([_order(seed, int(e), sequences)[p % sequences] for e, p in zip(epochs, positions, strict=True)])


@lru_cache(maxsize=2)
def _order(seed: int, epoch: int, sequences: int) -> np.ndarray:
    return np.random.default_rng(derived_seed(seed, ORDER, epoch)).permutation(sequences)
