"""Fine-tunes every operator at every size by every protocol on every GLUE task, for every pair of seeds.

Reads data/pretraining, data/intermediate_models (the untrained weights of the reference), data/tasks and the tokenizer
of data/tokens. Writes data/observations/finetuning.csv (every metric of every task x pre-training seed x fine-tuning
seed), data/predictions/PROTOCOL-OPERATOR-SIZE.parquet (every prediction behind these metrics) and, below
data/finetuning/PROTOCOL-OPERATOR-SIZE/, the models fine-tuned on the tasks that noise and cross_domain test. Given an
operator (and a size, a protocol), the stage does only these jobs and writes no outputs.
"""

import shutil
from functools import partial
from itertools import chain, groupby, product
from pathlib import Path

import pandas as pd

from stages.benchmarks.glue import list_validation_tables
from stages.classification.job import finetune, measure_run, read_examples, read_predictions
from stages.classification.kept_models import find_kept_folder
from stages.classification.runs import FinetuningRun, ModelNames
from stages.files.model_folders import complete_folder, render_card
from stages.files.observations import NOT_PRETRAINED, Observation
from stages.files.paths import FINETUNED, PREDICTIONS, TOKENIZER, find_model_after, find_pretrained
from stages.files.storage import link_file, make_temporary_sibling
from stages.runner import model_jobs
from stages.schema.settings import REFERENCE, Settings


def plan_runs(settings: Settings, models: list[ModelNames]) -> list[FinetuningRun]:
    """Plans a run for every model, task, pre-training seed and fine-tuning seed; runs of a model are adjacent.

    At the first size, the reference `original` is also fine-tuned from untrained weights, which shows the worth of
    pre-training. The observations of these runs have the stage `baselines`, and no model is kept.
    """
    plan = []
    for model in models:
        plan += _plan_model(settings, "finetuning", model)
    # The untrained reference: a baseline for all operators.
    for protocol, operator, size in models:
        if operator == REFERENCE and size == settings.sizes[0]:
            plan += _plan_model(settings, "baselines", (protocol, NOT_PRETRAINED, size))
    return plan


def _plan_model(settings: Settings, stage: str, model: ModelNames) -> list[FinetuningRun]:
    """Plans the runs of a model; the operator NOT_PRETRAINED means untrained weights of the reference operator."""
    protocol, operator, size = model
    recipe = settings.finetuning[protocol]
    plan = []
    for task, pretraining_seed, seed in product(settings.tasks.names, settings.pretraining.seeds, recipe.seeds):
        # Step 0 of pre-training has the untrained weights, saved only for the reference.
        if operator == NOT_PRETRAINED:
            weights = find_model_after(REFERENCE, size, pretraining_seed, 0)
            keep = None
        else:
            weights = find_pretrained(operator, size, pretraining_seed)
            keep = find_kept_folder(settings, model, task, pretraining_seed, seed)
        run = FinetuningRun(
            task=task,
            pretraining_seed=pretraining_seed,
            seed=seed,
            weights=str(weights),
            keep=keep,
            training=recipe,
            columns={"stage": stage, "protocol": protocol, "operator": operator, "size": size},
        )
        plan.append(run)
    return plan


def _tabulate_predictions(run: FinetuningRun, folder: Path) -> pd.DataFrame:
    """Makes a table of the predictions of a run, a row for each example of each validation split."""
    tables = list_validation_tables(run.task)
    frames = []
    for evaluated_on, predicted in read_predictions(folder).items():
        columns = {
            "task": run.task,
            "evaluated_on": evaluated_on,
            "pretraining_seed": run.pretraining_seed,
            "finetuning_seed": run.seed,
            "example_id": read_examples(tables[evaluated_on])["example_id"],
            "prediction": predicted,
        }
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames)


def describe_model(run: FinetuningRun, rows: list[Observation], folder: Path, variant: dict) -> str:
    """Renders the model card (README.md) of a fine-tuned model from the scores `rows`.

    `folder` is the final folder of the model; `variant` has the settings of the operator.
    """
    operator = rows[0].operator
    text = (
        f"A BERT with the operator `{operator}`, fine-tuned on the task `{run.task}` of GLUE from seed {run.seed}; "
        f"its pre-training had seed {run.pretraining_seed}. The report of the run has the data and every setting."
    )
    measured = {("validation examples", row.evaluated_on, row.metric): row.value for row in rows}
    title = f"BERT with {operator} attention on {run.task}"
    return render_card(folder, title, text, operator, variant, "text-classification", measured)


def write_outputs(settings: Settings, done: list[tuple[FinetuningRun, Path, dict]]) -> model_jobs.Outputs:
    """Writes predictions and kept models; returns every metric of every run in `done`, and an empty record."""
    # Every output is a whole folder, which replaces the previous folder.
    with make_temporary_sibling(PREDICTIONS) as output:
        output.mkdir()
        for name, jobs_of_model in groupby(done, key=lambda entry: entry[0].model_name):
            frames = [_tabulate_predictions(run, folder) for run, folder, _ in jobs_of_model]
            pd.concat(frames).to_parquet(output / f"{name}.parquet", index=False)
    # Scores are computed before the model cards, which report scores.
    measured = [measure_run(run, folder) for run, folder, _ in done]
    with make_temporary_sibling(FINETUNED) as output:
        output.mkdir()
        for (run, folder, _), rows in zip(done, measured, strict=True):
            if run.keep:
                # The same place in the temporary folder; files become hard links, where possible.
                target = output / run.keep.relative_to(FINETUNED)
                shutil.copytree(folder / "model", target, copy_function=link_file)
                text = describe_model(run, rows, run.keep, settings.collect_operator_settings(run.operator))
                complete_folder(target, TOKENIZER, run.training.maximum_length, text)
    return chain(*measured), {}


def main(
    settings: Settings, operator: str | None = None, size: str | None = None, protocol: str | None = None
) -> dict | None:
    """Runs all jobs and returns entries of the stage's record; given an operator, runs only the operator's jobs."""
    plan = plan_runs(settings, settings.list_finetuned(operator, size, protocol))
    write = partial(write_outputs, settings)
    return model_jobs.run(finetune, plan, "finetuning", settings.workers, write, whole=not operator)
