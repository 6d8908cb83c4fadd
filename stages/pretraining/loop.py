"""Masked-LM pre-training of an operator from a seed, on a device or by several processes together.

`train` is a whole run. An update is in stages/masked_lm/steps.py, the validation loss in validation.py beside it.
"""

import math
import time
from functools import cached_property
from pathlib import Path

import pandas as pd
from filelock import Timeout
from transformers.utils import logging

from stages.attention.counts import count_training_operations
from stages.files.paths import name_curve
from stages.files.quoting import quote_value
from stages.files.storage import acquire_lock, make_temporary_sibling, write_table
from stages.masked_lm.batches import choose_length, draw_batch_indices
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.masked_lm.steps import Trainer, Update
from stages.masked_lm.validation import Validation
from stages.pretraining.probes import measure_probes
from stages.runner import results
from stages.runner.bars import Bar
from stages.runner.processes import count_processes, find_rank
from stages.training import checkpoints, distributed
from stages.training.machine import measure_peak
from stages.training.optimisation import UnreadLosses

# The library would draw a bar for every file that it saves.
logging.disable_progress_bar()


def train(
    run: PretrainingRun,
    tokens: Path,
    folder: Path,
    live: Path,
) -> dict:
    """Trains to the end, from the checkpoint in `folder` if there is one, and saves the model in folder/model.

    The models after the steps of `run.saved_steps` are saved in folder/intermediate_models/step-N.

    Args:
        run: The run.
        tokens: Folder of the packed corpus, data/tokens.
        folder: Folder of the job.
        live: CSV table of the curves of all runs, which is kept up to date.

    Returns:
        seconds: of training and evaluation, also before an interruption.
        log: an entry per evaluation, with the keys step (updates done), training_loss (mean since the last evaluation;
        true only in the first of several processes) and validation_loss in nats per masked token,
        masked_tokens (of the validation), learning_rate (before a variant multiplies the rate), gradient_norm,
        tokens_per_second and model_flop_utilisation (share of the measured peak of matrix products), both without the
        time of evaluations, and probes (probes.py; empty if `pretraining.probes` is false).

    Raises:
        ValueError: The run diverges or ends before a step of `run.saved_steps`, a batch has no masked token, the
            warm-up takes all steps, the checkpoint has other settings, or processes resume at different steps.
    """
    distributed.join()
    corpus = Corpus.open(tokens)
    trainer = Trainer(run, corpus)
    saved_models = {step: folder / name for step, name in run.saved_models.items()}
    last = max(saved_models, default=0)
    if last > trainer.steps:
        raise ValueError(f"convergence.steps: {last} is after the last of the {trainer.steps} steps of pre-training")
    if find_rank() == 0:
        checkpoints.clear_temporary_files(folder)
    # 1. Resume from the checkpoint of a run that was stopped.
    loop = Loop(trainer, folder / results.CHECKPOINT, saved_models, live)
    loop.resume()
    # 2. Save models that a finished or resumed run has passed without saving them.
    done = loop.progress["step"]
    missing = {step: model for step, model in saved_models.items() if step <= done and not model.exists()}
    if missing:
        _train_again(Trainer(run, corpus), missing)
    # 3. Train to the end.
    loop.train_to_end()
    # A finished run that only lacked models of earlier steps has its last model, which others may be reading.
    if results.read(folder) is None:
        _save(trainer.model, folder / "model")
    return {"log": loop.progress["log"], "seconds": loop.progress["seconds"]}


def _save(model, folder: Path | None) -> None:
    # None: the run asks for no model at this step
    if folder and find_rank() == 0:
        with make_temporary_sibling(folder) as temporary:
            model.save_pretrained(temporary)


def _train_again(trainer: Trainer, missing: dict[int, Path]) -> None:
    """Trains from step 0 again to save models that a run has passed without saving: number of updates -> folder."""
    # This happens after an edit of `convergence.steps`. Randomness depends on seed and step only, so these models are
    # equal to the models of the first training.
    _save(trainer.model, missing.get(0))
    for step in Bar(range(max(missing)), f"{trainer.run.name}, again", leave=False):
        trainer.advance(step)
        _save(trainer.model, missing.get(step + 1))


