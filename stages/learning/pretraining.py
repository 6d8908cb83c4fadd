"""Masked-LM pre-training of one operator from one seed, on one device or by several processes together.

The batches, their order and their masks follow from the seed alone, so every operator sees the same data. A run leaves
its state beside its model and goes on from there; its curves can be watched in the folder `live` (DVCLive).
"""

import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm
from transformers.utils import logging

from stages.attention.bert import OperatorBertForMaskedLM, configuration
from stages.attention.counts import training_flops
from stages.files import temporary_sibling
from stages.jobs import processes, rank
from stages.learning import checkpoints, distributed
from stages.learning.corpus import Corpus, batch_indices
from stages.learning.curves import Curves
from stages.learning.machine import Pace, peak
from stages.learning.masking import MaskedLMLoss, sparse_targets
from stages.learning.optimisation import (
    DROPOUT,
    INITIALISATION,
    MASKING,
    apply_gradients,
    autocast,
    derived_seed,
    device,
    linear_rate,
    optimiser,
)

VALIDATION_SEED = 0  # one masking of the validation sequences for every run, so that losses compare
VALIDATION_BATCH = 64  # sequences
COMPILED_MULTIPLE = 64  # to which masked tokens are padded on a GPU, for products of aligned sizes
RECOMPILATIONS = 128  # models that one process may compile: all operators at all sizes share the code of the loss

logging.disable_progress_bar()  # the library draws one for every file that it saves


def pretrain(run: dict, tokens: Path, folder: Path, live: Path) -> dict:
    """Trains to the end, or on from the checkpoint in `folder`; leaves the model in folder/model.

    run: operator, seed, model (a record of `models`), attention (settings of this operator), training (the record
    `pretraining`), kept (steps after which the model is also left in folder/checkpoints/step-N). live: folder of the
    curves. Gives the seconds spent and a log of {step, training_loss, validation_loss, masked_tokens, learning_rate,
    gradient_norm, tokens_per_second, model_flop_utilisation}: losses in nats per masked token; the last is a share of
    the peak of matrix products that the run measured at its start, which jobs that share a device share.
    """
    distributed.join()
    corpus, settings = Corpus.of(tokens), run["training"]
    steps = length(settings, len(corpus.train))
    late = [step for step in run["kept"] if step > steps]
    if late:
        raise ValueError(f"convergence.steps: {late[0]} is after the last of the {steps} steps of pre-training")
    model = built(run, corpus.vocabulary_size).to(device())
    adamw = optimiser(model, settings["betas"], settings["epsilon"], settings["weight_decay"])
    path, shared = folder / "checkpoint.safetensors", _with_processes(run)
    if rank() == 0:
        checkpoints.clear(folder)
    progress = {"step": 0, "log": [], "seconds": 0.0, "since_evaluation": [0.0, 0]}
    if path.exists():
        progress = checkpoints.load(path, model, adamw, shared)
    distributed.require_equal(progress["step"], f"{path}: the step of the checkpoint")
    _train(model, adamw, progress, run, corpus, steps, path, live)
    if rank() == 0:
        model.save_pretrained(folder / "model")
    return {"log": progress["log"], "seconds": progress["seconds"]}


def _with_processes(run: dict) -> dict:
    """What a checkpoint must agree with: dropout is drawn by process, so their number decides the result too."""
    return run | {"processes": processes()}


