"""TriviaQA's reading-comprehension form (RC), turned into questions with answer spans, as SQuAD's are.

Original distribution: triviaqa/qa/{wikipedia,web}-{train,dev}.json and the documents in triviaqa/evidence/{wikipedia,
web}; NAME.subset.json stands in for NAME.json. TriviaQA marks no spans, and Kowsher et al. do not say how they made
them. Here a question gives one example: its first document (Wikipedia pages, then search results in their order) whose
first words hold an alias of the answer; the span is the first place there where any alias stands, whatever its case.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path, PurePosixPath

import msgspec

from stages.files import commits
from stages.schema.sections import Hub
from stages.tasks.examples import Examples, decoded, find_file, is_subset
from stages.tasks.squad import STEMS, as_rows

PARTS = ("wikipedia", "web")
PAGES = {"EntityPages": "wikipedia", "SearchResults": "web"}  # key of a question's documents: their folder of evidence
HUB_PAGES = {"entity_pages": "wiki_context", "search_results": "search_context"}  # column: the key of the texts in it
WORD = re.compile(r"\S+")


class Answer(msgspec.Struct):
    Aliases: list[str]


class Page(msgspec.Struct):
    Filename: str


class Entry(msgspec.Struct):
    QuestionId: str
    Question: str
    Answer: Answer
    EntityPages: list[Page] = []
    SearchResults: list[Page] = []


class File(msgspec.Struct):
    """A file of questions of the original distribution."""

    Data: list[Entry]


def read_original(root: Path, split: str, words: int) -> Examples:
    """Reads a split of TriviaQA from its original files, of the parts that are there.

    Args:
        root: the folder that has the folder `triviaqa`.
        split: a key of STEMS, `train` or `validation`.
        words: how many words at the beginning of a document are searched and become the context.

    Raises:
        ValueError: there is no such file, one is not of the form of File, a document cannot be read, or no question has
            its answer in those words. The message names the file, and the question at fault.
    """
    folder = root / "triviaqa"
    stems = [f"{part}-{STEMS[split]}" for part in PARTS]
    paths = [path for stem in stems if (path := find_file([folder / "qa"], stem, ".json"))]
    if not paths:
        raise ValueError(
            f"triviaqa, split {split}: {folder / 'qa'} has neither wikipedia-{STEMS[split]}.json nor "
            f"web-{STEMS[split]}.json; unpack TriviaQA's RC data there, or take triviaqa from tasks.questions.names"
        )
    entries = (entry for path in paths for entry in _entries(path, folder / "evidence"))
    subset = len(paths) < len(PARTS) or any(map(is_subset, paths))
    return _with_spans(entries, " and ".join(path.name for path in paths), words, subset)


def read_hub(hub: Hub, split: str, words: int) -> Examples:
    """Reads a split of TriviaQA from the Hugging Face hub (mandarjoshi/trivia_qa).

    Args:
        hub: the dataset; any configuration but `rc`, the one with both parts and all their documents, is a subset.
        split, words: as in `read_original`.

    Raises:
        ValueError: the dataset cannot be had or lacks a column, or no question has its answer in those words.
    """
    columns = ("question_id", "question", "answer", *HUB_PAGES)
    key = "tasks.questions.hub.triviaqa"
    data, source = commits.dataset(hub.repository, hub.configuration, hub.revision, split, key, columns)
    entries = (
        (
            row["question_id"],
            row["question"],
            row["answer"]["aliases"],
            (text for pages, texts in HUB_PAGES.items() for text in row[pages][texts]),
        )
        for row in data
    )
    return _with_spans(entries, f"{source}, {hub.configuration}", words, hub.configuration != "rc")


def _with_spans(entries: Iterable[tuple], source: str, words: int, subset: bool) -> Examples:
    """Makes examples with spans. entries: as `_entries` yields them, lazy documents included.

    Left out and counted: questions without an alias in the first `words` words of any document, and, since a question
    can be in both parts, every entry of it but one. The first entry with the answer makes the example.
    """
    examples: dict[str, tuple | None] = {}  # by the question's id; None: no document so far has the answer
    again = 0
    for name, question, aliases, documents in entries:
        again += name in examples
        if not examples.get(name):
            examples.pop(name, None)  # so that the question stands where its answer is found
            examples[name] = None
            for document in documents:
                context = first_words(document, words)
                if answer := first_alias(context, aliases):  # the id, here the last, stands for SQuAD's article
                    examples[name] = (name, context, question, [answer[0]], [answer.start()], name)
                    break
    kept = list(filter(None, examples.values()))
    without = len(examples) - len(kept)
    counts = {f"no answer in the first {words} words of a document": without, "in both parts": again}
    reason = "; ".join(f"{count} {text}" for text, count in counts.items() if count)
    if without and not kept:
        raise ValueError(f"{source}: {reason}, and none with one; raise tasks.questions.triviaqa_words")
    return Examples(as_rows(kept, source, False), source, subset, without + again, reason)


def first_words(text: str, count: int) -> str:
    """Returns the text up to the end of its word number `count` (at least 1); all of it where it has fewer words."""
    last = next(islice(WORD.finditer(text), count - 1, None), None)
    return text[: last.end()] if last else text


def first_alias(text: str, aliases: Iterable[str]) -> re.Match | None:
    """Finds the first alias in a text, as whole words in any case, the longest that begins there; None without one."""
    # a regular expression takes the first alternative that fits; by letters, too, because a set has no fixed order
    ordered = sorted({alias.strip() for alias in aliases} - {""}, key=lambda alias: (-len(alias), alias))
    if not ordered:  # without alternatives, the expression would match the empty text
        return None
    return re.search(rf"(?<!\w)(?:{'|'.join(map(re.escape, ordered))})(?!\w)", text, re.IGNORECASE)


def _entries(path: Path, evidence: Path) -> Iterator[tuple]:
    """Yields (id, question, aliases of the answer, documents) of every question of a file. evidence: their folder.

    `documents` reads the files lazily: use it before the next question, or an error names the wrong one. ValueError
    for a file that is not of the form of File, and for a document outside `evidence` or that cannot be read.
    """
    for entry in decoded(path, File).Data:
        where = f"{path}, question {entry.QuestionId}"
        pages = [(part, page.Filename) for key, part in PAGES.items() for page in getattr(entry, key)]
        for _, name in pages:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise ValueError(f"{where}: the Filename {name!r} leads out of the evidence; fetch the file again")
        documents = (_text(evidence / part / name, where) for part, name in pages)
        yield entry.QuestionId, entry.Question, entry.Answer.Aliases, documents


def _text(path: Path, where: str) -> str:
    """Reads a document; ValueError where it cannot be read. where: file and question that name it, for the message."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a name that no file can have
        raise ValueError(f"{where}: its document {path} cannot be read ({error}); fetch the evidence again") from None