class Loop:
    """The updates of a run from the checkpoint to the end, with evaluations and checkpoints in between.

    `saved_models` are folders by the number of updates done; `live` is the table of `train`. The file `checkpoint`
    holds `progress`: `step` (updates done), `log` and `seconds` as `train` returns them, and two sums since the last
    evaluation: `loss`, in nats over the masked tokens, and `masked`, the number of masked tokens of all processes. Each
    process adds to `loss` for its share; at a checkpoint, the first process takes the total and the rest take 0.
    """

    def __init__(
        self,
        trainer: Trainer,
        checkpoint: Path,
        saved_models: dict[int, Path],
        live: Path,
    ):
        self.trainer = trainer
        self.checkpoint = checkpoint
        self.saved_models = saved_models
        self.live = live
        self.progress = {"step": 0, "log": [], "seconds": 0.0, "loss": 0.0, "masked": 0}
        self.unread = UnreadLosses(self._describe_update)
        # Operations per second of all processes; other jobs may use the device while the peak is measured.
        self.peak = measure_peak(trainer.run.training.precision) * count_processes()

    def resume(self) -> None:
        """Restores the state of the run from the checkpoint, if any."""
        trainer = self.trainer
        if self.checkpoint.exists():
            saved = checkpoints.load(
                self.checkpoint,
                trainer.model,
                trainer.adamw,
                trainer.content,
            )
            # `load` returns None for a damaged file, and the run begins anew.
            self.progress = saved or self.progress
        distributed.require_equal(self.progress["step"], f"{self.checkpoint}: the step of the checkpoint")
        # The saved loss is the sum over all processes, so only the first process goes on from this sum.
        if find_rank():
            self.progress["loss"] = 0.0

    def train_to_end(self) -> None:
        """Makes all updates that are left, with evaluations, saved models and checkpoints in between."""
        trainer, progress = self.trainer, self.progress
        recipe = trainer.run.training
        # The seconds before an interruption count, too.
        started = time.perf_counter() - progress["seconds"]
        self._begin_interval()
        for step in Bar(
            range(progress["step"], trainer.steps),
            trainer.run.name,
            total=trainer.steps,
            initial=progress["step"],
            leave=False,
        ):
            # 1. Make the update.
            update = trainer.advance(step)
            done = step + 1
            progress["step"] = done
            progress["masked"] += update.masked
            self.unread.add(step, update.loss, update.gradient_norm)
            self._operations += self._count_operations(step)
            # 2. Evaluate at the recipe's intervals and at the end.
            is_last = done == trainer.steps
            if is_last or done % recipe.evaluation_interval == 0:
                self._evaluate(update)
                if find_rank() == 0:
                    show_curves(self.live, trainer.run, progress["log"], is_last)
                self._begin_interval()
            # 3. Save the model, if the run asks for it.
            _save(trainer.model, self.saved_models.get(done))
            # 4. Save the state to resume from.
            if is_last or done % recipe.checkpoint_interval == 0:
                progress["loss"] = self._sum_loss()
                progress["seconds"] = time.perf_counter() - started
                if find_rank() == 0:
                    checkpoints.save(
                        self.checkpoint,
                        trainer.model,
                        trainer.adamw,
                        trainer.content,
                        progress,
                    )

    def _sum_loss(self) -> float:
        """Waits for all updates; returns the summed loss since the last evaluation: 0 in all but the first process."""
        # pairs of loss and gradient norm
        for loss, _ in self.unread.read():
            self.progress["loss"] += loss
        return distributed.sum_on_first(self.progress["loss"])

    def _describe_update(self, step: int, loss: float) -> str:
        """Describes an update for an error message, with the sequences and the checkpoint that reproduce the update."""
        run = self.trainer.run
        # For step 250 and an interval of 100, the last checkpoint was saved after 200 updates.
        last = step - step % run.training.checkpoint_interval
        saved = f"step {last} in {self.checkpoint}" if last else "none"
        indices = draw_batch_indices(run.seed, step, run.training.batch_size, len(self.trainer.corpus.train))
        listed = ", ".join(map(str, indices))
        mean = loss / self.trainer.draw_batch(step).masked
        return (
            f"pre-training {run.name}, step {step + 1} (training sequences {listed}; "
            f"last good checkpoint: {saved}): loss {mean}"
        )

    @cached_property
    def _validation(self) -> Validation:
        return Validation(self.trainer.corpus, self.trainer.run.training)

    def _begin_interval(self) -> None:
        self._operations = 0.0
        self._first_step = self.progress["step"]
        self._first_second = time.perf_counter()

    def _count_operations(self, step: int) -> float:
        """Counts the floating-point operations of an update, forward and backward."""
        run, corpus = self.trainer.run, self.trainer.corpus
        recipe, longest = run.training, corpus.train.sequence_length
        length = choose_length(recipe, step, self.trainer.steps, longest)
        per_token = count_training_operations(
            run.variant, run.model.model_dump(), corpus.vocabulary_size, length, recipe.mask_probability
        )
        # Shorter sequences are blocks of packed sequences, so the number of tokens is the same.
        return per_token * recipe.batch_size * longest

    def _evaluate(self, update: Update) -> None:
        """Adds an entry to the log; `update` is the last update."""
        trainer, progress = self.trainer, self.progress
        run, corpus, model = trainer.run, trainer.corpus, trainer.model
        steps = progress["step"] - self._first_step
        tokens = steps * run.training.batch_size * corpus.train.sequence_length
        loss = self._sum_loss()
        # Read before the validation, which does not count in the speed of training.
        seconds = time.perf_counter() - self._first_second
        entry = {
            "step": progress["step"],
            "training_loss": loss / progress["masked"],
            "learning_rate": update.rate,
            "gradient_norm": update.gradient_norm.item(),
            "tokens_per_second": tokens / seconds,
            "model_flop_utilisation": self._operations / seconds / self.peak,
            "validation_loss": self._validation.measure(model),
            "masked_tokens": self._validation.masked,
        }
        infinite = [f"{key} is {value}" for key, value in entry.items() if not math.isfinite(value)]
        if infinite:
            raise ValueError(
                f"pre-training {run.name}, step {progress['step']}: {', '.join(infinite)}: the run has diverged; lower "
                "the rate"
            )
        entry["probes"] = measure_probes(model, corpus) if run.training.probes else {}
        progress["log"].append(entry)
        # The sums of the training loss start anew.
        progress["loss"] = 0.0
        progress["masked"] = 0


