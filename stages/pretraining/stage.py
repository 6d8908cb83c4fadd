"""Pre-trains one operator at one size, once for every seed of `pretraining.seeds`.

Reads data/tokens. Writes data/pretraining/OPERATOR-SIZE/seed-N (a Hugging Face model folder, with tokenizer and card),
data/checkpoints/OPERATOR-SIZE/seed-N/step-M (the same after the steps that `convergence` asks for) and
data/observations/pretraining-OPERATOR-SIZE.csv: training and validation loss by step. A run that was killed continues
from its last checkpoint (data/jobs). data/live.csv has the curves of all runs while they are trained: losses, learning
rate, gradient norm, tokens a second, share of the machine's peak.

Without an operator and a size it computes the jobs of all of them in one pool and writes no outputs: `dvc repro`, which
runs one stage after another, then finds the jobs done. Given an operator alone, it computes the jobs of all its sizes.

Several GPUs share a run under `torchrun --nproc-per-node N -m stages pretraining OPERATOR SIZE` or `accelerate launch`.
"""

import shutil
from pathlib import Path

from stages.files import observations
from stages.files.model_folders import card, complete
from stages.files.observations import Observation
from stages.files.paths import CHECKPOINTS, LIVE, PRETRAINED, TOKENIZER, TOKENS, checkpoint, pretrained
from stages.files.storage import place, temporary_sibling
from stages.masked_lm.run import PretrainingRun
from stages.runner import jobs
from stages.schema.settings import REFERENCE, Settings


def pretrain(run: PretrainingRun, folder: Path) -> dict:
    """Job: pre-trains one run in `folder`, the job's own, and returns what `loop.train` does: seconds and log."""
    from stages.pretraining.loop import train  # here, because it loads torch, which planning does without

    return train(run, TOKENS, folder, LIVE)


def rows(run: PretrainingRun, log: list[dict]) -> list[Observation]:
    """Returns an observation of every loss and probe of every evaluation, an entry each of the log of `loop.train`."""
    return [
        Observation(
            stage="pretraining",
            operator=run.operator,
            size=run.size,
            condition=f"step={entry['step']}",
            metric=metric,
            pretraining_seed=run.seed,
            value=(entry | entry["probes"])[metric],
            n=entry["masked_tokens"] if metric == "validation_loss" else None,
        )
        for entry in log
        for metric in ("training_loss", "validation_loss", *entry["probes"])
    ]


def planned(settings: Settings, models: list[tuple[str, str]]) -> list[PretrainingRun]:
    """Lists one run for every (operator, size) of `models` and every seed of `pretraining.seeds`.

    A run leaves the models after the steps of `convergence`; one of the reference operator also its initial weights,
    those after step 0, which fine-tuning takes as its baseline.
    """
    return [
        PretrainingRun(
            operator=operator,
            size=size,
            model=settings.models[size],
            variant=settings.variant(operator),
            seed=seed,
            training=settings.pretraining,
            leaves=(0,) * (operator == REFERENCE) + settings.convergence.steps,
        )
        for operator, size in models
        for seed in settings.pretraining.seeds
    ]


def publish(run: PretrainingRun, log: list[dict], source: Path, step: int, output: Path, final: Path) -> None:
    """Copies a model out of the folder of its job, and adds the tokenizer and a card.

    The card has the last validation loss measured at that step or before, if any.

    Args:
        run, log: the run that trained the model, and its log, as `loop.train` returns it.
        source: the model's folder within the folder of the job.
        step: number of updates after which the model was saved; 0 for the initial weights.
        output, final: the folder to write, under a temporary name; the name it will have in the end, for the card.
    """
    text = (
        f"A masked-language model of {run.model.layers} layers, width {run.model.hidden} and {run.model.heads} heads "
        f"with the operator `{run.operator}`; everything around it is BERT as in Hugging Face Transformers. "
        f"Pre-trained for {step} of {log[-1]['step']} steps of {run.training.batch_size} sequences from seed "
        f"{run.seed}. The report of the run has the corpus, every setting and what was measured afterwards."
    )
    before = [entry for entry in log if entry["step"] <= step]  # none for the initial weights, which are not evaluated
    measured = {
        ("held-out documents", f"after {last['step']} steps", "validation_loss"): last["validation_loss"]
        for last in before[-1:]  # one entry or none
    }
    title = f"BERT with {run.operator} attention"
    text = card(final, title, text, run.operator, run.variant, "fill-mask", measured)
    shutil.copytree(source, output, copy_function=place)  # hard links, where possible
    complete(output, TOKENIZER, run.model.positions, text)


def main(settings: Settings, operator: str | None = None, size: str | None = None) -> dict | None:
    """Does the jobs of an operator and a size, None for all; returns what the record is to hold, or None."""
    runs = planned(settings, settings.pretrained(operator, size))
    results = jobs.run(pretrain, [run.job for run in runs], "pretraining", settings.workers, on_gpu=True, shared=True)
    done = list(zip(runs, results, strict=True))
    if size is None:
        return None
    name = f"{operator}-{size}"
    with temporary_sibling(PRETRAINED / name) as models, temporary_sibling(CHECKPOINTS / name) as earlier:
        for run, (folder, result) in done:
            log, final = result["log"], pretrained(operator, size, run.seed)
            publish(run, log, folder / "model", log[-1]["step"], models / final.name, final)
            for step, part in run.places.items():
                final = checkpoint(operator, size, run.seed, step)
                publish(run, log, folder / part, step, earlier / final.relative_to(CHECKPOINTS / name), final)
    losses = [row for run, (_, result) in done for row in rows(run, result["log"])]
    observations.write(observations.FOLDER / f"pretraining-{name}.csv", losses)
    return {"seconds_of_jobs": round(sum(result["seconds"] for _, (_, result) in done), 1)}
