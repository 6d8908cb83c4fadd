"""Sub-words of sentence pairs: byte-pair encoding, trained on the training sentences of a protocol."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from stages.common.translation.pairs import BEGIN, END, SIDES, SPECIAL, UNKNOWN
from stages.plumbing.files import write_atomically

ALPHABET = 1000  # characters that may be tokens of their own, at most; the rest are unknown


def trained(sentences: Iterable[str], size: int) -> Tokenizer:
    """Trains a vocabulary of `size` tokens at most, SPECIAL and the commonest characters among them.

    A word keeps the space before it as a sign of its own, and punctuation stands apart, so that decoding gives the
    sentence back.
    """
    words = Tokenizer(models.BPE(unk_token=SPECIAL[UNKNOWN]))
    words.normalizer = normalizers.NFC()
    words.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()])
    words.decoder = decoders.Metaspace()
    characters = min(ALPHABET, size - len(SPECIAL))
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(SPECIAL), limit_alphabet=characters, show_progress=False
    )
    words.train_from_iterator(sentences, trainer)
    return words


def train(pairs: list[tuple[str, str]], size: int, shared: bool) -> dict[str, Tokenizer]:
    """A vocabulary for each side, or one for both where they share it."""
    source, target = zip(*pairs, strict=True)
    if shared:
        return dict.fromkeys(SIDES, trained([*source, *target], size))
    return dict(zip(SIDES, (trained(source, size), trained(target, size)), strict=True))


def save(words: dict[str, Tokenizer], folder: Path) -> None:
    """Leaves source.json and target.json in a folder."""
    for side, tokenizer in words.items():
        write_atomically(folder / f"{side}.json", tokenizer.to_str())


def encode(words: Tokenizer, sentences: list[str]) -> list[np.ndarray]:
    """Token ids of every sentence between BEGIN and END."""
    return [np.array([BEGIN, *encoding.ids, END]) for encoding in words.encode_batch(sentences)]
