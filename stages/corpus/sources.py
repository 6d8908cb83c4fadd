"""From original files to OSCAR records.

JSON lines (.jsonl): OSCAR records (they have `content`) pass byte for byte, sound or not, as the filter
accounts for them; plain documents (they have `text`) become records without annotations. Text (.txt): a blank
line ends a document, as in the corpora of the original BERT. WikiText (.raw): a document is an article, from
one first-level heading to the next. Each may be compressed (.zst, .gz).
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from stages.common.records import reading, records
from stages.plumbing.files import temporary_sibling

HEADING = re.compile(r" = [^=].* = ")  # of an article; sections have more signs
UNDECIDED_LINES = 100


def find_files(root: Path, patterns: Iterable[str]) -> list[Path]:
    """Files below `root`, by pattern, then in natural order. ValueError for a pattern that matches none."""
    found: dict[Path, None] = {}
    for pattern in patterns:
        try:
            matches = [path for path in root.glob(pattern) if path.is_file()]
        except (NotImplementedError, ValueError):  # absolute or empty patterns
            matches = []
        if not matches:
            raise ValueError(
                f"corpus.files: `{pattern}` matches no file below data.root ({root.absolute()}); mend one of them"
            )
        found |= dict.fromkeys(reading.in_natural_order(matches))
    for path in found:
        _form(path)
    return list(found)


def count(settings: dict, folder: Path) -> dict:
    """Job. settings: path; limit (int or None). Gives the number of documents, counted up to the limit."""
    path = Path(settings["path"])
    units = _numbered_lines(path) if _form(path) == ".jsonl" else _texts(path)
    return {"documents": sum(1 for _ in islice(units, settings["limit"]))}


def write_shard(settings: dict, folder: Path) -> dict:
    """Job. settings: parts, a list of [path, first, last]: documents [first, last) of each file.

    Leaves shard.jsonl.zst in `folder`; gives the number of documents in it.
    """
    documents = 0
    with (
        temporary_sibling(folder / "shard.jsonl.zst") as temporary,
        reading.zstd_writer(temporary) as file,
    ):
        for path, first, last in settings["parts"]:
            for line in file_records(Path(path), first, last):
                file.write(line + b"\n")
                documents += 1
    return {"documents": documents}


def file_records(path: Path, first: int = 0, last: int | None = None) -> Iterator[bytes]:
    """Documents [first, last) of a file as OSCAR records. ValueError: file and line of what is none."""
    if _form(path) != ".jsonl":
        for text in islice(_texts(path), first, last):
            yield records.record(records.PlainDocument(text))
    elif _holds_oscar(path):
        yield from (line for _, line in islice(_numbered_lines(path), first, last))
    else:
        for number, line in islice(_numbered_lines(path), first, last):
            try:
                yield records.record(records.plain_document(line))
            except ValueError as error:
                raise ValueError(
                    f"{path}, line {number}: not a plain document ({error}); each line must be a JSON object "
                    "in UTF-8 with a string `text` and, if known, `url` and `id`; mend the line or delete it"
                ) from None


def _form(path: Path) -> str:
    suffixes = [suffix for suffix in path.suffixes if suffix not in reading.DECOMPRESSION]
    if not suffixes or suffixes[-1] not in (".jsonl", ".txt", ".raw"):
        raise ValueError(
            f"corpus.files: {path} is of no known form; known are .jsonl, .txt and .raw, alone or with .zst or .gz"
        )
    return suffixes[-1]


def _numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines with their number from 1, blank ones left out."""
    return ((number, line) for number, line in enumerate(reading.lines(path), 1) if line.strip())


def _holds_oscar(path: Path) -> bool:
    """Decided by the first line that is a JSON object. ValueError when it has no `content` or `text`."""
    for number, line in islice(_numbered_lines(path), UNDECIDED_LINES):
        try:
            names = records.columns(line)
        except ValueError:
            continue
        if not names & {"content", "text"}:
            raise ValueError(
                f"{path}, line {number}: neither `content` (OSCAR) nor `text` (plain) among the columns "
                f"{', '.join(sorted(names))}; rename the column of the text"
            )
        return "content" in names
    return False


def _texts(path: Path) -> Iterator[str]:
    return _articles(path) if _form(path) == ".raw" else _paragraphs(path)


def _paragraphs(path: Path) -> Iterator[str]:
    """Runs of lines between blank lines."""
    run: list[str] = []
    for line in _decoded_lines(path):
        if line.strip():
            run.append(line)
        elif run:
            yield "\n".join(run)
            run = []
    if run:
        yield "\n".join(run)


def _articles(path: Path) -> Iterator[str]:
    """From heading to heading; a heading stands after a blank line, which tells it from a formula."""
    article: list[str] = []
    for line in _decoded_lines(path):
        if HEADING.fullmatch(line) and article and not article[-1]:
            if any(article):
                yield "\n".join(article).strip()
            article = []
        article.append(line.strip())
    if any(article):
        yield "\n".join(article).strip()


def _decoded_lines(path: Path) -> Iterator[str]:
    for number, line in enumerate(reading.lines(path), 1):
        try:
            yield line.decode().removesuffix("\r")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {number}: not UTF-8 ({error.reason}); convert the file to UTF-8") from None
