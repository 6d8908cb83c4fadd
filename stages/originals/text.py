"""The files of the corpus: those below a folder, or in a repository of the hub, that match the patterns of a user."""

import glob
from collections.abc import Callable, Iterable
from pathlib import Path

from stages.files.stand_ins import require_target
from stages.files.storage import is_hidden
from stages.records import reading


def find_files(root: Path, patterns: Iterable[str], key: str = "corpus.files") -> list[Path]:
    """Lists the files below a folder that match some patterns, without hidden files, in the order of `match_files`.

    Args:
        root: the folder, with which the paths begin.
        patterns: glob patterns of paths below the folder.
        key: the key of params.yaml that has the patterns, for the message of an error.

    Raises:
        ValueError: a pattern matches no file, a file of unknown form, or no ordinary file, such as a broken link.
    """

    def matches(pattern: str) -> list[Path]:
        try:
            paths = set(root.glob(pattern))
        # Absolute or empty patterns.
        except (NotImplementedError, ValueError):
            return []
        # Path.glob may leave out broken links.
        paths.update(root / name for name in glob.glob(pattern, root_dir=root))  # noqa: PTH207
        files = [path for path in paths if not path.is_dir() and not is_hidden(path, root)]
        for path in files:
            require_target(path)
            if not path.is_file():
                raise ValueError(f"{key}: {path}: no ordinary file; delete the file or narrow the pattern `{pattern}`")
        return files

    return match_files(patterns, matches, key, f"below {root.absolute()}")


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
            raise ValueError(f"{key}: `{pattern}` matches no file {where}; correct the pattern or the folder")
        for path in reading.sort_naturally(matched):
            find_form(path, key)
            paths[path] = None
    return list(paths)


def find_form(path: Path, key: str = "corpus.files") -> str:
    """Returns the form of a file: ".jsonl", ".txt" or ".raw"; ValueError, naming the key, for another suffix."""
    suffixes = [suffix for suffix in path.suffixes if suffix not in reading.DECOMPRESSION]
    if not suffixes or suffixes[-1] not in (".jsonl", ".txt", ".raw"):
        raise ValueError(
            f"{key}: {path} is of no known form; known are .jsonl, .txt and .raw, alone or with .zst or .gz"
        )
    return suffixes[-1]
