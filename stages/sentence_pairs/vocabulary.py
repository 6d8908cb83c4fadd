"""Sub-words of sentence pairs: byte-pair encoding, trained on the training sentences of a protocol."""

from collections import Counter
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from stages.encoder_decoder.pairs import BEGIN, END, SIDES, SPECIAL, UNKNOWN
from stages.files.storage import write_atomically

SPACE = "▁"  # Metaspace puts it in place of every space, and before a sentence
ALPHABET = 1000  # the largest number of characters in the vocabulary, far more than an alphabet has; others are unknown


def trained(sentences: list[str], size: int) -> Tokenizer:
    """Trains a vocabulary of at most `size` tokens, SPECIAL and the commonest characters among them.

    A word includes the space before it, as SPACE, and punctuation is split off, so that decoding restores the sentence.
    The same sentences make the same vocabulary in any process: of equally rare characters, the library would choose by
    the order of a hash table, so they are chosen here, those of lower codes first.
    """
    words = Tokenizer(models.BPE(unk_token=SPECIAL[UNKNOWN]))
    words.normalizer = normalizers.NFC()
    words.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()])
    words.decoder = decoders.Metaspace()
    frequencies = Counter()
    for sentence in sentences:  # counts characters, as Metaspace leaves them
        frequencies.update(SPACE + words.normalizer.normalize_str(sentence).replace(" ", SPACE))
    commonest = sorted(frequencies, key=lambda character: (-frequencies[character], character))
    characters = commonest[: min(ALPHABET, size - len(SPECIAL))]
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=characters,
        limit_alphabet=len(characters),
        show_progress=False,
    )
    words.train_from_iterator(sentences, trainer)
    return words


def train(pairs: list[tuple[str, str]], size: int, shared: bool, folder: Path) -> dict[str, Tokenizer]:
    """Trains the vocabularies of sentence pairs, and writes them as source.json and target.json.

    Args:
        pairs, size: (source, target) of every training pair; the largest number of tokens of a vocabulary.
        shared: whether one vocabulary is trained on the sentences of both sides.
        folder: gets the files.

    Returns:
        The tokenizer of each side, by its name in SIDES; one and the same where `shared`.
    """
    source, target = zip(*pairs, strict=True)
    both = [trained([*source, *target], size)] * 2 if shared else [trained(source, size), trained(target, size)]
    words = dict(zip(SIDES, both, strict=True))
    for side, tokenizer in words.items():
        write_atomically(folder / f"{side}.json", tokenizer.to_str())
    return words


def encode(words: Tokenizer, sentences: list[str]) -> list[np.ndarray]:
    """Encodes sentences by a tokenizer of `trained`; the ids of each, int64, begin with BEGIN and end with END."""
    words.encode_special_tokens = True  # so that `[END]`, where a sentence has it, is encoded as characters, not as END
    return [np.array([BEGIN, *encoding.ids, END]) for encoding in words.encode_batch(sentences)]
