"""Documents as streams of token ids: [CLS] text [SEP], whole, one after the other, in the order of a shard.

Memory is bounded by a batch of about BATCH characters, or by the longest line where that is longer.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from tokenizers import Tokenizer

from stages.records import reading, records
from stages.sequences.packing import ITEM
from stages.tokenization.encoding import Encoder

BATCH = 1 << 20  # characters
LONGEST = 1 << 20  # characters that are encoded at once; longer documents in pieces
CUT_DOCUMENTS = 1000  # of a batch of `datasets.map` in the authors' code (its default)
SPLITS = ("train", "validation")

Piece = tuple[str, bool, bool]  # text; whether it begins, and whether it ends, a document


def tokenize_shard(settings: dict, folder: Path) -> dict:
    """Job: encodes a shard. settings: shard, tokenizer (paths); validation (numbers, from 0, of the documents to hold
    out); cut (a number of tokens, or None): each batch of CUT_DOCUMENTS documents of a split, and the documents left
    over at the end, are shortened to a multiple of it, as the authors' code does.

    Leaves train.bin and validation.bin (uint16, little endian) in `folder`, the job's own. Returns for each of the two
    its numbers of `documents`, `tokens`, `unknown_tokens` and `dropped_tokens`; those dropped are in `tokens`, too.
    """
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the jobs are parallel already
    tokenizer = Tokenizer.from_file(settings["tokenizer"])
    validation = set(settings["validation"])
    names = ("documents", "tokens", "unknown_tokens", "dropped_tokens")
    counts = {split: dict.fromkeys(names, 0) for split in SPLITS}
    unknown = tokenizer.token_to_id("[UNK]")
    with (folder / "train.bin").open("wb") as train, (folder / "validation.bin").open("wb") as held_out:
        files = {"train": train, "validation": held_out}
        for split, ids, documents in encoded(Path(settings["shard"]), tokenizer, validation):
            count, file = counts[split], files[split]
            file.write(ids.data)  # `ids.tofile` does not say of a full disk that it is full
            count["documents"] += documents
            count["tokens"] += len(ids)
            count["unknown_tokens"] += int((ids == unknown).sum())
            if settings["cut"] and documents and count["documents"] % CUT_DOCUMENTS == 0:
                count["dropped_tokens"] += _shorten(file, settings["cut"])
        if settings["cut"]:
            for split, file in files.items():
                counts[split]["dropped_tokens"] += _shorten(file, settings["cut"])
    return counts


def _shorten(file: BinaryIO, tokens: int) -> int:
    """Takes the last tokens off a file, so that a multiple of `tokens` is left; returns how many it has taken."""
    extra = file.tell() % (tokens * ITEM.itemsize)
    file.seek(-extra, os.SEEK_CUR)
    file.truncate()
    return extra // ITEM.itemsize


def encoded(shard: Path, tokenizer: Tokenizer, validation: set[int]) -> Iterator[tuple[str, np.ndarray, int]]:
    """Encodes the documents of a shard, in batches.

    Args:
        shard: the file of filtered documents.
        tokenizer: one that has [CLS] and [SEP].
        validation: the numbers, from 0, of the documents that are held out.

    Yields:
        For each batch: split, ids [tokens], and how many documents end in it; those of a split in the shard's order.
    """
    first, last = (np.array(tokenizer.token_to_id(name), ITEM).tobytes() for name in ("[CLS]", "[SEP]"))
    encode = Encoder(tokenizer)
    for split, batch in _batches(shard, validation):
        texts = encode([text for text, _, _ in batch])
        ids = b"".join(
            (first if begins else b"") + text + (last if ends else b"")
            for (_, begins, ends), text in zip(batch, texts, strict=True)
        )
        yield split, np.frombuffer(ids, dtype=ITEM), sum(ends for _, _, ends in batch)


def _batches(shard: Path, validation: set[int]) -> Iterator[tuple[str, list[Piece]]]:
    """Yields a split and pieces of its documents, about BATCH characters; CUT_DOCUMENTS documents end a batch, too."""
    waiting: dict[str, list[Piece]] = {split: [] for split in SPLITS}
    sizes, documents = dict.fromkeys(SPLITS, 0), dict.fromkeys(SPLITS, 0)
    for number, line in enumerate(reading.lines(shard)):
        split = "validation" if number in validation else "train"
        documents[split] += 1
        full = documents[split] % CUT_DOCUMENTS == 0
        for piece in pieces(records.content(line)):
            waiting[split].append(piece)
            sizes[split] += len(piece[0])
            if sizes[split] >= BATCH or (full and piece[2]):  # piece[2]: it ends its document
                yield split, waiting[split]
                waiting[split], sizes[split] = [], 0
    yield from ((split, batch) for split, batch in waiting.items() if batch)


def pieces(text: str, longest: int = LONGEST) -> Iterator[Piece]:
    """Cuts a text before the first space after every `longest` characters, where BERT's pre-tokenizer cuts anyway."""
    start, begins = 0, True
    while len(text) - start > longest and (cut := text.find(" ", start + longest)) >= 0:
        yield text[start:cut], begins, False
        start, begins = cut, False
    yield text[start:], begins, True
