"""Turns original files into OSCAR records.

JSON lines (.jsonl): OSCAR records (with the key `content`) pass byte for byte; plain documents (with the key `text`)
become records without annotations; blank lines are left out. Text (.txt): a blank line ends a document, as in the
corpora of the original BERT. WikiText (.raw): a document is an article, from a first-level heading to the next. All may
be compressed (.zst, .gz). Unsound documents pass as unsound lines, which the filter counts.
"""

import re
from collections.abc import Iterator
from itertools import chain, groupby, islice
from pathlib import Path

from stages.files.quoting import quote_value
from stages.files.storage import compute_sha256, make_temporary_sibling
from stages.originals.text import find_form
from stages.records import reading, records

# The heading of an article; headings of sections have more equals signs.
HEADING = re.compile(r" = [^=].* = ")


def count_documents(settings: dict, _folder: Path) -> dict:
    """Job (runner/jobs.py): counts the documents of a file, unsound documents too.

    Args:
        settings: `path` of the file; `limit`, the number at which counting stops (`None` for no limit).
        _folder: the folder of the job, which stays empty.

    Returns:
        Name, bytes, documents and SHA-256 of the file.
    """
    path = Path(settings["path"])
    documents = _number_lines(path) if find_form(path) == ".jsonl" else _split_texts(path)
    counted = sum(1 for _ in islice(documents, settings["limit"]))
    return describe_file(path, str(path), counted)


def describe_file(path: Path, name: str, documents: int) -> dict:
    """Returns name, number of documents read, bytes and SHA-256 of a file, for the record of the run."""
    return {"file": name, "documents": documents, "bytes": path.stat().st_size, "sha256": compute_sha256(path)}


def check_digest(described: dict) -> None:
    """Compares a file with checksum.sha256, which lies beside the files in releases of OSCAR 23.01.

    Without a checksum, a file that was cut between two compressed frames looks like a whole file.

    Args:
        described: name (`file`) and SHA-256 (`sha256`) of the file.

    Raises:
        ValueError: checksum.sha256 states another SHA-256 for the file.
    """
    path = Path(described["file"])
    checksums = path.with_name("checksum.sha256")
    if checksums.is_file():
        # a line of `sha256sum`
        line = rf"^([0-9a-fA-F]{{64}}) [ *](?:.*/)?{re.escape(path.name)}$"
        stated = re.search(line, checksums.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        if stated and stated[1].lower() != described["sha256"]:
            raise ValueError(f"{path}: the SHA-256 differs from the SHA-256 in {checksums}; {reading.REMEDY}")


def write_shard(settings: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): makes a shard from parts of files.

    Args:
        settings: `parts`, a list of [path, first, last]: documents [first, last) of a file, counted from 0; `None` as
            `last` means all further documents.
        folder: the folder of the job, which gets shard.jsonl.zst.

    Returns:
        `documents`, the number of documents, and `origins`: (line of the shard, file, line of the file) where
        consecutive lines start; empty for text.
    """
    documents = 0
    origins = []
    with make_temporary_sibling(folder / "shard.jsonl.zst") as temporary, reading.open_zstd_writer(temporary) as file:
        for path, first, last in settings["parts"]:
            expected = None
            for number, line in _read_records(Path(path), first, last):
                file.write(line + b"\n")
                documents += 1
                # At the start of a part and after blank lines; never for documents without a number.
                if number and number != expected:
                    origins.append((documents, path, number))
                expected = number and number + 1
    return {"documents": documents, "origins": origins}


def read_records(path: Path) -> Iterator[bytes]:
    """Yields the documents of a file as OSCAR records, lines of JSON without line feed; unsound documents stay as read.

    Raises:
        ValueError: the file is of no known form, or cannot be read.
    """
    for _, line in _read_records(path, 0, None):
        yield line


def _read_records(path: Path, first: int, last: int | None) -> Iterator[tuple[int | None, bytes]]:
    """Yields (number of the line, bytes of the OSCAR record) of documents [first, last) of a file.

    An unsound document is yielded as a line that is no record (a text joined into one line), for the filter to count.
    In text files (.txt, .raw) only unsound documents have a number, the number of the first line; sound documents have
    `None`.
    """
    if find_form(path) != ".jsonl":
        for number, text in islice(_split_texts(path), first, last):
            try:
                yield None, records.write_record(records.PlainDocument(text))
            except ValueError:
                yield number, text.replace("\n", " ").encode(errors="surrogateescape")
        return
    holds_oscar = _holds_oscar(path)
    for number, line in islice(_number_lines(path), first, last):
        yield number, line if holds_oscar else _convert_line(line)


def _convert_line(line: bytes) -> bytes:
    """Returns the OSCAR record of a plain document; a line that is no sound document stays unchanged.

    {"text": "Hi"} gives {"content":"Hi","warc_headers":{},"metadata":{}}.
    """
    try:
        return records.write_record(records.read_plain_document(line))
    except ValueError:
        return line


def _number_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yields (number, line) of the lines that are not blank; the numbers count all lines, from 1."""
    for number, line in enumerate(reading.read_lines(path), 1):
        if line.strip():
            yield number, line


def _holds_oscar(path: Path) -> bool:
    """Whether a file holds OSCAR records: the first JSON object with `content` or `text` has `content`.

    Raises:
        ValueError: no JSON object has either key.
    """
    other = ""
    for number, line in _number_lines(path):
        try:
            names = records.read_columns(line)
        except ValueError:
            continue
        if names & {"content", "text"}:
            return "content" in names
        other = other or f" (line {number} has the columns {quote_value(sorted(names))})"
    raise ValueError(
        f"{path}: no line is a JSON object with `content` (OSCAR) or `text` (plain){other}; save the file as UTF-8, "
        "rename the column of the text, or remove the file from the list of inputs"
    )


def _number_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yields (number, text) of each line, from 1; bytes that are not UTF-8 become lone surrogates."""
    for number, line in enumerate(reading.read_universal_lines(path), 1):
        # UTF-16 has a NUL at every other place of Latin text, and UTF-8 has no byte 255.
        unsound = line.replace(b"\0", b"\xff")
        yield number, unsound.decode(errors="surrogateescape")


def _split_texts(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yields (number of the first line, text) of documents: in .txt lines between blank lines, in .raw articles.

    "One\ntwo\n\nThree\n" in .txt gives (1, "One\ntwo") and (4, "Three").
    """
    if find_form(path) == ".raw":
        yield from _split_articles(path)
        return
    for blank, group in groupby(_number_texts(path), key=lambda numbered: not numbered[1].strip()):
        if not blank:
            numbers, lines = zip(*group, strict=True)
            yield numbers[0], "\n".join(lines)


def _split_articles(path: Path) -> Iterator[tuple[int, str]]:
    """Yields (number of the first line, text) of the articles of a .raw file, with stripped lines."""
    article = []
    first = 1
    # A last heading ends the last article.
    for number, line in chain(_number_texts(path), [(0, ""), (0, " = End = ")]):
        # A heading follows a blank line; within a paragraph, such a line is a formula.
        if article and not article[-1] and HEADING.fullmatch(line):
            if any(article):
                yield first, "\n".join(article).strip()
            article = []
            first = number
        article.append(line.strip())
