"""Scores answers that need no neural network, on every task.

Reads data/tasks. Writes data/observations/baselines.csv: every metric of every validation split, under these operators:
`most_frequent` gives every example the most frequent training answer, or the mean in a regression. For GLUE, further
baselines are fitted to the training examples of the networks: `bag_of_words`, `words_and_overlap` and `bigrams` are
linear models (words.py).
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from stages.baselines.words import FEATURES, predict_linear
from stages.benchmarks import answers
from stages.benchmarks.glue import TASKS, list_validation_tables
from stages.benchmarks.metrics import compute_metrics
from stages.files import observations
from stages.files.observations import Observation
from stages.files.paths import TASK_FOLDER
from stages.schema.settings import Settings


def main(settings: Settings) -> dict:
    """Writes the observations of all tasks; adds nothing to the record of the stage."""
    rows = []
    for task in settings.tasks.names:
        rows += score_classification(task)
    for task in settings.question_answering.tasks:
        # A model of squad2_triviaqa is tested on squad2.
        questions = task.split("_")[0]
        rows += score_question_answering(task, questions)
    observations.write(observations.find_file("baselines"), rows)
    return {}


def score_classification(task: str) -> Iterator[Observation]:
    """Yields the scores of all baselines on all validation splits of a GLUE task; each baseline is fitted once."""
    train = pd.read_parquet(TASK_FOLDER / task / "train.parquet")
    splits = {name: pd.read_parquet(table) for name, table in list_validation_tables(task).items()}
    # The first level of the index is the split.
    examples = pd.concat(splits)
    # A column of predictions for each linear model.
    for name in FEATURES:
        examples[name] = predict_linear(task, train, examples, name)
    for evaluated_on in splits:
        split = examples.loc[evaluated_on]
        truth = split["label"].to_numpy()
        constant = score_constant(task, train["label"].to_numpy(), truth)
        yield from _list_observations("most_frequent", task, evaluated_on, constant, len(truth))
        for name in FEATURES:
            metrics = compute_metrics(task, split[name].to_numpy(), truth)
            yield from _list_observations(name, task, evaluated_on, metrics, len(truth))


def score_constant(task: str, train: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Scores the constant answer: the most frequent class of the training labels or, in a regression, the mean label.

    For F1, the constant answer is always the positive class. `train` and `truth` are labels [examples]. Returns the
    value of every metric of the task, by name, as a fraction.
    """
    classes = TASKS[task].labels
    # Of equally frequent classes, argmax takes the lowest.
    constant = np.bincount(train).argmax() if classes else train.mean()
    metrics = compute_metrics(task, np.full(len(truth), constant), truth)
    # F1 only counts the positive class, so a constant negative answer would get 0, less than a model that guesses.
    if "f1" in metrics:
        positive = compute_metrics(task, np.full(len(truth), 1), truth)
        metrics["f1"] = positive["f1"]
    return metrics


def score_question_answering(task: str, questions: str) -> Iterator[Observation]:
    """Yields the scores of the most frequent answer to the training questions, given to every validation question.

    The reported `task`, such as `squad2_triviaqa`, is tested on the set `questions`, such as `squad2`. Each training
    question counts with the first gold answer, normalised ("The Seine." is "seine"). An unanswerable question counts
    with the empty text.
    """
    folder = TASK_FOLDER / questions
    train = pd.read_parquet(folder / "train.parquet", columns=["answers"])
    first_answers = [answers.normalise_answer(gold[0]) if len(gold) else "" for gold in train["answers"]]
    # `mode` sorts equally frequent answers by code points.
    constant = pd.Series(first_answers).mode()[0]
    gold = pd.read_parquet(folder / "validation.parquet", columns=["answers"])["answers"]
    metrics = answers.compute_scores([constant] * len(gold), gold)
    yield from _list_observations("most_frequent", task, questions, metrics, len(gold))


def _list_observations(
    operator: str,
    task: str,
    evaluated_on: str,
    metrics: dict[str, float],
    examples: int,
) -> Iterator[Observation]:
    for metric, value in metrics.items():
        yield Observation(
            stage="baselines",
            operator=operator,
            size=None,
            task=task,
            evaluated_on=evaluated_on,
            metric=metric,
            value=value,
            n=examples,
        )
