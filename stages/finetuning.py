"""Fine-tunes one operator at one size by one protocol on every GLUE task, for every pair of seeds.

Reads data/pretraining/OPERATOR-SIZE, data/tasks and the tokenizer of data/tokens. Writes
data/observations/finetuning-PROTOCOL-OPERATOR-SIZE.csv (every metric of every task x pre-training seed x fine-tuning
seed) and below data/finetuning/PROTOCOL-OPERATOR-SIZE/ predictions.parquet (every prediction behind them) and models/,
the fine-tuned weights for the tasks on which noise and cross_domain test them.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from stages import command, jobs, observations
from stages.benchmarks.glue import TASKS
from stages.benchmarks.metrics import scores
from stages.files import temporary_sibling, write_atomically
from stages.observations import Observation
from stages.settings import Settings, load_settings

TASK_FOLDER = Path("data/tasks")
TOKENIZER = Path("data/tokens/tokenizer/tokenizer.json")
SOURCES = (
    Path("stages/attention/bert.py"),
    Path("stages/attention/operators.py"),
    Path("stages/attention/products.py"),
    Path("stages/learning/finetuning.py"),
    Path("stages/learning/optimisation.py"),
)


def finetune(run: dict, folder: Path) -> dict:
    """Job: one task, one pre-trained model, one seed.

    Leaves predictions.json, a list a validation split, and the fine-tuned model where `keep` asks for it.
    """
    from stages.learning.finetuning import finetune

    tables = {
        split.evaluated_on: TASK_FOLDER / run["task"] / f"{split.name}.parquet"
        for split in TASKS[run["task"]].validation_splits
    }
    train = TASK_FOLDER / run["task"] / "train.parquet"
    kept = folder / "model" if run["keep"] else None
    predictions, seconds = finetune(run, Path(run["weights"]), TOKENIZER, train, tables, kept)
    write_atomically(folder / "predictions.json", json.dumps(predictions))
    return {"seconds": seconds}


def planned(settings: Settings, protocol: str, operator: str, size: str) -> list[dict]:
    """One run for every task, pre-training seed and fine-tuning seed."""
    training = settings.finetuning[protocol].model_dump(mode="json")
    seeds = training.pop("seeds")
    models = sorted((Path("data/pretraining") / f"{operator}-{size}").glob("seed-*"), key=_seed_of)
    return [
        {
            "name": f"{operator}-{size} {task}, pre-training seed {_seed_of(weights)}, seed {seed}",
            "task": task,
            "labels": TASKS[task].outputs,
            "keep": task in (*settings.noise.tasks, *settings.cross_domain.tasks),
            "weights": str(weights),
            "pretraining_seed": _seed_of(weights),
            "seed": seed,
            "training": training,
        }
        for task in settings.tasks.names
        for weights in models
        for seed in seeds
    ]


def _seed_of(weights: Path) -> int:
    return int(weights.name.removeprefix("seed-"))


def model_name(run: dict) -> str:
    return f"{run['task']}-pretraining-{run['pretraining_seed']}-finetuning-{run['seed']}"


def job(run: dict) -> jobs.Job:
    return jobs.Job(run["name"], run, (Path(run["weights"]), TASK_FOLDER / run["task"], TOKENIZER, *SOURCES))


def measured(
    run: dict, predictions: dict[str, list], labels: dict[str, np.ndarray], columns: dict
) -> list[Observation]:
    """Every metric of one run on every validation split; columns: what all its rows share."""
    return [
        Observation(
            stage="finetuning",
            task=run["task"],
            evaluated_on=evaluated_on,
            metric=metric,
            pretraining_seed=run["pretraining_seed"],
            finetuning_seed=run["seed"],
            value=value,
            n=len(predicted),
            **columns,
        )
        for evaluated_on, predicted in predictions.items()
        for metric, value in scores(run["task"], np.array(predicted), labels[evaluated_on]).items()
    ]


def examples(task: str) -> dict[str, pd.DataFrame]:
    """Validation tables (example_id, label) of a task, by what the papers call them."""
    return {
        split.evaluated_on: pd.read_parquet(
            TASK_FOLDER / task / f"{split.name}.parquet", columns=["example_id", "label"]
        )
        for split in TASKS[task].validation_splits
    }


def kept(run: dict, predictions: dict[str, list], tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
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
    parser = command.parser("finetuning", __doc__)
    parser.add_argument("protocol", help="a name of `finetuning` in params.yaml")
    parser.add_argument("operator", help="a name of `operators` in params.yaml")
    parser.add_argument("size", help="a name of `models` in params.yaml")
    columns = vars(parser.parse_args())
    name = "-".join(columns.values())
    settings = load_settings()
    with observations.provenance(f"finetuning-{name}") as record:
        runs = planned(settings, **columns)
        results = jobs.run(finetune, [job(run) for run in runs], "finetuning", settings.workers)
        record["seconds_of_runs"] = round(sum(result["seconds"] for _, result in results), 1)
        rows, frames = [], []
        for run, (folder, _) in zip(runs, results, strict=True):
            predictions, tables = json.loads((folder / "predictions.json").read_text()), examples(run["task"])
            rows += measured(run, predictions, {key: table["label"] for key, table in tables.items()}, columns)
            frames.append(kept(run, predictions, tables))
        with temporary_sibling(Path("data/finetuning") / name) as output:
            output.mkdir()
            pd.concat(frames).to_parquet(output / "predictions.parquet", index=False)
            for run, (folder, _) in zip(runs, results, strict=True):
                if run["keep"]:
                    shutil.copytree(folder / "model", output / "models" / model_name(run))
        observations.write(observations.FOLDER / f"finetuning-{name}.csv", rows)


if __name__ == "__main__":
    command.run(main)
