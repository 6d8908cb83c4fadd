"""Reads the reading-comprehension form of TriviaQA (RC), and finds answer spans like the spans of SQuAD.

The original distribution is triviaqa/qa/{wikipedia,web}-{train,dev}.json and the documents in
triviaqa/evidence/{wikipedia,web}; NAME.subset.json replaces a missing NAME.json.

TriviaQA marks no spans, and Kowsher et al. do not say how spans were made. Here a question gives a single example: the
first document (Wikipedia pages, then search results in order) whose first words hold an alias of the answer. The span
is the first occurrence of any alias there, in any case. Only `words` words of a document are searched and become the
context. A ValueError names the file, and the question at fault.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import msgspec

from stages.files import commits
from stages.files.quoting import quote_value
from stages.files.stand_ins import POINTERS, require_data
from stages.originals.tasks import PARTS, find_triviaqa, is_subset
from stages.schema.sections import Hub
from stages.tasks.examples import Examples, read_json
from stages.tasks.squad import check_rows

# An id, a question, the aliases of the answer, and the documents.
Candidate = tuple[str, str, list[str], Iterable[str]]


class Answer(msgspec.Struct):
    """The answer to a question."""

    Aliases: list[str]


class Page(msgspec.Struct):
    """The file name of a document."""

    Filename: str


class Entry(msgspec.Struct):
    """A question; Wikipedia pages and search results lie in separate folders of the evidence."""

    QuestionId: str | int
    Question: str
    Answer: Answer
    EntityPages: list[Page] = []
    SearchResults: list[Page] = []


class File(msgspec.Struct):
    """A file of questions of the original distribution."""

    Data: list[Entry]


def read_original(root: Path, split: str, words: int) -> Examples:
    """Reads a split of TriviaQA from the original files of the parts (wikipedia, web) that exist, in `root`/triviaqa.

    No question with the answer in the first words is an error, like files that are missing or cannot be read.
    """
    paths = find_triviaqa(root, split)
    # A missing part makes a subset, too.
    subset = len(paths) < len(PARTS) or any(map(is_subset, paths))
    source = " and ".join(path.name for path in paths)
    return _find_spans(_read_candidates(paths, root / "triviaqa" / "evidence"), source, words, subset)


def _read_candidates(paths: list[Path], evidence: Path) -> Iterator[Candidate]:
    # Documents are read only on use, because most questions need only the first document.
    for path in paths:
        for entry in read_json(path, File).Data:
            where = f"{path}, question {quote_value(entry.QuestionId)}"
            documents = [evidence / "wikipedia" / _check_name(page, where) for page in entry.EntityPages]
            documents += [evidence / "web" / _check_name(page, where) for page in entry.SearchResults]
            yield str(entry.QuestionId), entry.Question, entry.Answer.Aliases, _read_documents(documents, where)


def _check_name(page: Page, where: str) -> str:
    # A name outside the evidence would read any file of the machine.
    name = PurePosixPath(page.Filename)
    if name.is_absolute() or ".." in name.parts:
        raise ValueError(
            f"{where}: the Filename {quote_value(page.Filename)} leads out of the evidence; fetch the file again"
        )
    return page.Filename


def _read_documents(paths: list[Path], where: str) -> Iterator[str]:
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        # ValueError: the text is not UTF-8, or the name has a NUL character.
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{where}: document {quote_value(str(path))} cannot be read ({quote_value(error)}); "
                "fetch the evidence again"
            ) from None
        # A web page is allowed, because TriviaQA collected web pages as documents.
        require_data(path, POINTERS)
        yield text


def read_hub(hub: Hub, split: str, words: int) -> Examples:
    """Reads a split of TriviaQA from the hub (mandarjoshi/trivia_qa), like `read_original`.

    Every configuration except `rc`, which has both parts with all documents, is a subset.
    """
    data, source = commits.load_split(
        hub.repository,
        hub.configuration,
        hub.revision,
        split,
        "tasks.questions.hub.triviaqa",
        ("question_id", "question", "answer", "entity_pages", "search_results"),
    )
    return _find_spans(
        _list_rows(data),
        f"{source}, {hub.configuration}",
        words,
        hub.configuration != "rc",
    )


def _list_rows(data: Iterable[dict]) -> Iterator[Candidate]:
    # Row by row, to save memory.
    for row in data:
        documents = row["entity_pages"]["wiki_context"] + row["search_results"]["search_context"]
        yield row["question_id"], row["question"], row["answer"]["aliases"], documents


def _find_spans(
    candidates: Iterable[Candidate],
    source: str,
    words: int,
    subset: bool,
) -> Examples:
    """Makes examples of the candidates whose answer stands in the first words of a document."""
    # A question can be in both parts of TriviaQA: the first candidate with the answer makes the example.
    found = {}
    times = Counter()
    for name, question, aliases, documents in candidates:
        times[name] += 1
        if name in found:
            continue
        # In order: the first document with the answer counts.
        for document in documents:
            context = cut_words(document, words)
            answer = find_alias(context, aliases)
            if answer:
                # The id, as the last cell, replaces the article of SQuAD.
                found[name] = (name, context, question, [answer[0]], [answer.start()], name)
                break
    lacking = len(times) - len(found)
    again = times.total() - len(times)
    reasons = []
    if lacking:
        reasons.append(f"{lacking} no answer in the first {words} words of a document")
    if again:
        reasons.append(f"{again} in both parts")
    reason = "; ".join(reasons)
    if lacking and not found:
        raise ValueError(
            f"{source}: {reason}; no question with an answer is left; raise tasks.questions.triviaqa_words"
        )
    frame = check_rows(found.values(), source, False)
    return Examples(frame, source, subset, lacking + again, reason)


def cut_words(text: str, count: int) -> str:
    """Returns the text up to the end of word number `count`: `"a b c"` and 2 -> `"a b"`."""
    for number, word in enumerate(re.finditer(r"\S+", text), 1):
        if number == count:
            return text[: word.end()]
    return text


def find_alias(text: str, aliases: Iterable[str]) -> re.Match | None:
    """Finds the first alias in a text, as whole words in any case; of aliases at the same position, the longest.

    The aliases `New` and `New York` match the text `in new york` at `new york`.
    """
    names = {alias.strip() for alias in aliases} - {""}
    # Without alternatives, the expression would match the empty text.
    if not names:
        return None
    # A regular expression takes the first alternative that fits. Of equally long names, all find the same text.
    ordered = sorted(names, key=len, reverse=True)
    alternatives = "|".join(map(re.escape, ordered))
    return re.search(rf"(?<!\w)(?:{alternatives})(?!\w)", text, re.IGNORECASE)