def show_curves(
    table: Path,
    run: PretrainingRun,
    log: list[dict],
    last: bool,
) -> None:
    """Writes the log of a run as CSV, and joins the logs of `run.curves` into one live table, for `dvc plots`.

    `last` is true at the end of the run. An error is only printed, because no result depends on the table.
    """
    # data/live has the logs for data/live.csv
    folder = table.with_suffix("")
    own = name_curve(run.operator, run.size, run.seed)
    names = {"operator": run.operator, "size": run.size, "seed": run.seed}
    rows = pd.DataFrame([{**names, **entry, **entry["probes"]} for entry in log])
    # Runs train in parallel. If another run is writing the table, this call does not write (Timeout), and the next
    # evaluation is early enough; only the last call of a run waits.
    try:
        write_table(folder / own, rows.drop(columns="probes"))
        with acquire_lock(folder / ".lock", wait=last):
            # At most every 10 seconds: with hundreds of runs, writing the table takes a core a third of a second.
            is_old = not table.exists() or time.time() - table.stat().st_mtime > 10
            if last or is_old:
                paths = [folder / name for name in sorted({own, *run.curves})]
                curves = [pd.read_csv(path) for path in paths if path.exists()]
                write_table(table, pd.concat(curves))
    except Timeout:
        return
    except (OSError, ValueError) as error:
        print(f"{table}: not updated ({quote_value(error)}); if this line comes again, delete {folder}", flush=True)
