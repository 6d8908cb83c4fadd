"""The embedded corpus: OSCAR 23.01 records in Zstandard-compressed JSON lines, with planted defects.

Reads nothing; `write_corpus` writes `part_N.jsonl.zst`, `defects.plan` says what a corpus of that size holds.
Record schema: oscar-project/documentation, docs/versions/oscar-2301.md.
"""

import base64
import hashlib
import json
import uuid
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from stages.embedded import defects
from stages.files.compression import zstd
from stages.files.storage import write_atomically

CRAWL_START = datetime(2022, 11, 26)  # the crawl behind OSCAR 23.01 is that of November and December 2022


def write_corpus(folder: Path, documents: int, shards: int, seed: int) -> None:
    """Writes the corpus; the same arguments give the same bytes.

    Args:
        folder: gets part_1.jsonl.zst, part_2.jsonl.zst and so on.
        documents, shards: the number of lines, and the number of files, to which the lines are dealt in turn.

    Raises:
        ValueError: there are too few documents for every kind (defects.plan), or not 1 <= shards <= documents.
    """
    lines = corpus_lines(documents, seed)
    if not 1 <= shards <= documents:
        raise ValueError(f"embedded corpus: {shards} shards for {documents} documents; give 1 to {documents} shards")
    for shard in range(shards):
        text = "".join(line + "\n" for line in lines[shard::shards])
        write_atomically(folder / f"part_{shard + 1}.jsonl.zst", zstd.compress(text.encode(), level=3))


def corpus_lines(documents: int, seed: int) -> list[str]:
    """Returns the `documents` lines of the corpus, shuffled, without line feeds. ValueError for too few (`plan`)."""
    rng = Random(f"{seed} corpus")
    kinds = {kind.name: kind for kind in (defects.SOUND, *defects.KINDS)}
    slots = [(name, number) for name, count in defects.plan(documents).items() for number in range(count)]
    rng.shuffle(slots)
    return [
        _malformed_line(rng, name, position)
        if name in defects.MALFORMED
        else json.dumps(_record(rng, kinds[name], number, position), sort_keys=True)
        for position, (name, number) in enumerate(slots)
    ]


def _record(rng: Random, kind: defects.Kind, number: int, position: int) -> dict[str, Any]:
    """Draws a record of OSCAR. number, position: its index, from 0, among those of its kind, and in the corpus."""
    lines = defects.lines_for(rng, kind.warnings)
    categories = list(kind.categories)
    if kind is defects.SOUND and rng.random() < 0.1:
        categories = [rng.choice(defects.HARMLESS_CATEGORIES)]
    content = "\n".join(lines)
    return {
        "content": content,
        "warc_headers": _headers(rng, content, kind, position),
        "metadata": {
            "identification": {"label": "en", "prob": round(rng.uniform(0.7, 1.0), 6)},
            "harmful_pp": defects.perplexity_for(rng, kind.harmful_pp, number),
            "tlsh": None,
            "quality_warnings": list(kind.warnings) or None,
            "categories": categories or None,
            "sentence_identifications": [  # None, once in twenty, as OSCAR has it where it is less than 0.8 sure
                {"label": "en", "prob": round(rng.uniform(0.8, 1.0), 6)} if rng.random() < 0.95 else None for _ in lines
            ],
        },
    }


def _malformed_line(rng: Random, name: str, position: int) -> str:
    """Draws a line that is no record: no JSON, JSON that breaks off, or a record without content, as `name` says."""
    sound = _record(rng, defects.SOUND, 0, position)
    if name == "malformed:not_json":
        return sound["content"].split("\n")[0]
    if name == "malformed:no_content":
        del sound["content"]
        return json.dumps(sound, sort_keys=True)
    text = json.dumps(sound, sort_keys=True)
    return text[: rng.randint(len(text) // 4, len(text) // 2)]


def _headers(rng: Random, content: str, kind: defects.Kind, position: int) -> dict[str, str]:
    """Draws a record's WARC headers, all texts, as in OSCAR; its position in the corpus makes the address unique."""
    data = content.encode()
    site = (kind.categories or ("pages",))[0].replace("_", "-")  # a host can have no underscore
    crawled = CRAWL_START + timedelta(seconds=rng.randrange(14 * 24 * 3600))
    return {
        "warc-identified-content-language": "eng",
        "warc-target-uri": f"https://{site}{rng.randrange(100)}.example.org/{position}",
        "warc-record-id": f"<urn:uuid:{uuid.UUID(int=rng.getrandbits(128), version=4)}>",
        "warc-type": "conversion",
        "content-length": str(len(data)),
        "warc-refers-to": f"<urn:uuid:{uuid.UUID(int=rng.getrandbits(128), version=4)}>",
        "warc-block-digest": "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode(),
        "warc-date": crawled.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "content-type": "text/plain",
    }
