"""Packed sequences are the tokens of whole documents, in order; only the last partial sequence is lost."""

import json
import re
import subprocess
import sys
from contextlib import nullcontext
from functools import partial
from itertools import chain, islice
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from transformers import BertTokenizer, PreTrainedTokenizerFast

from stages.corpus import conversion
from stages.files.model_folders import SPECIAL
from stages.records import reading, records
from stages.records.records import PlainDocument
from stages.schema.sections import Tokenization
from stages.schema.settings import load_settings
from stages.sequences import packing
from stages.tokenization import stage as tokenization
from stages.tokenization import streams as tokens
from stages.tokenization import vocabulary
from stages.tokenization.encoding import WordMemory, splits_at_spaces
from tests import toy_shards
from tests.toy_settings import LAPTOP

pytestmark = pytest.mark.usefixtures("in_an_empty_folder")

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "dogs", "bark", "at", "night", "while", "rain", "falls"]
ROOT = Path(__file__).parents[1]
SECTION = load_settings(LAPTOP).tokenization


def make_settings(**changes) -> Tokenization:
    small = {"vocabulary_size": 150, "sequence_length": 8, "validation_documents": 5}
    return Tokenization.model_validate(SECTION.model_dump() | small | changes)


def write_documents(count: int, seed: int = 0) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, size=random.integers(1, 30))) for _ in range(count)]


def write_shards(texts: list[str], shards: int = 1) -> None:
    """Writes the folder `filtered` as stage filtering does."""
    for number, part in enumerate(np.array_split(np.array(texts, dtype=object), shards), 1):
        lines = [records.write_record(PlainDocument(text)) for text in part]
        toy_shards.write_shard(lines, f"part_{number}")
    toy_shards.build(quality_warnings="keep", missing_harmful_pp="keep")


TOKENS = Path("tokens")


def build(**changes) -> None:
    """Tokenizes the folder `filtered` into the folder `tokens`."""
    tokenization.build_tokens(toy_shards.FILTERED, TOKENS, make_settings(**changes), None, workers=1)


def load_tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(TOKENS / "tokenizer" / "tokenizer.json"))


def read_sequences(folder: Path = TOKENS, split: str = "train") -> np.ndarray:
    """Reads all sequences of a split, and checks the checksums of the shards."""
    for shard in packing.read_index(folder)["splits"][split]["shards"]:
        assert packing.compute_sha256(folder / shard["name"]) == shard["sha256"]
    sequences = packing.Sequences(folder, split)
    return sequences[range(len(sequences))]


def draw_held_out(documents: int, count: int) -> set[int]:
    return set(np.random.default_rng(1).choice(documents, size=count, replace=False).tolist())


def make_tokenizer(*pieces: str) -> Tokenizer:
    numbers = {piece: number for number, piece in enumerate([*vocabulary.SPECIAL, *pieces])}
    return vocabulary.make_tokenizer(numbers)


@pytest.fixture
def bert(shared_data) -> Tokenizer:
    return vocabulary.read_tokenizer(shared_data / "vocab" / "bert-base-uncased-vocab.txt")


@pytest.mark.parametrize(("shards", "length", "batch"), [(1, 8, 1 << 20), (4, 33, 1)])
def test_sequences_are_the_documents_concatenated_and_cut_whatever_shards_and_batches(
    shards, length, batch, monkeypatch
):
    monkeypatch.setattr(tokens, "BATCH", batch)
    texts = write_documents(100)
    write_shards(texts, shards)
    build(sequence_length=length)
    tokenizer = load_tokenizer()
    held_out = draw_held_out(100, 5)
    streams = {"train": [], "validation": []}
    for number, text in enumerate(texts):
        split = "validation" if number in held_out else "train"
        streams[split] += tokenizer.encode(text).ids
    splits = packing.read_index(TOKENS)["splits"]
    assert (splits["train"]["documents"], splits["validation"]["documents"]) == (95, 5)
    for split, stream in streams.items():
        sequences, dropped = divmod(len(stream), length)
        assert read_sequences(split=split).ravel().tolist() == stream[: sequences * length]
        entry = splits[split]
        counts = [entry[key] for key in ("tokens", "dropped_tokens", "sequences", "unknown_tokens")]
        assert counts == [len(stream), dropped, sequences, stream.count(tokenizer.token_to_id("[UNK]"))]


@pytest.fixture
def packed() -> Path:
    """Three sequences of five tokens, in the folder `packed`."""
    np.arange(15, dtype="<u2").tofile("stream.bin")
    entry = packing.pack([Path("stream.bin")], Path("packed/train"), 5)
    Path("packed/index.json").write_text(json.dumps({"sequence_length": 5, "splits": {"train": entry}}))
    return Path("packed")


