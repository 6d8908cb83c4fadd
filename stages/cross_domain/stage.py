"""Tests models fine-tuned on a task on the other tasks (Kowsher et al., section 3 and Table 6).

Reads data/finetuning and data/tasks. Writes data/observations/cross_domain.csv; the column task names the task of the
fine-tuning, evaluated_on the tested task. All classes are mapped to the same question, whether two texts say the same:
`cross_domain.positive_labels` names the classes that mean yes. Metrics: accuracy (of the task's own classes if both
tasks are the same, as on the paper's diagonal), mapped_accuracy, balanced_accuracy and matthews_correlation of yes and
no, and majority_accuracy, of always giving the more frequent answer: a transfer that does no better shows a prior, not
understanding.
"""

from functools import partial
from pathlib import Path

import numpy as np

from stages.benchmarks.glue import find_positive_classes, list_validation_tables
from stages.classification.job import read_examples
from stages.classification.kept_models import load_kept_model, plan_evaluations
from stages.classification.runs import EvaluationRun, ModelNames
from stages.files.paths import TOKENIZER
from stages.runner import model_jobs
from stages.schema.settings import Settings


def predict_all(run: EvaluationRun, folder: Path) -> dict:
    """Job: predicts the validation splits of the tasks in `run.evaluated_on` with a fine-tuned model.

    Returns the predicted classes by split: indices, as floats, among the classes of the task of the fine-tuning.
    """
    # Only the worker loads torch.
    from stages.classification.training import encode_table, predict_examples

    model = load_kept_model(run.folder)
    predictions = {}
    for task in run.evaluated_on:
        for split, table in list_validation_tables(task).items():
            examples = encode_table(table, TOKENIZER, run.maximum_length)
            predictions[split] = predict_examples(model, examples, run.precision).tolist()
    return predictions


def compute_metrics(
    predicted: np.ndarray,
    gold: np.ndarray,
    trained: str,
    tested: str,
    positive: dict[str, set[int]],
) -> dict[str, float]:
    """Computes the metrics, fractions by name, of a model that was fine-tuned on `trained` and evaluated on `tested`.

    `predicted` [examples] are class indices of `trained`, `gold` [examples] of `tested`; `positive` has, by task, the
    indices of the classes that mean yes.
    """
    # Imported here, because planning needs no scores, and the import takes a second.
    from sklearn.metrics import accuracy_score, balanced_accuracy_score, matthews_corrcoef

    # Answers of the model and right answers to the question whether both texts say the same: yes (true) or no.
    answers = np.isin(predicted, list(positive[trained]))
    truth = np.isin(gold, list(positive[tested]))
    mapped = accuracy_score(truth, answers)
    # The correlation is 0 if all answers, or all labels, agree.
    return {
        "accuracy": accuracy_score(gold, predicted) if trained == tested else mapped,
        "mapped_accuracy": mapped,
        "balanced_accuracy": balanced_accuracy_score(truth, answers),
        "matthews_correlation": matthews_corrcoef(truth, answers),
        "majority_accuracy": max(truth.mean(), 1 - truth.mean()),
    }


def write_outputs(positive: dict[str, set[int]], done: list[tuple[EvaluationRun, Path, dict]]) -> model_jobs.Outputs:
    """Computes the metrics of all runs from the predictions; the stage's record gets no entries.

    `positive` has, by task, the indices of the classes that mean yes.
    """
    rows = []
    for run, _, predictions in done:
        for task in run.evaluated_on:
            for split, table in list_validation_tables(task).items():
                # Labels are classes of the tested task; predictions are classes of the task of the fine-tuning.
                gold = read_examples(table)["label"].to_numpy()
                metrics = compute_metrics(np.array(predictions[split]), gold, run.task, task, positive)
                rows += run.make_observations(split, metrics, len(gold))
    return rows, {}


def plan_runs(settings: Settings, models: list[ModelNames]) -> list[EvaluationRun]:
    """Plans a run for every model that stage `finetuning` keeps of `models` (protocol, operator, size)."""
    tasks = settings.cross_domain.tasks
    return plan_evaluations(EvaluationRun, settings, "cross_domain", models, tasks, evaluated_on=tasks)


def main(
    settings: Settings,
    operator: str | None = None,
    size: str | None = None,
    protocol: str | None = None,
) -> dict | None:
    """Runs all jobs and returns entries of the stage's record; given an operator, runs only the operator's jobs."""
    plan = plan_runs(settings, settings.list_finetuned(operator, size, protocol))
    # The classes that mean yes are looked up before any job runs, because an unknown label is an error.
    write = partial(write_outputs, find_positive_classes(settings.cross_domain))
    return model_jobs.run(predict_all, plan, "cross_domain", settings.workers, write, whole=not operator)
