"""Exact match and F1 of predicted answers, by the official definition of SQuAD.

Both are taken after normalisation (lower case; without ASCII punctuation, articles and spare white space), against the
gold answer that fits best. Rajpurkar et al. 2016, section 6.1; Rajpurkar, Jia and Liang 2018 for questions without an
answer, whose only gold answer is the empty text.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

ARTICLES = re.compile(r"\b(a|an|the)\b")
WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def scores(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> dict[str, float]:
    """Returns the means of `exact_match` and `f1` over questions, by these names, as fractions in [0, 1].

    predictions: one answer per question, empty for none. answers: the gold answers of every question; none for an
    unanswerable one. Gold answers of which normalisation leaves nothing do not count, as in version 2.0 (three
    questions of the development sets have a full stop among theirs). ValueError for no questions, or for
    another number of predictions.
    """
    if len(predictions) != len(answers) or not len(answers):
        raise ValueError(f"{len(predictions)} predictions for {len(answers)} questions; give one for each, and some")
    gold = [[answer for answer in alternatives if normalised(answer)] or [""] for alternatives in answers]
    pairs = list(zip(predictions, gold, strict=True))
    return {
        name: sum(max(measure(prediction, answer) for answer in right) for prediction, right in pairs) / len(pairs)
        for name, measure in (("exact_match", exact_match), ("f1", f1))
    }


def normalised(text: str) -> str:
    """Lowers the case, deletes punctuation, then articles, then spare white space. Accents and other signs stay."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(WITHOUT_PUNCTUATION)).split())


def exact_match(prediction: str, answer: str) -> float:
    """Scores 1.0 where prediction and answer are the same words after `normalised`, and 0.0 otherwise."""
    return float(normalised(prediction) == normalised(answer))


def f1(prediction: str, answer: str) -> float:
    """Computes the harmonic mean of precision and recall of words, as often as they occur; 1.0 if both have none."""
    predicted, gold = normalised(prediction).split(), normalised(answer).split()
    if not predicted or not gold:
        return float(predicted == gold)
    common = (Counter(predicted) & Counter(gold)).total()
    return 2 * common / (len(predicted) + len(gold))