@pytest.mark.parametrize("index", [-1, 3])
def test_indices_outside_are_refused(packed, index):
    with pytest.raises(IndexError, match="among 3 sequences"):
        packing.Sequences(packed, "train")[[0, index]]


def test_damaged_shards_are_named(packed):
    path = packed / "train" / "part_1.bin"
    content = path.read_bytes()
    for damaged in (content[:-1], content + b"0"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"part_1\.bin: {len(damaged)} bytes, index\.json says 30"):
            packing.Sequences(packed, "train")
    path.unlink()
    with pytest.raises(ValueError, match=r"part_1\.bin: missing"):
        packing.Sequences(packed, "train")


@pytest.mark.parametrize(
    ("folder", "message"), [("packed", "no split test, only train"), ("nowhere", "run `dvc repro tokenization`")]
)
def test_missing_sequences_are_named(packed, folder, message):
    with pytest.raises(ValueError, match=message):
        packing.Sequences(Path(folder), "test")


def make_variants() -> list[Tokenizer]:
    """BERT's uncased tokenizer, two with other normalizers, and tokenizers that keep "b," or "a b" together."""
    pieces = ["a", "b", "##a", "ab", "A", "\u00e9", "\u4e2d", ",", "b,", "##\u0301"]
    uncased, cased, raw, other, added = [make_tokenizer(*pieces) for _ in range(5)]
    cased.normalizer = normalizers.BertNormalizer(lowercase=False)
    raw.normalizer = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=False)
    other.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    added.add_tokens(["a b"])
    return [uncased, cased, raw, other, added]


PARTS = [*"ab- \n\t\x1c\x85\xa0\u3000\u0301\u00e9\u4e2d", "ab", "Ab", "A,", "b, ", "a b", "e\u0301", "[MASK]"]


@hypothesis.settings(deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(PARTS) | st.characters(codec="utf-8"), max_size=30), min_size=1, max_size=5),
    st.integers(1, 20),
    st.sampled_from(make_variants()),
    st.sampled_from([0, 1 << 22]),
)
def test_words_in_memory_and_documents_in_pieces_have_the_tokens_of_the_text(texts, longest, tokenizer, remembered):
    tokenizer.encode_special_tokens = True
    # other tokenizers may take both sides of a space for one token
    longest = longest if splits_at_spaces(tokenizer) else 1 << 20
    batch = []
    ids = []
    letters = unknown = 0
    for text in map("".join, texts):
        parts = list(tokens.cut_parts(text, longest))
        assert "".join(part.text for part in parts) == text
        assert [part.begins for part in parts] == [True] + [False] * (len(parts) - 1)
        assert [part.ends for part in parts] == [False] * (len(parts) - 1) + [True]
        batch += parts
        encoding = tokenizer.encode(text)
        ids += encoding.ids
        letters += len("".join(text.split()))
        unknown += sum(end - begin for i, (begin, end) in zip(encoding.ids, encoding.offsets, strict=True) if i == 1)
    with mock.patch("stages.tokenization.encoding.MEMORY", remembered):
        memory = WordMemory(tokenizer)
        for _ in range(2):
            found = memory.encode(batch)
            assert (found[0].tolist(), *found[1:]) == (ids, letters, unknown)


@pytest.mark.parametrize("characters", [1 << 20, 10])
@pytest.mark.parametrize("count", [25, 20, 9])
def test_a_partial_block_is_dropped_per_batch_of_documents_as_the_authors_do(monkeypatch, tmp_path, count, characters):
    monkeypatch.setattr(tokens, "DROP_EVERY", 10)
    # documents of more characters come in parts, of which some batches hold no end
    monkeypatch.setattr(tokens, "BATCH", characters)
    monkeypatch.setattr(tokens, "cut_parts", partial(tokens.cut_parts, longest=characters))
    texts = write_documents(count)
    write_shards(texts)
    shard = Path("filtered/part_1.jsonl.zst")
    tokenizer = vocabulary.train_tokenizer([shard], 150)
    tokenizer.save("tokenizer.json")
    argument = {"shard": str(shard), "tokenizer": "tokenizer.json", "validation": [3, 7], "drop_to_multiple": 8}
    counts = tokens.tokenize_shard(argument, tmp_path)
    splits = {"validation": [texts[3], texts[7]], "train": texts[:3] + texts[4:7] + texts[8:]}
    for split, of_split in splits.items():
        streams = [tokenizer.encode(text).ids for text in of_split]
        expected = []
        for start in range(0, len(streams), 10):
            batch = list(chain.from_iterable(streams[start : start + 10]))
            expected += batch[: len(batch) // 8 * 8]
        assert np.fromfile(tmp_path / f"{split}.bin", packing.ITEM).tolist() == expected
        dropped = counts[split]["dropped_tokens"]
        assert counts[split]["tokens"] == sum(map(len, streams)) == len(expected) + dropped


@hypothesis.settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=6), st.integers(0, 5), st.data())
def test_held_out_documents_are_drawn_over_all_shards(sizes, seed, data):
    count = data.draw(st.integers(1, sum(sizes) - 1))
    parts = tokenization.hold_out(sizes, count, seed)
    assert parts == tokenization.hold_out(sizes, count, seed)
    assert sum(map(len, parts)) == count
    for part, size in zip(parts, sizes, strict=True):
        assert part == sorted(set(part).intersection(range(size)))


