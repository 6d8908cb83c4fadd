"""Masked-LM pre-training of one operator from one seed, on one device or by several processes together.

A run leaves its state beside its model and goes on from there; its curves can be watched while it does.
"""

import math
import time
from pathlib import Path

from tqdm import tqdm
from transformers.utils import logging

from stages.common.attention.counts import training_flops
from stages.common.masked_lm.corpus import Corpus
from stages.common.masked_lm.steps import advance, built, length, ready, sequence_length, validate
from stages.common.training import checkpoints, distributed
from stages.common.training.machine import Pace, peak
from stages.common.training.optimisation import device, optimiser
from stages.plumbing.files import temporary_sibling
from stages.plumbing.jobs import processes, rank
from stages.pretraining import curves
from stages.pretraining.probes import Probes

logging.disable_progress_bar()  # the library draws one for every file that it saves


def pretrain(run: dict, tokens: Path, folder: Path, live: Path) -> dict:
    """Trains to the end, or on from the checkpoint in `folder`; leaves the model in folder/model.

    A run that has gone past a step whose model is wanted now goes to that step again, and no further.

    run: operator (its name in the run), variant (its settings, as Settings.variant gives them), seed, model (a record
    of `models`), training (the record `pretraining`), leaves (`checkpoints/step-N` for the steps after which the model
    is left there, too). live: table of the curves of all runs. Gives the seconds spent and a log of {step,
    training_loss, validation_loss, masked_tokens, learning_rate, gradient_norm, tokens_per_second,
    model_flop_utilisation, probes}: losses in nats per masked token; learning_rate without a variant's `score_rate`;
    utilisation is a share of the peak of matrix products that the job measured at its start, which jobs that share a
    device share; probes as probes.py names them, empty where `pretraining.probes` is false.
    """
    distributed.join()
    corpus, settings = Corpus.of(tokens), run["training"]
    steps = length(settings, len(corpus.train))
    wanted = {_step(name): folder / name for name in run.get("leaves", ())}
    if wanted and max(wanted) > steps:
        raise ValueError(f"convergence.steps: {max(wanted)} is after the last of the {steps} steps of pre-training")
    model = built(run, corpus.vocabulary_size).to(device())
    adamw = optimiser(model, settings["betas"], settings["epsilon"], settings["weight_decay"])
    path, shared = folder / "checkpoint.safetensors", _with_processes(run)
    if rank() == 0:
        checkpoints.clear(folder)
    progress = {"step": 0, "log": [], "seconds": 0.0, "since_evaluation": [0.0, 0]}
    if path.exists():
        progress = checkpoints.load(path, model, adamw, shared) or progress
    distributed.require_equal(progress["step"], f"{path}: the step of the checkpoint")
    passed = {step: kept for step, kept in wanted.items() if step <= progress["step"] and not kept.exists()}
    if passed:
        _revisit(run, corpus, steps, passed, path)
    _train(model, adamw, progress, run, corpus, steps, wanted, path, live)
    _leave(model, folder / "model")
    return {"log": progress["log"], "seconds": progress["seconds"]}


def _with_processes(run: dict) -> dict:
    """What a checkpoint must agree with: dropout is drawn by process, so their number decides the result too."""
    return {key: value for key, value in run.items() if key != "leaves"} | {"processes": processes()}


def _step(name: str) -> int:
    """The N of checkpoints/step-N."""
    return int(name.rpartition("-")[2])


def _revisit(run: dict, corpus: Corpus, steps: int, wanted: dict[int, Path], path: Path) -> None:
    """Leaves the models after steps that the run has passed: what is random is drawn by step, so they are the same."""
    model = built(run, corpus.vocabulary_size).to(device())
    adamw = optimiser(model, run["training"]["betas"], run["training"]["epsilon"], run["training"]["weight_decay"])
    loss_of = ready(model)
    name = f"{run['operator']} seed {run['seed']}, again"
    _leave(model, wanted.get(0))
    for step in tqdm(range(max(wanted)), name, leave=False, disable=bool(rank()) or None):
        advance(loss_of, model, adamw, step, steps, run, corpus, path)
        _leave(model, wanted.get(step + 1))


def _leave(model, place: Path | None) -> None:
    """Saves the model where there is a place for it."""
    if place and rank() == 0:
        with temporary_sibling(place) as temporary:
            model.save_pretrained(temporary)


def _train(
    model, adamw, progress: dict, run: dict, corpus: Corpus, steps: int, wanted: dict[int, Path], path: Path, live: Path
) -> None:
    settings, name = run["training"], f"{run['operator']} seed {run['seed']}"
    loss_of, pace, flops = ready(model), Pace(peak(settings["precision"]) * processes()), _flops_by_length(run, corpus)
    tokens = settings["batch_size"] * corpus.train.sequence_length
    probes = Probes(run, corpus) if settings["probes"] else None
    started = time.perf_counter() - progress["seconds"]
    losses, count = progress["since_evaluation"]
    losses = losses if rank() == 0 else 0.0  # the sum over all processes, as `gathered` leaves it
    remaining, silent = range(progress["step"], steps), bool(rank()) or None
    if progress["step"] == 0:
        _leave(model, wanted.get(0))  # the weights that the run starts from
    for step in tqdm(remaining, name, total=steps, initial=progress["step"], leave=False, disable=silent):
        loss, chosen, norm, rate = advance(loss_of, model, adamw, step, steps, run, corpus, path)
        losses, count, done = losses + loss, count + chosen, step + 1
        pace.count(tokens, tokens * flops[sequence_length(settings, step, steps, corpus.train.sequence_length)])
        if done % settings["evaluation_interval"] == 0 or done == steps:
            entry = {
                "step": done,
                "training_loss": distributed.gathered(losses) / count,
                "learning_rate": rate,
                "gradient_norm": norm,
            }
            entry |= pace.lap() | validate(model, corpus, settings)
            if wrong := [f"{key} is {value}" for key, value in entry.items() if not math.isfinite(value)]:
                raise ValueError(
                    f"pre-training {name}, step {done}: {', '.join(wrong)}: the run has diverged; lower the rate"
                )
            progress["log"].append(entry | {"probes": probes.measure(model) if probes else {}})
            if rank() == 0:
                curves.show(live, run, progress["log"], last=done == steps)
            losses, count = 0.0, 0
            pace.start()
        _leave(model, wanted.get(done))
        if done % settings["checkpoint_interval"] == 0 or done == steps:
            losses = distributed.gathered(losses)
            progress |= {"step": done, "seconds": time.perf_counter() - started, "since_evaluation": [losses, count]}
            if rank() == 0:
                checkpoints.save(path, model, adamw, _with_processes(run), progress)


def _flops_by_length(run: dict, corpus: Corpus) -> dict[int, float]:
    """Operations a token of an update, by the length of its sequences."""
    settings, lengths = run["training"], {corpus.train.sequence_length}
    if settings["sequence_length_warmup"]:
        lengths.add(settings["sequence_length_warmup"]["length"])
    share = settings["mask_probability"]
    return {
        length: training_flops(run["variant"], run["model"], corpus.vocabulary_size, length, share)
        for length in lengths
    }
