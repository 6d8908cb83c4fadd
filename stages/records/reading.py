"""Lines of plain or compressed files, with memory bounded by the longest line, and a writer of zstd lines.

Compression follows from the last suffix: .zst (windows up to 2 GiB, as `zstd --long=31` writes them; several
frames), .gz, or none. A file that ends too early or cannot be decompressed is an error that names it: no
document may be lost because a download stopped. Memory: twice the longest line, BLOCK and the file's window,
whatever the file's size and however far it expands. A shard is one file of a corpus, with a document in each line.
"""

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from stages.files.compression import zstd

BLOCK = 1 << 18  # bytes of whole lines that are handled at once; more would leave a core's own cache
LARGEST_WINDOW = 31  # as a power of two, in bytes
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
REMEDY = "fetch the file again, or take it out of the list of inputs"


def lines(path: Path) -> Iterator[bytes]:
    """Yields lines without their line feed, otherwise byte for byte. A byte order mark belongs to no line.

    An empty file has no lines, and no empty line follows a last line feed. ValueError when the file is truncated or
    corrupt; FileNotFoundError when it is not there.
    """
    for block in line_blocks(path):
        yield from block.split(b"\n")


def texts(path: Path) -> Iterator[str]:
    """Yields lines as text, without their ends (LF, CR LF). ValueError as in `lines`, and for what is no UTF-8."""
    for number, line in enumerate(lines(path), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {number}: not UTF-8 ({error.reason}); convert the file to UTF-8") from None
        if "\0" in text:  # UTF-16 has it at every other place of Latin text
            raise ValueError(f"{path}, line {number}: a NUL character, so not UTF-8; convert the file to UTF-8")
        yield text.removesuffix("\r")


def places(path: Path, header: list[str], names: Iterable[str], remedy: str) -> list[int]:
    """Finds columns of a table by their names in its first line.

    Args:
        path: the table, for the message of an error.
        header: the names of all columns, in order.
        names: the names of the columns to find.
        remedy: the end of the message about a missing column.

    Returns:
        The place of each name in `header`, from 0: ["b"] in ["a", "b"] gives [1].

    Raises:
        ValueError: a name is missing or given twice in the header.
    """
    absent = [name for name in names if name not in header]
    if absent:
        raise ValueError(f"{path}, line 1: no column {', '.join(absent)} among {', '.join(header) or 'none'}; {remedy}")
    for name in names:
        if header.count(name) > 1:
            raise ValueError(f"{path}, line 1: the column {name!r} stands there twice; delete or rename one")
    return [header.index(name) for name in names]


def line_blocks(path: Path) -> Iterator[bytes]:
    """Yields whole lines joined by line feeds: one, or several of about BLOCK bytes together. Errors as in `lines`."""
    for number, block in enumerate(_whole_lines(path)):
        yield block if number else block.removeprefix(BYTE_ORDER_MARK)


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Yields what `line_blocks` does, but with the byte order mark; what follows the last line feed waits for more."""
    waiting: list[bytes] = []
    size = 0
    for piece in blocks(path):
        size += len(piece)
        # -1: too few bytes, or no end of a line among them
        cut = piece.rfind(b"\n") if size >= BLOCK else -1
        if cut < 0:
            waiting.append(piece)
            continue
        block = b"".join([*waiting, piece[:cut]])
        rest = piece[cut + 1 :]
        waiting, size = [rest], len(rest)
        yield block
    rest = b"".join(waiting)
    if rest:
        yield rest.removesuffix(b"\n")


def blocks(path: Path) -> Iterator[bytes]:
    """Yields the decompressed content in blocks of BLOCK bytes at most, cut anywhere. Errors as in `lines`."""
    with path.open("rb") as file:
        # decompression would take an empty file for one without content
        if path.suffix in (".zst", ".gz") and not file.peek(1):
            raise ValueError(f"{path}: empty, not a compressed file; {REMEDY}")
        try:
            with DECOMPRESSION.get(path.suffix, nullcontext)(file) as content:
                while block := content.read(BLOCK):
                    yield block
        except EOFError:
            raise ValueError(f"{path}: truncated, its last compressed frame is not complete; {REMEDY}") from None
        except (zstd.ZstdError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}: not a sound {path.suffix} file ({error}); {REMEDY}") from None


DECOMPRESSION: dict[str, Callable] = {
    ".zst": partial(zstd.open, options={zstd.DecompressionParameter.window_log_max: LARGEST_WINDOW}),
    ".gz": gzip.open,
}


@contextmanager
def zstd_writer(path: Path, level: int = 3) -> Iterator[BinaryIO]:
    """Opens a file that compresses the bytes written to it; equal bytes give equal files.

    path: is begun anew. level: of compression (3 is Zstandard's default); a checksum ends the file whatever it is.
    """
    options = {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.checksum_flag: 1,
    }
    with zstd.open(path, "wb", options=options) as file:
        # begins a frame, so that a file without lines is a valid file and not an empty one
        file.write(b"")
        with io.BufferedWriter(file, 1 << 20) as buffer:
            yield buffer


def in_natural_order(paths: list[Path]) -> list[Path]:
    """Sorts paths as texts, but numbers in them by value: part_2 stands before part_10, and part_02 before both."""
    return sorted(paths, key=_natural)


def _natural(path: Path) -> tuple[list[tuple[int, int, str]], str]:
    """Returns a sort key with numbers before texts; of part_2 and part_02 the text decides, not which came first."""
    parts = re.split(r"(\d+)", path.as_posix())  # the brackets keep the numbers among the parts
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts], path.as_posix()


def shards(folder: Path) -> list[Path]:
    """The files *.jsonl.zst of a folder, in natural order. ValueError when there is none."""
    paths = in_natural_order(list(folder.glob("*.jsonl.zst")))
    if not paths:
        raise ValueError(f"{folder}: no shard *.jsonl.zst; run `dvc repro` to make them")
    return paths


def by_shard(numbers: np.ndarray, sizes: list[int]) -> Iterator[list[int]]:
    """Splits document numbers, counted through all shards, into numbers within each shard; both count from 0.

    [0, 3, 4] with sizes [3, 2] gives [0] and [0, 1].

    Args:
        numbers: [documents], sorted.
        sizes: the number of documents of each shard, in order.
    """
    first = 0
    for size in sizes:
        start, stop = np.searchsorted(numbers, [first, first + size])
        yield (numbers[start:stop] - first).tolist()
        first += size
