"""Packed sequences are the tokens of whole documents, in order; only the last partial one is lost."""

import errno
import hashlib
import json
import subprocess
import sys
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers

from stages.corpus import sources
from stages.files.model_folders import SPECIAL
from stages.records import reading, records
from stages.records.records import PlainDocument
from stages.schema.sections import Tokenization
from stages.schema.settings import load_settings
from stages.sequences import packing
from stages.tokenization import stage as tokenization
from stages.tokenization import streams as tokens
from stages.tokenization import vocabulary
from tests import toy_shards

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "dogs", "bark", "at", "night", "while", "rain", "falls"]
ROOT = Path(__file__).parents[1]
LAPTOP = load_settings(ROOT / "stages/scales/laptop.yaml").tokenization


def settings(**changes) -> Tokenization:
    small = {"vocabulary_size": 150, "sequence_length": 8, "validation_documents": 5}
    return Tokenization.model_validate(LAPTOP.model_dump() | small | changes)


def documents(count: int, seed: int = 0) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, size=random.integers(1, 30))) for _ in range(count)]


def filtered(texts: list[str], shards: int) -> Path:
    """data/filtered as the stage before leaves it."""
    Path("corpus").mkdir()
    for number, part in enumerate(np.array_split(np.array(texts, dtype=object), shards), 1):
        with reading.zstd_writer(Path(f"corpus/part_{number}.jsonl.zst")) as file:
            file.writelines(records.record(PlainDocument(text)) + b"\n" for text in part)
    Path("filtered").mkdir()
    toy_shards.build(Path("filtered"), quality_warnings="keep", missing_harmful_pp="keep")
    return Path("filtered")


def build(folder: Path, root: Path | None = None, **changes) -> Path:
    tokenization.build(folder, Path("tokens"), settings(**changes), root, workers=1)
    return Path("tokens")


def assert_checksums(folder: Path, split: str) -> None:
    shards = packing.read_index(folder)["splits"][split]["shards"]
    assert [packing.sha256(folder / shard["name"]) for shard in shards] == [shard["sha256"] for shard in shards]


def everything(folder: Path, split: str) -> np.ndarray:
    sequences = packing.Sequences(folder, split)
    assert_checksums(folder, split)
    return sequences[np.arange(len(sequences))]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def bert(shared_data) -> Tokenizer:
    return vocabulary.from_file(shared_data / "vocab" / "bert-base-uncased-vocab.txt")


@pytest.mark.parametrize(("shards", "length"), [(1, 8), (4, 8), (4, 33)])
def test_sequences_are_the_documents_concatenated_and_cut(shards, length):
    texts = documents(100)
    folder = build(filtered(texts, shards), sequence_length=length)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer" / "tokenizer.json"))
    index = packing.read_index(folder)
    held_out = set(np.random.default_rng(1).choice(100, size=5, replace=False).tolist())
    for split, belongs in (("train", lambda i: i not in held_out), ("validation", lambda i: i in held_out)):
        stream = [id for i, text in enumerate(texts) if belongs(i) for id in tokenizer.encode(text).ids]
        whole = len(stream) // length * length
        assert everything(folder, split).ravel().tolist() == stream[:whole]
        entry = index["splits"][split]
        assert entry["documents"] == (95 if split == "train" else 5)
        assert (entry["tokens"], entry["dropped_tokens"]) == (len(stream), len(stream) - whole)
        assert entry["sequences"] * length == whole
        assert entry["unknown_tokens"] == stream.count(tokenizer.token_to_id("[UNK]")) == 0


def test_shards_and_batches_do_not_show_in_the_sequences(monkeypatch, tmp_path):
    found = set()
    for shards, batch in ((1, 1 << 20), (3, 50), (7, 1)):
        folder = tmp_path / f"{shards} shards"
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setattr(tokens, "BATCH", batch)
        made = build(filtered(documents(60), shards))
        found.add((everything(made, "train").tobytes(), (made / "index.json").read_text()))
    assert len(found) == 1


@hypothesis.settings(deadline=None)
@given(
    sizes=st.lists(st.integers(0, 40), max_size=5),
    length=st.integers(1, 7),
    shard_bytes=st.integers(1, 60),
)
def test_packing_is_concatenating_and_cutting(tmp_path_factory, sizes, length, shard_bytes):
    folder = tmp_path_factory.mktemp("pack")
    numbers = np.arange(sum(sizes), dtype="<u2")
    streams = []
    for number, part in enumerate(np.split(numbers, np.cumsum(sizes)[:-1]) if sizes else []):
        streams.append(folder / f"{number}.bin")
        part.tofile(streams[-1])
    entry = packing.pack(streams, folder / "train", length, shard_bytes)
    (folder / "index.json").write_text(json.dumps({"sequence_length": length, "splits": {"train": entry}}))
    rows = len(numbers) // length
    assert entry["sequences"] == rows
    assert entry["dropped_tokens"] == len(numbers) % length
    assert all(shard["sequences"] * length * 2 <= max(shard_bytes, 2 * length) for shard in entry["shards"])
    sequences = packing.Sequences(folder, "train")
    assert_checksums(folder, "train")
    assert len(sequences) == rows
    order = np.random.default_rng(0).integers(0, rows, 2 * rows) if rows else np.array([], dtype=int)
    picked = sequences[order]
    assert picked.dtype == np.int64
    assert (picked == numbers[: rows * length].reshape(rows, length)[order]).all()


