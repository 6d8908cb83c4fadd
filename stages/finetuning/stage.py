"""Fine-tunes one operator at one size by one protocol on every GLUE task, for every pair of seeds.

Reads data/pretraining/OPERATOR-SIZE, data/tasks and the tokenizer of data/tokens. Writes
data/observations/finetuning-PROTOCOL-OPERATOR-SIZE.csv (every metric of every task x pre-training seed x fine-tuning
seed), data/predictions/PROTOCOL-OPERATOR-SIZE.parquet (every prediction behind them) and, below
data/finetuning/PROTOCOL-OPERATOR-SIZE/, the fine-tuned weights for the tasks on which noise and cross_domain test them.
"""

import shutil
from itertools import chain
from pathlib import Path

import pandas as pd

from stages.common.classification import runs
from stages.common.classification.kept_models import model_folder
from stages.plumbing import observations
from stages.plumbing.files import FINETUNED, PREDICTIONS, PRETRAINED, TOKENIZER, place, seed_folders, temporary_sibling
from stages.plumbing.model_folders import card, complete
from stages.plumbing.observations import Observation
from stages.plumbing.settings import Settings


def planned(settings: Settings, protocol: str, operator: str, size: str) -> list[dict]:
    """One run for every task, pre-training seed and fine-tuning seed."""
    training = settings.finetuning[protocol].model_dump(mode="json")
    seeds = training.pop("seeds")
    name = f"{operator}-{size}"
    kept = (*settings.noise.tasks, *settings.cross_domain.tasks)
    return [
        runs.planned(name, weights, pretraining_seed, task, seed, training, keep=task in kept)
        for task in settings.tasks.names
        for pretraining_seed, weights in seed_folders(PRETRAINED / name)
        for seed in seeds
    ]


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


def described(run: dict, rows: list[Observation], folder: Path) -> str:
    """The card of the model of one run. rows: what was measured of it. folder: where it stands."""
    operator, task = rows[0].operator, run["task"]
    text = (
        f"A BERT with the operator `{operator}`, fine-tuned on the task `{task}` of GLUE from seed {run['seed']}; "
        f"its pre-training had seed {run['pretraining_seed']}. The report of the run has the data and every setting."
    )
    measured = {(f"validation examples of {row.evaluated_on}", row.metric): row.value for row in rows}
    return card(folder, f"BERT with {operator} attention on {task}", text, operator, "text-classification", measured)


def main(settings: Settings, protocol: str, operator: str, size: str) -> dict:
    name = f"{protocol}-{operator}-{size}"
    plan = planned(settings, protocol, operator, size)
    results = runs.run_all(plan, settings.workers)
    tables = {task: runs.examples(task) for task in settings.tasks.names}
    columns = {"stage": "finetuning", "protocol": protocol, "operator": operator, "size": size}
    measured, frames = [], []
    for run, (folder, _) in zip(plan, results, strict=True):
        predictions = runs.predictions_of(folder)
        measured.append(runs.measured(run, predictions, tables[run["task"]], columns))
        frames.append(predictions_table(run, predictions, tables[run["task"]]))
    with temporary_sibling(PREDICTIONS / f"{name}.parquet") as path:
        pd.concat(frames).to_parquet(path, index=False)
    with temporary_sibling(FINETUNED / name) as output:
        output.mkdir()
        for run, (folder, _), rows in zip(plan, results, measured, strict=True):
            if run["keep"]:
                target = model_folder(output, run["task"], run["pretraining_seed"], run["seed"])
                shutil.copytree(folder / "model", target, copy_function=place)
                final = FINETUNED / name / target.name
                complete(target, TOKENIZER, run["training"]["maximum_length"], described(run, rows, final))
    observations.write(observations.FOLDER / f"finetuning-{name}.csv", chain(*measured))
    return {"seconds_of_jobs": round(sum(result["seconds"] for _, result in results), 1)}
