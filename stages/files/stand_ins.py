"""Recognises what stands in place of data: pointers of Git LFS and git-annex, web pages, links without a target."""

import re
from pathlib import Path

# what a stand-in begins with; its name, and how to get the data
POINTERS = {
    rb"version https://git-lfs\.github\.com/spec/": (
        "a Git LFS pointer in place of the data; run `git lfs pull` in its clone"
    ),
    rb"/annex/objects/[A-Z0-9_]+-s\d+-": "a git-annex pointer in place of the data; run `git annex get` in its clone",
}
PAGE = {
    rb"(?i)\s*<(!doctype html|html)\b": "a web page in place of the data; fetch the file again, from its own address"
}


def require_target(path: Path) -> None:
    """Raises ValueError for a link that leads nowhere."""
    if path.is_symlink() and not path.exists():
        raise ValueError(
            f"{path}: a link to {path.readlink()}, which leads nowhere; fetch the target, as by `git annex get` or "
            "`dvc pull`, or delete the link"
        )


def require_data(path: Path, stand_ins: dict[bytes, str] = POINTERS | PAGE) -> None:
    """Checks that a file holds data.

    Args:
        path: the file.
        stand_ins: what the file must not be; POINTERS for a text that may itself be a web page.

    Raises:
        ValueError: the file is a stand-in, or a link that leads nowhere; the message says how to get the data.
        FileNotFoundError: there is no such file.
    """
    require_target(path)
    with path.open("rb") as file:
        start = file.read(1024)
    for form, found in stand_ins.items():
        if re.match(form, start):
            raise ValueError(f"{path}: {found}")
