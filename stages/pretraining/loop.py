"""Masked-LM pre-training of one operator from one seed, on one device or by several processes together.

A run leaves its state beside its model and goes on from there; its curves can be watched while it does.
"""

import math
import time
from pathlib import Path

from transformers.utils import logging

from stages.attention.counts import training_flops
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun, sequence_length
from stages.masked_lm.steps import Trainer, validate
from stages.plumbing.bars import Bar
from stages.plumbing.files import temporary_sibling
from stages.plumbing.jobs import processes, rank
from stages.pretraining import curves
from stages.pretraining.probes import Probes
from stages.training import checkpoints, distributed
from stages.training.machine import Pace, peak

logging.disable_progress_bar()  # the library draws one for every file that it saves


def pretrain(run: PretrainingRun, tokens: Path, folder: Path, live: Path) -> dict:
    """Trains to the end, or on from the checkpoint in `folder`; leaves the model in folder/model.

    The models after the steps that `run.leaves` names are left in folder/checkpoints/step-N. A run that has gone past
    such a step goes to that step again, and no further.

    Args:
        run: what is trained.
        tokens: data/tokens.
        folder: of the job.
        live: table of the curves of all runs.

    Returns:
        The seconds spent and a log of {step, training_loss, validation_loss, masked_tokens, learning_rate,
        gradient_norm, tokens_per_second, model_flop_utilisation, probes}: losses in nats per masked token;
        learning_rate without a variant's `score_rate`; utilisation is a share of the peak of matrix products that the
        job measured at its start, which jobs that share a device share; probes as probes.py names them, empty where
        `pretraining.probes` is false.
    """
    distributed.join()
    corpus, path = Corpus.of(tokens), folder / "checkpoint.safetensors"
    trainer = Trainer(run, corpus, path)
    wanted = {step: folder / "checkpoints" / f"step-{step}" for step in run.leaves}
    if wanted and max(wanted) > trainer.steps:
        raise ValueError(
            f"convergence.steps: {max(wanted)} is after the last of the {trainer.steps} steps of pre-training"
        )
    if rank() == 0:
        checkpoints.clear(folder)
    progress = {"step": 0, "log": [], "seconds": 0.0, "since_evaluation": [0.0, 0]}
    if path.exists():
        progress = checkpoints.load(path, trainer.model, trainer.adamw, _with_processes(run)) or progress
    distributed.require_equal(progress["step"], f"{path}: the step of the checkpoint")
    passed = {step: kept for step, kept in wanted.items() if step <= progress["step"] and not kept.exists()}
    if passed:
        _revisit(Trainer(run, corpus, path), passed)
    _train(trainer, progress, wanted, path, live)
    _leave(trainer.model, folder / "model")
    return {"log": progress["log"], "seconds": progress["seconds"]}


def _with_processes(run: PretrainingRun) -> dict:
    """What a checkpoint must agree with: dropout is drawn by process, so their number decides the result too."""
    return run.content | {"processes": processes()}


def _revisit(trainer: Trainer, wanted: dict[int, Path]) -> None:
    """Leaves the models after steps that the run has passed: what is random is drawn by step, so they are the same."""
    _leave(trainer.model, wanted.get(0))
    for step in Bar(range(max(wanted)), f"{trainer.run.name}, again", leave=False, silent=bool(rank())):
        trainer.advance(step)
        _leave(trainer.model, wanted.get(step + 1))


def _leave(model, place: Path | None) -> None:
    """Saves the model where there is a place for it."""
    if place and rank() == 0:
        with temporary_sibling(place) as temporary:
            model.save_pretrained(temporary)


def _train(trainer: Trainer, progress: dict, wanted: dict[int, Path], path: Path, live: Path) -> None:
    run, model, steps, corpus = trainer.run, trainer.model, trainer.steps, trainer.corpus
    recipe, longest = run.training, corpus.train.sequence_length
    pace, flops = Pace(peak(recipe.precision) * processes()), _flops_by_length(run, corpus)
    tokens = recipe.batch_size * longest
    probes = Probes(run, corpus) if recipe.probes else None
    started = time.perf_counter() - progress["seconds"]
    losses, count = progress["since_evaluation"]
    losses = losses if rank() == 0 else 0.0  # the sum over all processes, as `gathered` leaves it
    remaining, silent = range(progress["step"], steps), bool(rank())
    if progress["step"] == 0:
        _leave(model, wanted.get(0))  # the weights that the run starts from
    for step in Bar(remaining, run.name, total=steps, initial=progress["step"], leave=False, silent=silent):
        loss, chosen, norm, rate = trainer.advance(step)
        losses, count, done = losses + loss, count + chosen, step + 1
        pace.count(tokens, tokens * flops[sequence_length(recipe, step, steps, longest)])
        if done % recipe.evaluation_interval == 0 or done == steps:
            entry = {
                "step": done,
                "training_loss": distributed.gathered(losses) / count,
                "learning_rate": rate,
                "gradient_norm": norm,
            }
            entry |= pace.lap() | validate(model, corpus, recipe)
            if wrong := [f"{key} is {value}" for key, value in entry.items() if not math.isfinite(value)]:
                raise ValueError(
                    f"pre-training {run.name}, step {done}: {', '.join(wrong)}: the run has diverged; lower the rate"
                )
            progress["log"].append(entry | {"probes": probes.measure(model) if probes else {}})
            if rank() == 0:
                curves.show(live, run, progress["log"], last=done == steps)
            losses, count = 0.0, 0
            pace.start()
        _leave(model, wanted.get(done))
        if done % recipe.checkpoint_interval == 0 or done == steps:
            losses = distributed.gathered(losses)
            progress |= {"step": done, "seconds": time.perf_counter() - started, "since_evaluation": [losses, count]}
            if rank() == 0:
                checkpoints.save(path, model, trainer.adamw, _with_processes(run), progress)


def _flops_by_length(run: PretrainingRun, corpus: Corpus) -> dict[int, float]:
    """Operations a token of an update, by the length of its sequences."""
    recipe, size = run.training, run.model.model_dump()
    lengths = {corpus.train.sequence_length}
    if recipe.sequence_length_warmup:
        lengths.add(recipe.sequence_length_warmup.length)
    return {
        length: training_flops(run.variant, size, corpus.vocabulary_size, length, recipe.mask_probability)
        for length in lengths
    }
