"""Masked-LM pre-training of one operator from one seed, on one device or by several processes together.

A run saves its state next to its model, and a run that was stopped continues from that state.
"""

import math
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pandas as pd
from filelock import FileLock, Timeout
from transformers.utils import logging

from stages.attention.counts import training_flops
from stages.files.storage import temporary_sibling, write_table
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun, sequence_length
from stages.masked_lm.steps import Trainer, validate
from stages.pretraining.probes import Probes
from stages.runner.bars import Bar
from stages.runner.jobs import processes, rank
from stages.runner.results import CHECKPOINT
from stages.training import checkpoints, distributed
from stages.training.machine import Pace, peak

JOIN_SECONDS = 10.0  # between two writings of the table: for hundreds of runs, one takes a core a third of a second

logging.disable_progress_bar()  # the library would draw one for every file that it saves


def train(run: PretrainingRun, tokens: Path, folder: Path, live: Path) -> dict:
    """Trains to the end, from the checkpoint in `folder` where there is one, and saves the model in folder/model.

    The models after the steps that `run.leaves` names are saved in folder/checkpoints/step-N. Where the run is
    at or past such a step (a new one is at 0) and its model is missing, it is computed once more, up to the last one.

    Args:
        run, tokens: what is trained; the folder of the packed corpus, data/tokens.
        folder: the job's own, for its checkpoint and models.
        live: the CSV table of the curves of all runs, which is kept up to date.

    Returns:
        seconds: of training, evaluations included, also before an interruption. log: one entry per evaluation, with the
        keys step (updates done), training_loss (mean since the last evaluation) and validation_loss in nats per masked
        token, masked_tokens (of the validation), learning_rate (before a variant multiplies it), gradient_norm,
        tokens_per_second, model_flop_utilisation (share of the peak of matrix products, measured at the start of the
        job while other jobs may use the device, too), both without evaluations, and probes (as probes.py names them;
        empty where `pretraining.probes` is false). Of several processes, only the first returns the true training_loss.

    Raises:
        ValueError: the run diverges, it ends before a step of `run.leaves`, a batch has no masked token, the
            warm-up takes all steps, or the checkpoint is of other settings or, by process, of other steps.
    """
    distributed.join()
    corpus, path = Corpus.of(tokens), folder / CHECKPOINT
    trainer = Trainer(run, corpus, path)
    places = {step: folder / name for step, name in run.places.items()}
    if places and max(places) > trainer.steps:
        raise ValueError(
            f"convergence.steps: {max(places)} is after the last of the {trainer.steps} steps of pre-training"
        )
    if rank() == 0:
        checkpoints.clear(folder)
    progress = {"step": 0, "log": [], "seconds": 0.0, "since_evaluation": [0.0, 0]}
    if path.exists():  # `load` returns None for a damaged file: the run begins anew
        progress = checkpoints.load(path, trainer.model, trainer.adamw, trainer.settings) or progress
    distributed.require_equal(progress["step"], f"{path}: the step of the checkpoint")
    missing = {step: place for step, place in places.items() if step <= progress["step"] and not place.exists()}
    if missing:  # all that is random depends on seed and step alone: these models are equal to those of the first time
        again = Trainer(run, corpus, path)
        _save(again.model, missing.get(0))
        for step in Bar(range(max(missing)), f"{run.name}, again", leave=False, silent=bool(rank())):
            again.advance(step)
            _save(again.model, missing.get(step + 1))
    _train(trainer, progress, places, live)
    _save(trainer.model, folder / "model")
    return {"log": progress["log"], "seconds": progress["seconds"]}


def _save(model, place: Path | None) -> None:
    """Saves the model as the folder `place`, in the first process alone; does nothing where `place` is None."""
    if place and rank() == 0:
        with temporary_sibling(place) as temporary:
            model.save_pretrained(temporary)


def _train(trainer: Trainer, progress: dict, places: dict[int, Path], live: Path) -> None:
    """Trains from `progress["step"]` to the end, and keeps `progress`, which `train` makes, up to date.

    At the recipe's intervals, and at the end, it evaluates, which adds an entry to the log and to the table `live`, and
    saves the state in the checkpoint. After the steps in `places` it saves the model there.
    progress["since_evaluation"] is the sum of losses in nats and the number of masked tokens since the last evaluation.
    """
    run, model, steps, corpus = trainer.run, trainer.model, trainer.steps, trainer.corpus
    recipe, longest = run.training, corpus.train.sequence_length
    pace, tokens = Pace(peak(recipe.precision) * processes()), recipe.batch_size * longest
    work = partial(training_flops, run.variant, run.model.model_dump(), corpus.vocabulary_size)  # per token, by length
    probes = Probes(run, corpus) if recipe.probes else None
    started = time.perf_counter() - progress["seconds"]
    losses, count = progress["since_evaluation"]
    losses = losses if rank() == 0 else 0.0  # a checkpoint has the sum over all processes
    remaining, silent = range(progress["step"], steps), bool(rank())
    for step in Bar(remaining, run.name, total=steps, initial=progress["step"], leave=False, silent=silent):
        loss, chosen, norm, rate = trainer.advance(step)
        losses, count, done = losses + loss, count + chosen, step + 1
        pace.count(tokens, tokens * work(sequence_length(recipe, step, steps, longest), recipe.mask_probability))
        if done % recipe.evaluation_interval == 0 or done == steps:
            entry = {
                "step": done,
                "training_loss": distributed.summed_on_first(losses) / count,
                "learning_rate": rate,
                "gradient_norm": norm,
            }
            entry |= pace.measure() | validate(model, corpus, recipe)  # in this order: the pace is that of training
            if infinite := [f"{key} is {value}" for key, value in entry.items() if not math.isfinite(value)]:
                raise ValueError(
                    f"pre-training {run.name}, step {done}: {', '.join(infinite)}: the run has diverged; lower the rate"
                )
            progress["log"].append(entry | {"probes": probes.measure(model) if probes else {}})
            if rank() == 0:
                show_curves(live, run, progress["log"], last=done == steps)
            losses, count = 0.0, 0
            pace.restart()
        _save(model, places.get(done))
        if done % recipe.checkpoint_interval == 0 or done == steps:
            losses = distributed.summed_on_first(losses)
            progress |= {"step": done, "seconds": time.perf_counter() - started, "since_evaluation": [losses, count]}
            if rank() == 0:
                checkpoints.save(trainer.checkpoint, model, trainer.adamw, trainer.settings, progress)


def show_curves(table: Path, run: PretrainingRun, log: list[dict], last: bool) -> None:
    """Writes the log of a run as a CSV file and, at most once in JOIN_SECONDS, the logs of all runs as one table.

    Args:
        table: of all runs; the folder of the same name without `.csv` has the files of the runs.
        run, log: a run and its entries, as `train` returns them; each becomes a row, its probes further columns.
        last: whether the run has ended; the table is then written whatever its age.
    """
    names = {"operator": run.operator, "size": run.size, "seed": run.seed}
    folder = table.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    rows = [names | entry | entry["probes"] for entry in log]
    write_table(folder / f"{'-'.join(map(str, names.values()))}.csv", pd.DataFrame(rows).drop(columns="probes"))
    # where another process is writing the table, the next evaluation will do; only a run's last rows wait for it
    with suppress(Timeout), FileLock(folder / ".lock", timeout=-1 if last else 0):
        if last or not table.exists() or time.time() - table.stat().st_mtime > JOIN_SECONDS:
            write_table(table, pd.concat([pd.read_csv(path) for path in sorted(folder.glob("*.csv"))]))
