"""Linear models on the words of an example: baselines without attention.

Each entry of FEATURES defines the features of a pair of texts, or of a single text, for a linear model. A higher score
of a neural network comes from the order of more than two words, from the meanings of words, or from the correspondence
of the two texts.
"""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from stages.benchmarks.glue import TASKS

Texts = tuple[str, str | None]


def predict_linear(task: str, train: pd.DataFrame, examples: pd.DataFrame, features: str) -> np.ndarray:
    """Fits a linear model to training examples and predicts the labels [examples] of other examples.

    The model is a logistic regression or, for a task whose labels are real numbers, a ridge regression. The frames have
    `text_a` and `text_b` (null for single sentences), `train` also `label`; `features` is a key of FEATURES.
    """
    labels = train["label"]
    vectorizer, extract = FEATURES[features]
    # Both regressions have the default penalty of scikit-learn, not tuned.
    model = Ridge()
    if TASKS[task].labels:
        # A logistic regression needs two classes. A small training set may have a single class.
        if labels.nunique() == 1:
            return np.full(len(examples), labels.iloc[0])
        # The logistic regression converges in far fewer iterations than this limit.
        model = LogisticRegression(max_iter=1000)
    pipeline = make_pipeline(vectorizer(analyzer=extract), model)
    pipeline.fit(_list_texts(train), labels)
    return pipeline.predict(_list_texts(examples))


def _split_words(text: str | None) -> list[str]:
    """Returns the words and marks of a text in lower case: ["a", "cart", "."] for "A cart."; no words for `None`."""
    return re.findall(r"\w+|[^\w\s]", (text or "").lower())


def _list_texts(frame: pd.DataFrame) -> list[Texts]:
    """Returns the two texts of every example; the second text of a single sentence is `None`."""
    second = frame["text_b"].astype(object)
    second = second.where(second.notna(), None)
    return list(zip(frame["text_a"], second, strict=True))


def _extract_words(texts: Texts) -> list[str]:
    """Returns the words of both texts: ["a", "cat", "cats"] for ("A cat", "cats")."""
    first, second = texts
    return _split_words(first) + _split_words(second)


def _extract_overlap(texts: Texts) -> list[str]:
    """Extracts the words of each text, and the shared and differing words of two texts."""
    # ("a cat", "cat") gives "first a", "first cat", "second cat", "shared cat", "number of shared words", "differing a"
    # and "number of differing words". Each shared or differing word adds "number of ... words" once, so that
    # CountVectorizer counts the words.
    first = set(_split_words(texts[0]))
    features = [f"first {word}" for word in first]
    if texts[1] is not None:
        second = set(_split_words(texts[1]))
        features += [f"second {word}" for word in second]
        for word in first & second:
            features += [f"shared {word}", "number of shared words"]
        for word in first ^ second:
            features += [f"differing {word}", "number of differing words"]
    return features


def _extract_neighbours(texts: Texts) -> list[str]:
    """Extracts the words of each text and the pairs of neighbouring words, with an empty word at both ends."""
    features = []
    # ("a cat", None) gives "first a", "first cat", "first  a", "first a cat" and "first cat ".
    for side, text in zip(("first", "second"), texts, strict=True):
        if text is not None:
            words = _split_words(text)
            features += [f"{side} {word}" for word in words]
            features += [f"{side} {word} {following}" for word, following in pairwise(["", *words, ""])]
    return features


# By name of the baseline: the weighting of features, and the features of an example.
FEATURES = {
    "bag_of_words": (TfidfVectorizer, _extract_words),
    "words_and_overlap": (CountVectorizer, _extract_overlap),
    "bigrams": (CountVectorizer, _extract_neighbours),
}
