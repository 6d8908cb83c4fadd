"""Rules on one property of an example: the answer is what training examples with the same value have most often.

In a regression it is the mean of theirs. A task that one such rule solves does not ask for what it is named after.
"""

from collections.abc import Callable, Hashable

import numpy as np
import pandas as pd

from stages.baselines.words import pairs, words
from stages.benchmarks.glue import TASKS
from stages.benchmarks.metrics import scores

SEEN = 5  # training examples that a value needs for its own answer, as fewer agree by chance; others get that of all
ASKED = {word: word for word in ("who", "where", "when", "why", "how")} | {  # the question word that asks for each
    "way": "how", "reason": "why", "time": "when", "place": "where",
}  # fmt: skip
NEGATIONS = {"not", "no", "never", "t"}  # t: of "don't"
Property = Callable[[list[str], list[str]], Hashable]  # of lower-case words and marks of both texts; [] for no second


def _asked(text: list[str]) -> str:
    """Returns what the first word in ASKED asks for, "how" of "What is the best way to ...?"; "" if there is none."""
    return next((ASKED[word] for word in text if word in ASKED), "")


def _end(text: list[str]) -> str:
    """Returns the last word of letters and digits alone, so not the marks after it; "" where there is none."""
    return next((word for word in reversed(text) if word.isalnum()), "")


# Three are a property of a single text or, of a pair, whether its texts agree in it. In tenths: of the Jaccard index.
PROPERTIES: dict[str, Property] = {
    "first word": lambda first, second: first[:1] == second[:1] if second else "".join(first[:1]),
    "last word": lambda first, second: _end(first) == _end(second) if second else _end(first),
    "question word": lambda first, second: _asked(first) == _asked(second) if second else _asked(first),
    "number of shared words": lambda first, second: len({*first} & {*second}),
    "number of differing words": lambda first, second: len({*first} ^ {*second}),
    "shared words in tenths": lambda first, second: round(
        10 * len({*first} & {*second}) / max(1, len({*first} | {*second}))
    ),
    "words of the second in the first": lambda first, second: {*second} <= {*first},
    "first length": lambda first, second: len(first),
    "second length": lambda first, second: len(second),
    "difference in lengths": lambda first, second: len(first) - len(second),
    "negation": lambda first, second: (bool(NEGATIONS & {*first}), bool(NEGATIONS & {*second})),
}


def predictions(task: str, train: pd.DataFrame, examples: pd.DataFrame) -> np.ndarray:
    """Fits every rule to training examples and predicts others by the one with the best score on the training examples.

    The score is the mean of the metrics; of equal rules the first counts, of equally frequent classes the lowest.

    Args:
        task: the name of a task of GLUE.
        train: text_a, text_b (null for single sentences) and label of the training examples.
        examples: text_a and text_b of those to be predicted.

    Returns:
        One prediction for every example, in order: a class, or for a regression a mean of training labels.
    """
    typical = "mean" if not TASKS[task].labels else lambda labels: labels.mode().iloc[0]
    split = [[(words(one), words(other)) for one, other in pairs(frame)] for frame in (train, examples)]
    labels, best, predicted = train["label"].reset_index(drop=True), -np.inf, np.empty(0)
    constant = labels.agg(typical)
    for value_of in PROPERTIES.values():
        seen, unseen = (pd.Series([value_of(*texts) for texts in part], dtype=object) for part in split)
        groups = labels.groupby(seen)  # by the value of the property
        answers = groups.agg(typical)[groups.size() >= SEEN]
        fitted, answered = (np.array([answers.get(value, constant) for value in part]) for part in (seen, unseen))
        score = np.mean([*scores(task, fitted, labels.to_numpy()).values()])
        if score > best:
            best, predicted = score, answered
    return predicted