@pytest.mark.parametrize(
    ("held_out", "length", "message"),
    [
        (20, 8, "validation_documents: 20 of 20 filtered documents .*a blank line ends a document"),
        (1, 100, r"1 documents for validation have .* less than one sequence"),
        (1, 5000, r"documents for (train|validation) have .* less than one sequence"),
    ],
)
def test_too_few_documents_or_tokens_are_errors(held_out, length, message):
    write_shards(write_documents(20))
    with pytest.raises(ValueError, match=message):
        build(validation_documents=held_out, sequence_length=length)


@pytest.mark.parametrize(("words", "share"), [("кот сидит", "100%"), ("кот cat сидит", "67%"), ("кот cat", None)])
def test_a_vocabulary_that_knows_less_than_half_of_the_tokens_is_refused(words, share, capsys):
    write_shards([words] * 30)
    pieces = [*vocabulary.SPECIAL, *WORDS]
    Path("vocabulary.txt").write_text("\n".join(pieces))
    choice = make_settings(vocabulary="vocabulary.txt")
    if share:
        expectation = pytest.raises(ValueError, match=rf"vocabulary: {share} of the tokens are unknown .*\.txt\)")
    else:
        expectation = nullcontext()
    with expectation:
        tokenization.build_tokens(toy_shards.FILTERED, TOKENS, choice, Path(), workers=1)
    tokens_in_all = 30 * len(words.split())
    assert f"tokenization: 30 documents, {tokens_in_all} tokens, " in capsys.readouterr().out


def test_a_shard_that_its_ledger_contradicts_is_named():
    write_shards(write_documents(20), 2)
    path = Path("filtered/part_2.jsonl.zst")
    lines = list(reading.read_lines(path))
    # a new file: the old file is also the result of a job
    path.unlink()
    with reading.open_zstd_writer(path) as file:
        file.write(b"\n".join(lines[:-1]))
    with pytest.raises(ValueError, match=r"part_2.*: 9 documents, but the ledger counts 10"):
        build()


def test_the_trained_vocabulary_has_bert_tokens_and_every_ascii_character():
    write_shards([*write_documents(50), "Ünïcode ß 東"])
    build()
    tokenizer = load_tokenizer()
    size = tokenizer.get_vocab_size()
    index = packing.read_index(TOKENS)
    assert [index["special"][token] for token in vocabulary.SPECIAL] == [0, 1, 2, 3, 4]
    assert index["vocabulary_size"] == size <= 150
    assert sorted(tokenizer.get_vocab().values()) == list(range(size))
    assert "[UNK]" not in tokenizer.encode("The CAT's 7% @home~ über 東!").tokens
    pair = tokenizer.encode("the cat", "a mat")
    assert (pair.tokens[0], pair.tokens.count("[SEP]"), max(pair.type_ids)) == ("[CLS]", 2, 1)


def test_rare_characters_take_no_more_than_a_quarter_of_a_trained_vocabulary():
    rare = [chr(0x4E00 + number) for number in range(300)]
    write_shards([*write_documents(50), " ".join(rare)])
    found = vocabulary.train_tokenizer([Path("filtered/part_1.jsonl.zst")], 400).get_vocab()
    assert len(found.keys() & rare) <= 100


def test_a_full_disk_is_reported_where_sequences_are_packed(monkeypatch, tmp_path):
    (tmp_path / "stream.bin").write_bytes(bytes(20))
    monkeypatch.setattr(packing, "make_temporary_sibling", lambda _: nullcontext(Path("/dev/full")))
    with pytest.raises(OSError, match="No space left"):
        packing.pack([tmp_path / "stream.bin"], tmp_path / "train", 5)


