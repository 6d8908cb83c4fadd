"""Lines of plain or compressed files, with memory bounded by the longest line, and a writer of zstd lines.

The last suffix decides on the compression: .zst (windows up to 2 GiB, as of `zstd --long=31`; several frames), .gz, or
uncompressed. A truncated or corrupt file is a ValueError, because no document may be lost. Memory: twice the longest
line, BLOCK and the window of the file. A shard is a file with a document in each line.
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
from stages.files.quoting import quote_value
from stages.files.stand_ins import require_data

# bytes of whole lines that are handled at once; more would leave a core's own cache
BLOCK = 1 << 18
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
REMEDY = "fetch the file again, or remove the file from the list of inputs"


def read_lines(path: Path) -> Iterator[bytes]:
    r"""Yields lines byte for byte, without line feeds. A byte order mark belongs to no line.

    No empty line follows a last line feed: b"a\n\nb\n" gives b"a", b"", b"b". A pointer or web page is a ValueError.
    """
    for block in read_line_blocks(path):
        yield from block.split(b"\n")


def read_universal_lines(path: Path) -> Iterator[bytes]:
    r"""Yields the lines of a file whose lines end with LF, CR LF or CR: b"a\r\nb\rc" gives b"a", b"b", b"c"."""
    for line in read_lines(path):
        yield from line.removesuffix(b"\r").split(b"\r")


def read_texts(path: Path) -> Iterator[str]:
    """Yields the lines of `read_universal_lines` as text. ValueError for text that is not UTF-8."""
    for number, line in enumerate(read_universal_lines(path), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {number}: not UTF-8 ({error.reason}); convert the file to UTF-8") from None
        # UTF-16 has a NUL at every other place of Latin text
        if "\0" in text:
            raise ValueError(f"{path}, line {number}: a NUL character, so not UTF-8; convert the file to UTF-8")
        yield text


def find_columns(path: Path, header: list[str], names: Iterable[str], remedy: str) -> list[int]:
    """Finds columns of a table by name: ["b"] in the header ["a", "b"] gives [1].

    ValueError for a name that is missing (the message ends in `remedy`) or twice in the header.
    """
    absent = [name for name in names if name not in header]
    if absent:
        raise ValueError(f"{path}, line 1: no column {', '.join(absent)} among {quote_value(header)}; {remedy}")
    for name in names:
        if header.count(name) > 1:
            raise ValueError(
                f"{path}, line 1: the column {quote_value(name)} occurs more than once; delete or rename a column"
            )
    return [header.index(name) for name in names]


def read_line_blocks(path: Path) -> Iterator[bytes]:
    """Yields blocks of whole lines, joined by line feeds, about 256 KB each."""
    for number, block in enumerate(_read_whole_lines(path)):
        yield block if number else block.removeprefix(BYTE_ORDER_MARK)


def _read_whole_lines(path: Path) -> Iterator[bytes]:
    """Yields blocks of whole lines, like `read_line_blocks`, but with any byte order mark."""
    require_data(path)
    with path.open("rb") as file:
        start = file.peek(4)
        # decompression would take an empty file for a compressed file without content
        if path.suffix in DECOMPRESSION and not start:
            raise ValueError(f"{path}: empty, not a compressed file; {REMEDY}")
        for suffix, signature in SIGNATURES.items():
            if path.suffix not in DECOMPRESSION and start.startswith(signature):
                raise ValueError(f"{path}: compressed, as {suffix} files are; rename the file to {path.name}{suffix}")
        try:
            with DECOMPRESSION.get(path.suffix, nullcontext)(file) as content:
                while block := content.read(BLOCK):
                    # the rest of the last line, which may be long, so no variable keeps the sum in memory
                    yield (block + content.readline()).removesuffix(b"\n")
        except EOFError:
            raise ValueError(f"{path}: truncated: the last compressed frame is not complete; {REMEDY}") from None
        except (zstd.ZstdError, gzip.BadGzipFile, zlib.error) as error:
            # a browser may have unpacked the file, but kept the suffix
            looks_like_text = start.decode("latin-1").isprintable()
            remedy = f"if the file is text, rename the file to {path.stem}" if looks_like_text else REMEDY
            raise ValueError(f"{path}: not a sound {path.suffix} file ({quote_value(error)}); {remedy}") from None


DECOMPRESSION: dict[str, Callable] = {
    # windows of up to 2^31 bytes
    ".zst": partial(zstd.open, options={zstd.DecompressionParameter.window_log_max: 31}),
    ".gz": gzip.open,
}
# the first bytes of a compressed file (RFC 8878, RFC 1952)
SIGNATURES = {".zst": b"\x28\xb5\x2f\xfd", ".gz": b"\x1f\x8b"}


@contextmanager
def open_zstd_writer(path: Path, level: int = 3) -> Iterator[BinaryIO]:
    """Opens a compressing file; equal bytes give equal files, with a checksum at the end."""
    # 3 is Zstandard's default level
    options = {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.checksum_flag: 1,
    }
    with zstd.open(path, "wb", options=options) as file:
        # begins a frame, so that a file without lines is a valid compressed file
        file.write(b"")
        with io.BufferedWriter(file, 1 << 20) as buffer:
            yield buffer


def sort_naturally(paths: list[Path]) -> list[Path]:
    """Sorts paths as texts, but with numbers by value: part_02, part_2, part_10."""
    return sorted(paths, key=_make_sort_key)


def _make_sort_key(path: Path) -> tuple[list, str]:
    # part_02 gives (["part_", 2, ""], "part_02"): the text decides between part_2 and part_02
    text = path.as_posix()
    # because of the brackets, every second part is a number
    parts: list = re.split(r"(\d+)", text)
    parts[1::2] = map(int, parts[1::2])
    return parts, text


def list_shards(folder: Path) -> list[Path]:
    """Lists the files *.jsonl.zst of a folder, in natural order. ValueError without such a file."""
    paths = sort_naturally(list(folder.glob("[!.]*.jsonl.zst")))
    if not paths:
        raise ValueError(f"{folder}: no shard *.jsonl.zst; run `dvc repro` to make the shards")
    return paths


def split_by_shard(numbers: np.ndarray, sizes: list[int]) -> Iterator[list[int]]:
    """Splits sorted document numbers, counted through all shards, into numbers within each shard.

    [0, 3, 4] with 3 and 2 documents gives [0] and [0, 1].
    """
    first = 0
    for size in sizes:
        start, stop = np.searchsorted(numbers, [first, first + size])
        yield (numbers[start:stop] - first).tolist()
        first += size
