"""Fine-tuning runs on GLUE as jobs, and what is measured of them: shared by the stages finetuning and convergence.

A run is one task, one pre-trained model and one seed. Its content decides its result, so equal runs of both stages are
one job.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from stages.benchmarks.glue import validation_tables
from stages.benchmarks.metrics import scores
from stages.classification.run import FinetuningRun
from stages.plumbing.files import TASK_FOLDER, TOKENIZER, read_once, write_atomically
from stages.plumbing.observations import Observation


def finetune(run: FinetuningRun, folder: Path) -> dict:
    """Job: leaves predictions.json, a list a validation split, and the fine-tuned model where it is kept."""
    from stages.classification.training import finetune

    train, kept = TASK_FOLDER / run.task / "train.parquet", folder / "model" if run.keep else None
    predictions, seconds = finetune(run, TOKENIZER, train, validation_tables(run.task), kept)
    write_atomically(folder / "predictions.json", json.dumps(predictions))
    return {"seconds": seconds}


def predictions_of(folder: Path) -> dict[str, list]:
    """The predictions that `finetune` has written, by validation split."""
    return json.loads((folder / "predictions.json").read_text())


@read_once(16)
def examples(table: Path) -> pd.DataFrame:
    """The examples (example_id, label) of a table of a task."""
    return pd.read_parquet(table, columns=["example_id", "label"])


def measured(run: FinetuningRun, folder: Path) -> list[Observation]:
    """Every metric of one run on every validation split. folder: in which its job has left the predictions."""
    tables = validation_tables(run.task)
    return [
        run.observed(evaluated_on, metric, value, len(predicted))
        for evaluated_on, predicted in predictions_of(folder).items()
        for metric, value in scores(run.task, np.array(predicted), examples(tables[evaluated_on])["label"]).items()
    ]
