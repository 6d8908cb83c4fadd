"""Turns original files into OSCAR records.

JSON lines (.jsonl): OSCAR records (with the key `content`) pass byte for byte, unsound lines too, because the filter
accounts for unsound lines; plain documents (with the key `text`) become records without annotations; blank lines are
left out. Text (.txt): a blank line ends a document, as in the corpora of the original BERT. WikiText (.raw): a document
is an article, from a first-level heading to the next. Each may be compressed (.zst, .gz).
"""

import glob
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby, islice
from pathlib import Path

from stages.files.quoting import quote
from stages.files.storage import is_hidden, sha256, temporary_sibling
from stages.records import reading, records

# The heading of an article; headings of sections have more equals signs.
HEADING = re.compile(r" = [^=].* = ")


def find_files(root: Path, patterns: Iterable[str], key: str = "corpus.files") -> list[Path]:
    """Lists the files below a folder that match some patterns, without hidden files, in the order of `match_files`.

    Args:
        root: the folder, with which the paths begin.
        patterns: glob patterns of paths below the folder.
        key: the key of params.yaml that has the patterns, for the message of an error.

    Raises:
        ValueError: a pattern matches no file, a file of unknown form, or no ordinary file, such as a broken link.
    """

    def match(pattern: str) -> list[Path]:
        try:
            paths = set(root.glob(pattern))
        # Absolute or empty patterns.
        except (NotImplementedError, ValueError):
            return []
        # Path.glob may leave out broken links.
        paths.update(root / name for name in glob.glob(pattern, root_dir=root))  # noqa: PTH207
        files = [path for path in paths if not path.is_dir() and not is_hidden(path, root)]
        for path in files:
            if not path.is_file():
                kind = f"a link to {path.readlink()}, which leads nowhere" if path.is_symlink() else "no ordinary file"
                raise ValueError(f"{key}: {path}: {kind}; mend it, delete it or narrow the pattern `{pattern}`")
        return files

    return match_files(patterns, match, key, f"below {root.absolute()}")


def match_files(
    patterns: Iterable[str],
    match: Callable[[str], list[Path]],
    key: str,
    where: str,
) -> list[Path]:
    """Lists the files that match some patterns, each at its first match: by pattern, then part_2 before part_10.

    Args:
        patterns: glob patterns of paths.
        match: returns the files that match a pattern.
        key: the key of params.yaml that has the patterns, for messages of errors.
        where: the searched place, for messages of errors.

    Raises:
        ValueError: a pattern matches no file, or a file of unknown form (`find_form`).
    """
    paths = {}
    for pattern in patterns:
        matched = match(pattern)
        if not matched:
            raise ValueError(f"{key}: `{pattern}` matches no file {where}; mend one of them")
        for path in reading.in_natural_order(matched):
            find_form(path, key)
            paths[path] = None
    return list(paths)


def count(settings: dict, _folder: Path) -> dict:
    """Job (runner/jobs.py): counts the documents of a file, unsound documents too.

    Args:
        settings: path of the file, and limit, the number at which counting stops (`None` for no limit).
        _folder: the folder of the job, which stays empty.

    Returns:
        The result of `describe`.
    """
    path = Path(settings["path"])
    documents = _number_lines(path) if find_form(path) == ".jsonl" else _split_texts(path)
    return describe(path, str(path), sum(1 for _ in islice(documents, settings["limit"])))


def describe(path: Path, name: str, documents: int) -> dict:
    """Describes a file under a name for the record of the run; `documents` of the file were read."""
    return {"file": name, "documents": documents, "bytes": path.stat().st_size, "sha256": sha256(path)}


