"""The job that fine-tunes a model on a task of GLUE, for stages finetuning and convergence, and the scores."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from stages.benchmarks.glue import list_validation_tables
from stages.benchmarks.metrics import compute_metrics
from stages.classification.runs import FinetuningRun
from stages.files.observations import Observation
from stages.files.paths import TASK_FOLDER, TOKENIZER
from stages.files.storage import read_once, write_atomically


def finetune(run: FinetuningRun, folder: Path) -> dict:
    """Job: fine-tunes the model of a run and predicts every validation split of the task; returns seconds of training.

    The job leaves predictions.json and, if the run has a `keep`, the folder `model` in `folder`.
    """
    # Only the worker loads torch.
    from stages.classification.training import train_and_predict

    train = TASK_FOLDER / run.task / "train.parquet"
    kept = folder / "model" if run.keep else None
    predictions, seconds = train_and_predict(run, TOKENIZER, train, list_validation_tables(run.task), kept)
    write_atomically(folder / "predictions.json", json.dumps(predictions))
    return {"seconds": seconds}


def read_predictions(folder: Path) -> dict[str, list]:
    """Reads the predictions of `finetune`, a number per example, by validation split: {"mnli_m": [0.0, 2.0, ...]}."""
    return json.loads((folder / "predictions.json").read_text())


# The eight tasks have nine tables that are scored.
@read_once(16)
def read_examples(table: Path) -> pd.DataFrame:
    """Reads example_id and label of the table of a task; the frame is cached and must not be changed."""
    return pd.read_parquet(table, columns=["example_id", "label"])


def measure_run(run: FinetuningRun, folder: Path) -> list[Observation]:
    """Computes every metric of a fine-tuned model on every validation split, from the predictions in `folder`."""
    tables = list_validation_tables(run.task)
    rows = []
    for evaluated_on, predicted in read_predictions(folder).items():
        labels = read_examples(tables[evaluated_on])["label"]
        metrics = compute_metrics(run.task, np.array(predicted), labels)
        rows += run.make_observations(evaluated_on, metrics, len(predicted))
    return rows
