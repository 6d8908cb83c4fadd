"""Stage sentence_pairs: original files, and the handling of bad pairs."""

import tracemalloc
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml
from tokenizers import Tokenizer

from stages.encoder_decoder.pairs import BEGIN, END, load_pairs
from stages.schema import scales
from stages.schema.sections import Hub
from stages.schema.settings import Settings
from stages.sentence_pairs import reading, stage, vocabulary
from tests.places import ROOT
from tests.processes import run
from tests.toy_settings import edit_laptop

LANGUAGES = ("en", "de")


SMALL = {
    "translation.protocols.blog.train_pairs": 60,
    "translation.protocols.blog.held_out_pairs": 20,
    "translation.protocols.draft.train_pairs": 60,
    "translation.protocols.draft.held_out_pairs": 20,
}


def make_settings(edits: dict[str, object]) -> Settings:
    """Settings of scale laptop with small protocols and edits by key."""
    return Settings.model_validate(edit_laptop(SMALL | edits))


def test_without_a_protocol_nothing_is_prepared(in_an_empty_folder, capsys):
    assert stage.main(make_settings({"translation.protocols": {}})) == {"read": []}
    assert "sentence_pairs: 0 pairs" in capsys.readouterr().out


def keep(sides, limit=None, malformed_share=1.0):
    return reading.keep_sound_pairs(sides, limit, malformed_share, "train of a")


def write(folder: Path, **contents: bytes) -> None:
    """Writes files; a_en stands for a.en."""
    for name, content in contents.items():
        (folder / name.replace("_", ".")).write_bytes(content)


@pytest.mark.parametrize(
    ("files", "name", "pairs", "fates"),
    [
        (
            {"a_en": "one\u2028line\ntwo\r\n".encode(), "a_de": b"eins\nzwei"},
            "a",
            [("one line", "eins"), ("two", "zwei")],
            {"in": 2},
        ),
        (
            {"a_tsv": b"id\tde\ten\n1\teins\tone\n2\tzwei\n3\tdrei\tthree\n"},
            "a.tsv",
            [("one", "eins"), ("three", "drei")],
            {"in": 3, "malformed": 1},
        ),
        (
            {
                "a_en": b"one\n\nthree\nfour\nf\0i\0v\0e\0\n" + b"x" * 1000 + b"\n" + b"x" * 1001 + b"\n",
                "a_de": b"eins\nzwei\n\xff\xfe\n  \nf\0\nwort\nwort\n",
            },
            "a",
            [("one", "eins"), ("x" * 1000, "wort")],
            {"in": 7, "empty": 2, "not_utf8": 2, "long_word": 1},
        ),
        ({"a_tsv": b"\xef\xbb\xbfen\tde\r\none\teins\r\n"}, "a.tsv", [("one", "eins")], {"in": 1}),
    ],
    ids=["two files", "table", "defects", "byte order mark in a table"],
)
def test_sound_pairs_are_kept_and_all_others_counted_by_reason(tmp_path, files, name, pairs, fates):
    write(tmp_path, **files)
    assert keep(reading.read_files(tmp_path, name, LANGUAGES)) == (pairs, fates)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_files_in_another_encoding_are_one_error_and_a_share_of_bad_pairs_is_allowed(encoding, tmp_path):
    lines = ["plain", *["gr\u00fcn"] * 159]
    write(tmp_path, a_en=b"green\n" * 160, a_de="\n".join(lines).encode(encoding))
    sides = list(reading.read_files(tmp_path, "a", LANGUAGES))
    with pytest.raises(ValueError, match="train of a: of 160 pairs, .* 1(59|60) are not UTF-8, more than filter"):
        keep(sides, malformed_share=0.01)
    sound = [("green", "gr\u00fcn")] * 99
    assert keep([*sound, sides[1]], malformed_share=0.01) == (sound, {"in": 100, "not_utf8": 1})


def test_lines_that_end_in_a_carriage_return_are_an_error_and_not_one_pair(tmp_path):
    write(tmp_path, a_en=b"one\rtwo\r", a_de=b"eins\rzwei\r")
    with pytest.raises(ValueError, match=r"a\.en: lines that end in a carriage return; convert the file"):
        list(reading.read_files(tmp_path, "a", LANGUAGES))


