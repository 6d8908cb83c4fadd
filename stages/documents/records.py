"""OSCAR records, one JSON object a line: what the rules read, the text, and how plain text becomes one.

Versions 23.01 and 22.01 (oscar-project/documentation). Records are decoded by type, only the fields named
here are kept, and nothing is ever written back: a record that passes is copied as it came.
"""

from typing import TypeVar

import msgspec

T = TypeVar("T")


class Annotations(msgspec.Struct, frozen=True, gc=False):
    """The metadata that the rules read. `annotation` is what OSCAR 22.01 called `quality_warnings`."""

    categories: list[str] | None = None
    harmful_pp: float | None = None
    quality_warnings: list[str] | None = None
    annotation: list[str] | None = None


class _Annotated(msgspec.Struct, gc=False):
    content: str
    metadata: Annotations | None = None


class _Text(msgspec.Struct, gc=False):
    content: str


class PlainDocument(msgspec.Struct):
    """A line of a plain text corpus."""

    text: str
    url: str | None = None
    id: str | int | None = None


class _Metadata(msgspec.Struct):
    identification: None = None
    harmful_pp: None = None
    tlsh: None = None
    quality_warnings: None = None
    categories: None = None
    sentence_identifications: None = None


class _Record(msgspec.Struct):
    content: str
    warc_headers: dict[str, str]
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


NO_ANNOTATIONS = Annotations()
_annotated = msgspec.json.Decoder(_Annotated)
_text = msgspec.json.Decoder(_Text)
_plain = msgspec.json.Decoder(PlainDocument)
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encoder = msgspec.json.Encoder()


def annotations(line: bytes) -> Annotations:
    """ValueError for a line that is no OSCAR record: not UTF-8, not JSON, no content, wrong types."""
    line.decode()  # fields that are not decoded below would otherwise pass unchecked
    return _decode(_annotated, line).metadata or NO_ANNOTATIONS


def content(line: bytes) -> str:
    """The text of a record. ValueError as in `annotations`."""
    return _decode(_text, line).content


def plain_document(line: bytes) -> PlainDocument:
    """A JSON line with `text` and, where known, `url` and `id`. ValueError as in `annotations`."""
    return _decode(_plain, line)


def columns(line: bytes) -> set[str]:
    """Names in a JSON object. ValueError as in `annotations`."""
    return set(_decode(_object, line))


def record(document: PlainDocument) -> bytes:
    """A plain document as a 23.01 record. All of its metadata is null: nothing was measured."""
    headers = {}
    if document.id is not None:
        headers["warc-record-id"] = str(document.id)
    if document.url is not None:
        headers["warc-target-uri"] = document.url
    return _encoder.encode(_Record(document.text, headers))


def _decode(decoder: msgspec.json.Decoder[T], line: bytes) -> T:
    try:
        return decoder.decode(line)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
