"""Fine-tuning runs on GLUE as jobs, and what is measured of them: shared by the stages finetuning and convergence.

A run is one task, one pre-trained model and one seed. Its settings decide its result, so equal runs of both stages are
one job.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from stages.common.benchmarks.glue import TASKS, validation_tables
from stages.common.benchmarks.metrics import scores
from stages.plumbing import jobs
from stages.plumbing.files import TASK_FOLDER, TOKENIZER, write_atomically
from stages.plumbing.observations import Observation

STAGE = "finetuning"  # below data/jobs


def planned(
    name: str, weights: Path, pretraining_seed: int, task: str, seed: int, training: dict, keep: Path | None
) -> dict:
    """The settings of one run.

    Args:
        name: of the model.
        weights: its folder.
        pretraining_seed: from which it was pre-trained.
        task: of GLUE.
        seed: of the fine-tuning.
        training: a record of `finetuning`.
        keep: where the stage finetuning keeps the fine-tuned model; None where it does not.
    """
    return {
        "name": f"{name} {task}, pre-training seed {pretraining_seed}, seed {seed}",
        "task": task,
        "labels": TASKS[task].outputs,
        "keep": keep,
        "weights": str(weights),
        "pretraining_seed": pretraining_seed,
        "seed": seed,
        "training": training,
    }


def run_all(runs: list[dict], workers: int | str | None) -> list[tuple[Path, dict]]:
    """(folder, {seconds}) of every run; see `finetune` for what lies in the folder."""
    work = [
        jobs.Job(
            run["name"],
            {key: value for key, value in run.items() if key != "keep"},
            (Path(run["weights"]), TASK_FOLDER / run["task"], TOKENIZER),
            *((("model",), {"model": run["keep"]}) if run["keep"] else ()),
        )
        for run in runs
    ]
    return jobs.run(finetune, work, STAGE, workers, on_gpu=True)


def finetune(run: dict, folder: Path) -> dict:
    """Job: leaves predictions.json, a list a validation split, and the fine-tuned model where `leaves` names it."""
    from stages.common.classification.training import finetune

    tables = validation_tables(run["task"])
    train = TASK_FOLDER / run["task"] / "train.parquet"
    kept = folder / "model" if "model" in run.get("leaves", ()) else None
    predictions, seconds = finetune(run, Path(run["weights"]), TOKENIZER, train, tables, kept)
    write_atomically(folder / "predictions.json", json.dumps(predictions))
    return {"seconds": seconds}


def predictions_of(folder: Path) -> dict[str, list]:
    """What `finetune` has left: predictions by validation split."""
    return json.loads((folder / "predictions.json").read_text())


def examples(task: str) -> dict[str, pd.DataFrame]:
    """Validation tables (example_id, label) of a task, by what the papers call them."""
    return {
        evaluated_on: pd.read_parquet(table, columns=["example_id", "label"])
        for evaluated_on, table in validation_tables(task).items()
    }


def measured(
    run: dict, predictions: dict[str, list], tables: dict[str, pd.DataFrame], columns: dict
) -> list[Observation]:
    """Every metric of one run on every validation split; columns: what all its rows share, `stage` among them."""
    return [
        Observation(
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
        for metric, value in scores(run["task"], np.array(predicted), tables[evaluated_on]["label"]).items()
    ]
