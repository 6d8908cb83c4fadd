"""Reads sentence pairs of original files and of hub datasets, and counts every bad pair by the defect.

Files: `NAME.SOURCE` and `NAME.TARGET` with a sentence per line (for languages SOURCE and TARGET), or a .tsv whose first
line names a column per language. Lines are streamed; only sound pairs stay in memory. `languages` are source and
target, such as `("en", "de")`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from stages.files import commits
from stages.files.quoting import quote_value
from stages.originals.pairs import find_pairs
from stages.records import reading
from stages.schema.sections import Hub

# Largest number of characters in a word: the time to cut a word into sub-words grows with the square of the length.
LONGEST_WORD = 1000
# Defects that cast doubt on the whole file, so that too many are an error.
MALFORMED = ("malformed", "not_utf8")

# Source and target of a pair, unchecked.
Sides = tuple[bytes | str | None, bytes | str | None]
# Source and target of every sound pair.
Texts = list[tuple[str, str]]


def read_files(root: Path, name: str, languages: tuple[str, str]) -> Iterator[Sides]:
    """Yields the sentence pairs of a split from files below `root`, in order.

    The name `train` stands for train.en and train.de, `train.tsv` for a table. Both sides are bytes; a line of a table
    with more or fewer cells than the first line gives `(None, None)`.

    Raises:
        ValueError: a file is missing, two files have different numbers of lines, or a table has no such columns.
    """
    paths = find_pairs(root, name, languages)
    if len(paths) == 1:
        yield from _read_table(paths[0], languages)
        return
    sources, targets = paths
    for path in paths:
        # A file with carriage returns for line ends would be read as a single line.
        if b"\r" in next(reading.read_lines(path), b"").rstrip(b"\r"):
            raise ValueError(f"{path}: lines that end in a carriage return; convert the file, as by `mac2unix`")
    # Lines are counted first: after a lost line, all further pairs would be wrong.
    source_lines = sum(1 for _ in reading.read_lines(sources))
    target_lines = sum(1 for _ in reading.read_lines(targets))
    if source_lines != target_lines:
        raise ValueError(
            f"{sources} has {source_lines:,} and {targets} has {target_lines:,} lines; line N of the target must "
            "translate line N of the source; fix the files"
        )
    yield from zip(reading.read_lines(sources), reading.read_lines(targets), strict=True)


def _read_table(path: Path, languages: tuple[str, str]) -> Iterator[Sides]:
    lines = reading.read_lines(path)
    # A first line that is not UTF-8 has no column of the languages, which is an error below.
    first = next(lines, b"").decode(errors="replace")
    header = [column.strip() for column in first.split("\t")]
    source, target = reading.find_columns(path, header, languages, "name the columns by their languages")
    for line in lines:
        cells = line.split(b"\t")
        if len(cells) == len(header):
            yield cells[source], cells[target]
        else:
            yield None, None


def read_hub(hub: Hub, split: str, languages: tuple[str, str]) -> Iterator[Sides]:
    """Yields the sentence pairs of a split of a hub dataset, at a commit.

    A row has a column per language, or a column `translation` of {language: text}. Both sides are text, or `None` for
    null.

    Raises:
        ValueError: the dataset cannot be read, or a row does not name both languages.
    """
    key = "translation.protocols.*.hub"
    source, target = languages
    rows = commits.stream_rows(
        hub.repository,
        hub.configuration,
        hub.revision,
        split,
        key,
    )
    for number, row in enumerate(rows):
        texts = row.get("translation", row)
        # A null translation has no language.
        if not isinstance(texts, dict):
            texts = {}
        for language in languages:
            if language not in texts:
                raise ValueError(
                    f"{key}: {hub.repository} ({hub.revision}), {split} split: row {number} has no {language!r} among "
                    f"{quote_value(list(texts))}; name a dataset of both languages"
                )
        yield texts[source], texts[target]


def keep_sound_pairs(
    sides: Iterable[Sides],
    limit: int | None,
    malformed_share: float,
    name: str,
) -> tuple[Texts, Counter]:
    """Keeps the pairs without a defect, and counts the defects of all other pairs.

    Two defects make a pair malformed: a missing side (null in a row, or a table's line with more or fewer cells than
    the first), and bytes that are not UTF-8. Many of these mean damaged files.

    Args:
        sides: unchecked pairs (source, target).
        limit: largest number of pairs to read, or `None` for all.
        malformed_share: largest share of malformed pairs, in [0, 1].
        name: the name of the pairs for the error, such as the split and file.

    Returns:
        texts: the sound pairs, with white space collapsed.
        counts: the number of all pairs by the key `in`, and of pairs by each defect, such as `empty`.

    Raises:
        ValueError: more than `malformed_share` of the pairs are malformed.
    """
    kept = []
    counts = Counter()
    # Numbers of the malformed pairs, from 1.
    malformed = []
    for number, pair in enumerate(islice(sides, limit), 1):
        counts["in"] += 1
        texts, reason = _read_pair(pair)
        if not reason:
            kept.append(texts)
            continue
        counts[reason] += 1
        if reason in MALFORMED:
            malformed.append(number)
    if len(malformed) > malformed_share * counts["in"]:
        raise ValueError(
            f"{name}: of {counts['in']} pairs, {counts['malformed']} lack a text, or have other cells than the table's "
            f"first line, and {counts['not_utf8']} are not UTF-8, more than filtering.malformed_share "
            f"({malformed_share}) allows; the first is pair {malformed[0]}; fix the files, or raise the share"
        )
    return kept, counts


def _read_pair(pair: Sides) -> tuple[tuple[str, ...], str | None]:
    """Decodes a pair, collapses white space, and finds the first defect.

    Returns (source, target), or () for a pair with a defect; and the defect: malformed (no text), not_utf8, empty (a
    side without a word) or long_word; `None` for a sound pair.
    """
    if not all(isinstance(side, bytes | str) for side in pair):
        return (), "malformed"
    try:
        texts = [_decode_side(side) for side in pair]
    except UnicodeError:
        return (), "not_utf8"
    words_of_sides = [text.split() for text in texts]
    if not all(words_of_sides):
        return (), "empty"
    if max(map(len, chain.from_iterable(words_of_sides))) > LONGEST_WORD:
        return (), "long_word"
    return tuple(" ".join(words) for words in words_of_sides), None


def _decode_side(side: bytes | str) -> str:
    """Decodes a side of a pair; UnicodeError for text with lone surrogates or NUL characters, or not in UTF-8."""
    # A text with lone surrogates cannot be encoded.
    content = side.encode() if isinstance(side, str) else side
    text = content.decode()
    # Latin text in UTF-16 has a NUL at every other position.
    if "\0" in text:
        raise UnicodeError("a NUL character")
    return text