def length(settings: dict, sequences: int) -> int:
    """Updates of a run. ValueError where its warm-up is longer."""
    steps = settings["steps"] or -(-settings["epochs"] * sequences // settings["batch_size"])
    if settings["warmup_steps"] >= steps:
        raise ValueError(
            f"pretraining.warmup_steps: {settings['warmup_steps']} leaves nothing of the {steps} steps that "
            f"{settings['epochs']} epochs of {sequences} sequences are"
        )
    return steps


def built(run: dict, vocabulary_size: int) -> OperatorBertForMaskedLM:
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


def _train(model, adamw, progress: dict, run: dict, corpus: Corpus, steps: int, path: Path, live: Path) -> None:
    settings, name = run["training"], f"{run['operator']} seed {run['seed']}"
    loss_of, pace = ready(model), _pace(run, corpus)
    curves = Curves(live, progress["log"]) if rank() == 0 else None
    started = time.perf_counter() - progress["seconds"]
    losses, count = progress["since_evaluation"]
    losses = losses if rank() == 0 else 0.0  # the sum over all processes, as `gathered` leaves it
    remaining, silent = range(progress["step"], steps), bool(rank()) or None
    for step in tqdm(remaining, name, total=steps, initial=progress["step"], leave=False, disable=silent):
        loss, chosen, norm, rate = advance(loss_of, model, adamw, step, steps, run, corpus, path)
        losses, count, done = losses + loss, count + chosen, step + 1
        pace.steps += 1
        if done % settings["evaluation_interval"] == 0 or done == steps:
            entry = {
                "step": done,
                "training_loss": distributed.gathered(losses) / count,
                "learning_rate": rate,
                "gradient_norm": norm,
            }
            progress["log"].append(entry | pace.lap() | validate(model, corpus, settings))
            if curves:
                curves.show(progress["log"][-1])
            losses, count = 0.0, 0
            pace.start()
        if done in run["kept"] and rank() == 0:
            with temporary_sibling(path.parent / "checkpoints" / f"step-{done}") as kept:
                model.save_pretrained(kept)
        if done % settings["checkpoint_interval"] == 0 or done == steps:
            losses = distributed.gathered(losses)
            progress |= {"step": done, "seconds": time.perf_counter() - started, "since_evaluation": [losses, count]}
            if rank() == 0:
                checkpoints.save(path, model, adamw, _with_processes(run), progress)


def _pace(run: dict, corpus: Corpus) -> Pace:
    settings, length = run["training"], corpus.train.sequence_length
    share = settings["mask_probability"]
    flops = training_flops(run["operator"], run["model"], corpus.vocabulary_size, length, share)
    return Pace(settings["batch_size"] * length, flops, peak(settings["precision"]) * processes())


def ready(model: nn.Module) -> nn.Module:
    """The loss of the model, compiled where that pays (on a GPU), its gradients averaged over the processes."""
    loss_of = MaskedLMLoss(model)
    if device().type == "cuda":
        torch._dynamo.config.recompile_limit = RECOMPILATIONS
        torch._dynamo.config.fail_on_recompile_limit_hit = True  # rather than go on uncompiled
        loss_of = torch.compile(loss_of)
    return distributed.replicated(loss_of)


def advance(
    loss_of: nn.Module, model: nn.Module, adamw, step: int, steps: int, run: dict, corpus: Corpus, path: Path
) -> tuple[float, int, float, float]:
    """One update; gives this process's summed loss, the masked tokens of the whole batch, gradient norm and rate."""
    settings, seed = run["training"], run["seed"]
    indices = batch_indices(seed, step, settings["batch_size"], len(corpus.train))
    sequences = torch.from_numpy(corpus.train[indices])
    generator = torch.Generator().manual_seed(derived_seed(seed, MASKING, step))
    inputs, chosen = corpus.masked(sequences, settings["mask_probability"], generator)
    count = int(chosen.sum())
    torch.manual_seed(derived_seed(seed, DROPOUT, step * processes() + rank()))
    model.train()
    total = _backward(loss_of, *(distributed.share(T) for T in (inputs, sequences, chosen)), count, settings)
    rate = linear_rate(step, steps, settings["warmup_steps"], settings["learning_rate"])
    last = step - step % settings["checkpoint_interval"]
    saved = f"step {last} in {path}" if last else "none"
    where = (
        f"pre-training {run['operator']} seed {seed}, step {step + 1} (training sequences {_listed(indices)}; last "
        f"good checkpoint: {saved}): loss {total / count}"
    )
    norm = apply_gradients(model, adamw, rate, settings["gradient_clipping"], where)
    return total, count, norm, rate


def _backward(loss_of, inputs: Tensor, sequences: Tensor, chosen: Tensor, count: int, settings: dict) -> float:
    """Adds the gradient of the loss a token of the whole batch, one micro-batch after another; gives the summed loss.

    count: masked tokens of the whole batch, over all processes. Gradients are averaged over processes, hence the
    factor; only the last micro-batch exchanges them.
    """
    size = settings["micro_batch_size"] or max(len(inputs), 1)
    multiple = COMPILED_MULTIPLE if device().type == "cuda" else 1
    parts = list(zip(*(T.split(size) for T in (inputs, sequences, chosen)), strict=True))
    total = torch.zeros((), device=device())
    for i, (part, originals, hidden) in enumerate(parts):
        batch = (part, *sparse_targets(originals, hidden, multiple))
        with distributed.alone(loss_of) if i + 1 < len(parts) else nullcontext():
            batch = [T.to(device(), non_blocking=True) for T in batch]
            for T in batch[1:]:
                torch._dynamo.maybe_mark_dynamic(T, 0)  # one compiled form for all numbers of masked tokens
            with autocast(settings["precision"]):
                loss = loss_of(*batch)
            (loss * (processes() / count)).backward()
        total += loss.detach()
    return total.item()


@torch.no_grad()
def validate(model: nn.Module, corpus: Corpus, settings: dict) -> dict:
    """Mean loss over all masked tokens of the validation sequences, under their one fixed masking.

    Processes share the batches; their losses are added in one order, so that their number does not change the sum.
    """
    model.eval()
    loss_of = MaskedLMLoss(model)
    generator = torch.Generator().manual_seed(VALIDATION_SEED)
    starts = range(0, len(corpus.validation), VALIDATION_BATCH)
    totals, count = torch.zeros(len(starts), dtype=torch.float64), 0
    for i, start in enumerate(starts):
        indices = np.arange(start, min(start + VALIDATION_BATCH, len(corpus.validation)))
        sequences = torch.from_numpy(corpus.validation[indices])
        inputs, chosen = corpus.masked(sequences, settings["mask_probability"], generator)
        count += int(chosen.sum())
        if i % processes() == rank():
            with autocast(settings["precision"]):
                batch = (inputs, *sparse_targets(sequences, chosen))
                totals[i] = loss_of(*(T.to(device()) for T in batch)).double()
    return {"validation_loss": distributed.added(totals).sum().item() / count, "masked_tokens": count}


def _listed(indices: np.ndarray) -> str:
    return ", ".join(map(str, indices))
