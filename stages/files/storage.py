"""Reads, writes, links and hashes files.

A file is written whole or not at all: to a temporary name in the same folder, then renamed; by one process at a time.
"""

import glob
import hashlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from filelock import FileLock, Timeout

if TYPE_CHECKING:
    import pandas as pd

AnyPath = TypeVar("AnyPath", Path, str)


@contextmanager
def temporary_sibling(path: Path) -> Iterator[Path]:
    """Yields a free path next to `path`; the file or folder that the body must make there then replaces `path`.

    When the body raises, what it has made is deleted and `path` stays as it was. What a process that was killed in such
    a body has left is deleted by the next process that writes the same path; a process that still writes is waited for.
    The temporary name begins with a dot, by which readers of the folder know to leave it out.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path):
        for abandoned in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 32}"):
            delete(abandoned)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            yield temporary
            if path.is_dir():  # `os.replace` replaces no folder that holds something
                delete(path)
            os.replace(temporary, path)
        finally:
            delete(temporary)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Runs the body once no other living process writes `path`; prints that it waits after a second of waiting."""
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        lock.acquire(timeout=1)
    except Timeout:
        print(f"{path}: another process is writing it; waiting for its end", flush=True)
        lock.acquire()
    try:
        yield
    finally:
        # deleted while it is held: a process that waits for it finds it gone, and makes another
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def delete(path: Path) -> None:
    """Deletes a file or folder, where there is one."""
    if not path.is_dir():
        return path.unlink(missing_ok=True)
    try:
        shutil.rmtree(path)
    except OSError as error:
        error.filename = str(path)  # the library names the part of the folder alone
        raise


def visible(folder: Path) -> list[Path]:
    """Lists all paths below a folder, sorted, without hidden ones and what lies in them.

    What is hidden is still being written, or was when its process was killed (see `temporary_sibling`).
    """
    paths = sorted(folder.rglob("*"))
    return [path for path in paths if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def write_atomically(path: Path, content: str | bytes) -> None:
    """Writes bytes, or text as UTF-8, to `path`, and makes the folders above it."""
    data = content.encode() if isinstance(content, str) else content
    with temporary_sibling(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # on the disk before the name is, so that no crash of the machine leaves half a file


def write_table(path: Path, frame: "pd.DataFrame") -> None:
    """Writes CSV without the frame's index, with ten significant digits: enough for any statement, equal everywhere."""
    write_atomically(path, frame.to_csv(index=False, lineterminator="\n", float_format="%.10g"))


def place(source: Path | str, target: Path | str) -> None:
    """Gives a finished file a second name, a hard link, or copies it where no link is possible; replaces `target`."""
    Path(target).unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def read_once(number: int) -> Callable[[Callable], Callable]:
    """Returns a decorator that caches a function's results for as long as the files among its arguments do not change.

    It keeps the `number` results used last, which the jobs of a worker share. The function takes hashable arguments by
    position alone, and every Path among them must exist. The arguments alone would be no key: the workers of a cluster
    outlive a stage and may serve several checkouts, in which one relative path names different files.
    """

    def keeping(function: Callable) -> Callable:
        @lru_cache(maxsize=number)
        def cached(states: tuple, *arguments: Any) -> Any:
            return function(*arguments)

        @wraps(function)
        def call(*arguments: Any) -> Any:
            return cached(tuple(_state(path) for path in arguments if isinstance(path, Path)), *arguments)

        return call

    return keeping


def _state(path: Path) -> tuple[Path, int, int, int]:
    """What tells versions of a file apart: its resolved path, inode, size in bytes and time of modification in ns."""
    status = path.stat()
    return path.resolve(), status.st_ino, status.st_size, status.st_mtime_ns


def digests(paths: Iterable[AnyPath]) -> dict[AnyPath, str | None]:
    """Computes the SHA-256 of each file or folder, several at a time; None stands for one that is not there."""
    paths = list(paths)
    with ThreadPoolExecutor() as threads:
        values = threads.map(lambda path: sha256(Path(path)) if Path(path).exists() else None, paths)
        return dict(zip(paths, values, strict=True))


def sha256(path: Path) -> str:
    """Computes the hexadecimal SHA-256 of a file, or of a folder: of its sorted relative names, each with its digest.

    Compiled Python files do not count, so that the digest of a source folder is that of its sources alone.
    """
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        lines = (f"{file.relative_to(path).as_posix()} {sha256(file)}\n" for file in files)
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
