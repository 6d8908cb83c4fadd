"""Files that tests write."""

import gzip
from pathlib import Path

from stages.files.compression import zstd


def write_file(path: Path, content: bytes | str) -> Path:
    """Writes a file, compressed according to the suffix, in a folder that may be missing; returns the path."""
    if isinstance(content, str):
        content = content.encode()
    match path.suffix:
        case ".zst":
            content = zstd.compress(content)
        case ".gz":
            content = gzip.compress(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
