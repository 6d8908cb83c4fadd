"""Generates the corpus: OSCAR 23.01 records in Zstandard-compressed JSON lines, with planted defects.

Schema of a record: oscar-project/documentation, docs/versions/oscar-2301.md.
"""

import base64
import hashlib
import json
import uuid
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from stages.embedded import defects
from stages.files.compression import zstd
from stages.files.storage import write_atomically

# The crawl behind OSCAR 23.01 took place in November and December 2022.
CRAWL_START = datetime(2022, 11, 26)
CRAWL_SECONDS = 14 * 24 * 3600


def write_corpus(
    folder: Path,
    documents: int,
    shards: int,
    seed: int,
) -> None:
    """Writes the corpus; equal arguments give equal bytes.

    Args:
        folder: gets part_1.jsonl.zst, part_2.jsonl.zst and so on.
        documents: number of documents, each a line.
        shards: number of files. Lines are dealt to the files in turn.
        seed: seed of all choices.

    Raises:
        ValueError: too few documents for all kinds of defects.
    """
    lines = draw_lines(documents, seed)
    for shard in range(shards):
        text = "\n".join([*lines[shard::shards], ""])
        write_atomically(folder / f"part_{shard + 1}.jsonl.zst", zstd.compress(text.encode(), level=3))


def draw_lines(documents: int, seed: int) -> list[str]:
    """Draws the lines of the corpus in random order.

    Most lines are sound documents. The others have planted defects, such as a quality warning, a category to exclude,
    or a line that is not JSON, so that every rule of the filter drops documents.

    Args:
        documents: number of lines.
        seed: seed of all choices.
    """
    rng = Random(f"{seed} corpus")
    slots = [(name, number) for name, count in defects.plan_defects(documents).items() for number in range(count)]
    rng.shuffle(slots)
    lines = []
    for position, (name, number) in enumerate(slots):
        if name in defects.MALFORMED:
            lines.append(_draw_malformed_line(rng, name, position))
        else:
            record = _draw_record(rng, name, number, position)
            lines.append(json.dumps(record, sort_keys=True))
    return lines


def _draw_record(
    rng: Random,
    name: str,
    number: int,
    position: int,
) -> dict:
    """Draws a document as a record of OSCAR, with the keys `content`, `warc_headers` and `metadata`.

    Args:
        rng: source of all choices.
        name: kind of the document, such as `sound` or `warning:tiny`.
        number: index of the document among the documents of the kind, from 0.
        position: index of the document in the corpus, from 0.
    """
    kind = defects.KINDS[name]
    lines = defects.draw_lines(rng, kind["warnings"])
    categories = kind["categories"]
    if name == "sound" and rng.random() < 0.1:
        categories = [rng.choice(defects.HARMLESS_CATEGORIES)]
    content = "\n".join(lines)
    headers = _draw_headers(rng, content, kind["categories"], position)
    metadata = {
        "identification": _draw_identification(rng, 0.7),
        "harmful_pp": defects.draw_perplexity(rng, kind["harmful_pp"], number),
        "tlsh": None,
        "quality_warnings": kind["warnings"] or None,
        "categories": categories or None,
    }
    # OSCAR names no language of a line where its identification is less than 0.8 sure: here a line in twenty.
    identifications = []
    for _ in lines:
        sure = rng.random() < 0.95
        identifications.append(_draw_identification(rng, 0.8) if sure else None)
    metadata["sentence_identifications"] = identifications
    return {"content": content, "warc_headers": headers, "metadata": metadata}


def _draw_identification(rng: Random, least: float) -> dict:
    return {"label": "en", "prob": round(rng.uniform(least, 1.0), 6)}


def _draw_malformed_line(rng: Random, name: str, position: int) -> str:
    """Draws a line that is no record, which the filter must count as malformed.

    Args:
        rng: source of all choices.
        name: `malformed:not_json`, `malformed:truncated` or `malformed:no_content`.
        position: index of the document in the corpus.
    """
    record = _draw_record(rng, "sound", 0, position)
    if name == "malformed:not_json":
        return record["content"].split("\n")[0]
    if name == "malformed:no_content":
        del record["content"]
        return json.dumps(record, sort_keys=True)
    text = json.dumps(record, sort_keys=True)
    return text[: rng.randint(len(text) // 4, len(text) // 2)]


def _draw_headers(
    rng: Random,
    content: str,
    categories: list[str],
    position: int,
) -> dict:
    """Draws the WARC headers of a record, all texts, as in OSCAR.

    The first category of harmful content becomes a part of the address, and the position makes the address unique.
    """
    data = content.encode()
    # A host can have no underscore.
    site = categories[0].replace("_", "-") if categories else "pages"
    crawled = CRAWL_START + timedelta(seconds=rng.randrange(CRAWL_SECONDS))
    digest = base64.b32encode(hashlib.sha1(data).digest()).decode()
    return {
        "warc-identified-content-language": "eng",
        "warc-target-uri": f"https://{site}{rng.randrange(100)}.example.org/{position}",
        "warc-record-id": _draw_record_id(rng),
        "warc-type": "conversion",
        "content-length": str(len(data)),
        "warc-refers-to": _draw_record_id(rng),
        "warc-block-digest": f"sha1:{digest}",
        "warc-date": crawled.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "content-type": "text/plain",
    }


def _draw_record_id(rng: Random) -> str:
    """Draws an address such as "<urn:uuid:1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed>"."""
    return f"<urn:uuid:{uuid.UUID(int=rng.getrandbits(128), version=4)}>"
