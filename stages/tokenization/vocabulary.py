"""Tokenizers: WordPiece trained on the filtered documents, made from a vocabulary file, or from the hub.

All are `tokenizers.Tokenizer` objects. Those made here have BERT's normalizer (lower case) and pre-tokenizer, and
encode a pair as [CLS] A [SEP] B [SEP]; one of the hub is taken as it is, cased or not, if it has the tokens in SPECIAL:
nothing behind it looks at capitals.
"""

import string
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from stages.files import commits
from stages.records import reading, records

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PREFIX = "##"
LARGEST = 1 << 16  # ids are stored as uint16
CHARACTERS = 1000  # distinct ones at most, and at most a quarter of the vocabulary; rarer ones are unknown
ALPHANUMERIC = frozenset(string.ascii_lowercase + string.digits)
ALWAYS = ALPHANUMERIC | frozenset(string.punctuation)  # a task may hold what the corpus does not


def train(settings: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): trains a tokenizer. settings: shards (paths), size as in `trained`.

    Leaves tokenizer.json in `folder`, the job's own; returns `size`, the number of pieces that the tokenizer has.
    """
    tokenizer = trained([Path(shard) for shard in settings["shards"]], settings["size"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return {"size": tokenizer.get_vocab_size()}


def trained(shards: list[Path], size: int) -> Tokenizer:
    """Trains WordPiece of at most `size` pieces; the same documents give the same tokenizer, in any process.

    There may be more where `size` is at most 280: SPECIAL and the characters, alone and continuing, always are pieces.
    The library numbers continuing characters in the order of a hash table, which differs between processes and decides
    between pairs of equal frequency. So all characters are counted first and handed over in a fixed order, as if they
    were special tokens; `word_pieces` takes only the vocabulary from the trained tokenizer.
    """
    characters, continuing = _characters(texts(shards), min(CHARACTERS, size // 4))
    alphabet = [*SPECIAL, *characters, *(PREFIX + character for character in continuing)]
    learner = _lower_case_words(models.WordPiece(unk_token="[UNK]"))
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=alphabet,
        initial_alphabet=characters,
        limit_alphabet=len(characters),
        continuing_subword_prefix=PREFIX,
        show_progress=False,
    )
    learner.train_from_iterator(texts(shards), trainer)
    return word_pieces(learner.get_vocab())


def from_file(path: Path) -> Tokenizer:
    """Makes the tokenizer of a vocabulary file: a line is a piece, and its number, from 0, the piece's id.

    ValueError when it cannot be BERT's. A byte order mark at its beginning and blank lines at its end do no harm.
    """
    pieces = list(reading.texts(path)) or [""]
    while len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    if "" in pieces:
        raise ValueError(
            f"{path}, line {pieces.index('') + 1}: blank; a line is a piece and its number an id, so restore it"
        )
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    if len(vocabulary) != len(pieces):
        double = next(piece for piece, times in Counter(pieces).items() if times > 1)
        raise ValueError(f"{path}: the piece {double!r} stands in several of {len(pieces)} lines; delete the others")
    if missing := [token for token in SPECIAL if token not in vocabulary]:
        raise ValueError(f"{path}: no line {', '.join(missing)}; a BERT vocabulary has all of {', '.join(SPECIAL)}")
    if capitals := [letter for letter in string.ascii_uppercase if letter in vocabulary]:  # longer: [UNK]
        raise ValueError(
            f"{path}: the piece {capitals[0]!r} is of a cased vocabulary, but text is put in lower case here; give an "
            "uncased one, or the name of a cased model of the hub"
        )
    return word_pieces(vocabulary)


def from_hub(name: str, revision: str) -> tuple[Tokenizer, str]:
    """Loads a tokenizer of the hub, or of a folder in its layout; returns it and REPOSITORY@COMMIT, or the folder.

    revision: a commit, branch or tag. ValueError when it cannot be loaded, or lacks a token of SPECIAL.
    """
    from transformers import AutoTokenizer

    try:
        commit = commits.commit(name, revision, "tokenization.vocabulary", "model")
        tokenizer = AutoTokenizer.from_pretrained(name, revision=commit).backend_tokenizer
    except Exception as error:  # the library fails anywhere where a file is not as it expects
        raise ValueError(
            f"tokenization.vocabulary: {name} is no file below data.root, and no tokenizer of the hub that "
            f"can be loaded here ({error}); give a vocabulary file, or null to train one"
        ) from None
    if missing := [token for token in SPECIAL if tokenizer.token_to_id(token) is None]:
        raise ValueError(f"tokenization.vocabulary: {name} lacks {', '.join(missing)}; give the name of a BERT model")
    tokenizer.no_truncation()  # its file may ask for truncation and padding
    tokenizer.no_padding()
    return tokenizer, commits.named(name, commit)


def word_pieces(vocabulary: dict[str, int]) -> Tokenizer:
    """Makes BERT's uncased tokenizer of a vocabulary, ids by piece, which has all of SPECIAL under any ids."""
    model = models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100)  # as in BERT
    tokenizer = _lower_case_words(model)
    tokenizer.decoder = decoders.WordPiece(prefix=PREFIX)
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",  # 1: token type of the second text
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def _lower_case_words(model: models.Model) -> Tokenizer:
    """Makes a tokenizer that puts text into lower case and splits it into words as BERT's does."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def special_ids(tokenizer: Tokenizer) -> dict[str, int]:
    """The id of every special token, by token."""
    return {token: tokenizer.token_to_id(token) for token in SPECIAL}


def texts(shards: Iterable[Path]) -> Iterator[str]:
    """Yields the text of every document of some shards, in order. ValueError when one cannot be read."""
    return (records.content(line) for shard in shards for line in reading.lines(shard))


def _characters(documents: Iterable[str], limit: int) -> tuple[list[str], list[str]]:
    """Finds the alphabet that WordPiece starts from: ALWAYS and the `limit` most frequent characters of the documents.

    Returns it and those of it that continue words in the documents or are ALPHANUMERIC; both lists are sorted.
    """
    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    frequencies, continuing = Counter(), set()
    for document in documents:
        words = Counter(word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(document)))
        for word, times in words.items():
            continuing.update(word[1:])
            for character in word:
                frequencies[character] += times
    ranked = sorted(frequencies, key=lambda character: (-frequencies[character], character))
    kept = sorted(ALWAYS.union(ranked[:limit]))
    return kept, [character for character in kept if character in continuing | ALPHANUMERIC]
