"""Encodes texts as a tokenizer does without special tokens, several times faster.

BERT's normalizer and pre-tokenizer look at no character across a space or a line feed, so the ids of a text are those
of its words in turn; and since words recur, their ids are remembered. A tokenizer of another kind encodes whole texts.
"""

import json
from itertools import chain, filterfalse

import numpy as np
from tokenizers import Tokenizer

from stages.sequences.packing import ITEM

KNOWN_WORDS = 1 << 19  # of which the ids are remembered; some 100 MB
LONG_WORD = 64  # characters; longer ones are not remembered
GROUP = 64  # new words that are encoded as one text
SEPARATOR = "[SEP]"


class Encoder:
    """Encodes lists of texts and remembers the words that it has met: up to KNOWN_WORDS, and those of one more call."""

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

        GROUP words with separators between them are encoded as one text, which costs less than many; where a word
        itself holds a separator, so that the text has too many, its group is encoded word by word.
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
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [np.array(encoding.ids, dtype=ITEM).tobytes() for encoding in encodings]


def splits_at_spaces(tokenizer: Tokenizer) -> bool:
    """Whether the ids of a text are those of its words.

    They are if the tokenizer is of BERT's kind and has SEPARATOR and no added token that reaches beyond a word.
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