def test_indices_outside_are_refused():
    sequences = packing.Sequences(build(filtered(documents(30), 1)), "train")
    for index in (-1, len(sequences)):
        with pytest.raises(IndexError, match=f"among {len(sequences)} sequences"):
            sequences[[0, index]]


def test_damaged_shards_are_named():
    folder = build(filtered(documents(30), 1))
    path = folder / "train" / "part_1.bin"
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(ValueError, match=rf"part_1\.bin: {len(content) - 1} bytes, index\.json says {len(content)}"):
        packing.Sequences(folder, "train")
    path.unlink()
    with pytest.raises(ValueError, match=r"part_1\.bin: missing"):
        packing.Sequences(folder, "train")
    with pytest.raises(ValueError, match="no split test, only train, validation"):
        packing.Sequences(folder, "test")
    with pytest.raises(ValueError, match="run `dvc repro tokenization`"):
        packing.Sequences(Path("nowhere"), "train")


@hypothesis.settings(deadline=None)
@given(st.text("ab ,\n", max_size=80), st.integers(1, 20))
def test_long_documents_in_pieces_have_the_same_tokens(text, longest):
    tokenizer = vocabulary.word_pieces({p: i for i, p in enumerate([*vocabulary.SPECIAL, "a", "b", "##a", "ab", ","])})
    pieces = list(tokens.cut_pieces(text, longest))
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.begins for piece in pieces] == [True] + [False] * (len(pieces) - 1)
    assert [piece.ends for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    ids = []
    for piece in pieces:
        ids += tokenizer.encode(piece.text, add_special_tokens=False).ids
    assert ids == tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize(("count", "size"), [(25, 10), (20, 10), (9, 10)])
def test_a_partial_block_is_dropped_per_batch_of_documents_as_the_authors_do(monkeypatch, count, size):
    def in_this_process(function, work, **_):  # where the number of documents a batch is changed
        folders = [Path(f"data/made/{number}-{job.name}") for number, job in enumerate(work)]
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        return [(folder, function(job.settings, folder)) for folder, job in zip(folders, work, strict=True)]

    monkeypatch.setattr("stages.tokenization.stage.jobs.run", in_this_process)
    monkeypatch.setattr(tokens, "CUT_DOCUMENTS", size)
    texts = documents(count)
    folder = build(filtered(texts, 1), partial_blocks="drop_per_batch", validation_documents=2)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer" / "tokenizer.json"))
    held_out = set(np.random.default_rng(1).choice(count, size=2, replace=False).tolist())
    for split, numbers in (("train", set(range(count)) - held_out), ("validation", held_out)):
        streams = [tokenizer.encode(texts[number]).ids for number in sorted(numbers)]
        expected = []
        for start in range(0, len(streams), size):
            batch = [id for stream in streams[start : start + size] for id in stream]
            expected += batch[: len(batch) // 8 * 8]
        assert everything(folder, split).ravel().tolist() == expected
        entry = packing.read_index(folder)["splits"][split]
        assert entry["tokens"] == sum(map(len, streams)) == len(expected) + entry["dropped_tokens"]


@hypothesis.settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 5), st.data())
def test_held_out_documents_are_drawn_over_all_shards(sizes, seed, data):
    count = data.draw(st.integers(1, max(sum(sizes) - 1, 1)))
    if count >= sum(sizes):
        with pytest.raises(ValueError, match="leave none to train on"):
            tokenization.hold_out(sizes, count, seed)
        return
    parts = tokenization.hold_out(sizes, count, seed)
    assert parts == tokenization.hold_out(sizes, count, seed)
    assert sum(map(len, parts)) == count
    assert all(
        part == sorted(set(part)) and set(part) <= set(range(size)) for part, size in zip(parts, sizes, strict=True)
    )


def test_too_few_documents_or_tokens_are_errors():
    folder = filtered(documents(20), 2)
    with pytest.raises(ValueError, match="validation_documents: 20 of 20 filtered documents"):
        build(folder, validation_documents=20)
    with pytest.raises(ValueError, match=r"1 documents for validation have .* less than one sequence"):
        build(folder, validation_documents=1, sequence_length=100)
    with pytest.raises(ValueError, match=r"19 documents for train have .* less than one sequence"):
        build(folder, validation_documents=1, sequence_length=5000)


