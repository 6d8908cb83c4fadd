"""Fine-tunes every operator at every size by every protocol on every GLUE task, for every pair of seeds.

Reads data/pretraining and data/checkpoints (of the reference the weights that its runs start from), data/tasks and the
tokenizer of data/tokens. Writes data/observations/finetuning.csv (every metric of every task x pre-training seed x
fine-tuning seed), data/predictions/PROTOCOL-OPERATOR-SIZE.parquet (every prediction behind them) and, below
data/finetuning/PROTOCOL-OPERATOR-SIZE/, the fine-tuned weights for the tasks on which noise and cross_domain test them.
Given an operator (and a size, a protocol), it does the jobs of these alone and writes no outputs.
"""

import shutil
from collections.abc import Iterator
from itertools import chain, groupby, product
from pathlib import Path

import pandas as pd

from stages.common.classification import runs
from stages.common.classification.kept_models import kept
from stages.plumbing import observations, results
from stages.plumbing.files import (
    CHECKPOINTS,
    FINETUNED,
    PREDICTIONS,
    PRETRAINED,
    TOKENIZER,
    place,
    seed_folders,
    temporary_sibling,
)
from stages.plumbing.model_folders import card, complete
from stages.plumbing.observations import NOT_PRETRAINED, Observation
from stages.plumbing.settings import REFERENCE, Settings


def planned(settings: Settings, models: list[tuple[str, str, str]]) -> list[tuple[dict, dict]]:
    """One run for every model, task, pre-training seed and fine-tuning seed, with the columns of its observations.

    The reference is fine-tuned from the weights that its pre-training starts from, too: what pre-training is worth.

    Args:
        settings: of params.yaml.
        models: protocol, operator and size of each.
    """
    plan = []
    for columns, name, starts in _starts(settings, models):
        training = settings.finetuning[columns["protocol"]].model_dump(mode="json")
        seeds, trained = training.pop("seeds"), columns["stage"] == "finetuning"
        for task, (pretraining_seed, weights), seed in product(settings.tasks.names, starts, seeds):
            place = kept(settings, columns["protocol"], name, task, pretraining_seed, seed) if trained else None
            plan.append((columns, runs.planned(name, weights, pretraining_seed, task, seed, training, place)))
    return plan


def _starts(settings: Settings, models: list[tuple[str, str, str]]) -> Iterator[tuple[dict, str, list]]:
    """Columns, name and weights by pre-training seed of every model, and then of what is not pre-trained."""
    untrained = []
    for protocol, operator, size in models:
        columns = {"stage": "finetuning", "protocol": protocol, "operator": operator, "size": size}
        weights = seed_folders(PRETRAINED / f"{operator}-{size}")
        yield columns, f"{operator}-{size}", weights
        if operator == REFERENCE and size == settings.sizes[0]:
            first = [(seed, CHECKPOINTS / folder.relative_to(PRETRAINED) / "step-0") for seed, folder in weights]
            columns = columns | {"stage": "baselines", "operator": NOT_PRETRAINED}
            untrained.append((columns, f"{NOT_PRETRAINED}-{size}", first))
    yield from untrained


def predictions_table(run: dict, predictions: dict[str, list], tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The predictions of one run as rows."""
    return pd.concat(
        pd.DataFrame(
            {
                "task": run["task"],
                "evaluated_on": evaluated_on,
                "pretraining_seed": run["pretraining_seed"],
                "finetuning_seed": run["seed"],
                "example_id": tables[evaluated_on]["example_id"],
                "prediction": predicted,
            }
        )
        for evaluated_on, predicted in predictions.items()
    )


def described(run: dict, rows: list[Observation], folder: Path, variant: dict) -> str:
    """Writes the card of the model of one run.

    Args:
        run: its settings.
        rows: what was measured of it.
        folder: where it will stand.
        variant: the settings of its operator.

    Returns:
        The text of README.md.
    """
    operator, task = rows[0].operator, run["task"]
    text = (
        f"A BERT with the operator `{operator}`, fine-tuned on the task `{task}` of GLUE from seed {run['seed']}; "
        f"its pre-training had seed {run['pretraining_seed']}. The report of the run has the data and every setting."
    )
    measured = {("validation examples", row.evaluated_on, row.metric): row.value for row in rows}
    title = f"BERT with {operator} attention on {task}"
    return card(folder, title, text, operator, variant, "text-classification", measured)


def keep_predictions(plan: list[tuple[dict, dict]], folders: list[Path], tables: dict) -> None:
    """Writes one file of predictions for every protocol, operator and size. tables: of `runs.examples`, by task."""
    with temporary_sibling(PREDICTIONS) as output:
        output.mkdir()
        for name, group in groupby(zip(plan, folders, strict=True), key=lambda each: name_of(each[0][0])):
            frames = [
                predictions_table(run, runs.predictions_of(folder), tables[run["task"]]) for (_, run), folder in group
            ]
            pd.concat(frames).to_parquet(output / f"{name}.parquet", index=False)


def keep_models(
    settings: Settings, plan: list[tuple[dict, dict]], folders: list[Path], measured: list[list[Observation]]
) -> None:
    """Copies the models that other stages test, with tokenizer and card. measured: what was found of each run."""
    with temporary_sibling(FINETUNED) as output:
        output.mkdir()
        for (_, run), folder, rows in zip(plan, folders, measured, strict=True):
            if final := run["keep"]:
                target = output / final.relative_to(FINETUNED)
                shutil.copytree(folder / "model", target, copy_function=place)
                text = described(run, rows, final, settings.variant(rows[0].operator))
                complete(target, TOKENIZER, run["training"]["maximum_length"], text)


def name_of(columns: dict) -> str:
    return f"{columns['protocol']}-{columns['operator']}-{columns['size']}"


def main(
    settings: Settings, operator: str | None = None, size: str | None = None, protocol: str | None = None
) -> dict | None:
    plan = planned(settings, settings.finetuned(operator, size, protocol))
    done = runs.run_all([run for _, run in plan], settings.workers)
    if operator:
        return None
    folders = [folder for folder, _ in done]
    tables = {task: runs.examples(task) for task in settings.tasks.names}
    measured = [
        runs.measured(run, runs.predictions_of(folder), tables[run["task"]], columns)
        for (columns, run), folder in zip(plan, folders, strict=True)
    ]
    keep_predictions(plan, folders, tables)
    keep_models(settings, plan, folders, measured)
    results.hand_on("finetuning", folders, without=("model",))
    observations.write(observations.FOLDER / "finetuning.csv", chain(*measured))
    return {"seconds_of_jobs": round(sum(result["seconds"] for _, result in done), 1)}
