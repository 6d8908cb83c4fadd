"""Fine-tuning runs on GLUE as jobs, and what is measured of them: shared by the stages finetuning and convergence.

A run is one task, one pre-trained model and one seed. Its settings decide its result, so equal runs of both stages are
one job.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from stages.benchmarks.glue import validation_tables
from stages.benchmarks.metrics import scores
from stages.classification.run import FinetuningRun
from stages.plumbing import jobs
from stages.plumbing.files import TASK_FOLDER, TOKENIZER, write_atomically
from stages.plumbing.observations import Observation
from stages.plumbing.training_sections import Finetuning

STAGE = "finetuning"  # below data/jobs


def planned(
    name: str, weights: Path, pretraining_seed: int, task: str, seed: int, training: Finetuning, **further: Any
) -> FinetuningRun:
    """One run.

    Args:
        name: of the model.
        weights: its folder.
        pretraining_seed: from which it was pre-trained.
        task: of GLUE.
        seed: of the fine-tuning.
        training: the recipe.
        further: `columns` and `keep` of the run.
    """
    return FinetuningRun(
        name=f"{name} {task}, pre-training seed {pretraining_seed}, seed {seed}",
        task=task,
        weights=str(weights),
        pretraining_seed=pretraining_seed,
        seed=seed,
        training=training,
        **further,
    )


def run_all(runs: list[FinetuningRun], workers: int | str | None) -> list[tuple[Path, dict]]:
    """(folder, {seconds}) of every run; see `finetune` for what lies in the folder."""
    return jobs.run(finetune, [run.job for run in runs], STAGE, workers, on_gpu=True)


def finetune(run: FinetuningRun, folder: Path) -> dict:
    """Job: leaves predictions.json, a list a validation split, and the fine-tuned model where it is kept."""
    from stages.classification.training import finetune

    train, kept = TASK_FOLDER / run.task / "train.parquet", folder / "model" if run.keep else None
    predictions, seconds = finetune(run, TOKENIZER, train, validation_tables(run.task), kept)
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


def measured(run: FinetuningRun, predictions: dict[str, list], tables: dict[str, pd.DataFrame]) -> list[Observation]:
    """Every metric of one run on every validation split."""
    return [
        Observation(
            task=run.task,
            evaluated_on=evaluated_on,
            metric=metric,
            pretraining_seed=run.pretraining_seed,
            finetuning_seed=run.seed,
            value=value,
            n=len(predicted),
            **run.columns,
        )
        for evaluated_on, predicted in predictions.items()
        for metric, value in scores(run.task, np.array(predicted), tables[evaluated_on]["label"]).items()
    ]
