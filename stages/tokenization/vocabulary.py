"""Tokenizers: WordPiece trained on the filtered documents, made from a vocabulary file, or from the hub.

Tokenizers that are made here have BERT's normalizer (lower case) and pre-tokenizer, and encode a pair as [CLS] A [SEP]
B [SEP]. A tokenizer of the hub is used as published, cased or not. A word piece is a word, or a part of a word.
"""

import string
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from stages.files import commits
from stages.files.quoting import quote_value
from stages.files.storage import write_atomically
from stages.records import reading
from stages.records.records import read_content
from stages.tokenization.parts import cut_parts

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PREFIX = "##"
# ids are stored as uint16
LARGEST = 1 << 16
# largest number of characters in the alphabet (and a quarter of the vocabulary at most); rarer characters are unknown
CHARACTERS = 1000
# characters of a text to train on, because splitting a text into words takes 90 bytes a byte
LONGEST_TO_TRAIN = 1 << 16
ALPHANUMERIC = frozenset(string.ascii_lowercase + string.digits)
# characters of a word; longer words are unknown, as in BERT
LONGEST_WORD = 100
# a task may have characters that the corpus lacks
ALWAYS = ALPHANUMERIC | frozenset(string.punctuation)


def train_vocabulary(argument: dict, folder: Path) -> dict:
    """Job (runner/jobs.py): trains a tokenizer, leaves tokenizer.json, and returns the number of word pieces.

    `argument` has `shards`, the paths of the documents, and `size`, the largest number of word pieces.
    """
    tokenizer = train_tokenizer([Path(shard) for shard in argument["shards"]], argument["size"])
    write_atomically(folder / "tokenizer.json", tokenizer.to_str(pretty=True))
    return {"size": tokenizer.get_vocab_size()}


def train_tokenizer(shards: list[Path], size: int) -> Tokenizer:
    """Trains WordPiece of at most `size` word pieces; the same documents give the same tokenizer, in any process.

    The alphabet is the ASCII lower-case letters, digits and punctuation, and the most frequent characters of the
    documents. Special tokens and all characters, at the start and inside of words, are always in the vocabulary, and
    may exceed a `size` up to 280.
    """
    limit = min(CHARACTERS, size // 4)
    characters, continuing = _find_alphabet(read_parts(shards), limit)
    # The library numbers continuing characters in the order of a hash table, which differs between processes and
    # decides between pairs of equal frequency. So all characters are passed as special tokens, in a fixed order.
    alphabet = [*SPECIAL, *characters]
    # "##a" is the letter "a" inside of a word
    alphabet += [PREFIX + character for character in continuing]
    learner = _make_lower_case_tokenizer(models.WordPiece(unk_token="[UNK]"))
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=alphabet,
        initial_alphabet=characters,
        limit_alphabet=len(characters),
        continuing_subword_prefix=PREFIX,
        show_progress=False,
    )
    learner.train_from_iterator(read_parts(shards), trainer)
    # only the vocabulary is kept, because the learner would treat characters as special tokens
    return make_tokenizer(learner.get_vocab())


def read_tokenizer(path: Path) -> Tokenizer:
    """Makes the tokenizer of a vocabulary file: a word piece per line, whose id is the number of the line, from 0.

    A byte order mark and blank lines at the end are ignored. ValueError if the file is not the vocabulary of an uncased
    BERT model.
    """
    pieces = list(reading.read_texts(path)) or [""]
    while len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    if "" in pieces:
        line = pieces.index("") + 1
        raise ValueError(f"{path}, line {line}: blank, but each line is a piece; restore the line")
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    if len(vocabulary) != len(pieces):
        [(double, _)] = Counter(pieces).most_common(1)
        raise ValueError(
            f"{path}: the piece {quote_value(double)} occurs in several of {len(pieces)} lines; keep one of the lines"
        )
    missing = [token for token in SPECIAL if token not in vocabulary]
    if missing:
        raise ValueError(f"{path}: no line {', '.join(missing)}; a BERT vocabulary has all of {', '.join(SPECIAL)}")
    # a cased vocabulary has single capital letters; the special tokens, such as [UNK], are longer
    for letter in string.ascii_uppercase:
        if letter in vocabulary:
            raise ValueError(
                f"{path}: the piece {letter!r} is of a cased vocabulary, but text is put in lower case here; give an "
                "uncased vocabulary, or the name of a cased model of the hub"
            )
    return make_tokenizer(vocabulary)