def test_a_table_whose_lines_have_a_column_without_a_name_is_an_error_that_says_so(tmp_path):
    # as on manythings.org/anki, where a third column names the author
    write(tmp_path, a_tsv=b"en\tde\n" + b"Go.\tGeh.\tCC-BY 2.0 (France) Attribution: tatoeba.org\n" * 50)
    with pytest.raises(
        ValueError, match="of 50 pairs, 50 lack a text, or have other cells than .*; the first is pair 1"
    ):
        keep(reading.read_files(tmp_path, "a.tsv", LANGUAGES), malformed_share=0.01)


def test_files_are_read_no_further_than_they_are_kept(tmp_path):
    write(tmp_path, a_en=b"a long line of one file\n" * 300_000, a_de=b"eine lange Zeile der anderen\n" * 300_000)
    tracemalloc.start()
    kept, _ = keep(reading.read_files(tmp_path, "a", LANGUAGES), limit=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(kept) == 2 and peak < 3_000_000


def test_a_training_pair_that_is_held_out_is_counted_and_left_out(tmp_path, in_an_empty_folder):
    pairs = [(f"a word number {number} .", f"ein wort nummer {number} .") for number in range(62)]
    splits = {"train": pairs[:60], "validation": pairs[59:61], "test": [pairs[0], pairs[61]]}
    for split, part in splits.items():
        pd.DataFrame(part, columns=list(LANGUAGES)).to_csv(tmp_path / f"{split}.tsv", sep="\t", index=False)
    files = {split: f"{split}.tsv" for split in stage.SPLITS}
    edits = {"data.source": "files", "data.root": str(tmp_path), "translation.protocols.blog.files": files}
    stage.main(make_settings(edits | {"translation.protocols.draft.files": files}))
    fates = read_ledger(tmp_path)
    assert fates["blog", "train", "in", ""] == 60
    assert fates["blog", "train", "dropped", "also_held_out"] == 2
    assert fates["blog", "train", "kept", ""] + fates["blog", "train", "dropped", "over_long"] == 58


@pytest.mark.parametrize(
    ("files", "name", "message"),
    [
        ({"a_en": b"one\ntwo\n", "a_de": b"eins\n"}, "a", r"a\.en has 2 and .*a\.de has 1 lines"),
        ({"a_en": b"one\n"}, "a", r"a\.de: no such file"),
        ({"a_tsv": b"en\tpt\n"}, "a.tsv", r"a\.tsv, line 1: no column de among \['en', 'pt'\]"),
        ({"a_tsv": b"de\ten\tde\n"}, "a.tsv", r"a\.tsv, line 1: the column 'de' occurs more than once"),
    ],
)
def test_files_that_cannot_be_paired_are_named(files, name, message, tmp_path):
    write(tmp_path, **files)
    with pytest.raises(ValueError, match=message):
        list(reading.read_files(tmp_path, name, LANGUAGES))


ROWS = [
    {"translation": {"en": "one", "de": "eins"}},
    {"translation": {"en": "two", "de": "zwei"}},
    {"translation": {"en": None, "de": "zwei"}},
    {"translation": {"en": 3, "de": "drei"}},
]


def test_pairs_of_the_hub_are_read_at_a_recorded_commit_and_odd_pairs_are_counted(monkeypatch):
    asked = []

    def rows(repository, *_, **options):
        asked.append((repository, options["revision"]))
        return iter(ROWS if options["split"] == "train" else ROWS[:1])

    monkeypatch.setattr("datasets.load_dataset", rows)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda *_, **__: SimpleNamespace(sha="5678"))
    settings = make_settings({"data.source": "hub", "filtering.malformed_share": 0.9})
    protocol = settings.translation.protocols["blog"]
    found, read = stage.read_texts(settings, protocol)
    repository = protocol.hub.repository
    assert read == f"{repository}@5678"
    assert set(asked) == {(repository, "5678")}
    assert found["train"] == ([("two", "zwei")], {"in": 4, "malformed": 2, "also_held_out": 1})


@pytest.mark.parametrize("row", [{"translation": None}, {"translation": [{}]}, {"pt": "um"}])
def test_a_row_of_the_hub_without_both_languages_is_named(row, monkeypatch):
    monkeypatch.setattr("datasets.load_dataset", lambda *_, **__: iter([row]))
    hub = Hub(repository="a/b", configuration=None, revision="c")
    with pytest.raises(ValueError, match=r"translation\.protocols\.\*\.hub: a/b \(c\), train .*row 0 has no 'en'"):
        list(reading.read_hub(hub, "train", LANGUAGES))


