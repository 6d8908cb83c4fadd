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

    Answers are looked for in the first `words` words of a document. ValueError if a file is missing or cannot be
    read, or no question has an answer there.
    """
    paths = find_triviaqa(root, split)
    # Without a part (wikipedia or web), the examples are a subset, too.
    subset = len(paths) < len(PARTS) or any(map(is_subset, paths))
    source = " and ".join(path.name for path in paths)
    return _make_examples(_read_candidates(paths, root / "triviaqa" / "evidence"), source, words, subset)


def _read_candidates(paths: list[Path], evidence: Path) -> Iterator[Candidate]:
    """Yields the questions of files; `evidence` is the folder of the documents."""
    # A document is read only when used, because most questions need only the first document.
    for path in paths:
        for entry in read_json(path, File).Data:
            where = f"{path}, question {quote_value(entry.QuestionId)}"
            documents = [evidence / "wikipedia" / _find_filename(page, where) for page in entry.EntityPages]
            documents += [evidence / "web" / _find_filename(page, where) for page in entry.SearchResults]
            yield str(entry.QuestionId), entry.Question, entry.Answer.Aliases, _read_documents(documents, where)


def _find_filename(page: Page, where: str) -> str:
    """Returns the file name of a document; ValueError for a name such as `../a.txt`, outside the folder."""
    # Such a name could read any file of the machine.
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
        # A Git LFS pointer is an error. A web page is allowed, because TriviaQA collected web pages as documents.
        require_data(path, POINTERS)
        yield text


def read_hub(hub: Hub, split: str, words: int) -> Examples:
    """Reads a split of TriviaQA from the hub (mandarjoshi/trivia_qa), like `read_original`."""
    data, source = commits.load_split(
        hub.repository,
        hub.configuration,
        hub.revision,
        split,
        "tasks.questions.hub.triviaqa",
        ("question_id", "question", "answer", "entity_pages", "search_results"),
    )
    # Only the configuration `rc` has both parts (wikipedia, web) with all documents.
    subset = hub.configuration != "rc"
    return _make_examples(_list_candidates(data), f"{source}, {hub.configuration}", words, subset)


def _list_candidates(data: Iterable[dict]) -> Iterator[Candidate]:
    # Row by row, to save memory.
    for row in data:
        documents = row["entity_pages"]["wiki_context"] + row["search_results"]["search_context"]
        yield row["question_id"], row["question"], row["answer"]["aliases"], documents


def _make_examples(
    candidates: Iterable[Candidate],
    source: str,
    words: int,
    subset: bool,
) -> Examples:
    """Makes an example of each question with an answer in the first `words` words of a document."""
    # A question can be in both parts of TriviaQA: the first candidate with an answer makes the example.
    found = {}
    occurrences = Counter()
    for question_id, question, aliases, documents in candidates:
        occurrences[question_id] += 1
        if question_id in found:
            continue
        for document in documents:
            context = cut_words(document, words)
            answer = find_alias(context, aliases)
            # The first document with an answer becomes the context.
            if answer:
                # `check_rows` takes the article of SQuAD as the last cell. TriviaQA has no articles: the id stands in.
                found[question_id] = (question_id, context, question, [answer[0]], [answer.start()], question_id)
                break
    unanswered = len(occurrences) - len(found)
    repeated = occurrences.total() - len(occurrences)
    reasons = []
    if unanswered:
        reasons.append(f"{unanswered} no answer in the first {words} words of a document")
    if repeated:
        reasons.append(f"{repeated} in both parts")
    reason = "; ".join(reasons)
    if unanswered and not found:
        raise ValueError(
            f"{source}: {reason}; no question with an answer is left; raise tasks.questions.triviaqa_words"
        )
    frame = check_rows(found.values(), source, unanswerable=False)
    return Examples(frame, source, subset, unanswered + repeated, reason)


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
    # A regular expression takes the first alternative that fits, so the longest name comes first. Equally long names
    # that fit find the same text, in any order.
    ordered = sorted(names, key=len, reverse=True)
    alternatives = "|".join(map(re.escape, ordered))
    return re.search(rf"(?<!\w)(?:{alternatives})(?!\w)", text, re.IGNORECASE)
