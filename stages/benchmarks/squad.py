"""SQuAD 1.1 and 2.0: their original files, the same on the hub, and a stand-in for the training questions of 2.0.

Original distribution: squad/{train,dev}-{v1.1,v2.0}.json. A file NAME.subset.json stands in for NAME.json and is marked
as a subset. Read, a split is a frame of example_id, context, question, answers (texts), starts (of the answers, in
characters of the context), both empty for an unanswerable question, and article, its title.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from stages.benchmarks.answers import normalised

COLUMNS = ("example_id", "context", "question", "answers", "starts")
VERSIONS = {"squad1": "v1.1", "squad2": "v2.0"}
STEMS = {"train": "train", "validation": "dev"}
MOVED = 3  # one in so many questions of the stand-in has no answer; of SQuAD 2.0's training questions 43,498 of 130,319


@dataclass(frozen=True)
class Questions:
    """frame: as the module describes. source: where it was read. dropped: questions that were left out, and why."""

    frame: pd.DataFrame
    source: str
    subset: bool = False
    dropped: int = 0
    reason: str = ""


def read_original(root: Path, name: str, split: str) -> Questions:
    """A split from `root`/squad or `root`. ValueError: file, and question or place in it, of a fault."""
    stem = f"{STEMS[split]}-{VERSIONS[name]}"
    path = find_file([root / "squad", root], stem)
    if path is None:
        remedy = "; `tasks.questions.squad2_training: derived` makes it of 1.1's" if stem == "train-v2.0" else ""
        raise ValueError(
            f"{name}, split {split}: neither {stem}.json nor {stem}.subset.json is in {root / 'squad'} or {root}; put "
            f"SQuAD's original files below data.root, or take {name} from tasks.questions.names{remedy}"
        )
    rows = as_rows(_questions(load(path), path), str(path), name == "squad2")
    return Questions(rows, path.name, path.name.endswith(".subset.json"))


def read_hub(repository: str, configuration: str | None, revision: str, name: str, split: str) -> Questions:
    """A split from the Hugging Face hub (rajpurkar/squad, squad_v2), or a local folder of the same layout."""
    data = hub_split(repository, configuration, revision, split, f"tasks.questions.hub.{name}")
    texts = ("id", "context", "question")
    rows = (
        (*(row[name] for name in texts), row["answers"]["text"], row["answers"]["answer_start"], row["title"])
        for row in data
    )
    return Questions(as_rows(rows, repository, name == "squad2"), repository)


def hub_split(repository: str, configuration: str | None, revision: str, split: str, key: str):
    """A split of a dataset of the hub. ValueError, naming the `key` of params.yaml, when it cannot be had."""
    import datasets

    try:
        return datasets.load_dataset(repository, configuration, split=split, revision=revision)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{key}: {repository} ({configuration}, {split}, {revision}) cannot be loaded ({error}); mend the name, or "
            "use another data.source"
        ) from None


def find_file(folders: Iterable[Path], stem: str) -> Path | None:
    """STEM.json in the first folder that has it, else its subset, folder by folder."""
    names = (f"{stem}.json", f"{stem}.subset.json")
    return next((path for folder in folders for path in (folder / name for name in names) if path.is_file()), None)


def load(path: Path) -> dict:
    """A JSON object. ValueError when the file is none, or cut short."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not whole JSON in UTF-8 ({error}); fetch the file again") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: holds a {type(content).__name__}, expected an object; fetch the file again")
    return content


def field(record: dict, key: str, kind: type, where: str):
    """record[key]. ValueError, naming `where`, when it is absent or of another kind."""
    if not isinstance(record, dict) or not isinstance(value := record.get(key), kind):
        found = type(record.get(key)).__name__ if isinstance(record, dict) and key in record else "nothing"
        raise ValueError(f"{where}: {key} is {found}, expected {kind.__name__}; fetch the file again")
    return value


