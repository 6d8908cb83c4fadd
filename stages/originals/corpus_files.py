"""Finds the files of the corpus, below a folder or in a hub repository, by the user's glob patterns.

`key` is the key of params.yaml that has the patterns, for error messages.
"""

import glob
from collections.abc import Callable, Iterable
from pathlib import Path

from stages.files.stand_ins import require_target
from stages.files.storage import is_hidden
from stages.records import reading


def find_files(root: Path, patterns: Iterable[str], key: str = "corpus.files") -> list[Path]:
    """Lists the files below `root` that match some patterns, without hidden files.

    Paths begin with `root`. Each file comes once: by pattern, then `part_2` before `part_10`.

    Raises:
        ValueError: a pattern matches no file, a file of unknown form, or no ordinary file, such as a broken link.
    """

    def match(pattern: str) -> list[Path]:
        try:
            paths = set(root.glob(pattern))
        # Path.glob refuses absolute and empty patterns, which then match no file.
        except (NotImplementedError, ValueError):
            return []
        # only for `**`, because this looks at all files below the folder
        below = root.rglob("*") if "**" in pattern else ()
        for path in below:
            if path.is_symlink() and path.is_dir():
                raise ValueError(
                    f"{key}: {path}: a link to a folder, which ** does not follow; name its files without **"
                )
        # Path.glob may leave out broken links, which are an error below.
        paths.update(root / name for name in glob.glob(pattern, root_dir=root))  # noqa: PTH207
        # the pattern a[1].txt matches a1.txt, but names the file a[1].txt if the file exists
        if (root / pattern).is_file():
            paths = {root / pattern}
        files = [path for path in paths if not path.is_dir() and not is_hidden(path, root)]
        for path in files:
            require_target(path)
            if not path.is_file():
                raise ValueError(
                    f"{key}: {path}: not an ordinary file; delete the file or narrow the pattern `{pattern}`"
                )
        return files

    return match_files(patterns, match, key, f"below {root.absolute()}")


def match_files(
    patterns: Iterable[str],
    match: Callable[[str], list[Path]],
    key: str,
    where: str,
) -> list[Path]:
    """Lists the files that match some patterns, each once: by pattern, then `part_2` before `part_10`.

    Args:
        patterns: glob patterns of paths.
        match: returns the files that match a pattern.
        key: the key of params.yaml that has the patterns, for error messages.
        where: the searched place, for error messages.

    Raises:
        ValueError: a pattern matches no file, or a file of unknown form, or a file comes twice.
    """
    # the files by path without a suffix of compression: a.txt and a.txt.gz have the same content
    paths: dict[Path, Path] = {}
    for pattern in patterns:
        matched = match(pattern)
        if not matched:
            raise ValueError(f"{key}: `{pattern}` matches no file {where}; fix the pattern or add the files")
        for path in reading.sort_naturally(matched):
            find_form(path, key)
            # documents that come twice, by a link or compressed, could be used in training and be held out
            content = path.resolve()
            if content.suffix in reading.DECOMPRESSION:
                content = content.with_suffix("")
            other = paths.setdefault(content, path)
            if other != path:
                raise ValueError(f"{key}: {other} and {path} are the same documents by name; remove or rename one")
    return list(paths.values())


def find_form(path: Path, key: str = "corpus.files") -> str:
    """Returns the form of a file: `.jsonl` for `part_1.jsonl.zst`; other forms are `.txt` and `.raw`.

    Raises:
        ValueError: the file has another suffix.
    """
    suffixes = [suffix for suffix in path.suffixes if suffix not in reading.DECOMPRESSION]
    if not suffixes or suffixes[-1] not in (".jsonl", ".txt", ".raw"):
        raise ValueError(f"{key}: {path} has an unknown form; use .jsonl, .txt or .raw, alone or with .zst or .gz")
    return suffixes[-1]
