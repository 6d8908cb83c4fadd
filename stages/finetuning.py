"""Fine-tunes one operator at one size by one protocol on every GLUE task, for every pair of seeds.

Reads data/pretraining/OPERATOR-SIZE, data/tasks and the tokenizer of data/tokens. Writes
data/observations/finetuning-PROTOCOL-OPERATOR-SIZE.csv (every metric of every task x pre-training seed x fine-tuning
seed) and below data/finetuning/PROTOCOL-OPERATOR-SIZE/ predictions.parquet (every prediction behind them) and models/,
the fine-tuned weights for the tasks on which noise and cross_domain test them.
"""

import shutil
from pathlib import Path

import pandas as pd

from stages import command, observations
from stages.files import place, temporary_sibling
from stages.learning import runs
from stages.learning.kept import FOLDER, model_folder
from stages.settings import Settings, load_settings


def planned(settings: Settings, protocol: str, operator: str, size: str) -> list[dict]:
    """One run for every task, pre-training seed and fine-tuning seed."""
    training = settings.finetuning[protocol].model_dump(mode="json")
    seeds = training.pop("seeds")
    name = f"{operator}-{size}"
    kept = (*settings.noise.tasks, *settings.cross_domain.tasks)
    return [
        runs.planned(name, weights, pretraining_seed, task, seed, training, keep=task in kept)
        for task in settings.tasks.names
        for pretraining_seed, weights in runs.seed_folders(Path("data/pretraining") / name)
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


def main() -> None:
    columns = command.model_arguments(command.parser("finetuning", __doc__))
    name = "-".join(columns.values())
    settings = load_settings()
    with observations.provenance(f"finetuning-{name}") as record:
        plan = planned(settings, **columns)
        results = runs.run_all(plan, settings.workers)
        record["seconds_of_runs"] = round(sum(result["seconds"] for _, result in results), 1)
        tables = {task: runs.examples(task) for task in settings.tasks.names}
        rows, frames = [], []
        for run, (folder, _) in zip(plan, results, strict=True):
            predictions = runs.predictions_of(folder)
            rows += runs.measured(run, predictions, tables[run["task"]], {"stage": "finetuning", **columns})
            frames.append(predictions_table(run, predictions, tables[run["task"]]))
        with temporary_sibling(FOLDER / name) as output:
            output.mkdir()
            pd.concat(frames).to_parquet(output / "predictions.parquet", index=False)
            for run, (folder, _) in zip(plan, results, strict=True):
                if run["keep"]:
                    target = model_folder(output, run["task"], run["pretraining_seed"], run["seed"])
                    shutil.copytree(folder / "model", target, copy_function=place)
        observations.write(observations.FOLDER / f"finetuning-{name}.csv", rows)


if __name__ == "__main__":
    command.run(main)
