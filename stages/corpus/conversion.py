"""Turns original files into OSCAR records.

JSON lines (.jsonl): OSCAR records (with the key `content`) pass byte for byte; plain documents (with the key `text`)
become records without metadata; blank lines are left out. Text (.txt): a blank line ends a document, as in the
corpora of the original BERT. WikiText (.raw): a document is an article, from a first-level heading to the next. All may
be compressed (.zst, .gz). Unsound documents pass as unsound lines, which the filter counts.
"""

import re
from collections.abc import Iterator
from itertools import chain, groupby, islice
from pathlib import Path

import msgspec

from stages.files.quoting import quote_value
from stages.files.storage import compute_sha256, make_temporary_sibling
from stages.originals.corpus_files import find_form
from stages.records import reading
from stages.records.records import PlainDocument, decode_line, write_record

# the name of a shard in the folder of a job
SHARD = "shard.jsonl.zst"


def count_documents(argument: dict, _folder: Path) -> dict:
    """Job (runner/jobs.py): counts the documents of the file `path`, at most `limit` (None: all), to plan equal shards.

    Documents that filtering will drop count, too. Returns the description of the file.
    """
    path = Path(argument["path"])
    documents = _number_lines(path) if find_form(path) == ".jsonl" else _split_texts(path)
    counted = sum(1 for _ in islice(documents, argument["limit"]))
    return describe_file(path, str(path), counted)


def describe_file(path: Path, name: str, documents: int) -> dict:
    """Describes a file of which `documents` were read, for the record of the run."""
    return {
        "file": name,
        "documents": documents,
        "bytes": path.stat().st_size,
        "sha256": compute_sha256(path),
    }


def check_digest(described: dict) -> None:
    """Raises a ValueError if the SHA-256 in checksum.sha256, a file beside the files of OSCAR 23.01, is different."""
    # Without a checksum, a file that was cut between two compressed frames looks like a whole file.
    path = Path(described["file"])
    checksums = path.with_name("checksum.sha256")
    if checksums.is_file():
        # a line of `sha256sum`: 64 hexadecimal digits, two spaces (or a space and *), and the path
        line = rf"^([0-9a-fA-F]{{64}}) [ *](?:.*/)?{re.escape(path.name)}$"
        stated = re.search(line, checksums.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        if stated and stated[1].lower() != described["sha256"]:
            raise ValueError(f"{path}: the SHA-256 differs from the SHA-256 in {checksums}; {reading.REMEDY}")


def write_shard(argument: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): makes the shard `folder`/shard.jsonl.zst from parts of files.

    `argument` has `parts`, a list of [path, first, last]: documents [first, last) of a file, from 0; `None` as `last`
    means all further documents.

    Returns:
        `documents`, the number of documents, and `origins`: (line of the shard, file, line of the file) where
        consecutive lines start; empty for text.
    """
    documents = 0
    origins = []
    with make_temporary_sibling(folder / SHARD) as temporary, reading.open_zstd_writer(temporary) as file:
        for path, first, last in argument["parts"]:
            next_number = None
            # `number` is the number of the line in the file; a sound text, of several lines, has no number.
            for number, line in _read_numbered_records(Path(path), first, last):
                file.write(line + b"\n")
                documents += 1
                # Numbers jump at the start of a part and after blank lines.
                if number and number != next_number:
                    origins.append((documents, path, number))
                next_number = number + 1 if number else None
    return {"documents": documents, "origins": origins}


def read_records(path: Path) -> Iterator[bytes]:
    """Yields the documents of a file as OSCAR records, lines of JSON without line feed; unsound documents stay as read.

    A file of no known form, or that cannot be read, is a ValueError.
    """
    for _, line in _read_numbered_records(path, 0, None):
        yield line


def _read_numbered_records(path: Path, first: int, last: int | None) -> Iterator[tuple[int | None, bytes]]:
    """Yields (number of the line, OSCAR record) of documents [first, last) of a file; no number for a sound text."""
    if find_form(path) != ".jsonl":
        for number, text in islice(_split_texts(path), first, last):
            try:
                yield None, write_record(PlainDocument(text))
            # An unsound text becomes a line that is no record. The filter counts the line and names the number.
            except ValueError:
                yield number, text.replace("\n", " ").encode(errors="surrogateescape")
        return
    holds_oscar = _holds_oscar(path)
    for number, line in islice(_number_lines(path), first, last):
        yield number, line if holds_oscar else _convert_line(line)


def _convert_line(line: bytes) -> bytes:
    """Turns {"text": "Hi"} into {"content":"Hi","warc_headers":{},"metadata":{}}; other lines stay."""
    try:
        return write_record(decode_line(PlainDocument, line))
    except ValueError:
        return line


def _number_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    # Blank lines are left out, but count.
    for number, line in enumerate(reading.read_lines(path), 1):
        if line.strip():
            yield number, line


def _holds_oscar(path: Path) -> bool:
    """Whether a file holds OSCAR records; ValueError if no line has `content` or `text`."""
    # parts of the message if no line has either key: the columns of the first object, the error of the first other line
    columns = fault = ""
    first_line = next((line.strip() for _, line in _number_lines(path)), b"")
    # "[{", "[" or "{": a list of objects, or an object of several lines
    if re.match(rb"\[\s*\{|[\[{]$", first_line):
        raise ValueError(
            f"{path}: JSON, but not an object on each line; convert the file by `jq -c . FILE`, or a list by "
            "`jq -c '.[]' FILE`"
        )
    for number, line in _number_lines(path):
        try:
            # Raw: nested objects are not decoded
            names = set(decode_line(dict[str, msgspec.Raw], line))
        except ValueError as error:
            fault = fault or f" (line {number}: {error})"
            continue
        # The first object with either key decides.
        if names & {"content", "text"}:
            return "content" in names
        columns = columns or f" (line {number} has the columns {quote_value(sorted(names))})"
    raise ValueError(
        f"{path}: no line is a JSON object with `content` (OSCAR) or `text` (plain){columns or fault}; save the file "
        "as UTF-8, rename the column of the text, or remove the file from the list of inputs"
    )


def _number_text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yields (number from 1, text) of each line; lone surrogates stand for NULs and for bytes that are not UTF-8."""
    for number, line in enumerate(reading.read_universal_lines(path), 1):
        # A NUL is a sign of UTF-16. Byte 255 is never UTF-8, so the document counts as unsound.
        marked = line.replace(b"\0", b"\xff")
        yield number, marked.decode(errors="surrogateescape")


def _split_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yields (number of the first line, text) of the documents of a .txt or .raw file."""
    if find_form(path) == ".raw":
        yield from _split_articles(path)
        return
    # "One\ntwo\n\nThree\n" gives (1, "One\ntwo") and (4, "Three").
    for blank, group in groupby(_number_text_lines(path), key=lambda numbered: not numbered[1].strip()):
        if not blank:
            numbers, lines = zip(*group, strict=True)
            yield numbers[0], "\n".join(lines)


def _split_articles(path: Path) -> Iterator[tuple[int, str]]:
    """Yields (number of the first line, text) of the articles of a .raw file, each from a heading " = Title = " on."""
    article = []
    first = 1
    # The appended heading ends the last article.
    for number, line in chain(_number_text_lines(path), [(0, ""), (0, " = End = ")]):
        # A heading follows a blank line; within a paragraph, such a line is a formula. " = = Section = = " is no
        # heading of an article.
        if article and not article[-1] and re.fullmatch(r" ?= [^=].* = ?", line):
            if any(article):
                yield first, "\n".join(article).strip()
            article = []
            first = number
        article.append(line.strip())
