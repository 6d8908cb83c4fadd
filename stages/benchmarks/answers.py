"""Exact match and F1 of predicted answers, by the official definition of SQuAD.

Both metrics are taken after normalisation, against the gold answer that fits best: Rajpurkar et al. 2016, section 6.1.
The only gold answer of an unanswerable question is the empty text: Rajpurkar, Jia and Liang 2018.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

ARTICLES = re.compile(r"\b(a|an|the)\b")
WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def compute_scores(predictions: Sequence[str], answers: Sequence[Sequence[str]]) -> dict[str, float]:
    """Computes exact match and F1, averaged over questions, as fractions in [0, 1].

    Args:
        predictions: an answer to each question, empty for no answer.
        answers: the gold answers of each question, empty for an unanswerable question.

    Raises:
        ValueError: there is no question, or another number of predictions than of questions.
    """
    if len(predictions) != len(answers) or not len(answers):
        raise ValueError(
            f"{len(predictions)} predictions for {len(answers)} questions; give a prediction for every question, and "
            "at least one question"
        )
    totals = {"exact_match": 0.0, "f1": 0.0}
    for prediction, alternatives in zip(predictions, answers, strict=True):
        # A gold answer such as ".", of which normalisation leaves nothing, does not count. An unanswerable question has
        # the gold answer "".
        gold = [answer for answer in alternatives if normalise_answer(answer)] or [""]
        # The gold answer that fits best may differ between the metrics.
        totals["exact_match"] += max(compute_exact_match(prediction, answer) for answer in gold)
        totals["f1"] += max(compute_f1(prediction, answer) for answer in gold)
    return {name: total / len(answers) for name, total in totals.items()}


def normalise_answer(text: str) -> str:
    """Returns a text in lower case without punctuation, articles and spare white space: "The Seine." gives "seine"."""
    # In this order, as officially: "the-end" becomes "theend".
    without_punctuation = text.lower().translate(WITHOUT_PUNCTUATION)
    return " ".join(ARTICLES.sub(" ", without_punctuation).split())


def compute_exact_match(prediction: str, answer: str) -> float:
    """Returns 1.0 if prediction and answer are equal after normalisation ("The Seine." and "seine"), or 0.0."""
    return float(normalise_answer(prediction) == normalise_answer(answer))


def compute_f1(prediction: str, answer: str) -> float:
    """Computes the harmonic mean of precision and recall of words after normalisation; 1.0 for two empty texts.

    The prediction "red cat" and the answer "a cat" give 2/3: precision 1/2, recall 1.
    """
    predicted = normalise_answer(prediction).split()
    gold = normalise_answer(answer).split()
    if not predicted or not gold:
        return float(predicted == gold)
    # The number of shared words; a word that both texts have twice counts twice.
    common = (Counter(predicted) & Counter(gold)).total()
    # Equals 2 P R / (P + R) with precision P = common / len(predicted) and recall R = common / len(gold).
    return 2 * common / (len(predicted) + len(gold))