def check_digest(described: dict) -> None:
    """Compares a file with the checksums that lie beside the file in releases of OSCAR 23.01.

    Only a checksum tells a file that was cut between two compressed frames from a whole file.

    Args:
        described: the result of `describe`.

    Raises:
        ValueError: another SHA-256 is stated for the file.
    """
    path = Path(described["file"])
    checksums = path.with_name("checksum.sha256")
    if checksums.is_file():
        # a line of `sha256sum`
        line = rf"^([0-9a-fA-F]{{64}}) [ *](?:.*/)?{re.escape(path.name)}$"
        stated = re.search(line, checksums.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        if stated and stated[1].lower() != described["sha256"]:
            raise ValueError(f"{path}: not the file whose SHA-256 {checksums} states; {reading.REMEDY}")


def write_shard(settings: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): makes a shard from parts of files.

    Args:
        settings: parts, a list of [path, first, last]: documents [first, last) of a file, counted from 0, where `None`
            as `last` means all further documents.
        folder: the folder of the job, which gets shard.jsonl.zst.

    Returns:
        The number of `documents`, and `origins`: (line, file, source_line) as in records/origins.py, empty for text.
    """
    documents = 0
    origins = []
    with temporary_sibling(folder / "shard.jsonl.zst") as temporary, reading.zstd_writer(temporary) as file:
        for path, first, last in settings["parts"]:
            expected = None
            for number, line in _read_records(Path(path), first, last):
                file.write(line + b"\n")
                documents += 1
                # At the start of a part and after blank lines; never for documents without a number.
                if number != expected:
                    origins.append((documents, path, number))
                expected = number and number + 1
    return {"documents": documents, "origins": origins}


def file_records(path: Path) -> Iterator[bytes]:
    """Yields the documents of a file as OSCAR records, each a line of JSON without line feed.

    Lines of an OSCAR file pass unchecked.

    Raises:
        ValueError: a line of another .jsonl file is no plain document, or the file is of no known form or cannot be
            read (`reading.lines`).
    """
    for _, line in _read_records(path, 0, None):
        yield line


def _read_records(path: Path, first: int, last: int | None) -> Iterator[tuple[int | None, bytes]]:
    """Yields (number of the line, OSCAR record) of documents [first, last); the number is `None` in .txt and .raw."""
    if find_form(path) != ".jsonl":
        for text in islice(_split_texts(path), first, last):
            yield None, records.record(records.PlainDocument(text))
        return
    holds_oscar = _holds_oscar(path)
    for number, line in islice(_number_lines(path), first, last):
        yield number, line if holds_oscar else _convert(line, number, path)


def _convert(line: bytes, number: int, path: Path) -> bytes:
    """Returns the record of a plain document; number and path are for the message of an error."""
    try:
        return records.record(records.plain_document(line))
    except ValueError as error:
        raise ValueError(
            f"{path}, line {number}: not a plain document ({error}); each line must be a JSON object "
            "in UTF-8 with a string `text` and, if known, `url` and `id`; mend the line or delete it"
        ) from None


def find_form(path: Path, key: str = "corpus.files") -> str:
    """Returns the form of a file: ".jsonl", ".txt" or ".raw"; ValueError, naming the key, for another suffix."""
    suffixes = [suffix for suffix in path.suffixes if suffix not in reading.DECOMPRESSION]
    if not suffixes or suffixes[-1] not in (".jsonl", ".txt", ".raw"):
        raise ValueError(
            f"{key}: {path} is of no known form; known are .jsonl, .txt and .raw, alone or with .zst or .gz"
        )
    return suffixes[-1]


def _number_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yields (number, line) of the lines that are not blank; numbers count all lines, from 1."""
    for number, line in enumerate(reading.lines(path), 1):
        if line.strip():
            yield number, line


def _holds_oscar(path: Path) -> bool:
    """Returns whether the first JSON object with `content` or `text` has `content`; ValueError if there is none."""
    other = ""
    for number, line in _number_lines(path):
        try:
            names = records.columns(line)
        except ValueError:
            continue
        if names & {"content", "text"}:
            return "content" in names
        other = other or f" (line {number} has the columns {quote(sorted(names))})"
    raise ValueError(
        f"{path}: no line is a JSON object with `content` (OSCAR) or `text` (plain){other}; save the file as UTF-8, "
        "rename the column of the text, or take the file out of the list of inputs"
    )


def _split_texts(path: Path) -> Iterator[str]:
    """Yields the documents of a .txt file (lines between blank lines) or of a .raw file (articles)."""
    if find_form(path) == ".raw":
        yield from _split_articles(path)
        return
    for blank, lines in groupby(reading.texts(path), key=lambda line: not line.strip()):
        if not blank:
            yield "\n".join(lines)


def _split_articles(path: Path) -> Iterator[str]:
    """Yields the articles of a .raw file, with stripped lines."""
    article = []
    # A last heading ends the last article.
    for line in chain(reading.texts(path), ["", " = End = "]):
        # A heading follows a blank line; within a paragraph, such a line is a formula.
        if article and not article[-1] and HEADING.fullmatch(line):
            if any(article):
                yield "\n".join(article).strip()
            article = []
        article.append(line.strip())
