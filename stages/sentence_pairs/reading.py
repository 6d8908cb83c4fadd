"""Sentence pairs of original files and of hub datasets, with every bad pair counted by its reason.

Files: NAME.SOURCE and NAME.TARGET with a sentence a line (SOURCE and TARGET are the languages' names), or one .tsv
whose first line names its columns, the languages among them.
"""

import codecs
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from stages.plumbing import commits

Sides = tuple[bytes | str | None, bytes | str | None]


def from_files(root: Path, name: str, languages: tuple[str, str]) -> Iterator[Sides]:
    """Reads the pairs of a split in their order.

    Args:
        root: data.root.
        name: below it; ends in .tsv for a table, otherwise two files end in the languages' names.
        languages: source and target.

    Yields:
        Both sides as bytes; None for a side that a line of a table does not have.

    Raises:
        ValueError: a file is missing, two files have different numbers of lines, or a table has no such columns.
    """
    paths = [root / name] if name.endswith(".tsv") else [root / f"{name}.{language}" for language in languages]
    for path in paths:
        if not path.is_file():
            raise ValueError(
                f"{path}: no such file; translation.protocols.*.files names pairs below data.root ({root})"
            )
    contents = [_lines(path) for path in paths]
    if len(contents) == 1:
        yield from _of_table(paths[0], contents[0], languages)
        return
    if len(contents[0]) != len(contents[1]):
        counts = " and ".join(f"{path} has {len(lines):,}" for path, lines in zip(paths, contents, strict=True))
        raise ValueError(f"{counts} lines; line N of one must translate line N of the other: mend the files")
    yield from zip(*contents, strict=True)


def _lines(path: Path) -> list[bytes]:
    """The lines of a file. A line feed alone ends one; a byte-order mark is left out, and so is an empty last line."""
    lines = path.read_bytes().removeprefix(codecs.BOM_UTF8).split(b"\n")
    return lines[:-1] if lines and not lines[-1] else lines


def _of_table(path: Path, lines: list[bytes], languages: tuple[str, str]) -> Iterator[Sides]:
    header = [column.strip() for column in (lines[0] if lines else b"").split(b"\t")]
    missing = [language for language in languages if language.encode() not in header]
    if missing:
        there = b", ".join(header).decode(errors="replace")
        raise ValueError(f"{path}, line 1: no column {missing[0]!r} among {there}; name the columns by their languages")
    if twice := [language for language in languages if header.count(language.encode()) > 1]:
        raise ValueError(f"{path}, line 1: the column {twice[0]!r} stands there twice; delete or rename one")
    places = [header.index(language.encode()) for language in languages]
    for line in lines[1:]:
        cells = line.split(b"\t")
        yield tuple(cells[place] if len(cells) == len(header) else None for place in places)


def from_hub(repository: str, configuration: str | None, revision: str, split: str, languages: tuple[str, str]):
    """As `from_files`, of a dataset whose rows have a sentence a language, or a `translation` of such a record."""
    import datasets

    with commits.explained(f"translation.protocols.*.hub: {repository} ({revision}), {split}"):
        rows = datasets.load_dataset(repository, configuration, split=split, streaming=True, revision=revision)
        for number, row in enumerate(rows):
            texts = row.get("translation", row)
            missing = [language for language in languages if not isinstance(texts, dict) or language not in texts]
            if missing:
                raise ValueError(f"row {number} has no {missing[0]!r} among {', '.join(texts or ('nothing',))}")
            yield tuple(texts[language] for language in languages)


def cleaned(sides: Iterable[Sides], limit: int | None) -> tuple[list[tuple[str, str]], Counter]:
    """Keeps the pairs that are sound.

    Args:
        sides: pairs as they were read.
        limit: pairs to read, at most; None for all.

    Returns:
        The sound pairs, white space collapsed; and how many were `in`, and how many had each defect.
    """
    kept, fates = [], Counter()
    for pair in islice(sides, limit):
        fates["in"] += 1
        texts, reason = _read(pair)
        if reason:
            fates[reason] += 1
        else:
            kept.append(texts)
    return kept, fates


def _read(pair: Sides) -> tuple[tuple[str, ...], str | None]:
    if not all(isinstance(side, bytes | str) for side in pair):
        return (), "malformed"
    try:
        texts = [side.decode("utf-8") if isinstance(side, bytes) else side for side in pair]
    except UnicodeDecodeError:
        return (), "not_utf8"
    texts = tuple(" ".join(text.split()) for text in texts)
    return texts, None if all(texts) else "empty"
