"""What is read from the Hugging Face hub is read, and recorded, at one commit."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datasets

COMMIT = re.compile(r"[0-9a-f]{40}")
REMEDY = (
    "mend the name, set HF_TOKEN or run `hf auth login` where it is gated (and accept its terms on the hub), give a "
    "commit as the revision where there is no network, or use another data.source"
)


@cache
def commit(repository: str, revision: str, key: str, kind: str = "dataset") -> str:
    """Finds the commit that a branch or tag names now; a process asks once and keeps to the answer.

    Args:
        repository: a name on the hub, or a folder of the same layout.
        revision: a commit, branch or tag.
        key: the key of params.yaml that names the repository, for the message of an error.
        kind: `dataset` or `model`.

    Returns:
        The commit; `revision` itself where it is one, and for a folder.

    Raises:
        ValueError: the hub cannot be reached, or has no such revision.
    """
    if Path(repository).is_dir() or COMMIT.fullmatch(revision):
        return revision
    from huggingface_hub import HfApi

    with explained(f"{key}: {repository} ({revision})"):
        return HfApi().repo_info(repository, revision=revision, repo_type=kind, timeout=30).sha


def named(repository: str, revision: str) -> str:
    """How a run records what it read: REPOSITORY@COMMIT, or the folder."""
    return repository if Path(repository).is_dir() else f"{repository}@{revision}"


def dataset(
    repository: str, configuration: str | None, revision: str, split: str, key: str, columns: Iterable[str]
) -> "tuple[datasets.Dataset, str]":
    """Loads a split of a dataset of the hub, or of a folder of the same layout.

    Args:
        repository: the name on the hub, or the folder.
        configuration: one of its configurations; None where it has one only.
        revision: a commit, branch or tag.
        split: the split's name.
        key: the key of params.yaml that names the repository, for the message of an error.
        columns: that the dataset must have.

    Returns:
        The rows, and where they are from, as `named` says it.

    Raises:
        ValueError: the dataset cannot be had, or lacks a column.
    """
    import datasets

    revision = commit(repository, revision, key)
    with explained(f"{key}: {repository} ({configuration}, {split}, {revision})"):
        if Path(repository).is_dir():
            # datasets keeps what it has read of a folder under the last part of its name, and would give the rows of
            # another folder of that name, or of this one before a change (seen with its version 5.2).
            with TemporaryDirectory() as cache:
                options = {"cache_dir": cache, "keep_in_memory": True}
                data = datasets.load_dataset(repository, configuration, split=split, **options)
        else:
            data = datasets.load_dataset(repository, configuration, split=split, revision=revision)
    if missing := [name for name in columns if name not in data.column_names]:
        raise ValueError(
            f"{key}: {repository} ({configuration}): no column {', '.join(missing)} among "
            f"{', '.join(data.column_names)}; name a repository that has it"
        )
    return data, named(repository, revision)


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Makes one clear error of what the hub's libraries raise in the body. what: the key and what it names."""
    from datasets.exceptions import DatasetsError
    from huggingface_hub.errors import HTTPError  # of whatever library it speaks HTTP with

    try:
        yield
    except (OSError, ValueError, HTTPError, DatasetsError) as error:
        raise ValueError(f"{what} cannot be loaded ({error}); {REMEDY}") from None
