"""Reads SQuAD 1.1 and 2.0 from the original files or the hub, and derives a stand-in for the training questions of 2.0.

The original distribution is squad/{train,dev}-{v1.1,v2.0}.json. A file NAME.subset.json replaces a missing NAME.json
and is marked as a subset.

A split becomes a frame with these columns:

- `example_id`, `context` and `question`: texts.
- `answers` and `starts`: lists of answers and of positions in the context, in characters from 0; empty for an
  unanswerable question.
- `article`: the title of the article with the context.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from stages.benchmarks.answers import normalise_answer
from stages.files import commits
from stages.files.quoting import quote_value
from stages.originals.tasks import find_squad, is_subset
from stages.schema.sections import Hub
from stages.tasks.examples import Examples, read_json

COLUMNS = ["example_id", "context", "question", "answers", "starts", "article"]

# One in three questions of the stand-in has no answer, as in SQuAD 2.0's training questions (43,498 of 130,319).
QUESTIONS_PER_UNANSWERABLE = 3


class Answer(msgspec.Struct):
    """A gold answer."""

    text: str
    answer_start: int


class Question(msgspec.Struct):
    """A question; version 1.1 lacks the key `is_impossible`."""

    id: str | int
    question: str
    answers: list[Answer]
    is_impossible: bool | None = None


class Paragraph(msgspec.Struct):
    """A paragraph with its questions."""

    context: str
    qas: list[Question]


class Article(msgspec.Struct):
    """An article of Wikipedia; all articles without a title count as a single article."""

    paragraphs: list[Paragraph]
    title: Any = ""


class File(msgspec.Struct):
    """A file of the original distribution."""

    data: list[Article]


class Spans(msgspec.Struct):
    """The gold answers of a question on the hub."""

    text: list[str]
    answer_start: list[int]


class HubRow(msgspec.Struct):
    """A question on the hub."""

    id: str | int
    context: str
    question: str
    answers: Spans
    title: Any = ""


def read_original(root: Path, name: str, split: str) -> Examples:
    """Reads a split, `train` or `validation`, of `squad1` or `squad2` from the original file.

    A ValueError names the file, and a question with a fault, such as an answer that does not stand in the context.
    """
    path = find_squad(root, name, split)
    rows = []
    for article in read_json(path, File).data:
        for paragraph in article.paragraphs:
            for question in paragraph.qas:
                texts, starts = _list_answers(question, path)
                rows.append((str(question.id), paragraph.context, question.question, texts, starts, str(article.title)))
    frame = check_rows(rows, str(path), unanswerable=name == "squad2")
    return Examples(frame, path.name, is_subset(path))


def _list_answers(question: Question, path: Path) -> tuple[list[str], list[int]]:
    """Returns the texts and the starts of the gold answers; two empty lists for an unanswerable question."""
    # The plausible answers of an unanswerable question do not count.
    if question.is_impossible:
        return [], []
    # Version 1.1 lacks the key `is_impossible`, so the value is `None`.
    if not question.answers and question.is_impossible is False:
        raise ValueError(
            f"{path}, question {quote_value(question.id)}: neither an answer nor is_impossible: true; fix the file"
        )
    texts = [answer.text for answer in question.answers]
    starts = [answer.answer_start for answer in question.answers]
    return texts, starts


def read_hub(hub: Hub, name: str, split: str) -> Examples:
    """Reads a split of SQuAD from the hub (rajpurkar/squad, squad_v2) or a local copy, like `read_original`."""
    columns = ("id", "context", "question", "answers")
    key = f"tasks.questions.hub.{name}"
    data, source = commits.load_split(hub.repository, hub.configuration, hub.revision, split, key, columns)
    rows = []
    for number, row in enumerate(data):
        try:
            asked = msgspec.convert(row, HubRow)
        except msgspec.ValidationError as error:
            raise ValueError(f"{key}: {source}, {split}, row {number}: {error}; name another repository") from None
        answers = asked.answers
        rows.append(
            (str(asked.id), asked.context, asked.question, answers.text, answers.answer_start, str(asked.title))
        )
    return Examples(check_rows(rows, source, unanswerable=name == "squad2"), source)


def check_rows(rows: Iterable[tuple], where: str, unanswerable: bool) -> pd.DataFrame:
    """Makes a frame of the questions of a split, and checks every question.

    Args:
        rows: (id, context, question, answers, starts, article) of every question.
        where: the file or dataset, for error messages.
        unanswerable: whether questions may have no answer.

    Raises:
        ValueError: there is no question, an id comes twice, or an answer is not at the given start.
    """
    frame = pd.DataFrame(list(rows), columns=COLUMNS)
    if frame.empty:
        raise ValueError(f"{where}: no question found; fetch the file again")
    repeated = frame["example_id"].duplicated()
    for row, again in zip(frame.itertuples(), repeated, strict=True):
        fault = "the id comes twice" if again else _find_fault(row, unanswerable)
        if fault:
            raise ValueError(
                f"{where}, question {quote_value(row.example_id)}: {fault}; fix the file or fetch the file again"
            )
    return frame


def _find_fault(row, unanswerable: bool) -> str | None:
    """Describes the fault in the answers of a question, a row of `check_rows`; `None` for a sound question."""
    if not row.answers and not unanswerable:
        return "no answer, but SQuAD 1.1 has only answerable questions"
    if len(row.answers) != len(row.starts):
        return f"{len(row.answers)} answers, but {len(row.starts)} values of answer_start"
    for text, start in zip(row.answers, row.starts, strict=True):
        if not text:
            return f"the answer at answer_start {start} is empty"
        # A negative start would count from the end.
        if start < 0 or not row.context.startswith(text, start):
            found = row.context[max(start, 0) :][: len(text)]
            return f"the context has {quote_value(found)} at answer_start {start}, not the answer {quote_value(text)}"
    return None


def derive_unanswerable(questions: Examples, seed: list[int]) -> Examples:
    """Derives a stand-in for the training questions of SQuAD 2.0: a third of the questions of 1.1 lose the answer.

    A drawn question moves to another paragraph, which holds no answer and shares the most, and the rarest, words with
    the question. A paragraph of the same article is preferred. The order of questions stays. The result is a subset.

    Raises:
        ValueError: every paragraph holds an answer of a drawn question.
    """
    # People wrote the real questions (Rajpurkar, Jia and Liang 2018, section 2). Words are compared in lower case,
    # without punctuation and articles.
    frame = questions.frame.copy()
    # By context, the normalised text. Spaces around the text let answers be found as whole words.
    texts = {context: f" {normalise_answer(context)} " for context in frame["context"].unique()}
    words = {context: set(text.split()) for context, text in texts.items()}
    # The number of paragraphs with each word.
    paragraph_counts = Counter(chain.from_iterable(words.values()))
    contexts_of = frame.drop_duplicates(["article", "context"]).groupby("article")["context"].agg(list)
    drawn = np.random.default_rng(seed).permutation(len(frame))
    for place in drawn[: len(frame) // QUESTIONS_PER_UNANSWERABLE]:
        row = frame.loc[place]
        # First from the same article, then from all articles.
        candidates = _list_contexts_without_answer(row, contexts_of[row["article"]], texts)
        candidates = candidates or _list_contexts_without_answer(row, list(texts), texts)
        if not candidates:
            raise ValueError(
                f"{questions.source}, question {quote_value(row['example_id'])}: every paragraph holds "
                "the answer, so no unanswerable question can be derived for SQuAD 2.0; give more paragraphs"
            )
        # Each word once, in the order of the question: the rounded sum depends on the order, which a set does not fix.
        asked = dict.fromkeys(normalise_answer(row["question"]).split())
        weights = []
        for context in candidates:
            # A word in N paragraphs counts 1 / N.
            weights.append(sum(1 / paragraph_counts[word] for word in asked if word in words[context]))
        # Of paragraphs with equal weights, argmax takes the first.
        frame.at[place, "context"] = candidates[int(np.argmax(weights))]
        frame.at[place, "answers"] = []
        frame.at[place, "starts"] = []
    source = (
        f"derived of {questions.source}: one question in {QUESTIONS_PER_UNANSWERABLE} moved to a paragraph without its "
        "answer"
    )
    return replace(questions, frame=frame, source=source, subset=True)


def _list_contexts_without_answer(row: pd.Series, contexts: list[str], texts: dict[str, str]) -> list[str]:
    """Lists the contexts, except the question's own context, that hold no answer of the question `row`.

    `texts` has the normalised text of every context, with a space at both ends.
    """
    answers = [f" {normalise_answer(answer)} " for answer in row["answers"]]
    found = []
    for context in contexts:
        if context != row["context"] and not any(answer in texts[context] for answer in answers):
            found.append(context)
    return found
