"""Where files lie that several stages read, and how files are written.

Whole or not at all: to a temporary name in the same folder, then renamed.
"""

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TASK_FOLDER = Path("data/tasks")  # below it TASK/SPLIT.parquet
TOKENIZER = Path("data/tokens/tokenizer/tokenizer.json")


@contextmanager
def temporary_sibling(path: Path) -> Iterator[Path]:
    """Yields a free path beside `path`; what stands there afterwards (file or folder) replaces `path`.

    When the body raises, the temporary file is deleted and `path` stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield temporary
        if path.is_dir():
            shutil.rmtree(path)
        os.replace(temporary, path)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.unlink(missing_ok=True)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Writes UTF-8 text or bytes to `path`, with the folders above it; on the disk before the name is."""
    data = content.encode() if isinstance(content, str) else content
    with temporary_sibling(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def place(source: Path | str, target: Path | str) -> None:
    """Gives a finished file a second name, or a copy where the file system has no links."""
    Path(target).unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def sha256(path: Path) -> str:
    """Hexadecimal digest of a file, or of a folder: its sorted relative names, each with its file's digest.

    Compiled Python files do not count, so that the digest of a source folder is that of its sources.
    """
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        lines = (f"{file.relative_to(path).as_posix()} {sha256(file)}\n" for file in files)
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