def test_sub_words_give_the_sentence_back_and_a_control_sign_that_is_written_in_a_sentence_is_text():
    sentences = ["A dog, an old one, barks.", "Zwei Hunde bellen!", "a [END] b [PAD] [BEGIN] [UNK]"]
    words = vocabulary.train_tokenizer(sentences, 100)
    for sentence, ids in zip(sentences, vocabulary.encode(words, sentences), strict=True):
        begin, *inner, end = ids.tolist()
        assert (begin, end) == (BEGIN, END)
        assert words.decode(inner) == sentence and set(inner).isdisjoint(range(4))


@pytest.mark.parametrize(("rare", "size"), [(300, 200), (1500, 8000)])
def test_sub_words_are_the_same_in_every_process_where_characters_are_equally_rare(rare, size):
    script = (
        "from stages.sentence_pairs.vocabulary import train_tokenizer;"
        f"print(ascii(train_tokenizer(['a common word', *(chr(0x4E00 + i) for i in range({rare}))], {size}).to_str()))"
    )
    made = {run(ROOT, "python", "-c", script) for _ in range(2)}
    assert len(made) == 1
    assert r"\u4e00" in made.pop()


def enter(folder: Path, monkeypatch) -> None:
    """Makes a folder with the data of source `embedded` the working folder."""
    (folder / "data").mkdir(parents=True)
    (folder / "data/embedded").symlink_to(ROOT / "data/embedded")
    monkeypatch.chdir(folder)


def read_ledger(folder: Path) -> dict[tuple, int]:
    frame = pd.read_csv(folder / "data/sentence_pairs/ledger.csv", keep_default_na=False)
    return {tuple(row[:4]): row[4] for row in frame.itertuples(index=False)}


def test_long_pairs_leave_training_and_are_cut_elsewhere(tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    stage.main(make_settings({"translation.protocols.blog.positions": 12}))
    fates = read_ledger(tmp_path)
    folder = tmp_path / "data/sentence_pairs/blog"
    train = load_pairs(folder / "train.safetensors")
    test = load_pairs(folder / "test.safetensors")
    dropped = fates["blog", "train", "dropped", "over_long"]
    assert 0 < dropped < 60
    assert len(train) == fates["blog", "train", "kept", ""] == 60 - dropped
    assert len(test) == len(pd.read_parquet(folder / "test.parquet")) == 20
    assert fates["blog", "test", "cut", "over_long"] > 0
    for sentence in chain(train.source, train.target, test.source, test.target):
        assert len(sentence) <= 12
        assert sentence[-1] == END
    words = Tokenizer.from_file(str(folder / "target.json"))
    whole = vocabulary.encode(words, pd.read_parquet(folder / "test.parquet")["target"])
    assert [len(sentence) for sentence in test.target] == [min(len(sentence), 12) for sentence in whole]
    assert fates["draft", "train", "dropped", "over_long"] == 0


def test_equal_settings_give_equal_bytes(tmp_path, monkeypatch):
    contents = []
    for name in ("one", "two"):
        folder = tmp_path / name
        enter(folder, monkeypatch)
        stage.main(make_settings({}))
        files = sorted(path for path in (folder / "data/sentence_pairs").rglob("*") if path.is_file())
        contents.append([(path.relative_to(folder), path.read_bytes()) for path in files])
    assert contents[0] == contents[1]


def test_real_pairs_of_multi30k_are_read_whole(shared_data, in_an_empty_folder):
    params = yaml.safe_load(scales.read("files"))
    params["data"]["root"] = str(shared_data)
    params["translation"]["protocols"]["blog"] |= {"train_pairs": 2000, "held_out_pairs": None}
    del params["translation"]["protocols"]["draft"]
    stage.main(Settings.model_validate(params))
    fates = read_ledger(Path())
    assert fates["blog", "validation", "in", ""] == 1014 and fates["blog", "test", "kept", ""] == 1000
    assert fates["blog", "train", "kept", ""] > 1900


def test_languages_are_named_by_codes_with_script_and_region(tmp_path):
    (tmp_path / "a.pt-BR").write_bytes(b"um\n")
    (tmp_path / "a.no").write_bytes(b"en\n")
    assert list(reading.read_files(tmp_path, "a", ("pt-BR", "no"))) == [(b"um", b"en")]
    (tmp_path / "a.tsv").write_bytes(b"no\tpt-BR\nen\tum\n")
    assert list(reading.read_files(tmp_path, "a.tsv", ("pt-BR", "no"))) == [(b"um", b"en")]