def test_a_full_disk_is_reported_where_documents_are_encoded(tmp_path):
    write_shards(write_documents(5))
    vocabulary.train_tokenizer([Path("filtered/part_1.jsonl.zst")], 150).save("tokenizer.json")
    (tmp_path / "train.bin").symlink_to("/dev/full")
    argument = {
        "shard": "filtered/part_1.jsonl.zst",
        "tokenizer": "tokenizer.json",
        "validation": [],
        "drop_to_multiple": None,
    }
    with pytest.raises(OSError, match="No space left"):
        tokens.tokenize_shard(argument, tmp_path)


@pytest.mark.parametrize("space", [" ", "\n"])
def test_a_vocabulary_trained_on_pieces_is_the_same(monkeypatch, space):
    text = space.join(write_documents(50)).replace("cat", "c\u0301at")
    shard = toy_shards.write_shard([records.write_record(PlainDocument(text))])
    whole = vocabulary.train_tokenizer([shard], 300)
    monkeypatch.setattr(vocabulary, "LONGEST_TO_TRAIN", 10)
    assert len(list(vocabulary.read_parts([shard]))) > 100
    assert vocabulary.train_tokenizer([shard], 300).to_str() == whole.to_str()


TRAIN = """
import sys
from pathlib import Path
from stages.tokenization import vocabulary
vocabulary.train_tokenizer([Path(sys.argv[1])], 300)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_training_a_vocabulary_takes_little_more_memory_for_a_long_document():
    peaks = []
    sizes = [10_000, 2_000_000]
    for size in sizes:
        text = " ".join(WORDS * (size // 60))
        shard = toy_shards.write_shard([records.write_record(PlainDocument(text))])
        peaks += toy_shards.measure_memory(TRAIN, shard)
    # split as a whole, a document takes 90 bytes a byte and more
    assert peaks[1] - peaks[0] < 30 * sizes[1]


def test_a_trained_vocabulary_is_the_same_in_every_process(shared_data):
    source = conversion.read_records(shared_data / "text" / "enwiki_sample.jsonl.zst")
    toy_shards.write_shard(list(islice(source, 300)))
    script = (
        "from pathlib import Path; from stages.tokenization.vocabulary import train_tokenizer;"
        "print(train_tokenizer([Path('corpus/part_1.jsonl.zst')], 3000).to_str())"
    )
    command = [sys.executable, "-c", script]
    environment = {"PYTHONPATH": str(ROOT)}
    made = {subprocess.run(command, capture_output=True, check=True, env=environment).stdout for _ in range(2)}
    assert len(made) == 1
    assert json.loads(made.pop())["model"]["vocab"]["[MASK]"] == 4


@pytest.mark.parametrize("end", ["", "\r\n", "\r\n\r\n"])
def test_a_vocabulary_file_gives_its_lines_in_order(end):
    # a byte order mark and blank last lines add no piece
    text = "\ufeff" + "\r\n".join([*vocabulary.SPECIAL, "cat", "##s", "\u2028"])
    Path("vocab.txt").write_bytes((text + end).encode())
    tokenizer = vocabulary.read_tokenizer(Path("vocab.txt"))
    assert tokenizer.get_vocab_size() == 8
    assert tokenizer.encode("Cats dog").ids == [2, 5, 6, 1, 3]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat"], ": no line [MASK]"),
        ([*vocabulary.SPECIAL, "cat", "dog", "cat"], ": the piece 'cat' occurs in several of 8 lines"),
        ([*vocabulary.SPECIAL, "", "cat"], ", line 6: blank"),
        ([*vocabulary.SPECIAL, "a", "B"], ": the piece 'B' is of a cased vocabulary"),
        # é in Latin-1, and half of a surrogate pair
        ([*vocabulary.SPECIAL, "\udce9"], ", line 6: not UTF-8"),
        (["[PAD]", "\udced\udca0\udc80"], ", line 2: not UTF-8"),
    ],
)
def test_a_file_that_is_no_bert_vocabulary_is_refused(content, message):
    Path("vocab.txt").write_bytes("\n".join([*content, ""]).encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=re.escape(f"vocab.txt{message}")):
        vocabulary.read_tokenizer(Path("vocab.txt"))


def test_runs_of_more_than_100_letters_are_counted_and_refused_above_half_of_all_letters(capsys):
    """Thai has no spaces between words."""
    texts = ["word " * 20 + "x" * 101, "ก" * 210, "ก" * 50]
    for text in texts:
        write_shards([text] * 30)
        lost = len(text.split()[-1]) > 100
        with pytest.raises(ValueError, match="letters; BERT takes a run of more than 100") if lost else nullcontext():
            build(validation_documents=3, sequence_length=8)
    said = capsys.readouterr().out
    assert "30 documents, 630 tokens, 4.76% of them unknown, with 55.80% of the letters" in said
    assert ", with 100.00% of the letters" in said and ", with 0.00% of the letters" in said


def test_the_name_of_a_special_token_in_a_text_is_no_special_token():
    write_shards(["a [MASK] b [SEP] c [PAD] d"] * 30)
    build(validation_documents=1, sequence_length=8)
    ids = np.fromfile("tokens/train/part_1.bin", dtype=np.uint16)
    assert not set(ids) & {0, 4} and (ids == 3).sum() <= (ids == 2).sum()


def test_code_in_a_vocabulary_s_folder_is_never_run_and_an_empty_folder_is_named(tmp_path):
    (tmp_path / "tokenizer_config.json").write_text('{"auto_map": {"AutoTokenizer": ["own.Own", null]}}')
    (tmp_path / "own.py").write_text("raise SystemExit('this code was run')")
    with pytest.raises(ValueError, match=rf"the folder {tmp_path}, which hides .* no tokenizer .*; rename the folder"):
        vocabulary.load_tokenizer(str(tmp_path), "main")


@pytest.mark.parametrize("content", [b"", b"[" * 5000, b'{"version": "1.0"}'])
def test_a_damaged_tokenizer_in_the_layout_of_the_hub_is_one_error(content, tmp_path):
    (tmp_path / "tokenizer.json").write_bytes(content)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    with pytest.raises(ValueError, match=rf"tokenization\.vocabulary: the folder {tmp_path}, which"):
        vocabulary.load_tokenizer(str(tmp_path), "main")


@pytest.mark.parametrize("name", ["./no/model", "", 256 * "a"])
def test_a_vocabulary_that_is_nowhere_is_an_error(name):
    with pytest.raises(ValueError, match=rf"tokenization\.vocabulary \(no file below data\.root\): {name}.* cannot be"):
        tokenization.choose_tokenizer(make_settings(vocabulary=name), Path(), [], 1)


def test_more_pieces_than_sixteen_bits_number_are_refused():
    pieces = [*vocabulary.SPECIAL, *(f"w{i}" for i in range(70_000))]
    Path("vocab.txt").write_text("\n".join(pieces))
    with pytest.raises(ValueError, match=r"70005 pieces; .* at most 65536"):
        tokenization.choose_tokenizer(make_settings(vocabulary="vocab.txt"), Path(), [], 1)


def test_a_cased_tokenizer_in_the_layout_of_the_hub_keeps_capitals_apart():
    cased = make_tokenizer("cat", "Cat")
    cased.normalizer = normalizers.BertNormalizer(lowercase=False)
    PreTrainedTokenizerFast(tokenizer_object=cased, **SPECIAL).save_pretrained("model")
    loaded, source = vocabulary.load_tokenizer("model", "main")
    assert source == "model"
    assert loaded.encode("Cat cat").ids == [2, 6, 5, 3]


def test_a_vocabulary_of_the_hub_is_read_at_a_recorded_commit(monkeypatch):
    asked = []

    def load(name, revision, trust_remote_code):
        assert not trust_remote_code
        asked.append((name, revision))
        return SimpleNamespace(backend_tokenizer=make_tokenizer())

    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", load)
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *_, **__: SimpleNamespace(sha="9abc"))
    _, source = tokenization.choose_tokenizer(make_settings(vocabulary="some/bert"), None, [], 1)
    assert source == "some/bert@9abc"
    assert asked == [("some/bert", "9abc")]


def test_the_real_vocabulary_tokenizes_as_hugging_face_does(bert, shared_data):
    assert bert.get_vocab_size() == 30_522
    assert [bert.token_to_id(token) for token in vocabulary.SPECIAL] == [0, 100, 101, 102, 103]
    theirs = BertTokenizer(vocab=bert.get_vocab())
    assert len(theirs) == 30_522
    lines = islice(conversion.read_records(shared_data / "text" / "enwiki_sample.jsonl.zst"), 30)
    for text in [*map(records.read_content, lines), "a\u0300 \u00a0 \x00 \ufffd [MASK] \U0001f600 " + "x" * 200]:
        assert bert.encode(text).ids == theirs(text)["input_ids"]
