"""Stage sentence_pairs: the generated language, original files, and what becomes of bad pairs."""

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml

from stages.common.translation.pairs import BEGIN, END, Pairs
from stages.plumbing.settings import Settings
from stages.sentence_pairs import language, reading, stage, vocabulary

ROOT = Path(__file__).parents[1]
LANGUAGES = ("en", "de")


def settings_of(edit=None, scale="laptop") -> Settings:
    params = yaml.safe_load((ROOT / "stages" / "scales" / f"{scale}.yaml").read_text())
    for protocol in params["translation"]["protocols"].values():
        protocol |= {"train_pairs": 60, "held_out_pairs": 20}
    if edit:
        edit(params)
    return Settings.model_validate(params)


def test_a_generated_sentence_has_one_translation_and_another_order():
    pairs = language.pairs(400, seed=1)
    assert len({source for source, _ in pairs}) == 400
    assert pairs == language.pairs(400, seed=1) != language.pairs(400, seed=2)
    assert dict(pairs) | dict(language.pairs(900, seed=1)) == dict(language.pairs(900, seed=1))
    shared = {word for source, target in pairs for word in {*source.split()} & {*target.split()}}
    assert shared <= {*language.NAMES, "."}


def test_the_verb_agrees_with_its_subject_and_stands_last():
    phrase, names = language.Phrase, {language.VERBS[verb][1] for verb in language.VERBS}
    for _, target in language.pairs(200, seed=3):
        assert target.split()[-2][:-2] in names
    assert phrase("dog", plural=True, adjective="big").target("n") == ["kaldain", "gondai", "la"]
    assert phrase("house", definite=False).source() == ["a", "house"]


def test_no_generated_pair_stands_in_two_splits():
    made = stage.generated({"train": 50, "validation": 20, "test": 20}, seed=1)
    texts = [pair for part in made.values() for pair in part]
    assert len(set(texts)) == 90


def write(folder: Path, **contents: bytes) -> None:
    for name, content in contents.items():
        (folder / name.replace("_", ".")).write_bytes(content)


def test_two_files_are_read_line_by_line(tmp_path):
    write(tmp_path, a_en="one\u2028line\ntwo\r\n".encode(), a_de=b"eins\nzwei")
    kept, fates = reading.cleaned(reading.from_files(tmp_path, "a", LANGUAGES), None)
    assert kept == [("one line", "eins"), ("two", "zwei")] and fates == {"in": 2}


def test_a_table_is_read_by_its_header(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"id\tde\ten\n1\teins\tone\n2\tzwei\n3\tdrei\tthree\n")
    kept, fates = reading.cleaned(reading.from_files(tmp_path, "a.tsv", LANGUAGES), None)
    assert kept == [("one", "eins"), ("three", "drei")]
    assert fates == {"in": 3, "malformed": 1}


def test_bad_pairs_are_counted_by_reason(tmp_path):
    write(tmp_path, a_en=b"one\n\nthree\nfour\n", a_de=b"eins\nzwei\n\xff\xfe\n  \n")
    kept, fates = reading.cleaned(reading.from_files(tmp_path, "a", LANGUAGES), None)
    assert kept == [("one", "eins")]
    assert fates == {"in": 4, "empty": 2, "not_utf8": 1}


WRONG = {
    "unequal files": ({"a_en": b"one\ntwo\n", "a_de": b"eins\n"}, "a", ["a.en has 2", "a.de has 1", "mend the files"]),
    "a missing file": ({"a_en": b"one\n"}, "a", ["a.de", "no such file"]),
    "a table without the language": ({"a_tsv": b"en\tpt\n"}, "a.tsv", ["a.tsv, line 1", "'de'", "en, pt"]),
    "a table with a language twice": (
        {"a_tsv": b"de\ten\tde\n"},
        "a.tsv",
        ["a.tsv, line 1", "'de' stands there twice"],
    ),
    "a folder in the place of a file": ({"a_en": b"", "b_de": b""}, ".", [".en: no such file"]),
    "an empty table": ({"a_tsv": b""}, "a.tsv", ["a.tsv, line 1", "'en'"]),
}


