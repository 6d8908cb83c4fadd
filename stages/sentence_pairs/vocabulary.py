"""Cuts sentences into sub-words by byte-pair encoding, trained on the training sentences of a protocol."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from stages.encoder_decoder.pairs import BEGIN, END, SPECIAL, UNKNOWN
from stages.files.storage import write_atomically

# The character with which Metaspace replaces a space.
SPACE = "▁"


def train_tokenizer(sentences: list[str], size: int) -> Tokenizer:
    """Trains a vocabulary of at most `size` tokens, with special tokens and the most frequent characters.

    The same sentences make the same vocabulary in any process.
    """
    # A word includes the space before the word, and punctuation is split off, so that decoding restores the sentence.
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL[UNKNOWN]))
    tokenizer.normalizer = normalizers.NFC()
    splitters = [
        pre_tokenizers.Metaspace(),
        pre_tokenizers.Punctuation(),
    ]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splitters)
    tokenizer.decoder = decoders.Metaspace()
    frequencies = Counter()
    for sentence in sentences:
        # Characters are counted as Metaspace returns the sentence, with SPACE at the start and for every space.
        text = tokenizer.normalizer.normalize_str(sentence).replace(" ", SPACE)
        frequencies.update(SPACE + text)
    # The library would order equally frequent characters by a hash table, at random; here lower codes come first.
    commonest = sorted(frequencies, key=lambda character: (-frequencies[character], character))
    # Rarer characters become the unknown token.
    characters = commonest[: min(1000, size - len(SPECIAL))]
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=characters,
        limit_alphabet=len(characters),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences, trainer)
    return tokenizer


def train(pairs: list[tuple[str, str]], size: int, shared: bool, folder: Path) -> dict[str, Tokenizer]:
    """Trains vocabularies of at most `size` tokens on (source, target) pairs, and writes source.json and target.json.

    If `shared`, a single vocabulary is trained on the sentences of both sides.

    Returns:
        The tokenizer of `source` and of `target`.
    """
    sources = [source for source, _ in pairs]
    targets = [target for _, target in pairs]
    if shared:
        both = train_tokenizer(sources + targets, size)
        tokenizers = {"source": both, "target": both}
    else:
        tokenizers = {"source": train_tokenizer(sources, size), "target": train_tokenizer(targets, size)}
    for side, tokenizer in tokenizers.items():
        write_atomically(folder / f"{side}.json", tokenizer.to_str())
    return tokenizers


def encode(tokenizer: Tokenizer, sentences: Iterable[str]) -> list[np.ndarray]:
    """Encodes each sentence as an int64 array of token ids, from the begin token to the end token."""
    # A sentence with the text `[END]` is encoded as characters, not as the end token.
    tokenizer.encode_special_tokens = True
    encodings = tokenizer.encode_batch(list(sentences))
    return [np.array([BEGIN, *encoding.ids, END]) for encoding in encodings]
