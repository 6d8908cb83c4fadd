"""Linear models on the words of an example: what can be answered without attention.

Each of FEATURES says what one such model sees of a pair of texts, or of a single text. What another model scores above
all of them comes from order over more than two words, from what words mean, or from how the two texts correspond.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

WORD = re.compile(r"\w+|[^\w\s]")  # a word, or one mark
PENALTY = 1.0  # scikit-learn's default, for both regressions; not tuned
ITERATIONS = 1000  # at most; the logistic regression converges in far fewer
Texts = tuple[str, str | None]


def predictions(train: pd.DataFrame, examples: pd.DataFrame, regression: bool, features: str) -> np.ndarray:
    """Fits a linear model to training examples and predicts the labels of others.

    Args:
        train: text_a, text_b (null for single sentences) and label of the training examples.
        examples: text_a and text_b of those to be predicted.
        regression: whether labels are real numbers (ridge regression) instead of classes (logistic regression).
        features: what the model sees, a name in FEATURES.

    Returns:
        [examples], the predicted classes or real numbers, in order.
    """
    if not regression and train["label"].nunique() == 1:  # of a few examples; a logistic regression needs two classes
        return np.full(len(examples), train["label"].iloc[0])
    vectorizer, seen = FEATURES[features]
    last = Ridge(alpha=PENALTY) if regression else LogisticRegression(C=1 / PENALTY, max_iter=ITERATIONS)
    fitted = make_pipeline(vectorizer(analyzer=seen), last).fit(pairs(train), train["label"])
    return fitted.predict(pairs(examples))


def words(text: str | None) -> list[str]:
    """Returns the words and punctuation marks of a text in lower case; an empty list for None."""
    return WORD.findall((text or "").lower())


def pairs(frame: pd.DataFrame) -> list[Texts]:
    """Returns the two texts of every example; the second is None for single sentences, whatever null the table has."""
    second = frame["text_b"].astype(object).where(frame["text_b"].notna(), None)
    return list(zip(frame["text_a"], second, strict=True))


def either(texts: Texts) -> list[str]:
    """Returns the words of both texts, without saying in which of them they stand."""
    return [*words(texts[0]), *words(texts[1])]


def overlap(texts: Texts) -> Iterator[str]:
    """Yields which words the first text has and, of a pair, which the second, which both and which only one has.

    Each is a text, such as "shared cat"; "number of shared words" and "... differing ..." come once for each of them.
    """
    first, second = set(words(texts[0])), set(words(texts[1]))
    yield from (f"first {word}" for word in first)
    if texts[1] is not None:
        yield from (f"second {word}" for word in second)
        yield from (f"shared {word}" for word in first & second)
        yield from (f"differing {word}" for word in first ^ second)
        yield from ["number of shared words"] * len(first & second)
        yield from ["number of differing words"] * len(first ^ second)


def neighbours(texts: Texts) -> Iterator[str]:
    """Yields the words of each text ("first cat") and the pairs of neighbours in it, where its ends are empty words."""
    for side, text in zip(("first", "second"), texts, strict=True):
        if text is not None:
            bounded = ["", *words(text), ""]
            yield from (f"{side} {word}" for word in bounded[1:-1])
            yield from (f"{side} {one} {other}" for one, other in pairwise(bounded))


FEATURES = {  # how features are weighed, and which an example has
    "bag_of_words": (TfidfVectorizer, either),
    "words_and_overlap": (CountVectorizer, overlap),
    "bigrams": (CountVectorizer, neighbours),
}
