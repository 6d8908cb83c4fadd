"""Reads from the Hugging Face hub at one commit, which the record of a run then names."""

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
    """Finds the commit that a branch or tag names; a process asks once, so that all it reads is of one commit.

    Args:
        repository, revision: a name on the hub, or a folder of the same layout; a commit, branch or tag.
        key: the key of params.yaml that names the repository, for the message of an error.
        kind: `dataset` or `model`.

    Returns:
        The commit, 40 hexadecimal digits; `revision` unchanged where it is a commit or `repository` is a folder.

    Raises:
        ValueError: the hub cannot be reached, or has no such revision.
    """
    if Path(repository).is_dir() or COMMIT.fullmatch(revision):
        return revision
    from huggingface_hub import HfApi

    with explained(f"{key}: {repository} ({revision})"):
        return HfApi().repo_info(repository, revision=revision, repo_type=kind, timeout=30).sha  # seconds


def named(repository: str, revision: str) -> str:
    """Returns how a run records what it has read: REPOSITORY@REVISION, or just the folder where `repository` is one."""
    return repository if Path(repository).is_dir() else f"{repository}@{revision}"


def dataset(
    repository: str, configuration: str | None, revision: str, split: str, key: str, columns: Iterable[str]
) -> "tuple[datasets.Dataset, str]":
    """Loads a split of a dataset of the hub, or of a folder of the same layout.

    Args:
        repository, revision, key: as in `commit`.
        configuration: the name of one of the dataset's configurations; None where it has only one.
        split, columns: the split's name, and the names of the columns that the dataset must have.

    Returns:
        The rows, and the text by which a run records where they come from (`named`, with the commit).

    Raises:
        ValueError: the dataset cannot be had, or lacks a column.
    """
    import datasets

    revision = commit(repository, revision, key)
    with explained(f"{key}: {repository} ({configuration}, {split}, {revision})"):
        if Path(repository).is_dir():
            # `datasets` caches rows under the last part of the folder's name, and would return those of another folder
            # of that name, or of this one before a change (seen with version 5.2): no cache outlives the call.
            with TemporaryDirectory() as cache:
                options = {"cache_dir": cache, "keep_in_memory": True}  # in memory, as the folder is deleted here
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
    """Turns errors of the hub's libraries into a ValueError that begins with `what`: a key, and what the key names."""
    from datasets.exceptions import DatasetsError
    from huggingface_hub.errors import HTTPError  # of whichever HTTP library the hub's package uses

    try:
        yield
    except StopIteration:  # of the library, where the first file is empty
        raise ValueError(f"{what} has no rows; {REMEDY}") from None
    except (OSError, ValueError, HTTPError, DatasetsError) as error:
        raise ValueError(f"{what} cannot be loaded ({error}); {REMEDY}") from None
