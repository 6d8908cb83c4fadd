"""Recognises files without their data: pointers of Git LFS and git-annex, web pages, links without a target."""

import re
from pathlib import Path

# the first bytes of a pointer; the name of the pointer, and how to get the data
POINTERS = {
    rb"version https://git-lfs\.github\.com/spec/": (
        "a Git LFS pointer in place of the data; run `git lfs pull` in the clone"
    ),
    rb"/annex/objects/[A-Z0-9_]+-s\d+-": "a git-annex pointer in place of the data; run `git annex get` in the clone",
}
PAGE = {
    rb"(?i)\s*<(!doctype html|html)\b": (
        "a web page in place of the data; fetch the file again, from the address of the data"
    )
}


def require_target(path: Path) -> None:
    """Raises a ValueError for a link with a missing target."""
    if path.is_symlink() and not path.exists():
        raise ValueError(
            f"{path}: a link to {path.readlink()}, which does not exist; fetch the target, as by `git annex get` or "
            "`dvc pull`, or delete the link"
        )


def require_data(path: Path, stand_ins: dict[bytes, str] = POINTERS | PAGE) -> None:
    """Checks that a file holds data, and no pointer to the data or web page from a failed download.

    `stand_ins` maps a pattern of the first bytes to the message. ValueError says how to get the data.
    """
    require_target(path)
    with path.open("rb") as file:
        start = file.read(1024)
    for pattern, message in stand_ins.items():
        if re.match(pattern, start):
            raise ValueError(f"{path}: {message}")