@pytest.mark.parametrize(("files", "name", "said"), WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_with_files_is_one_clear_error(files, name, said, tmp_path):
    write(tmp_path, **files)
    with pytest.raises(ValueError) as error:
        list(reading.from_files(tmp_path, name, LANGUAGES))
    for words in said:
        assert words in str(error.value)


def test_a_byte_order_mark_before_a_file_of_one_language_is_no_part_of_its_first_sentence(tmp_path):
    (tmp_path / "pairs.en").write_bytes(b"\xef\xbb\xbfone\ntwo\n")
    (tmp_path / "pairs.de").write_bytes(b"eins\nzwei\n")
    assert next(iter(reading.from_files(tmp_path, "pairs", LANGUAGES))) == (b"one", b"eins")


def test_a_byte_order_mark_before_a_table_does_no_harm(tmp_path):
    write(tmp_path, a_tsv=b"\xef\xbb\xbfen\tde\r\none\teins\r\n")
    assert reading.cleaned(reading.from_files(tmp_path, "a.tsv", LANGUAGES), None)[0] == [("one", "eins")]


ROWS = [
    {"translation": {"en": "one", "de": "eins"}},
    {"translation": {"en": None, "de": "zwei"}},
    {"translation": {"en": 3, "de": "drei"}},
]


def test_pairs_of_the_hub_are_read_at_one_commit_which_is_recorded_and_odd_ones_are_counted(monkeypatch, tmp_path):
    asked = []

    def rows(repository, *_, **options):
        asked.append((repository, options["revision"]))
        return iter(ROWS)

    monkeypatch.setattr("datasets.load_dataset", rows)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda *_, **__: SimpleNamespace(sha="5678"))
    settings = settings_of(lambda params: params["data"].update(source="hub"))
    protocol = settings.translation.protocols["blog"]
    found, read = stage.texts_of(settings, protocol)
    assert read == f"{protocol.hub.repository}@5678" and set(asked) == {(protocol.hub.repository, "5678")}
    assert found["train"] == ([("one", "eins")], {"in": 3, "malformed": 2})


@pytest.mark.parametrize("row", [{"translation": None}, {"translation": ["one", "eins"]}, {"pt": "um"}])
def test_a_row_of_the_hub_without_both_languages_is_one_clear_error(row, monkeypatch):
    monkeypatch.setattr("datasets.load_dataset", lambda *_, **__: iter([row]))
    with pytest.raises(
        ValueError, match=r"translation\.protocols\.\*\.hub: a/b \(c\), train .*row 0 has no 'en' among"
    ):
        list(reading.from_hub("a/b", None, "c", "train", LANGUAGES))


def test_sub_words_give_the_sentence_back():
    sentences = ["A dog, an old one, barks.", "Zwei Hunde bellen!"]
    words = vocabulary.trained(sentences, 100)
    for sentence, ids in zip(sentences, vocabulary.encode(words, sentences), strict=True):
        assert ids[0] == BEGIN and ids[-1] == END
        assert words.decode(ids[1:-1].tolist()) == sentence


def ledger(folder: Path) -> dict[tuple, int]:
    frame = pd.read_csv(folder / "data/sentence_pairs/ledger.csv", keep_default_na=False)
    return {tuple(row[:4]): row[4] for row in frame.itertuples(index=False)}


def test_long_pairs_leave_training_and_are_cut_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stage.main(settings_of(lambda params: params["translation"]["protocols"]["blog"].update(positions=12)))
    fates, folder = ledger(tmp_path), tmp_path / "data/sentence_pairs/blog"
    train, test = (Pairs.load(folder / f"{split}.safetensors") for split in ("train", "test"))
    dropped = fates["blog", "train", "dropped", "over_long"]
    assert 0 < dropped < 60 and len(train) == fates["blog", "train", "kept", ""] == 60 - dropped
    assert len(test) == len(pd.read_parquet(folder / "test.parquet")) == 20
    assert fates["blog", "test", "cut", "over_long"] > 0
    for pairs in (train, test):
        assert all(len(ids) <= 12 and ids[-1] == END for side in (pairs.source, pairs.target) for ids in side)
    assert fates["draft", "train", "dropped", "over_long"] == 0


def test_equal_settings_give_equal_bytes(tmp_path, monkeypatch):
    contents = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        stage.main(settings_of())
        made = sorted((tmp_path / name / "data").rglob("*.*"))
        contents.append({path.relative_to(tmp_path / name): path.read_bytes() for path in made if path.is_file()})
    assert contents[0] == contents[1]


def test_real_pairs_of_multi30k_are_read_whole(shared_data, tmp_path, monkeypatch):
    def real(params: dict) -> None:
        params["data"]["root"] = str(shared_data)
        params["translation"]["protocols"]["blog"] |= {"train_pairs": 2000, "held_out_pairs": None}
        del params["translation"]["protocols"]["draft"]

    monkeypatch.chdir(tmp_path)
    stage.main(settings_of(real, scale="files"))
    fates = ledger(tmp_path)
    assert fates["blog", "validation", "in", ""] == 1014 and fates["blog", "test", "kept", ""] == 1000
    assert fates["blog", "train", "kept", ""] > 1900
