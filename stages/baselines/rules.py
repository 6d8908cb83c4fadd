"""Rules on a single property of an example: the answer is the most frequent label of training examples with the value.

In a regression the answer is the mean label. A task that such a rule solves does not test the ability after which the
task is named.
"""

import numpy as np
import pandas as pd

from stages.baselines.words import list_texts, split_words
from stages.benchmarks.glue import TASKS
from stages.benchmarks.metrics import compute_metrics

# Training examples that a value needs for its own answer, because fewer examples agree by chance. Other values get the
# constant answer.
SEEN = 5

# The question word that asks for the same, by word.
ASKED = {
    "who": "who",
    "where": "where",
    "when": "when",
    "why": "why",
    "how": "how",
    "way": "how",
    "reason": "why",
    "time": "when",
    "place": "where",
}

# "t" is the end of "don't".
NEGATIONS = {"not", "no", "never", "t"}


def predict_by_best_rule(task: str, train: pd.DataFrame, examples: pd.DataFrame) -> np.ndarray:
    """Fits a rule on each property to training examples, and predicts by the rule with the best training score.

    A rule gives each value of a property, such as the first word, the most frequent label of training examples with
    that value. Of equal rules the first counts, of equally frequent classes the lowest.

    Args:
        task: the name of a task of GLUE.
        train: `text_a`, `text_b` (null for single sentences) and `label` of the training examples.
        examples: `text_a` and `text_b` of the other examples.

    Returns:
        [examples], the predicted classes or, in a regression, means of training labels.
    """
    labels = train["label"].reset_index(drop=True)
    choose = _find_most_frequent if TASKS[task].labels else "mean"
    constant = labels.agg(choose)
    seen = _describe_all(train)
    unseen = _describe_all(examples)
    best = -np.inf
    predicted = np.empty(0)
    for name in seen:
        groups = labels.groupby(seen[name])
        answers = groups.agg(choose)[groups.size() >= SEEN]
        fitted = np.array([answers.get(value, constant) for value in seen[name]])
        score = np.mean(list(compute_metrics(task, fitted, labels.to_numpy()).values()))
        if score > best:
            best = score
            predicted = np.array([answers.get(value, constant) for value in unseen[name]])
    return predicted


def _find_most_frequent(labels: pd.Series) -> int:
    """Returns the most frequent class, the lowest of equally frequent classes."""
    return labels.mode().iloc[0]


def _describe_all(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the properties of every example: a row for each example, a column for each property."""
    rows = []
    for first, second in list_texts(frame):
        rows.append(describe_example(split_words(first), split_words(second)))
    # Of dtype object, because a property may be a pair.
    return pd.DataFrame(rows, dtype=object)


def describe_example(first: list[str], second: list[str]) -> dict:
    """Describes an example by properties, such as `number of shared words`, for rules on a single property.

    First, last and question word are words of a single text; for a pair, whether both texts agree in the word.

    Args:
        first: words and marks, in lower case, of the first text.
        second: words and marks of the second text, empty for a single sentence.
    """
    shared = {*first} & {*second}
    differing = {*first} ^ {*second}
    union = {*first} | {*second}
    words = {}
    for name, find in (("first word", _find_first), ("last word", _find_last), ("question word", _find_question_word)):
        words[name] = find(first) == find(second) if second else find(first)
    return {
        **words,
        "number of shared words": len(shared),
        "number of differing words": len(differing),
        # Of the Jaccard index.
        "shared words in tenths": round(10 * len(shared) / max(1, len(union))),
        "words of the second in the first": {*second} <= {*first},
        "first length": len(first),
        "second length": len(second),
        "difference in lengths": len(first) - len(second),
        "negation": (not NEGATIONS.isdisjoint(first), not NEGATIONS.isdisjoint(second)),
    }


def _find_first(text: list[str]) -> str:
    return text[0] if text else ""


def _find_last(text: list[str]) -> str:
    """Returns the last word of letters and digits, without the marks after the word, or ""."""
    return next((word for word in reversed(text) if word.isalnum()), "")


def _find_question_word(text: list[str]) -> str:
    """Returns the question word that a text asks with or for: "how" for "what is the best way to ...?", or ""."""
    return next((ASKED[word] for word in text if word in ASKED), "")
