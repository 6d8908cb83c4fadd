"""Tests models fine-tuned on one task on the others (Kowsher et al., section 3 and Table 6).

Reads data/finetuning and data/tasks. Writes data/observations/cross_domain.csv with task = trained on, evaluated_on =
tested on. The tasks' classes meet in one question, whether two texts say the same: `cross_domain.positive_labels` names
the classes that say yes. Metrics: accuracy (on the task's own classes where trained and tested on the same task, as the
paper's diagonal), mapped_accuracy, balanced_accuracy and matthews_correlation of the yes and no answers, and
majority_accuracy, what always giving the more frequent answer scores: a transfer that does no better shows a prior, not
understanding. Given an operator (and a size, a protocol), it does the jobs of these alone and writes no outputs.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, balanced_accuracy_score, matthews_corrcoef

from stages.benchmarks.glue import positive_classes, validation_tables
from stages.classification import kept_models
from stages.plumbing import jobs, observations, results
from stages.plumbing.files import TASK_FOLDER, TOKENIZER
from stages.plumbing.observations import Observation
from stages.plumbing.settings import Settings
from stages.plumbing.testing_sections import CrossDomain


def predict_all(run: dict, folder: Path) -> dict:
    """Job: the classes that one fine-tuned model predicts on every table of `run`, a list of each."""
    from stages.classification.training import encode, predict

    model = kept_models.load(Path(run["model"]))
    return {
        evaluated_on: predict(model, encode(Path(table), TOKENIZER, run["maximum_length"]), run["precision"]).tolist()
        for evaluated_on, table in run["tables"].items()
    }


def tables(tasks: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """(task, table) by what the papers call the validation split."""
    return {
        evaluated_on: (task, str(table)) for task in tasks for evaluated_on, table in validation_tables(task).items()
    }


def measures(predicted: np.ndarray, gold: np.ndarray, trained: str, tested: str, positive: dict) -> dict[str, float]:
    """The metrics of one model on one table; predicted in the classes of `trained`, gold in those of `tested`."""
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


def rows(run: dict, predictions: dict[str, list], mapping: CrossDomain, columns: dict) -> list[Observation]:
    """Every metric of one model on every table; columns: what all rows of the stage share."""
    positive = positive_classes(mapping)
    result = []
    for evaluated_on, (tested, table) in tables(mapping.tasks).items():
        gold = pd.read_parquet(table, columns=["label"])["label"].to_numpy()
        values = measures(np.array(predictions[evaluated_on]), gold, run["task"], tested, positive)
        result += [
            Observation(
                stage="cross_domain",
                task=run["task"],
                evaluated_on=evaluated_on,
                metric=metric,
                pretraining_seed=run["pretraining_seed"],
                finetuning_seed=run["finetuning_seed"],
                value=float(value),
                n=len(gold),
                **columns,
            )
            for metric, value in values.items()
        ]
    return result


def planned(settings: Settings, models: list[tuple[str, str, str]]) -> list[tuple[dict, dict]]:
    """One job for every kept model of `models` (protocol, operator, size), with the columns of its observations."""
    tasks = settings.cross_domain.tasks
    read = {key: table for key, (_, table) in tables(tasks).items()}
    return kept_models.planned(settings, models, tasks, tables=read)


def main(
    settings: Settings, operator: str | None = None, size: str | None = None, protocol: str | None = None
) -> dict | None:
    wanted = settings.cross_domain
    plan = planned(settings, settings.finetuned(operator, size, protocol))
    folders = tuple(TASK_FOLDER / task for task in wanted.tasks)
    work = [jobs.Job(run["name"], run, (Path(run["model"]), *folders, TOKENIZER)) for _, run in plan]
    done = jobs.run(predict_all, work, "cross_domain", settings.workers, on_gpu=True)
    if operator:
        return None
    measured = [
        row
        for (columns, run), (_, result) in zip(plan, done, strict=True)
        for row in rows(run, result, wanted, columns)
    ]
    results.hand_on("cross_domain", [folder for folder, _ in done])
    observations.write(observations.FOLDER / "cross_domain.csv", measured)
    return {}
