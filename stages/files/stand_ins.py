"""Recognises what stands in place of data: pointers of Git LFS and git-annex, web pages, links without a target."""

import re
from pathlib import Path

# what a stand-in begins with, its name, and how to get the data
POINTERS = (
    (
        re.compile(rb"version https://git-lfs\.github\.com/spec/"),
        "a Git LFS pointer",
        "run `git lfs pull` in its clone",
    ),
    (re.compile(rb"/annex/objects/[A-Z0-9_]+-s\d+-"), "a git-annex pointer", "run `git annex get` in its clone"),
)
PAGE = (
    re.compile(rb"\s*<(!doctype html|html)\b", re.IGNORECASE),
    "a web page",
    "fetch the file again, from its own address",
)


def require_target(path: Path) -> None:
    """Raises ValueError for a link that leads nowhere."""
    if path.is_symlink() and not path.exists():
        raise ValueError(
            f"{path}: a link to {path.readlink()}, which leads nowhere; fetch its target, as by `git annex get` or "
            "`dvc pull`, or delete the link"
        )


def require_data(path: Path, stand_ins: tuple = (*POINTERS, PAGE)) -> None:
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
    for form, name, remedy in stand_ins:
        if form.match(start):
            raise ValueError(f"{path}: {name} in place of the data; {remedy}")
