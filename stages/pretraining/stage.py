"""Pre-trains every operator at every size, once for every seed of `pretraining.seeds`.

Reads data/tokens. Writes data/pretraining/OPERATOR-SIZE/seed-N (a Hugging Face model folder, with tokenizer and card),
data/intermediate_models/OPERATOR-SIZE/seed-N/step-M (the same after the steps that `convergence` asks for) and
data/observations/pretraining.csv: training and validation loss by step. A killed run resumes from the last checkpoint
(data/jobs). data/live.csv has the curves of all runs during training: losses, learning rate, gradient norm, tokens a
second, share of the machine's peak. Given an operator (and a size), the stage does only the jobs of this operator and
writes no outputs; `dvc repro` then finds these jobs done.

Several GPUs share a run under `torchrun --nproc-per-node N -m stages pretraining OPERATOR SIZE` or `accelerate launch`.
"""

import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from stages.files.model_folders import complete_folder, render_card
from stages.files.observations import Observation
from stages.files.paths import (
    INTERMEDIATE_MODELS,
    LIVE,
    PRETRAINED,
    TOKENIZER,
    TOKENS,
    find_model_after,
    find_pretrained,
    name_curve,
)
from stages.files.storage import link_file, make_temporary_sibling
from stages.masked_lm.run import PretrainingRun
from stages.runner import model_jobs
from stages.schema.settings import REFERENCE, Settings


def pretrain(run: PretrainingRun, folder: Path) -> dict:
    """Job function: pre-trains a run on data/tokens, with losses in data/live.csv; returns `log` and `seconds`.

    `folder` gets the checkpoint and the trained models.
    """
    # torch is imported only in workers: planning does without torch
    from stages.pretraining.loop import train

    return train(run, TOKENS, folder, LIVE)


def make_observations(run: PretrainingRun, log: list[dict]) -> Iterator[Observation]:
    """Makes an observation of every loss and probe in the log of a run."""
    for entry in log:
        values = {name: entry[name] for name in ("training_loss", "validation_loss")} | entry["probes"]
        for metric, value in values.items():
            yield Observation(
                stage="pretraining",
                operator=run.operator,
                size=run.size,
                condition=f"step={entry['step']}",
                metric=metric,
                pretraining_seed=run.seed,
                value=value,
                n=entry["masked_tokens"] if metric == "validation_loss" else None,
            )


def plan_runs(settings: Settings, models: list[tuple[str, str]]) -> list[PretrainingRun]:
    """Plans a run for every model (operator, size) and every pre-training seed; the runs of a model stand together."""
    seeds = settings.pretraining.seeds
    # data/live.csv shows the curves of all runs of params.yaml, also if only a part is planned here
    curves = tuple(
        name_curve(operator, size, seed) for (operator, size), seed in product(settings.list_pretrained(), seeds)
    )
    plan = []
    for (operator, size), seed in product(models, seeds):
        # stage convergence fine-tunes from the models after these steps
        steps = settings.convergence.steps
        # from the untrained model of the reference (step 0), stage finetuning computes a baseline
        saved_steps = (0, *steps) if operator == REFERENCE else steps
        plan.append(
            PretrainingRun(
                operator=operator,
                size=size,
                model=settings.models[size],
                variant=settings.collect_operator_settings(operator),
                seed=seed,
                training=settings.pretraining,
                saved_steps=saved_steps,
                curves=curves,
            )
        )
    return plan


def publish_model(run: PretrainingRun, log: list[dict], source: Path, step: int, output: Path, final: Path) -> None:
    """Copies a model from `source`, in the folder of a job, to `output`, and adds the tokenizer and a card.

    `step` is the number of updates of the model, 0 for the initial weights; `output` is a temporary folder, and
    `final`, for the card, the later name.
    """
    text = (
        f"A masked-language model of {run.model.layers} layers, width {run.model.hidden} and {run.model.heads} heads "
        f"with the operator `{run.operator}`; everything around it is BERT as in Hugging Face Transformers. "
        f"Pre-trained for {step} of {log[-1]['step']} steps of {run.training.batch_size} sequences from seed "
        f"{run.seed}. The report of the run has the corpus, every setting and what was measured afterwards."
    )
    # the last validation loss at that step or before; initial weights are never evaluated
    before = [entry for entry in log if entry["step"] <= step]
    measured = {}
    if before:
        last = before[-1]
        # name of the data, part of the data, metric
        measured["held-out documents", f"after {last['step']} steps", "validation_loss"] = last["validation_loss"]
    title = f"BERT with {run.operator} attention"
    card = render_card(final, title, text, run.operator, run.variant, "fill-mask", measured)
    # hard links, where the file system has them
    shutil.copytree(source, output, copy_function=link_file)
    complete_folder(output, TOKENIZER, run.model.positions, card)


def write_outputs(done: list[tuple[PretrainingRun, Path, dict]]) -> model_jobs.Outputs:
    """Copies the models to data/pretraining and data/intermediate_models; returns observations and an empty record."""
    rows = []
    with make_temporary_sibling(PRETRAINED) as models, make_temporary_sibling(INTERMEDIATE_MODELS) as earlier:
        models.mkdir()
        earlier.mkdir()
        for run, folder, result in done:
            log = result["log"]
            final = find_pretrained(run.operator, run.size, run.seed)
            publish_model(run, log, folder / "model", log[-1]["step"], models / final.relative_to(PRETRAINED), final)
            # `name` is, for example, intermediate_models/step-100
            for step, name in run.saved_models.items():
                final = find_model_after(run.operator, run.size, run.seed, step)
                publish_model(run, log, folder / name, step, earlier / final.relative_to(INTERMEDIATE_MODELS), final)
            rows += make_observations(run, log)
    return rows, {}


def main(settings: Settings, operator: str | None = None, size: str | None = None) -> dict | None:
    """Does the jobs of these models, `None` for all; returns the entries of the record, or `None` for a part."""
    plan = plan_runs(settings, settings.list_pretrained(operator, size))
    return model_jobs.run(
        pretrain, plan, "pretraining", settings.workers, write_outputs, whole=not operator, shared=True
    )