def as_rows(rows: Iterable[tuple], where: str, unanswerable: bool) -> pd.DataFrame:
    """Checks ids and offsets. rows: (id, context, question, answers, starts, article).

    ValueError, naming `where` and the question: an id that comes twice, an answer that does not stand at its offset,
    no answer where `unanswerable` is false; and for no questions at all.
    """
    frame = pd.DataFrame(rows, columns=[*COLUMNS, "article"])
    if frame.empty:
        raise ValueError(f"{where}: no question; fetch the file again")
    for row in frame.itertuples():
        fault = _fault(row, unanswerable)
        if fault:
            raise ValueError(f"{where}, question {row.example_id}: {fault}; mend the file or fetch it again")
    repeated = frame["example_id"][frame["example_id"].duplicated()]
    if len(repeated):
        raise ValueError(f"{where}, question {repeated.iloc[0]}: the id comes twice; mend the file or fetch it again")
    return frame


def without_answer(questions: Questions, seed: list[int]) -> Questions:
    """A stand-in for SQuAD 2.0's training questions: a third of 1.1's, drawn with `seed`, lose their answer.

    Each of them moves to the paragraph that does not hold the answer and has most words of the question, rare ones
    counting more: of its own article, or, where that has none, of the whole file. The real ones were written by people
    (Rajpurkar, Jia and Liang 2018, section 2). ValueError when no paragraph is left for a question.
    """
    frame = questions.frame.copy()
    texts = {context: f" {normalised(context)} " for context in dict.fromkeys(frame["context"])}
    words = {context: set(text.split()) for context, text in texts.items()}
    holders = Counter(word for own in words.values() for word in own)
    of_article = defaultdict(list)
    for row in frame.drop_duplicates("context").itertuples():
        of_article[row.article].append(row.context)
    for i in np.random.default_rng(seed).permutation(len(frame))[: len(frame) // MOVED]:
        row = frame.iloc[i].to_dict()
        found = _elsewhere(row, of_article[row["article"]], texts) or _elsewhere(row, list(texts), texts)
        if not found:
            raise ValueError(
                f"{questions.source}, question {row['example_id']}: every paragraph holds its answer, so none can be "
                "derived for SQuAD 2.0; give more paragraphs"
            )
        asked = dict.fromkeys(normalised(row["question"]).split())
        weights = [sum(1 / holders[word] for word in asked if word in words[context]) for context in found]
        frame.at[i, "context"] = found[int(np.argmax(weights))]
        frame.at[i, "answers"], frame.at[i, "starts"] = [], []
    source = f"derived of {questions.source}: one question in {MOVED} moved to a paragraph without its answer"
    return replace(questions, frame=frame, source=source, subset=True)


def unanswerable_share(frame: pd.DataFrame) -> float | None:
    """The exact match of always answering nothing; None where every question has an answer."""
    return float((frame["answers"].str.len() == 0).mean()) or None


def _elsewhere(row: dict, contexts: list[str], texts: dict[str, str]) -> list[str]:
    """The contexts beside the question's own that hold none of its answers."""
    answers = [f" {normalised(answer)} " for answer in row["answers"]]
    others = [context for context in contexts if context != row["context"]]
    return [context for context in others if not any(answer in texts[context] for answer in answers)]


def _questions(content: dict, path: Path) -> Iterator[tuple]:
    for number, article in enumerate(field(content, "data", list, str(path)), 1):
        place = f"{path}, article {number}"
        title = field(article, "title", str, place)
        for paragraph_number, paragraph in enumerate(field(article, "paragraphs", list, place), 1):
            place = f"{path}, article {number}, paragraph {paragraph_number}"
            context = field(paragraph, "context", str, place)
            for question in field(paragraph, "qas", list, place):
                name = field(question, "id", str, place)
                where = f"{path}, question {name}"
                answers = [] if question.get("is_impossible") is True else field(question, "answers", list, where)
                texts = [field(answer, "text", str, where) for answer in answers]
                starts = [field(answer, "answer_start", int, where) for answer in answers]
                if not answers and question.get("is_impossible") is False:
                    raise ValueError(f"{where}: neither an answer nor is_impossible: true; mend the file")
                yield name, context, field(question, "question", str, where), texts, starts, title


def _fault(row, unanswerable: bool) -> str | None:
    if not row.answers and not unanswerable:
        return "no answer, which SQuAD 1.1 does not know"
    for text, start in zip(row.answers, row.starts, strict=True):
        found = row.context[start : start + len(text)] if start >= 0 else ""
        if not text or found != text:
            return f"the context has {found!r} at answer_start {start}, not the answer {text!r}"
    return None
