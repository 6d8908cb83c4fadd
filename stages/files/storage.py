"""Reads, writes, links and hashes files.

A file is written whole or not at all, by a single process at a time: to a temporary name in the same folder, then
renamed.
"""

import errno
import glob
import hashlib
import os
import runpy
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

if TYPE_CHECKING:
    import pandas as pd
    from filelock import AcquireReturnProxy

# a full disk or quota, a file that is too large for its file system or for `ulimit -f`, a broken disk
REFUSED_WRITES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
# of a file system without the operation
UNKNOWN_TO_FILE_SYSTEM = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)

# operations of which this process has warned
_warned: set[str] = set()


@contextmanager
def make_temporary_sibling(path: Path) -> Iterator[Path]:
    """Yields a free path next to `path`; the file or folder that the body makes there then replaces `path`.

    If the body raises an error, `path` stays as before.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _hold_lock(path):
        # left by processes that were killed while they wrote
        for abandoned in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 32}"):
            delete_path(abandoned)
        # readers of the folder leave out names that begin with a dot
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            with name_refused_writes(path):
                yield temporary
            # a folder with content cannot be replaced
            if path.is_dir():
                delete_path(path)
            temporary.replace(path)
        finally:
            delete_path(temporary)


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    lock_file = path.with_name(f".{path.name}.lock")
    with acquire_lock(lock_file):
        try:
            yield
        finally:
            # deleted while the lock is held: a waiting process finds the file gone, and makes another
            lock_file.unlink(missing_ok=True)


def acquire_lock(path: Path, wait: bool = True) -> "AcquireReturnProxy":
    """Locks the empty file at `path`, until the end of a `with` over the result; prints a message before waiting.

    Raises:
        Timeout: another process holds the lock, and `wait` is false.
        OSError: the file system gives no lock.
    """
    lock = FileLock(path)
    try:
        return lock.acquire(timeout=1 if wait else 0)
    except Timeout:
        if not wait:
            raise
    except OSError as error:
        # an error with a path comes from making the file
        if error.filename:
            raise
        raise OSError(
            f"{path}: the file system gives no lock ({error.strerror}); "
            "mount the file system with locks, or move to a local disk"
        ) from None
    print(f"{path}: another process holds this lock; waiting; if no process is at work, delete the lock", flush=True)
    return lock.acquire()


@contextmanager
def name_refused_writes(path: Path) -> Iterator[None]:
    """Adds `path` to the error of a refused write in the body, such as for a full disk; the system names no path."""
    try:
        yield
    except OSError as error:
        if error.errno in REFUSED_WRITES and not error.filename:
            error.filename = str(path)
        raise


def delete_path(path: Path) -> None:
    """Deletes a file, folder or link, if the path exists; the target of a link stays."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(path)
    except OSError as error:
        # the library names only the part of the folder that it could not delete
        error.filename = str(path)
        raise


def list_visible(folder: Path) -> list[Path]:
    """Lists all paths below a folder, sorted, without hidden files and folders."""
    return [path for path in sorted(folder.rglob("*")) if not is_hidden(path, folder)]


def is_hidden(path: Path, folder: Path) -> bool:
    """Whether a part of a path below a folder begins with a dot."""
    # editors, desktops and archives leave such files (.DS_Store, .NAME.swp), which are no data
    return any(part.startswith(".") and part != ".." for part in path.relative_to(folder).parts)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Writes bytes, or text as UTF-8, whole or not at all, and makes the folders above."""
    data = content.encode() if isinstance(content, str) else content
    with make_temporary_sibling(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        # the content is on the disk before the name is, so that no crash of the machine leaves half a file
        try:
            os.fsync(file.fileno())
        except OSError as error:
            # any other error means that the content may be lost
            if error.errno not in UNKNOWN_TO_FILE_SYSTEM:
                raise
            _warn_once("fsync", f"{path}: no fsync ({error.strerror}), so a crash of the machine may damage the file")


def make_read_only(path: Path) -> None:
    """Protects a finished file against edits; if the file system refuses, prints a warning."""
    try:
        path.chmod(0o444)
    except OSError as error:
        _warn_once("chmod", f"{path}: cannot be made read-only ({error.strerror}), so do not edit the file")


def _warn_once(operation: str, text: str) -> None:
    if operation not in _warned:
        _warned.add(operation)
        print(f"warning: {text}", file=sys.stderr, flush=True)


def write_table(path: Path, frame: "pd.DataFrame") -> None:
    """Writes a frame as CSV, without index and with ten significant digits, so that all machines write equal bytes."""
    write_atomically(path, frame.to_csv(index=False, lineterminator="\n", float_format="%.10g"))


def link_file(source: Path | str, target: Path | str) -> None:
    """Gives a finished file a second name: a hard link, or a copy if no link is possible.

    `target` is replaced, and the folders above `target` are made.
    """
    # shutil.copytree, which may call this function, gives paths as texts
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    Path(target).unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def read_once(number: int) -> Callable[[Callable], Callable]:
    """Returns a decorator that caches the last `number` results of a function until a file among the arguments changes.

    Arguments are hashable and positional, and every Path must exist.
    """

    # `read_state` resolves paths, because the workers of a cluster may serve several checkouts: equal relative paths
    # may then be different files.
    def decorate(function: Callable) -> Callable:
        # `_states` changes when a file changes, and then the cache has no result for the call
        @lru_cache(maxsize=number)
        def read_cached(_states: tuple, *arguments: Any) -> Any:
            return function(*arguments)

        @wraps(function)
        def call(*arguments: Any) -> Any:
            states = tuple(read_state(path) for path in arguments if isinstance(path, Path))
            return read_cached(states, *arguments)

        return call

    return decorate


def read_state(path: Path) -> tuple[Path, int, int, int]:
    """Returns a key of a version of a file: resolved path, inode, size in bytes and time of modification in ns."""
    status = path.stat()
    return path.resolve(), status.st_ino, status.st_size, status.st_mtime_ns


def read_states(path: Path) -> dict[Path, tuple]:
    """Reads (size in bytes, time of modification in ns) by path, of a file or of every visible file below a folder."""
    # only size and time, which all machines of a shared file system read alike
    files = [path] if path.is_file() else list_visible(path)
    return {file: read_state(file)[2:] for file in files if file.is_file() and "__pycache__" not in file.parts}


def compute_sha256(path: Path) -> str:
    """Computes the SHA-256 of a file, or of a folder: over the sorted names and digests of visible files."""
    if not path.is_dir():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    folder_hash = hashlib.sha256()
    for file in read_states(path):
        folder_hash.update(f"{file.relative_to(path).as_posix()} {compute_sha256(file)}\n".encode())
    return folder_hash.hexdigest()


# `attention`, a package that can be copied alone, has the function, for fingerprints of jobs and for users' operators.
# Loaded by path, because an import of the package would import torch.
_SOURCE = Path(__file__).parents[1] / "attention/source.py"
compute_source_digest = runpy.run_path(str(_SOURCE))["compute_source_digest"]
