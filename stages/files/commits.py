"""Reads from the Hugging Face hub at a fixed commit, which the record of a run then names."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from stages.files.quoting import quote_value
from stages.files.stand_ins import POINTERS, require_data
from stages.files.storage import list_visible

if TYPE_CHECKING:
    import datasets

COMMIT = re.compile(r"[0-9a-f]{40}")
REMEDY = (
    "correct the name; for a gated repository, set HF_TOKEN or run `hf auth login` (and accept the terms on the hub); "
    "without a network, give a commit as the revision; or use another data.source"
)


@cache
def find_commit(repository: str, revision: str, key: str, kind: str = "dataset") -> str:
    """Finds the commit that a branch or tag names, once in a process, so that all data are of the same commit.

    Args:
        repository: a name on the hub, or a folder of the same layout.
        revision: a commit, branch or tag.
        key: the key of params.yaml that names the repository, for errors.
        kind: `dataset` or `model`.

    Returns:
        The commit; `revision` unchanged if already a commit, or if `repository` is a folder.

    Raises:
        ValueError: the hub cannot be reached, or has no such revision.
    """
    if is_folder(repository) or COMMIT.fullmatch(revision):
        return revision
    from huggingface_hub import HfApi

    with explain_errors(f"{key}: {repository} ({revision})"):
        # the time is in seconds
        found: Any = HfApi().repo_info(repository, revision=revision, repo_type=kind, timeout=30)
        return found.sha


def is_folder(repository: str) -> bool:
    """Whether a repository is a folder on this machine, not on the hub."""
    # Path.is_dir raises an error for a name that the file system finds too long
    return os.path.isdir(repository)  # noqa: PTH112


def require_files(repository: str) -> None:
    """Raises a ValueError if a repository is a folder with a Git LFS or git-annex pointer in place of a file."""
    if is_folder(repository):
        for path in list_visible(Path(repository)):
            if not path.is_dir():
                require_data(path, POINTERS)


def name_source(repository: str, revision: str) -> str:
    """Names a source in the record of a run: `glue@1a2b3c` for a repository of the hub, the path of a folder."""
    return repository if is_folder(repository) else f"{repository}@{revision}"


def load_split(
    repository: str, configuration: str | None, revision: str, split: str, key: str, columns: Iterable[str]
) -> "tuple[datasets.Dataset, str]":
    """Loads a split of a dataset of the hub, or of a folder of the same layout.

    `configuration` is `None` if there is no choice; `key` names the repository in params.yaml, for errors. Returns the
    rows, and the name of the source (`name_source`).

    Raises:
        ValueError: the dataset cannot be loaded, or lacks one of `columns`.
    """
    import datasets

    revision = find_commit(repository, revision, key)
    with explain_errors(f"{key}: {repository} ({configuration}, {split}, {revision})", repository):
        if is_folder(repository):
            # `datasets` caches rows under the last part of the folder's path. A kept cache would return rows of another
            # folder with an equal last part, or rows of this folder before a change (seen with version 5.2). Rows are
            # kept in memory, because the cache is deleted here.
            with TemporaryDirectory() as cache_folder:
                data = datasets.load_dataset(
                    repository, configuration, split=split, cache_dir=cache_folder, keep_in_memory=True
                )
        else:
            data = datasets.load_dataset(repository, configuration, split=split, revision=revision)
    missing = [name for name in columns if name not in data.column_names]
    if missing:
        require_files(repository)
        raise ValueError(
            f"{key}: {repository} ({configuration}): no column {', '.join(missing)} among "
            f"{quote_value(data.column_names)}; name a repository with this column"
        )
    return data, name_source(repository, revision)


def stream_rows(repository: str, configuration: str | None, revision: str, split: str, key: str) -> Iterator[dict]:
    """Streams the rows of a split, like `load_split`, but at a given commit and one by one."""
    import datasets

    with explain_errors(f"{key}: {repository} ({configuration}, {split}, {revision})", repository):
        yield from datasets.load_dataset(repository, configuration, split=split, streaming=True, revision=revision)


@contextmanager
def explain_errors(subject: str, repository: str = "") -> Iterator[None]:
    """Turns errors of the hub's libraries into a ValueError that begins with `subject` and ends with a remedy."""
    from datasets.exceptions import DatasetsError

    # the hub's package re-exports this error of the HTTP library in use
    from huggingface_hub.errors import HTTPError  # pyright: ignore[reportPrivateImportUsage]

    try:
        yield
    # raised by the library if the first file is empty
    except StopIteration:
        raise ValueError(f"{subject} has no rows; {REMEDY}") from None
    # a RuntimeError comes from a repository with a script
    except (OSError, ValueError, RuntimeError, HTTPError, DatasetsError) as error:
        # a pointer in place of a file, in a local folder, gets another error
        require_files(repository)
        raise ValueError(f"{subject} cannot be loaded ({quote_value(error)}); {REMEDY}") from None
