"""Tests models fine-tuned on one task on the others (Kowsher et al., section 3 and Table 6).

Reads data/finetuning and data/tasks. Writes data/observations/cross_domain.csv with task = trained on, evaluated_on =
tested on. The tasks' classes meet in one question, whether two texts say the same: `cross_domain.positive_labels` names
the classes that say yes. Metrics: accuracy (on the task's own classes where trained and tested on the same task, as on
the paper's diagonal), mapped_accuracy, balanced_accuracy and matthews_correlation of yes and no, and majority_accuracy,
what always giving the more frequent answer scores: a transfer that does no better shows a prior, not understanding.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, balanced_accuracy_score, matthews_corrcoef

from stages.benchmarks.glue import positive_classes, validation_tables
from stages.classification import kept_models
from stages.classification.kept_models import EvaluationRun
from stages.files.observations import Observation
from stages.files.paths import TOKENIZER
from stages.runner import model_jobs
from stages.schema.settings import Settings


def predict_all(run: EvaluationRun, folder: Path) -> dict:
    """Job: predicts every validation split of the tasks in `run.evaluated_on` with one fine-tuned model.

    Leaves nothing in `folder`, the job's own. Returns, by the name of each split in the papers, a list of the predicted
    class of every example: an index, as a float, among the classes of the task on which the model was fine-tuned.
    """
    from stages.classification.training import encode, predict  # loads torch, so it is left to the worker

    model = kept_models.load(run.folder)
    return {
        name: predict(model, encode(table, TOKENIZER, run.maximum_length), run.precision).tolist()
        for task in run.evaluated_on
        for name, table in validation_tables(task).items()
    }


def measures(predicted: np.ndarray, gold: np.ndarray, trained: str, tested: str, positive: dict) -> dict[str, float]:
    """Computes the metrics of one model on one table, as the module describes them.

    Args:
        predicted, gold: [examples], indices of the predicted classes of `trained`, and of the right ones of `tested`.
        trained, tested: the tasks that the model was fine-tuned on and that it is evaluated on.
        positive: by task, the set of the indices of the classes that say yes.

    Returns:
        Each metric by its name, as a fraction; the correlation is 0 where all answers, or all labels, agree.
    """
    answers = np.isin(predicted, list(positive[trained]))
    truth = np.isin(gold, list(positive[tested]))
    mapped = accuracy_score(truth, answers)
    return {
        "accuracy": accuracy_score(gold, predicted) if trained == tested else mapped,
        "mapped_accuracy": mapped,
        "balanced_accuracy": balanced_accuracy_score(truth, answers),
        "matthews_correlation": matthews_corrcoef(truth, answers),
        "majority_accuracy": max(truth.mean(), 1 - truth.mean()),
    }


def outputs(
    positive: dict[str, set[int]], done: list[tuple[EvaluationRun, Path, dict]]
) -> tuple[list[Observation], dict]:
    """Makes observations of every metric of all runs, given as (run, folder, result of `predict_all`), and an empty
    dict, which is added to the record of the stage. positive: as in `measures`.
    """
    rows = []
    for run, _, predictions in done:
        tables = [(task, *table) for task in run.evaluated_on for table in validation_tables(task).items()]
        for task, name, table in tables:
            gold = pd.read_parquet(table, columns=["label"])["label"].to_numpy()
            values = measures(np.array(predictions[name]), gold, run.task, task, positive)
            rows += [run.observed(name, metric, value, len(gold)) for metric, value in values.items()]
    return rows, {}


def planned(settings: Settings, models: list[tuple[str, str, str]]) -> list[EvaluationRun]:
    """Plans one run for every kept model of `models` (protocol, operator and size of each), task and pair of seeds."""
    tasks = settings.cross_domain.tasks
    return kept_models.planned(EvaluationRun, settings, "cross_domain", models, tasks, evaluated_on=tasks)


def main(
    settings: Settings, operator: str | None = None, size: str | None = None, protocol: str | None = None
) -> dict | None:
    """Returns {} for the record; given an operator (and a size, a protocol), does its jobs alone and returns None."""
    plan = planned(settings, settings.finetuned(operator, size, protocol))
    scored = partial(outputs, positive_classes(settings.cross_domain))
    return model_jobs.run(predict_all, plan, "cross_domain", settings.workers, scored, whole=not operator)
