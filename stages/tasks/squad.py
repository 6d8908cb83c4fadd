"""SQuAD 1.1 and 2.0: their original files, the same on the hub, and a stand-in for the training questions of 2.0.

Original distribution: squad/{train,dev}-{v1.1,v2.0}.json. A file NAME.subset.json stands in for NAME.json and is marked
as a subset. Once read, a split is a frame with the columns example_id, context, question, answers (a list of texts),
starts (a list of their places in the context, in characters from 0) and article (the title of the one that the context
is from). The two lists are empty for an unanswerable question.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd

from stages.benchmarks.answers import normalised
from stages.files import commits
from stages.schema.sections import Hub
from stages.tasks.examples import Examples, decoded, is_subset, require_file

COLUMNS = ("example_id", "context", "question", "answers", "starts")
VERSIONS = {"squad1": "v1.1", "squad2": "v2.0"}
STEMS = {"train": "train", "validation": "dev"}
MOVED = 3  # one in so many questions of the stand-in has no answer; of SQuAD 2.0's training questions 43,498 of 130,319


class Answer(msgspec.Struct):
    text: str
    answer_start: int


class Question(msgspec.Struct):
    id: str
    question: str
    answers: list[Answer]
    is_impossible: bool | None = None  # version 1.1 lacks the key


class Paragraph(msgspec.Struct):
    context: str
    qas: list[Question]


class Article(msgspec.Struct):
    title: str
    paragraphs: list[Paragraph]


class File(msgspec.Struct):
    """A file of the original distribution."""

    data: list[Article]


def read_original(root: Path, name: str, split: str) -> Examples:
    """Reads a split of SQuAD from its original file.

    Args:
        root: the folder that has the file, in its folder `squad` or, failing that, in itself.
        name, split: a key of VERSIONS (`squad1` or `squad2`), and a key of STEMS (`train` or `validation`).

    Raises:
        ValueError: there is no such file, it is not of the form of File, or a question has a fault (as in `as_rows`, or
            no answer although its is_impossible is false). The message names the file and the place in it.
    """
    stem, remedy = f"{STEMS[split]}-{VERSIONS[name]}", f"take {name} from tasks.questions.names"
    if stem == "train-v2.0":
        remedy += "; `tasks.questions.squad2_training: derived` makes it of 1.1's"
    path = require_file([root / "squad", root], stem, ".json", f"{name}, split {split}", remedy)
    rows = []
    for article in decoded(path, File).data:
        for paragraph in article.paragraphs:
            for question in paragraph.qas:
                answers = [] if question.is_impossible else question.answers  # even if some are listed
                if not answers and question.is_impossible is False:
                    raise ValueError(
                        f"{path}, question {question.id}: neither an answer nor is_impossible: true; mend the file"
                    )
                spans = [answer.text for answer in answers], [answer.answer_start for answer in answers]
                rows.append((question.id, paragraph.context, question.question, *spans, article.title))
    return Examples(as_rows(rows, str(path), name == "squad2"), path.name, is_subset(path))


def read_hub(hub: Hub, name: str, split: str) -> Examples:
    """Reads a split of SQuAD from the Hugging Face hub (rajpurkar/squad, squad_v2), or from a local copy of it.

    Args:
        hub: repository, configuration and revision of the dataset.
        name, split: a key of VERSIONS (`squad1` or `squad2`), and a key of STEMS (`train` or `validation`).

    Raises:
        ValueError: the dataset cannot be had or lacks a column, or a question has a fault, as in `as_rows`.
    """
    columns = ("id", "context", "question", "answers", "title")
    key = f"tasks.questions.hub.{name}"
    data, source = commits.dataset(hub.repository, hub.configuration, hub.revision, split, key, columns)
    texts = columns[:3]
    rows = (
        (*(row[name] for name in texts), row["answers"]["text"], row["answers"]["answer_start"], row["title"])
        for row in data
    )
    return Examples(as_rows(rows, source, name == "squad2"), source)


def as_rows(rows: Iterable[tuple], where: str, unanswerable: bool) -> pd.DataFrame:
    """Makes a frame of questions, as the module describes it, with one row per question, and checks it.

    Args:
        rows: (id, context, question, answers, starts, article) of every question.
        where, unanswerable: their file or dataset, for the message of an error; whether questions may have no answer.

    Raises:
        ValueError: there is no question; an id comes twice; a question has more or fewer starts than answers, an answer
            that is empty or not at its start, or none although `unanswerable` is false. The message names the question.
    """
    frame = pd.DataFrame(list(rows), columns=[*COLUMNS, "article"])
    if frame.empty:
        raise ValueError(f"{where}: no question; fetch the file again")
    for row in frame.itertuples():
        if fault := _fault(row, unanswerable):
            raise ValueError(f"{where}, question {row.example_id}: {fault}; mend the file or fetch it again")
    repeated = frame["example_id"][frame["example_id"].duplicated()]
    if len(repeated):
        raise ValueError(f"{where}, question {repeated.iloc[0]}: the id comes twice; mend the file or fetch it again")
    return frame


def without_answer(questions: Examples, seed: list[int]) -> Examples:
    """Makes a stand-in for SQuAD 2.0's training questions: one in MOVED of 1.1's, drawn by `seed`, loses its answer.

    Such a question moves to the paragraph that holds none of its answers and has most words of the question, where a
    word that N paragraphs hold counts 1 / N; of equals, to the first. The paragraph is one of its own article or, where
    none qualifies there, of the whole file; where none does there either, a ValueError says so. Words are compared in
    lower case, without punctuation and articles. SQuAD 2.0's own questions were written by people (Rajpurkar, Jia and
    Liang 2018, section 2). All questions stay in their order; the result is marked as a subset.
    """
    frame = questions.frame.copy()
    texts = {context: f" {normalised(context)} " for context in frame["context"].unique()}  # spaces: whole words
    words = {context: set(text.split()) for context, text in texts.items()}
    holders = Counter(word for words_of_context in words.values() for word in words_of_context)  # paragraphs by word
    of_article = frame.drop_duplicates(["article", "context"]).groupby("article")["context"].agg(list)
    for i in np.random.default_rng(seed).permutation(len(frame))[: len(frame) // MOVED]:
        row = frame.iloc[i].to_dict()
        candidates = _elsewhere(row, of_article[row["article"]], texts) or _elsewhere(row, list(texts), texts)
        if not candidates:
            raise ValueError(
                f"{questions.source}, question {row['example_id']}: every paragraph holds its answer, so none can be "
                "derived for SQuAD 2.0; give more paragraphs"
            )
        question = dict.fromkeys(normalised(row["question"]).split())  # each word once; a set has no fixed order
        weights = [sum(1 / holders[word] for word in question if word in words[context]) for context in candidates]
        frame.at[i, "context"] = candidates[int(np.argmax(weights))]  # the index numbers the rows, so i is a label, too
        frame.at[i, "answers"], frame.at[i, "starts"] = [], []
    source = f"derived of {questions.source}: one question in {MOVED} moved to a paragraph without its answer"
    return replace(questions, frame=frame, source=source, subset=True)


def _elsewhere(row: dict, contexts: list[str], texts: dict[str, str]) -> list[str]:
    """Returns the contexts that hold none of the answers of `row`, without its own. texts: as in `without_answer`."""
    answers = [f" {normalised(answer)} " for answer in row["answers"]]
    others = [context for context in contexts if context != row["context"]]
    return [context for context in others if not any(answer in texts[context] for answer in answers)]


def _fault(row, unanswerable: bool) -> str | None:
    """Says what is wrong with a row of the frame, as itertuples gives it; None where nothing is."""
    if not row.answers and not unanswerable:
        return "no answer, which SQuAD 1.1 does not know"
    if len(row.answers) != len(row.starts):
        return f"{len(row.answers)} answers, but {len(row.starts)} values of answer_start"
    for text, start in zip(row.answers, row.starts, strict=True):
        there = row.context[start : start + len(text)] if start >= 0 else ""  # below 0 it would count from the end
        if not text or there != text:
            return f"the context has {there!r} at answer_start {start}, not the answer {text!r}"
    return None
