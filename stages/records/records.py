"""OSCAR records, one JSON object per line: what the rules read, the text, and how a plain document becomes a record.

Versions 23.01 and 22.01 (oscar-project/documentation). Records are decoded by type, only the fields named here are
kept, and nothing is written back: a record that passes is copied as it came. Of a key that stands twice, the last value
counts. `gc=False` saves time: structs without reference cycles need no tracking by Python's garbage collector.
"""

from typing import TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import UNSET, UnsetType

T = TypeVar("T")


class Annotations(msgspec.Struct, frozen=True, gc=False):
    """The metadata of a document that the rules read.

    UNSET says that the record does not have a field, so nothing was measured; None, which is JSON's null, says of
    categories and warnings that none applies. `harmful_pp` is None in either case. `annotation` is what OSCAR 22.01
    called `quality_warnings`.
    """

    categories: tuple[str, ...] | UnsetType | None = UNSET
    harmful_pp: float | None = None
    quality_warnings: tuple[str, ...] | UnsetType | None = UNSET
    annotation: tuple[str, ...] | UnsetType | None = UNSET


class _Text(msgspec.Struct, gc=False):
    content: msgspec.Raw  # not decoded, but with `_is_utf8` checked as strictly as if it were


class _Record(_Text, gc=False):
    metadata: Annotations | None = None


class _Headers(msgspec.Struct, gc=False):
    target: str | None = msgspec.field(name="warc-target-uri", default=None)


class _Source(_Text, gc=False):
    warc_headers: _Headers | None = None


class PlainDocument(msgspec.Struct):
    """A line of a plain text corpus: a JSON object with `text` and, where known, `url` and `id`."""

    text: str
    url: str | None = None
    id: str | int | None = None


AnyRecord = TypeVar("AnyRecord", bound=_Text)
NO_ANNOTATIONS = Annotations()
QUOTE, OPENING, CLOSING = b'"{}'
PARTS = 16  # into which a block with an unsound line is cut: all but one are then decoded as fast as before
_record = msgspec.json.Decoder(_Record)
_source = msgspec.json.Decoder(_Source)
_text = msgspec.json.Decoder(_Text)
_string = msgspec.json.Decoder(str)
_plain = msgspec.json.Decoder(PlainDocument)
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encoder = msgspec.json.Encoder()


def annotations(line: bytes) -> Annotations:
    """Reads the metadata of a record, a line of JSON; returns NO_ANNOTATIONS for a record that has none.

    ValueError when the line is no OSCAR record: it is not UTF-8 or JSON, lacks content, or has a field of a wrong type.
    """
    if not _is_utf8(line):
        raise ValueError("not UTF-8")
    return _record_of(_record, line).metadata or NO_ANNOTATIONS


def annotations_of(block: bytes, starts: np.ndarray, ends: np.ndarray) -> list[Annotations | ValueError]:
    """Reads the metadata of every record in a block of lines.

    Sound lines are decoded together, which is faster than one by one. A block with an unsound line is cut into PARTS
    parts, and so on until the unsound line is the only line of a part.

    Args:
        block: lines of JSON.
        starts: [lines], the begin of each line in the block.
        ends: [lines], the end of each line, without line feed.

    Returns:
        For every line, in order, the result of `annotations`, or the ValueError that `annotations` raises.
    """
    documents = _decode_together(block, starts, ends)
    if documents is not None:
        return documents
    if len(starts) > 1:
        documents = []
        for part in np.array_split(np.arange(len(starts)), PARTS):
            if len(part):
                documents += annotations_of(block, starts[part], ends[part])
        return documents
    try:
        return [annotations(block[starts[0] : ends[0]])]
    except ValueError as error:
        return [error]


def _decode_together(block: bytes, starts: np.ndarray, ends: np.ndarray) -> list[Annotations] | None:
    """Returns the metadata of every line, or None unless every line is sound.

    The library reads values, not lines. But if every line begins with { and ends with }, no value continues on the next
    line (in JSON, no { follows a } directly), so every line holds at least one value.
    """
    codes = np.frombuffer(block, dtype=np.uint8)
    if (starts >= ends).any():
        return None
    if (codes[starts] != OPENING).any() or (codes[ends - 1] != CLOSING).any():
        return None
    lines = block[starts[0] : ends[-1]]
    if not _is_utf8(lines):
        return None
    try:
        records = _record.decode_lines(lines)
    except (msgspec.MsgspecError, RecursionError):
        return None
    if len(records) != len(starts):
        return None
    documents = []
    for record in records:
        if memoryview(record.content)[0] != QUOTE:
            return None
        documents.append(record.metadata or NO_ANNOTATIONS)
    return documents


def _is_utf8(text: bytes) -> bool:
    """Whether str(text, "utf-8") would succeed: Arrow checks this faster than Python makes the string.

    The decoders do not check it in content, which they leave undecoded. The bytes become the one value of an array of
    bytes, without a copy, and turning that into an array of text checks them.
    """
    ends = pa.py_buffer(np.array([0, len(text)], dtype=np.int64))
    array = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, pa.py_buffer(text)])
    try:
        array.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def content(line: bytes) -> str:
    """Reads the text of a record. Raises ValueError as `annotations` does, but looks at nothing else."""
    return _string.decode(_record_of(_text, line).content)


def source(line: bytes) -> tuple[str, str | None]:
    """Reads the text of a record, and its web address or None. Raises ValueError as `annotations` does."""
    record = _record_of(_source, line)
    return _string.decode(record.content), record.warc_headers and record.warc_headers.target


def _record_of(decoder: msgspec.json.Decoder[AnyRecord], line: bytes) -> AnyRecord:
    """Decodes a record and checks that its content, which is left undecoded, is a string, as its first byte shows."""
    record = _decode(decoder, line)
    if memoryview(record.content)[0] != QUOTE:
        raise ValueError("`content` is not a string")
    return record


def plain_document(line: bytes) -> PlainDocument:
    """Reads a line of a plain text corpus. Raises ValueError unless it is a JSON object as PlainDocument has it."""
    return _decode(_plain, line)


def columns(line: bytes) -> set[str]:
    """The names that a JSON object has at its top level. Raises ValueError for a line that is no object."""
    return set(_decode(_object, line))


def record(document: PlainDocument) -> bytes:
    """Writes a plain document as an OSCAR record with empty metadata (not measured). Errors as in `oscar_record`."""
    headers: dict[str, str] = {}
    if document.id is not None:
        headers["warc-record-id"] = str(document.id)
    if document.url is not None:
        headers["warc-target-uri"] = document.url
    return oscar_record(document.text, headers, {})


def oscar_record(text: str, headers: dict, metadata: dict) -> bytes:
    """Writes an OSCAR record as a line of JSON, without its line feed.

    Args:
        text: the document.
        headers: what stands under `warc_headers`, such as the address.
        metadata: what stands under `metadata`, such as the categories.

    Raises:
        ValueError: something in it cannot be said in JSON, such as a lone surrogate; but NaN is written as null.
    """
    try:
        return _encoder.encode({"content": text, "warc_headers": headers, "metadata": metadata})
    except (msgspec.MsgspecError, TypeError, UnicodeEncodeError) as error:
        raise ValueError(str(error)) from None


def _decode(decoder: msgspec.json.Decoder[T], line: bytes) -> T:
    """Decodes a line of JSON. ValueError, whatever is wrong with it, as callers report one kind of error by line."""
    try:
        return decoder.decode(line)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
