"""Turns original files into OSCAR records.

JSON lines (.jsonl): OSCAR records (they have `content`) pass byte for byte, unsound lines too, as the filter accounts
for them; plain documents (they have `text`) become records without annotations; blank lines are left out. Text (.txt):
a blank line ends a document, as in the corpora of the original BERT. WikiText (.raw): a document is an article, from
one first-level heading to the next. Each may be compressed (.zst, .gz).
"""

import glob
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path

from stages.files.storage import temporary_sibling
from stages.records import reading, records

HEADING = re.compile(r" = [^=].* = ")  # the heading of an article; those of sections have more equals signs


def find_files(root: Path, patterns: Iterable[str], key: str = "corpus.files") -> list[Path]:
    """Lists the files below a folder that match some patterns, in the order of `matching`.

    Args:
        root, patterns: the folder, with which the paths begin, and glob patterns of paths below it.
        key: the key of params.yaml that has the patterns, for the message of an error.

    Raises:
        ValueError: as in `matching`, or a pattern matches what is no file, such as a link that leads nowhere.
    """

    def matches(pattern: str) -> list[Path]:
        try:
            paths = set(root.glob(pattern))
        except (NotImplementedError, ValueError):  # absolute or empty patterns
            return []
        paths |= {root / name for name in glob.glob(pattern, root_dir=root)}  # Path.glob may leave out broken links
        files = [path for path in paths if not path.is_dir()]
        if odd := [path for path in files if not path.is_file()]:
            kind = f"a link to {odd[0].readlink()}, which leads nowhere" if odd[0].is_symlink() else "no ordinary file"
            raise ValueError(f"{key}: {odd[0]}: {kind}; mend it, delete it or narrow the pattern `{pattern}`")
        return files

    return matching(patterns, matches, key, f"below {root.absolute()}")


def matching(patterns: Iterable[str], matches: Callable[[str], list[Path]], key: str, where: str) -> list[Path]:
    """Lists the files that match some patterns, by pattern, then part_2 before part_10, each where it first matches.

    Args:
        patterns, matches: glob patterns of paths, and what returns the files that match one of them.
        key, where: the key of params.yaml that has the patterns, and the place searched, in words for error messages.

    Raises:
        ValueError: a pattern matches no file, or one of unknown form (`form`).
    """
    paths: dict[Path, None] = {}
    for pattern in patterns:
        if not (matched := matches(pattern)):
            raise ValueError(f"{key}: `{pattern}` matches no file {where}; mend one of them")
        paths |= dict.fromkeys(reading.in_natural_order(matched))
    for path in paths:
        form(path, key)
    return list(paths)


def count(settings: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): counts a file's `documents`, unsound ones too. settings: path; limit (None: all)."""
    path = Path(settings["path"])
    units = _numbered_lines(path) if form(path) == ".jsonl" else _texts(path)
    return {"documents": sum(1 for _ in islice(units, settings["limit"]))}


def write_shard(settings: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): makes one shard from parts of one or several files.

    settings: parts, a list of [path, first, last]: documents [first, last) of each file, counted from 0; `last` None
    means up to its end. Leaves shard.jsonl.zst in `folder`, the job's own. Returns the number of its `documents`, and
    `origins`, (line, file, source_line) as in records/origins.py, none for text. ValueError as in `file_records`.
    """
    documents, origins = 0, []
    with (
        temporary_sibling(folder / "shard.jsonl.zst") as temporary,
        reading.zstd_writer(temporary) as file,
    ):
        for path, first, last in settings["parts"]:
            expected = None
            for number, line in _numbered_records(Path(path), first, last):
                file.write(line + b"\n")
                documents += 1
                if number != expected:  # at a part's start and after blank lines; never for documents without a number
                    origins.append((documents, path, number))
                expected = number and number + 1
    return {"documents": documents, "origins": origins}


def file_records(path: Path) -> Iterator[bytes]:
    """Yields the documents of a file as OSCAR records, each one line of JSON without its line feed.

    Lines of an OSCAR file pass unchecked. ValueError names, in another .jsonl file, the line that is no plain document;
    or the file, where it is of no known form or cannot be read (`reading.lines`).
    """
    return (line for _, line in _numbered_records(path, 0, None))


def _numbered_records(path: Path, first: int, last: int | None) -> Iterator[tuple[int | None, bytes]]:
    """Yields (line number or, in .txt and .raw, None; OSCAR record) of documents [first, last), as in `write_shard`."""
    if form(path) != ".jsonl":
        for text in islice(_texts(path), first, last):
            yield None, records.record(records.PlainDocument(text))
    elif _holds_oscar(path):
        yield from islice(_numbered_lines(path), first, last)
    else:
        for number, line in islice(_numbered_lines(path), first, last):
            try:
                yield number, records.record(records.plain_document(line))
            except ValueError as error:
                raise ValueError(
                    f"{path}, line {number}: not a plain document ({error}); each line must be a JSON object "
                    "in UTF-8 with a string `text` and, if known, `url` and `id`; mend the line or delete it"
                ) from None


def form(path: Path, key: str = "corpus.files") -> str:
    """Returns how a file holds its documents: .jsonl, .txt or .raw. ValueError, naming the key, for another suffix."""
    suffixes = [suffix for suffix in path.suffixes if suffix not in reading.DECOMPRESSION]
    if not suffixes or suffixes[-1] not in (".jsonl", ".txt", ".raw"):
        raise ValueError(
            f"{key}: {path} is of no known form; known are .jsonl, .txt and .raw, alone or with .zst or .gz"
        )
    return suffixes[-1]


def _numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yields (number, line) of the lines that are not blank; numbers count all lines, from 1."""
    return ((number, line) for number, line in enumerate(reading.lines(path), 1) if line.strip())


def _holds_oscar(path: Path) -> bool:
    """Whether the first line that is a JSON object with `content` or `text` has `content`. ValueError if none is."""
    other = ""
    for number, line in _numbered_lines(path):
        try:
            names = records.columns(line)
        except ValueError:
            continue
        if names & {"content", "text"}:
            return "content" in names
        other = other or f" (line {number} has the columns {', '.join(sorted(names))})"
    raise ValueError(
        f"{path}: no line is a JSON object with `content` (OSCAR) or `text` (plain){other}; save the file as UTF-8, "
        "rename the column of the text, or take the file out of the list of inputs"
    )


def _texts(path: Path) -> Iterator[str]:
    """Yields the documents of a .txt file (lines between blank ones) or of a .raw file (articles of stripped lines)."""
    if form(path) == ".txt":
        for blank, lines in groupby(reading.texts(path), key=lambda line: not line.strip()):
            if not blank:
                yield "\n".join(lines)
        return
    article: list[str] = []
    for line in reading.texts(path):
        if HEADING.fullmatch(line) and article and not article[-1]:  # within a paragraph, it is a formula
            if any(article):
                yield "\n".join(article).strip()
            article = []
        article.append(line.strip())
    if any(article):
        yield "\n".join(article).strip()