def test_a_shard_that_its_ledger_contradicts_is_named():
    folder = filtered(documents(20), 2)
    path = folder / "part_2.jsonl.zst"
    lines = list(reading.lines(path))
    path.unlink()
    with reading.zstd_writer(path) as file:
        file.writelines(line + b"\n" for line in lines[:-1])
    with pytest.raises(ValueError, match=r"part_2.*: 9 documents, its ledger says 10"):
        build(folder)


def test_the_trained_vocabulary_has_bert_tokens_and_every_ascii_character():
    folder = build(filtered([*documents(50), "Ünïcode ß 東"], 2))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer" / "tokenizer.json"))
    index = packing.read_index(folder)
    assert index["special"] == {token: i for i, token in enumerate(vocabulary.SPECIAL)}
    assert index["vocabulary_size"] == tokenizer.get_vocab_size() <= 150
    assert sorted(tokenizer.get_vocab().values()) == list(range(tokenizer.get_vocab_size()))
    assert "[UNK]" not in tokenizer.encode("The CAT's 7% @home~ über 東!").tokens
    pair = tokenizer.encode("the cat", "a mat")
    assert (pair.tokens[0], pair.tokens.count("[SEP]"), max(pair.type_ids)) == ("[CLS]", 2, 1)


def test_rare_characters_take_no_more_than_a_quarter_of_a_trained_vocabulary():
    rare = [chr(0x4E00 + number) for number in range(300)]
    filtered([*documents(50), " ".join(rare)], 1)
    found = vocabulary.trained([Path("filtered/part_1.jsonl.zst")], 400).get_vocab()
    assert len(set(rare) & found.keys()) <= 100


def test_a_full_disk_is_told_as_one_where_sequences_are_packed(monkeypatch, tmp_path):
    (tmp_path / "stream.bin").write_bytes(bytes(20))
    monkeypatch.setattr(packing, "temporary_sibling", lambda _: nullcontext(Path("/dev/full")))
    with pytest.raises(OSError, match="No space left") as raised:
        packing.pack([tmp_path / "stream.bin"], tmp_path / "train", 5)
    assert raised.value.errno == errno.ENOSPC


def test_a_full_disk_is_told_as_one(tmp_path):
    filtered(documents(5), 1)
    vocabulary.trained([Path("filtered/part_1.jsonl.zst")], 150).save("tokenizer.json")
    (tmp_path / "train.bin").symlink_to("/dev/full")
    job = {"shard": "filtered/part_1.jsonl.zst", "tokenizer": "tokenizer.json", "validation": [], "cut": None}
    with pytest.raises(OSError, match="No space left") as raised:
        tokens.tokenize_shard(job, tmp_path)
    assert raised.value.errno == errno.ENOSPC


def test_a_trained_vocabulary_is_the_same_in_every_process(shared_data):
    with reading.zstd_writer(Path("part_1.jsonl.zst")) as file:
        source = islice(sources.file_records(shared_data / "text" / "enwiki_sample.jsonl.zst"), 300)
        file.writelines(line + b"\n" for line in source)
    script = (
        "from pathlib import Path; from stages.tokenization.vocabulary import trained;"
        "print(trained([Path('part_1.jsonl.zst')], 3000).to_str())"
    )
    command = [sys.executable, "-c", script]
    environment = {"PYTHONPATH": str(ROOT)}
    made = [subprocess.run(command, capture_output=True, check=True, env=environment).stdout for _ in range(3)]
    assert len({hashlib.sha256(tokenizer).digest() for tokenizer in made}) == 1
    assert json.loads(made[0])["model"]["vocab"]["[MASK]"] == 4


def test_a_vocabulary_file_gives_its_lines_in_order():
    Path("vocab.txt").write_bytes("\r\n".join([*vocabulary.SPECIAL, "cat", "##s", "\u2028"]).encode())
    tokenizer = vocabulary.from_file(Path("vocab.txt"))
    assert tokenizer.get_vocab_size() == 8
    assert tokenizer.encode("Cats dog").ids == [2, 5, 6, 1, 3]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat"], r"vocab\.txt: no line \[MASK\]"),
        (
            [*vocabulary.SPECIAL, "cat", "dog", "cat"],
            r"vocab\.txt: the piece 'cat' stands in several of 8 lines",
        ),
        (["{", '"vocab": 1', "}"], r"vocab\.txt: no line \[PAD\]"),
        ([*vocabulary.SPECIAL, "", "cat"], r"vocab\.txt, line 6: blank"),
        ([*vocabulary.SPECIAL, "a", "B"], r"vocab\.txt: the piece 'B' is of a cased vocabulary"),
        ([], r"vocab\.txt, line 1: blank"),
        ([*vocabulary.SPECIAL, "\udce9"], r"vocab\.txt, line 6: not UTF-8"),  # é in Latin-1
        (["[PAD]", "\udced\udca0\udc80"], r"vocab\.txt, line 2: not UTF-8"),  # half of a surrogate pair
    ],
)
def test_a_file_that_is_no_bert_vocabulary_is_refused(lines, message):
    Path("vocab.txt").write_bytes("\n".join([*lines, ""]).encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=message):
        vocabulary.from_file(Path("vocab.txt"))


