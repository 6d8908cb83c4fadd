"""Documents as streams of token ids: [CLS] text [SEP], whole, one after the other, in the order of a shard.

Memory is bounded by a batch of about BATCH characters, or by the longest line where that is longer.
"""

import json
import os
from collections.abc import Iterator
from itertools import chain, filterfalse
from pathlib import Path
from typing import BinaryIO

import numpy as np
from tokenizers import Tokenizer

from stages.records import reading, records
from stages.sequences.packing import ITEM

KNOWN_WORDS = 1 << 19  # of which the ids are remembered; some 100 MB
LONG_WORD = 64  # characters; longer ones are not remembered
GROUP = 64  # new words that are encoded as one text
SEPARATOR = "[SEP]"
BATCH = 1 << 20  # characters
LONGEST = 1 << 20  # characters that are encoded at once; longer documents in pieces
CUT_DOCUMENTS = 1000  # of a batch of `datasets.map` in the code of Courtois et al. (its default)
SPLITS = ("train", "validation")

Piece = tuple[str, bool, bool]  # text; whether it begins, and whether it ends, a document


class Encoder:
    """Encodes lists of texts as a tokenizer does without special tokens, several times faster.

    BERT's normalizer and pre-tokenizer look at no character across a space or a line feed, so the ids of a text are
    those of its words in turn; and since words recur, it remembers the ids of up to KNOWN_WORDS words, and of those of
    one more call. A tokenizer of another kind encodes whole texts.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._by_words = splits_at_spaces(tokenizer)
        self._separator = tokenizer.token_to_id(SEPARATOR)
        self._ids_of: dict[str, bytes] = {}

    def __call__(self, texts: list[str]) -> list[bytes]:
        """Returns the ids of each text, without special tokens, as bytes: each id is one ITEM (uint16)."""
        if not self._by_words:
            return self._encode(texts)
        texts_words = [text.replace("\n", " ").split(" ") for text in texts]
        if len(self._ids_of) > KNOWN_WORDS:
            self._ids_of.clear()
        new = list(set(filterfalse(self._ids_of.__contains__, chain.from_iterable(texts_words))))
        self._learn(new)
        ids = [b"".join(map(self._ids_of.__getitem__, words)) for words in texts_words]
        for word in new:
            if len(word) > LONG_WORD:
                del self._ids_of[word]
        return ids

    def _learn(self, words: list[str]) -> None:
        """Encodes words and remembers their ids.

        It takes GROUP words as one text with separators, which costs less, or one by one where a word has a separator.
        """
        groups = [words[start : start + GROUP] for start in range(0, len(words), GROUP)]
        for group, ids in zip(groups, self._encode([f" {SEPARATOR} ".join(group) for group in groups]), strict=True):
            bounds = np.flatnonzero(np.frombuffer(ids, dtype=ITEM) == self._separator) * ITEM.itemsize
            if len(bounds) != len(group) - 1:
                self._ids_of.update(zip(group, self._encode(group), strict=True))
                continue
            starts, ends = [0, *(bounds + ITEM.itemsize).tolist()], [*bounds.tolist(), len(ids)]
            for word, start, end in zip(group, starts, ends, strict=True):
                self._ids_of[word] = ids[start:end]

    def _encode(self, texts: list[str]) -> list[bytes]:
        """Returns the ids of each text by the tokenizer itself, as bytes."""
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [np.array(encoding.ids, dtype=ITEM).tobytes() for encoding in encodings]


def splits_at_spaces(tokenizer: Tokenizer) -> bool:
    """Whether the ids of a text are those of its words.

    They are if the tokenizer is of BERT's kind and has SEPARATOR and no added token that reaches beyond a word: takes
    the space beside it (lstrip, rstrip), looks at its neighbours (single_word), or contains a space or line feed.
    """
    parts = json.loads(tokenizer.to_str())
    kinds = [(parts[name] or {}).get("type") for name in ("normalizer", "pre_tokenizer", "model")]
    reaching = [
        token
        for token in parts["added_tokens"]
        if token["lstrip"] or token["rstrip"] or token["single_word"] or set(token["content"]) & {" ", "\n"}
    ]
    separated = SEPARATOR in (token["content"] for token in parts["added_tokens"])
    return kinds == ["BertNormalizer", "BertPreTokenizer", "WordPiece"] and separated and not reaching


def tokenize_shard(settings: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): encodes a shard. settings: shard, tokenizer (paths); validation (numbers, from 0, of the
    documents to hold out); cut (a number of tokens, or None): each batch of CUT_DOCUMENTS documents of a split, and the
    documents left over at the end, are shortened to a multiple of it, as the code of Courtois et al. does.

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
        for split, ids, documents in _encoded(Path(settings["shard"]), tokenizer, validation):
            count, file = counts[split], files[split]
            file.write(ids.data)  # `ids.tofile` does not say of a full disk that it is full
            count["documents"] += documents
            count["tokens"] += len(ids)
            count["unknown_tokens"] += int((ids == unknown).sum())
            # A batch in which no document ends must not be cut: the count may still be that of the batch before it.
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


def _encoded(shard: Path, tokenizer: Tokenizer, validation: set[int]) -> Iterator[tuple[str, np.ndarray, int]]:
    """Encodes the documents of a shard, in batches; those in `validation` (numbers, from 0) are held out.

    Yields split, ids [tokens], and how many documents end in the batch; those of a split in the shard's order.
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
