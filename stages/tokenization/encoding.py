"""Encodes parts of documents through a memory of words, several times faster than the tokenizer alone."""

from array import array
from collections import defaultdict
from itertools import count, islice

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from stages.sequences.packing import ITEM
from stages.tokenization.parts import Part

# characters of remembered words, some 100 MB in all; the next batch then begins with an empty memory
MEMORY = 1 << 22
# new words that are encoded as one text
GROUP = 64
# Frequent characters that BERT takes for words. With spaces around them, "word," is not remembered beside "word".
PUNCTUATION = ",.()\"-':;"


class WordMemory:
    """Encodes parts of documents as streams of ids, and remembers the ids of words.

    BERT's normalizer and pre-tokenizer look at no character across a space or beside punctuation, so the ids of a text
    are the ids of the words, one word after another. A tokenizer of another kind encodes whole texts.
    `encode_special_tokens` of the tokenizer must be true: special tokens in a text are words.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._by_words = splits_at_spaces(tokenizer)
        self._unknown = tokenizer.token_to_id("[UNK]")
        self._forget()

    def _forget(self) -> None:
        """Empties the memory, except for [CLS] and [SEP], which count as the words 0 and 1."""
        special = [self._tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]")]
        # number of each word; the look-up of a new word gives the next number
        self._numbers = defaultdict(count(2).__next__)
        self._characters = 0
        self._ids = np.array(special, dtype=ITEM)
        # for each word: place of the first id in `_ids`, number of ids, letters, letters in unknown words
        self._table = np.array([[0, 1, 0, 0], [1, 1, 0, 0]], dtype=np.int32)

    def encode(self, batch: list[Part]) -> tuple[np.ndarray, int, int]:
        """Encodes parts of documents as a stream of ids (uint16); every document is [CLS] text [SEP].

        Parts "Unknown" and " a" of a document may give [2, 5, 6, 7, 3], where 2 is [CLS] and 3 is [SEP].

        Returns:
            The ids, the number of characters without white space, and the number of characters in unknown words.
        """
        if self._characters > MEMORY:
            self._forget()
        known = len(self._numbers)
        # numbers of the words of all parts: 0 is [CLS], 1 is [SEP]
        numbers = array("q")
        for part in batch:
            if part.begins:
                numbers.append(0)
            # `_numbers` gives new words the next numbers
            numbers.extend(map(self._numbers.__getitem__, self._split(part.text)))
            if part.ends:
                numbers.append(1)
        new_words = list(islice(self._numbers, known, None))
        if new_words:
            self._learn(new_words)
        firsts, lengths, letters, unknown_letters = self._table[np.array(numbers)].T
        ends = np.cumsum(lengths)
        # from the place of a word's ids in the stream to the place in `_ids`
        shifts = firsts - ends + lengths
        # words of 2 and 3 ids from places 7 and 20 on give 7 8 20 21 22
        places = np.arange(ends[-1]) + np.repeat(shifts, lengths)
        return self._ids[places], int(letters.sum()), int(unknown_letters.sum())

    def _split(self, text: str) -> list[str]:
        """Splits "So, no" into "So", ",", "" (no ids) and "no"; a text for another kind of tokenizer stays whole."""
        if not self._by_words:
            return [text]
        for mark in PUNCTUATION:
            text = text.replace(mark, f" {mark} ")
        return text.replace("\n", " ").split(" ")

    def _learn(self, words: list[str]) -> None:
        """Encodes new words, in the order of their numbers, and adds their ids and counts to the memory."""
        # several words are encoded as one text, for speed; for another kind of tokenizer, a whole text counts as a word
        words_per_text = GROUP if self._by_words else 1
        texts = [" ".join(words[i : i + words_per_text]) for i in range(0, len(words), words_per_text)]
        encodings = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        ids = np.concatenate([np.array(encoding.ids, dtype=ITEM) for encoding in encodings])
        offsets = np.concatenate([np.array(encoding.offsets).reshape(-1, 2) for encoding in encodings])
        # begins and ends count characters, as if all texts were joined by spaces
        text_begins = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])])
        word_ends = np.cumsum([len(word) + 1 for word in words])
        id_begins = offsets[:, 0] + np.repeat(text_begins, [len(encoding) for encoding in encodings])
        # an id belongs to the first word that ends after the id begins
        word_of_id = np.searchsorted(word_ends, id_begins, side="right")
        ids_per_word = np.bincount(word_of_id, minlength=len(words))
        unknown_letters_of_id = (offsets[:, 1] - offsets[:, 0]) * (ids == self._unknown)
        unknown_letters = np.bincount(word_of_id, unknown_letters_of_id, minlength=len(words))
        # without the white space of a whole text that counts as a word
        letters = [len("".join(word.split())) for word in words]
        first_places = len(self._ids) + np.cumsum(ids_per_word) - ids_per_word
        # the columns of the table, as in `_forget`
        rows = np.column_stack([first_places, ids_per_word, letters, unknown_letters])
        self._table = np.concatenate([self._table, rows.astype(np.int32)])
        self._ids = np.concatenate([self._ids, ids])
        self._characters += int(word_ends[-1])


def splits_at_spaces(tokenizer: Tokenizer) -> bool:
    """Whether every word is encoded by itself: the tokenizer is of BERT's kind, and no words were added."""
    return (
        isinstance(tokenizer.normalizer, normalizers.BertNormalizer)
        and isinstance(tokenizer.pre_tokenizer, pre_tokenizers.BertPreTokenizer)
        and isinstance(tokenizer.model, models.WordPiece)
        and all(token.special for token in tokenizer.get_added_tokens_decoder().values())
    )
