"""OSCAR records, a JSON object per line: reads metadata and text, and turns plain documents into records.

Versions 23.01 and 22.01 (oscar-project/documentation). Only the fields named here are decoded, and never written back:
filtering copies records byte for byte. The last value of a repeated key counts. A line that cannot be read is a
ValueError.
"""

import string
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import UNSET, UnsetType

T = TypeVar("T")
# a list of words, JSON's null, or a missing field
Words = tuple[str, ...] | UnsetType | None


# `gc=False` saves time: structs without reference cycles need no tracking by Python's garbage collector.
class Metadata(msgspec.Struct, frozen=True, gc=False):
    """The metadata of a document that the rules of filtering read.

    UNSET stands for a missing field, None (JSON's null) for no category and no warning, and in `harmful_pp` for a
    missing perplexity. OSCAR 22.01 called `quality_warnings` `annotation`.
    """

    categories: Words = UNSET
    harmful_pp: float | None = None
    quality_warnings: Words = UNSET
    annotation: Words = UNSET


class _Record(msgspec.Struct, gc=False):
    # not decoded, but `_is_utf8` checks the bytes as strictly as a decoder
    content: msgspec.Raw
    metadata: Metadata | None = None


class _Headers(msgspec.Struct, gc=False):
    target: str | None = msgspec.field(name="warc-target-uri", default=None)


class _Source(msgspec.Struct, gc=False):
    warc_headers: _Headers | None = None


class PlainDocument(msgspec.Struct):
    """A line of a plain text corpus: an object with `text` and, where known, `url` and `id`, of any type."""

    text: Any = None
    url: Any = None
    id: Any = None


# None for blank text, and the error of an unsound line
MetadataOrError = Metadata | ValueError | None
NO_METADATA = Metadata()
QUOTE, OPENING, CLOSING = b'"{}'
LETTERS = string.ascii_letters.encode()
# number of parts of a block with an unsound line: all parts but one are then decoded as fast as before
PARTS = 16
_record = msgspec.json.Decoder(_Record)
_string = msgspec.json.Decoder(str)


def read_metadata_of_line(line: bytes) -> Metadata | None:
    """Reads the metadata of a record, with missing fields UNSET; None for a record whose text is blank.

    ValueError for a line that is not UTF-8, not JSON, without content, or with a field of a wrong type.
    """
    if not _is_utf8(line):
        raise ValueError("not UTF-8")
    return _extract_metadata(_decode_record(line))


def _extract_metadata(record: _Record) -> Metadata | None:
    """Returns the metadata of a decoded record; `None` for blank text."""
    # byte 0 is the quotation mark; if a letter follows, as in most texts, no decoding is needed
    if memoryview(record.content)[1] not in LETTERS and is_blank(_string.decode(record.content)):
        return None
    return record.metadata or NO_METADATA


def is_blank(text: str) -> bool:
    r"""Whether a text has only white space and characters that BERT deletes, as "", " \n" and "\u200b"."""
    # decoding puts U+FFFD in place of bytes in another encoding
    return not any(character.isprintable() and character not in " \ufffd" for character in text)


def read_metadata_of_block(block: bytes, starts: np.ndarray, ends: np.ndarray) -> list[MetadataOrError]:
    """Reads the metadata of every record in a block of lines: None for blank text, a ValueError for an unsound line.

    Line i reaches from starts[i] to ends[i], without line feed.
    """
    found = _decode_together(block, starts, ends)
    if found is not None:
        return found
    # A block with an unsound line is read in parts, down to this line. Sound parts are still decoded as fast as before.
    if len(starts) > 1:
        found = []
        for part in np.array_split(np.arange(len(starts)), min(PARTS, len(starts))):
            found += read_metadata_of_block(block, starts[part], ends[part])
        return found
    try:
        return [read_metadata_of_line(block[starts[0] : ends[0]])]
    except ValueError as error:
        return [error]


def _decode_together(block: bytes, starts: np.ndarray, ends: np.ndarray) -> list[MetadataOrError] | None:
    """Reads the metadata of all lines at once, which is faster; None unless every line is sound."""
    codes = np.frombuffer(block, dtype=np.uint8)
    if (starts >= ends).any():
        return None
    # The library reads values, not lines. But if every line begins with { and ends with }, no value continues on the
    # next line (in JSON, no { follows a } directly), so every line holds at least one value.
    if (codes[starts] != OPENING).any():
        return None
    if (codes[ends - 1] != CLOSING).any():
        return None
    lines = block[starts[0] : ends[-1]]
    if not _is_utf8(lines):
        return None
    try:
        records = _record.decode_lines(lines)
    except (msgspec.MsgspecError, RecursionError):
        return None
    # a line held several values
    if len(records) != len(starts):
        return None
    found = []
    for record in records:
        # the first byte shows whether undecoded content is a string
        if memoryview(record.content)[0] != QUOTE:
            return None
        found.append(_extract_metadata(record))
    return found


def _is_utf8(text: bytes) -> bool:
    # The decoders do not check undecoded content. Arrow checks faster than `bytes.decode`.
    # An array of bytes with one value, the text, which is not copied: `bounds` says where the value begins and ends.
    bounds = pa.py_buffer(np.array([0, len(text)], dtype=np.int64))
    array = pa.Array.from_buffers(pa.large_binary(), 1, [None, bounds, pa.py_buffer(text)])
    # the conversion to an array of text checks the bytes
    try:
        array.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def read_content(line: bytes) -> str:
    """Reads and checks the text of a sound record: {"content": "Hi"} gives "Hi"."""
    return _string.decode(_decode_record(line).content)


def read_address(line: bytes) -> str | None:
    """Reads the web address (`warc-target-uri`) of a record, None without an address; ValueError for another type."""
    headers = decode_line(_Source, line).warc_headers
    return headers.target if headers else None


def _decode_record(line: bytes) -> _Record:
    # the content is undecoded, and a string if the first byte is a quotation mark
    record = decode_line(_Record, line)
    if memoryview(record.content)[0] != QUOTE:
        raise ValueError("`content`, or `text` of a plain document, is not a string")
    return record


def write_record(document: PlainDocument) -> bytes:
    """Writes a plain document as an OSCAR record with empty metadata (not measured).

    The text "Hi" gives {"content":"Hi","warc_headers":{},"metadata":{}}.
    """
    headers = {}
    if document.id is not None:
        headers["warc-record-id"] = str(document.id)
    if document.url is not None:
        headers["warc-target-uri"] = document.url
    return write_oscar_record(document.text, headers, {})


def write_oscar_record(text: Any, headers: dict, metadata: dict) -> bytes:
    """Writes an OSCAR record as a line of JSON, without line feed; NaN becomes null.

    ValueError if JSON has no form for a value, such as a lone surrogate.
    """
    try:
        return msgspec.json.encode({"content": text, "warc_headers": headers, "metadata": metadata})
    except (msgspec.MsgspecError, TypeError, UnicodeEncodeError) as error:
        raise ValueError(str(error)) from None


def decode_line(form: type[T], line: bytes) -> T:
    """Reads a line of JSON as a `form`, such as PlainDocument for a line of a plain text corpus."""
    # every error becomes a ValueError, the only error that callers report by line
    try:
        return msgspec.json.decode(line, type=form)
    except msgspec.MsgspecError as error:
        # for half of a surrogate pair, such as a cut emoji, the decoder says "Input data was truncated"
        is_half = r"\ud" in line.decode(errors="replace").lower() and str(error).startswith("Input data was")
        raise ValueError(r"half of a surrogate pair, such as \ud83d" if is_half else str(error)) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
