"""Lines of plain or compressed files, with memory bounded by the longest line, and a writer of zstd lines.

Compression follows from the last suffix: .zst (windows up to 2 GiB, as `zstd --long=31` writes them; several
frames), .gz, or none. A file that ends too early or cannot be decompressed is an error that names it: no
document may be lost because a download stopped.
"""

import gzip
import io
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import zstandard

CHUNK = 1 << 16  # compressed bytes read at once; text of the usual ratios becomes a few hundred kB
LARGEST_WINDOW = 1 << 31
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
REMEDY = "fetch the file again, or take it out of the list of inputs"


def lines(path: Path) -> Iterator[bytes]:
    """Lines without their line feed, otherwise byte for byte. A byte order mark belongs to no line.

    ValueError when the file is truncated or corrupt; FileNotFoundError when it is not there.
    """
    unfinished: list[bytes] = []
    first = True
    for block in blocks(path):
        if first:
            block, first = block.removeprefix(BYTE_ORDER_MARK), False
        head, *rest = block.split(b"\n")
        unfinished.append(head)
        if rest:
            yield b"".join(unfinished)
            unfinished = [rest.pop()]
            yield from rest
    if last := b"".join(unfinished):
        yield last


def blocks(path: Path) -> Iterator[bytes]:
    """Decompressed content in blocks of any size. Errors as in `lines`."""
    with path.open("rb") as file:
        if path.suffix in (".zst", ".gz") and not file.peek(1):
            raise ValueError(f"{path}: empty, not a compressed file; {REMEDY}")
        try:
            yield from DECOMPRESSION.get(path.suffix, _plain_blocks)(file)
        except EOFError:
            raise ValueError(f"{path}: truncated, its last compressed frame is not complete; {REMEDY}") from None
        except (zstandard.ZstdError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}: not a sound {path.suffix} file ({error}); {REMEDY}") from None


def _plain_blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(1 << 20):
        yield block


def _gzip_blocks(file: BinaryIO) -> Iterator[bytes]:
    with gzip.open(file) as content:
        yield from _plain_blocks(content)


def _zstd_blocks(file: BinaryIO) -> Iterator[bytes]:
    """EOFError where a frame is cut off, which the library's own stream reader takes for an end."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
    frame = None
    while data := file.read(CHUNK):
        while data:
            frame = frame or decompressor.decompressobj()
            yield frame.decompress(data)
            data = b""
            if frame.eof:
                data, frame = frame.unused_data, None
    if frame is not None:
        raise EOFError


DECOMPRESSION: dict[str, Callable[[BinaryIO], Iterator[bytes]]] = {".zst": _zstd_blocks, ".gz": _gzip_blocks}


@contextmanager
def zstd_writer(path: Path) -> Iterator[BinaryIO]:
    """A file whose bytes are compressed (level 3, with a checksum). The same bytes give the same file."""
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
    with zstandard.open(path, "wb", cctx=compressor) as file, io.BufferedWriter(file, 1 << 20) as buffer:
        yield buffer


def place(source: Path, target: Path) -> None:
    """Gives a finished file a second name, or a copy where the file system has no links."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def in_natural_order(paths: list[Path]) -> list[Path]:
    """By folder and name, with numbers by value: part_2 stands before part_10."""
    return sorted(paths, key=lambda path: [_number_or_text(part) for part in re.split(r"(\d+)", path.as_posix())])


def _number_or_text(part: str) -> tuple[int, int, str]:
    return (0, int(part), "") if part.isdecimal() else (1, 0, part)


def shards(folder: Path) -> list[Path]:
    """The files *.jsonl.zst of a folder, in natural order. ValueError when there is none."""
    found = in_natural_order(list(folder.glob("*.jsonl.zst")))
    if not found:
        raise ValueError(f"{folder}: no shard *.jsonl.zst; run `dvc repro` to make them")
    return found
