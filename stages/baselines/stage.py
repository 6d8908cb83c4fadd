"""Scores answers that need no neural network, on every task.

Reads data/tasks. Writes data/observations/baselines.csv: every metric of every validation split, under the operators
`most_frequent` (the answer that the training examples have most often, of a regression their mean, given to every
example) and, for GLUE, fitted to the same training examples as the networks: `bag_of_words`, `words_and_overlap` and
`bigrams` (linear models, words.py) and `best_rule` (the best rule on one property of an example, rules.py).
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from stages.baselines import rules, words
from stages.benchmarks import answers
from stages.benchmarks.glue import TASKS, validation_tables
from stages.benchmarks.metrics import scores
from stages.files import observations
from stages.files.observations import Observation
from stages.files.paths import TASK_FOLDER
from stages.schema.settings import Settings

POSITIVE = 1  # the class that F1 counts


def main(settings: Settings) -> dict:
    """Writes the observations of all tasks; the run's record gets nothing more."""
    rows = [row for task in settings.tasks.names for row in classification(task)]
    tested = {task: task.split("_")[0] for task in settings.question_answering.tasks}  # squad2_triviaqa: squad2
    rows += [row for task, questions in tested.items() for row in question_answering(task, questions)]
    observations.write(observations.FOLDER / "baselines.csv", rows)
    return {}


def classification(task: str) -> Iterator[Observation]:
    """Yields the scores of all baselines on all validation splits of a GLUE task, for which each is fitted once."""
    train = pd.read_parquet(TASK_FOLDER / task / "train.parquet")
    splits = {name: pd.read_parquet(table) for name, table in validation_tables(task).items()}  # by the papers' column
    examples, regression = pd.concat(splits.values(), ignore_index=True), not TASKS[task].labels
    predicted = {"best_rule": rules.predictions(task, train, examples)}
    predicted |= {name: words.predictions(train, examples, regression, name) for name in words.FEATURES}
    start = 0
    for evaluated_on, split in splits.items():  # predictions are those of all splits, one after the other
        truth, place = split["label"].to_numpy(), slice(start, start := start + len(split))
        scored = {"most_frequent": constant_scores(task, train["label"].to_numpy(), truth)}
        scored |= {name: scores(task, answered[place], truth) for name, answered in predicted.items()}
        for operator, metrics in scored.items():
            yield from _rows(operator, task, evaluated_on, metrics, len(truth))


def constant_scores(task: str, train: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Scores one answer given to every example: the most frequent class of the training labels, or their mean.

    Of equally frequent classes, the lowest counts. F1 is that of the positive class alone, and 0 for an answer that
    never names it, although a model that guesses has more. For F1, the constant answer is therefore always that class.

    Args:
        task: the name of a task of GLUE.
        train, truth: [examples], labels of its training examples, which decide the answer, and of those scored.

    Returns:
        The value of every metric of the task, by name, as a fraction.
    """
    constant = np.bincount(train.astype(int)).argmax() if TASKS[task].labels else train.mean()
    metrics = scores(task, np.full(len(truth), constant), truth)
    if "f1" in metrics:
        metrics["f1"] = scores(task, np.full(len(truth), POSITIVE), truth)["f1"]
    return metrics


def question_answering(task: str, questions: str) -> Iterator[Observation]:
    """Yields the scores of the most frequent answer to the training questions, given to every validation question.

    task: the one that is reported. questions: the set of questions on which it is tested. Of a training question the
    first gold answer counts, in lower case, without punctuation and articles; for an unanswerable one, the empty text.
    """
    train, examples = (
        pd.read_parquet(TASK_FOLDER / questions / f"{split}.parquet", columns=["answers"])["answers"]
        for split in ("train", "validation")
    )
    counts = pd.Series([answers.normalised(gold[0]) if len(gold) else "" for gold in train]).value_counts()
    most = min(counts.index[counts == counts.max()])  # of equally frequent ones, the first by code points
    yield from _rows("most_frequent", task, questions, answers.scores([most] * len(examples), examples), len(examples))


def _rows(operator: str, task: str, evaluated_on: str, metrics: dict[str, float], number: int) -> Iterator[Observation]:
    """Yields one observation for each of `metrics`. number: how many examples were scored."""
    for metric, value in metrics.items():
        yield Observation(
            stage="baselines",
            operator=operator,
            size=None,
            task=task,
            evaluated_on=evaluated_on,
            metric=metric,
            value=value,
            n=number,
        )