def test_a_byte_order_mark_and_blank_last_lines_add_no_piece():
    Path("vocab.txt").write_text("\ufeff" + "\n".join([*vocabulary.SPECIAL, "cat", "", "\r", ""]))
    tokenizer = vocabulary.from_file(Path("vocab.txt"))
    assert tokenizer.get_vocab_size() == 6 and tokenizer.token_to_id("[PAD]") == 0


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"[" * 5000, b'{"version": "1.0"}', b'{"version": "\xe9"}'])
def test_a_damaged_tokenizer_in_the_layout_of_the_hub_is_one_error(content, tmp_path):
    (tmp_path / "tokenizer.json").write_bytes(content)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    with pytest.raises(ValueError, match=rf"tokenization\.vocabulary: {tmp_path} is no file"):
        vocabulary.from_hub(str(tmp_path), "main")


def test_a_vocabulary_that_is_nowhere_is_an_error():
    with pytest.raises(ValueError, match=r"tokenization\.vocabulary: ./no/model is no file below data\.root"):
        tokenization.choose_tokenizer(settings(vocabulary="./no/model"), Path(), [], 1)


def test_more_pieces_than_sixteen_bits_number_are_refused():
    pieces = [*vocabulary.SPECIAL, *(f"w{i}" for i in range(70_000))]
    Path("vocab.txt").write_text("\n".join(pieces))
    with pytest.raises(ValueError, match=r"70005 pieces; .* at most 65536"):
        tokenization.choose_tokenizer(settings(vocabulary="vocab.txt"), Path(), [], 1)


def test_a_tokenizer_in_the_layout_of_the_hub_gives_the_same_ids(bert):
    from transformers import PreTrainedTokenizerFast

    PreTrainedTokenizerFast(tokenizer_object=bert, **SPECIAL).save_pretrained("model")
    loaded, read = vocabulary.from_hub("model", "main")
    assert read == "model"
    text = "Señor Müller's 東京 trip cost $3,000."
    assert loaded.encode(text).ids == bert.encode(text).ids
    assert vocabulary.special_ids(loaded) == vocabulary.special_ids(bert)


def test_a_cased_tokenizer_in_the_layout_of_the_hub_keeps_capitals_apart():
    from transformers import PreTrainedTokenizerFast

    cased = vocabulary.word_pieces({piece: i for i, piece in enumerate([*vocabulary.SPECIAL, "cat", "Cat"])})
    cased.normalizer = normalizers.BertNormalizer(lowercase=False)
    PreTrainedTokenizerFast(tokenizer_object=cased, **SPECIAL).save_pretrained("model")
    loaded, _ = vocabulary.from_hub("model", "main")
    assert loaded.encode("Cat cat").ids == [2, 6, 5, 3]


def test_a_vocabulary_of_the_hub_is_read_at_one_commit_which_is_given(monkeypatch):
    asked = []

    def loaded(name, revision):
        asked.append((name, revision))
        return SimpleNamespace(
            backend_tokenizer=vocabulary.word_pieces({p: i for i, p in enumerate(vocabulary.SPECIAL)})
        )

    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", loaded)
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *_, **__: SimpleNamespace(sha="9abc"))
    _, read = tokenization.choose_tokenizer(settings(vocabulary="some/bert"), None, [], 1)
    assert read == "some/bert@9abc" and asked == [("some/bert", "9abc")]


def test_the_real_vocabulary_tokenizes_as_hugging_face_does(bert, shared_data):
    from transformers import BertTokenizer

    assert bert.get_vocab_size() == 30_522
    assert list(vocabulary.special_ids(bert).values()) == [0, 100, 101, 102, 103]
    theirs = BertTokenizer(vocab=bert.get_vocab())
    assert len(theirs) == 30_522
    lines = islice(sources.file_records(shared_data / "text" / "enwiki_sample.jsonl.zst"), 30)
    for text in [*map(records.content, lines), "a\u0300 \u00a0 \x00 \ufffd [MASK] \U0001f600 " + "x" * 200]:
        assert bert.encode(text).ids == theirs(text)["input_ids"]
