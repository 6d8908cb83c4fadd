"""Reads sentence pairs of original files and of hub datasets, and counts every bad pair by its reason.

Files: NAME.SOURCE and NAME.TARGET with one sentence per line (SOURCE and TARGET are the languages' names), or one .tsv
whose first line names its columns, the languages among them. Lines are read one by one; memory has what is kept.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from stages.files import commits
from stages.records import reading
from stages.schema.sections import Hub

LONGEST_WORD = 1000  # characters; to cut one into sub-words takes a time that grows with the square of its length
MALFORMED = ("malformed", "not_utf8")  # defects that cast doubt on the whole file

Sides = tuple[bytes | str | None, bytes | str | None]  # source and target as they were read
Texts = list[tuple[str, str]]  # source and target of every sound pair


def from_files(root: Path, name: str, languages: tuple[str, str]) -> Iterator[Sides]:
    """Reads the pairs of a split in their order.

    Args:
        root: the folder that data.root in params.yaml names.
        name: of a table below `root` if it ends in .tsv; otherwise of two files, without the languages' names.
        languages: names of source and target.

    Yields:
        Both sides as bytes; (None, None) for a line of a table with more or fewer cells than its first line.

    Raises:
        ValueError: a file is missing, two files have different numbers of lines, or a table has no such columns.
    """
    paths = [root / name] if name.endswith(".tsv") else [root / f"{name}.{language}" for language in languages]
    for path in paths:
        if not path.is_file():
            raise ValueError(
                f"{path}: no such file; translation.protocols.*.files names pairs below data.root ({root})"
            )
    if len(paths) == 1:
        lines = reading.lines(paths[0])  # the first of them, if it is no UTF-8, will lack the languages
        header = [column.strip() for column in next(lines, b"").decode(errors="replace").split("\t")]
        places = reading.places(paths[0], header, languages, "name the columns by their languages")
        for line in lines:
            cells = line.split(b"\t")
            yield tuple(cells[place] if len(cells) == len(header) else None for place in places)
        return
    numbers = [sum(1 for _ in reading.lines(path)) for path in paths]
    if numbers[0] != numbers[1]:
        counts = " and ".join(f"{path} has {number:,}" for path, number in zip(paths, numbers, strict=True))
        raise ValueError(f"{counts} lines; line N of one must translate line N of the other: mend the files")
    yield from zip(*map(reading.lines, paths), strict=True)


def from_hub(hub: Hub, split: str, languages: tuple[str, str]) -> Iterator[Sides]:
    """Reads pairs of a dataset whose rows have a column per language, or a column `translation` of {language: text}.

    Args:
        hub, split, languages: where the dataset is, at a commit; name of the split; names of source and target.

    Yields:
        Both sides as text; None for one that is null in the row.

    Raises:
        ValueError: the dataset cannot be read, or a row does not name both languages.
    """
    import datasets

    with commits.explained(f"translation.protocols.*.hub: {hub.repository} ({hub.revision}), {split}"):
        rows = datasets.load_dataset(
            hub.repository, hub.configuration, split=split, streaming=True, revision=hub.revision
        )
        for number, row in enumerate(rows):
            texts = row.get("translation", row)
            missing = [language for language in languages if not isinstance(texts, dict) or language not in texts]
            if missing:
                present = ", ".join(texts) if isinstance(texts, dict) else ""
                raise ValueError(f"row {number} has no {missing[0]!r} among {present or 'nothing'}")
            yield tuple(texts[language] for language in languages)


def cleaned(sides: Iterable[Sides], limit: int | None, malformed_share: float, what: str) -> tuple[Texts, Counter]:
    """Keeps the pairs that are sound.

    Args:
        sides, limit: pairs as they were read; how many of them to read at most, None for all.
        malformed_share: share of the pairs, in [0, 1], that may have a defect in MALFORMED.
        what: names the pairs in an error.

    Returns:
        The sound pairs, with white space collapsed; and the number of all pairs read, with the key `in`, and of the
        pairs with each defect, with the name that `_read` gives it as the key.

    Raises:
        ValueError: too many pairs are malformed.
    """
    kept, fates, first = [], Counter(), None
    for number, pair in enumerate(islice(sides, limit), 1):
        fates["in"] += 1
        texts, reason = _read(pair)
        if reason:
            fates[reason] += 1
            first = first or (number if reason in MALFORMED else None)
        else:
            kept.append(texts)
    malformed = sum(fates[reason] for reason in MALFORMED)
    if malformed > malformed_share * fates["in"]:
        raise ValueError(
            f"{what}: {malformed} of {fates['in']} pairs are no text in UTF-8, more than filtering.malformed_share "
            f"({malformed_share}) allows, the first of them pair {first}; save the files as UTF-8, or raise the share"
        )
    return kept, fates


def apart(training: tuple[Texts, Counter], held_out: Iterable[tuple[str, str]]) -> tuple[Texts, Counter]:
    """Drops pairs that are also held out from what `cleaned` returned, and counts them as `also_held_out`."""
    texts, fates = training
    repeated = {*held_out}.intersection(texts)
    kept = [pair for pair in texts if pair not in repeated]
    return kept, fates + Counter(also_held_out=len(texts) - len(kept))  # a sum of Counters has no counts of 0


def _read(pair: Sides) -> tuple[tuple[str, ...], str | None]:
    """Decodes a pair and collapses its white space.

    Returns (source, target) and None, or () and the defect: malformed (no text), not_utf8, empty (a side without a
    word) or long_word (a word over LONGEST_WORD). A str goes through UTF-8, too, which finds lone surrogates.
    """
    if not all(isinstance(side, bytes | str) for side in pair):
        return (), "malformed"
    try:
        texts = [(side.encode() if isinstance(side, str) else side).decode() for side in pair]
    except UnicodeError:
        return (), "not_utf8"
    if any("\0" in text for text in texts):  # as UTF-16 has at every other place
        return (), "not_utf8"
    words = [text.split() for text in texts]
    if not all(words):
        return (), "empty"
    if max(map(len, chain(*words))) > LONGEST_WORD:
        return (), "long_word"
    return tuple(map(" ".join, words)), None