def load_tokenizer(name: str, revision: str) -> tuple[Tokenizer, str]:
    """Loads a tokenizer of the hub, or of a folder in the layout of a repository, at a commit, branch or tag.

    Returns the tokenizer, and the repository with the commit, or the folder. ValueError if the tokenizer cannot be
    loaded, or lacks a special token of BERT.
    """
    from transformers import AutoTokenizer

    commit = commits.find_commit(name, revision, "tokenization.vocabulary (no file below data.root)", "model")
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, revision=commit, trust_remote_code=False).backend_tokenizer
    # damaged files raise errors of many kinds in the library
    except Exception as error:
        commits.require_files(name)
        found = f"the folder {name}, which hides the hub's, holds" if commits.is_folder(name) else f"{name} is"
        raise ValueError(
            f"tokenization.vocabulary: {found} no tokenizer that can be loaded here ({quote_value(error)}); rename the "
            "folder, give a vocabulary file below data.root, or null to train one"
        ) from None
    missing = [token for token in SPECIAL if tokenizer.token_to_id(token) is None]
    if missing:
        raise ValueError(f"tokenization.vocabulary: {name} lacks {', '.join(missing)}; give the name of a BERT model")
    # the file of the tokenizer may ask for truncation and padding
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer, commits.name_source(name, commit)


def make_tokenizer(vocabulary: dict[str, int]) -> Tokenizer:
    """Makes BERT's uncased tokenizer of a vocabulary (id by word piece) that has all special tokens of BERT.

    "Unknown A" gives [CLS] un ##known a [SEP].
    """
    model = models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD)
    tokenizer = _make_lower_case_tokenizer(model)
    tokenizer.decoder = decoders.WordPiece(prefix=PREFIX)
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        # A and B are two texts, and 1 is the token type of the second text
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def _make_lower_case_tokenizer(model: models.Model) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def read_parts(shards: Iterable[Path]) -> Iterator[str]:
    """Yields the texts of shards, long texts in parts that cut no word. ValueError for an unsound document."""
    for shard in shards:
        for line in reading.read_lines(shard):
            for part in cut_parts(read_content(line), LONGEST_TO_TRAIN):
                yield part.text


def _find_alphabet(documents: Iterable[str], limit: int) -> tuple[list[str], list[str]]:
    """Returns, sorted, the characters of a WordPiece vocabulary, and the characters that also get a "##" form.

    Characters are ASCII letters, digits and punctuation, and the `limit` most frequent; "##" marks a character that
    continues a word.
    """
    normalizer = normalizers.BertNormalizer(lowercase=True)
    splitter = pre_tokenizers.BertPreTokenizer()
    frequencies = Counter()
    # a letter or digit that continues no word of the corpus may continue a word of a task
    continuing = set(ALPHANUMERIC)
    for document in documents:
        text = normalizer.normalize_str(document)
        # the normalizer puts a space in place of any other white space
        frequencies.update(text.replace(" ", ""))
        for word, _ in splitter.pre_tokenize_str(text):
            continuing.update(word[1:])
    # characters of equal frequency are ranked by code point, so that the order of documents does not matter
    ranked = sorted(frequencies, key=lambda character: (-frequencies[character], character))
    characters = sorted(ALWAYS.union(ranked[:limit]))
    continuing_characters = [character for character in characters if character in continuing]
    return characters, continuing_characters
