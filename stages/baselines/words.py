"""A bag of words: what a linear model makes of the words of an example, without their order.

It sees which words the first text has, which the second has, which both have, and which one has and the other has not.
What a pre-trained model scores above it comes from order, from what words mean, or from how the two texts correspond.
"""

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline

WORD = re.compile(r"\w+|[^\w\s]")
PENALTY = 1.0  # scikit-learn's default, for both regressions; not tuned
ITERATIONS = 1000  # at most; the logistic regression converges in far fewer


def predictions(train: pd.DataFrame, examples: pd.DataFrame, regression: bool) -> np.ndarray:
    """Fits a linear model to training examples and predicts the labels of others.

    Args:
        train: text_a, text_b (null for single sentences) and label of the training examples.
        examples: text_a and text_b of those to be predicted.
        regression: whether labels are real numbers (ridge regression) instead of classes (logistic regression).

    Returns:
        One prediction for every example, in order.
    """
    if not regression and train["label"].nunique() == 1:  # of a few examples; a logistic regression needs two classes
        return np.full(len(examples), train["label"].iloc[0])
    fitted = _model(regression).fit(_pairs(train), train["label"])
    return fitted.predict(_pairs(examples))


def features(pair: tuple[str, str | None]) -> Iterator[str]:
    """Names what the model sees of a pair of texts, or of one text where the second is None."""
    first, second = ({*WORD.findall((text or "").lower())} for text in pair)
    yield from (f"first {word}" for word in first)
    if pair[1] is not None:
        yield from (f"second {word}" for word in second)
        yield from (f"shared {word}" for word in first & second)
        yield from (f"differing {word}" for word in first ^ second)
        yield from ["number of shared words"] * len(first & second)
        yield from ["number of differing words"] * len(first ^ second)


def _model(regression: bool) -> Pipeline:
    last = Ridge(alpha=PENALTY) if regression else LogisticRegression(C=1 / PENALTY, max_iter=ITERATIONS)
    return make_pipeline(CountVectorizer(analyzer=features), last)


def _pairs(frame: pd.DataFrame) -> list[tuple[str, str | None]]:
    second = frame["text_b"].astype(object).where(frame["text_b"].notna(), None)
    return list(zip(frame["text_a"], second, strict=True))
