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
    """Raises a ValueError for a link whose target is missing."""
    if path.is_symlink() and not path.exists():
        raise ValueError(
            f"{path}: a link to {path.readlink()}, which does not exist; fetch the target, as by `git annex get` or "
            "`dvc pull`, or delete the link"
        )


def require_data(path: Path, stand_ins: dict[bytes, str] = POINTERS | PAGE) -> None:
    """Checks that a file holds data, and no pointer to the data or web page from a failed download.

    `stand_ins` maps a pattern of the first bytes to the message; POINTERS only allows web pages.

    Raises:
        ValueError: the content is forbidden, or the target of a link is missing.
        FileNotFoundError: there is no such file.
    """
    require_target(path)
    with path.open("rb") as file:
        start = file.read(1024)
    for form, found in stand_ins.items():
        if re.match(form, start):
            raise ValueError(f"{path}: {found}")
