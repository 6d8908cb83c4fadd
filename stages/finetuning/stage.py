"""Fine-tunes every operator at every size by every protocol on every GLUE task, for every pair of seeds.

Reads data/pretraining, data/checkpoints (the weights from which the pre-training of the reference starts), data/tasks
and the tokenizer of data/tokens. Writes data/observations/finetuning.csv (every metric of every task x pre-training
seed x fine-tuning seed), data/predictions/PROTOCOL-OPERATOR-SIZE.parquet (every prediction behind these metrics) and,
below data/finetuning/PROTOCOL-OPERATOR-SIZE/, the models fine-tuned on the tasks that noise and cross_domain test.
Given an operator (and a size, a protocol), it does the jobs of these alone and writes no outputs.
"""

import shutil
from collections.abc import Iterable
from functools import partial
from itertools import chain, groupby, product
from pathlib import Path

import pandas as pd

from stages.benchmarks.glue import validation_tables
from stages.classification import runs
from stages.classification.kept_models import kept
from stages.classification.runs import FinetuningRun
from stages.files.model_folders import card, complete
from stages.files.observations import NOT_PRETRAINED, Observation
from stages.files.paths import FINETUNED, PREDICTIONS, TOKENIZER, checkpoint, pretrained
from stages.files.storage import place, temporary_sibling
from stages.runner import model_jobs
from stages.schema.settings import REFERENCE, Settings


def planned(settings: Settings, models: list[tuple[str, str, str]]) -> list[FinetuningRun]:
    """Plans one run for every model, task, pre-training seed and fine-tuning seed; the runs of a model stand together.

    At the first size, the reference is also fine-tuned from the weights that its pre-training starts from, which shows
    what pre-training is worth. The observations of these runs name `baselines` as their stage, and no model is kept.
    models: protocol, operator and size of each.
    """
    untrained = [
        (protocol, NOT_PRETRAINED, size)
        for protocol, operator, size in models
        if (operator, size) == (REFERENCE, settings.sizes[0])
    ]
    plan = []
    for protocol, operator, size in [*models, *untrained]:
        trained, recipe = operator != NOT_PRETRAINED, settings.finetuning[protocol]
        columns = {"stage": "finetuning" if trained else "baselines"}
        columns |= {"protocol": protocol, "operator": operator, "size": size}
        for task, number, seed in product(settings.tasks.names, settings.pretraining.seeds, recipe.seeds):
            weights = pretrained(operator, size, number) if trained else checkpoint(REFERENCE, size, number, 0)
            keep = kept(settings, (protocol, operator, size), task, number, seed) if trained else None
            seeds = {"pretraining_seed": number, "seed": seed}
            plan.append(
                FinetuningRun(task=task, **seeds, weights=str(weights), keep=keep, training=recipe, columns=columns)
            )
    return plan


def _predictions_table(run: FinetuningRun, folder: Path) -> pd.DataFrame:
    """Makes one row of every prediction of a run. folder: where its job has left the predictions."""
    tables = validation_tables(run.task)
    return pd.concat(
        pd.DataFrame(
            {
                "task": run.task,
                "evaluated_on": evaluated_on,
                "pretraining_seed": run.pretraining_seed,
                "finetuning_seed": run.seed,
                "example_id": runs.examples(tables[evaluated_on])["example_id"],
                "prediction": predicted,
            }
        )
        for evaluated_on, predicted in runs.predictions_of(folder).items()
    )


def described(run: FinetuningRun, rows: list[Observation], folder: Path, variant: dict) -> str:
    """Returns the card of the model of one run, the text of its README.md.

    Args:
        run, rows: the run that trained the model, and its observations, at least one.
        folder: where the model will stand.
        variant: the settings of the operator by name, as `Settings.variant` gives them.
    """
    operator, task = rows[0].operator, run.task
    text = (
        f"A BERT with the operator `{operator}`, fine-tuned on the task `{task}` of GLUE from seed {run.seed}; "
        f"its pre-training had seed {run.pretraining_seed}. The report of the run has the data and every setting."
    )
    measured = {("validation examples", row.evaluated_on, row.metric): row.value for row in rows}
    title = f"BERT with {operator} attention on {task}"
    return card(folder, title, text, operator, variant, "text-classification", measured)


def outputs(settings: Settings, done: list[tuple[FinetuningRun, Path, dict]]) -> tuple[Iterable[Observation], dict]:
    """Writes the predictions of every protocol, operator and size, and the models that other stages test.

    done: every run, model by model, with the folder and the result of its job. Returns every metric of every run, and
    nothing for the record of the stage.
    """
    with temporary_sibling(PREDICTIONS) as output:
        output.mkdir()
        for name, jobs_of_model in groupby(done, key=lambda job: job[0].model):
            frames = [_predictions_table(run, folder) for run, folder, _ in jobs_of_model]
            pd.concat(frames).to_parquet(output / f"{name}.parquet", index=False)
    measured = [runs.measured(run, folder) for run, folder, _ in done]
    with temporary_sibling(FINETUNED) as output:
        output.mkdir()
        for (run, folder, _), rows in zip(done, measured, strict=True):
            if run.keep:
                target = output / run.keep.relative_to(FINETUNED)
                shutil.copytree(folder / "model", target, copy_function=place)  # hard links, where possible
                text = described(run, rows, run.keep, settings.variant(run.operator))
                complete(target, TOKENIZER, run.training.maximum_length, text)
    return chain(*measured), {}


def main(
    settings: Settings, operator: str | None = None, size: str | None = None, protocol: str | None = None
) -> dict | None:
    """Does the jobs of these models, None for all; returns what the record is to hold, None for a part of the jobs."""
    plan = planned(settings, settings.finetuned(operator, size, protocol))
    write = partial(outputs, settings)
    return model_jobs.run(runs.finetune, plan, "finetuning", settings.workers, write, whole=not operator)
