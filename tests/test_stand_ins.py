"""Files that stand in place of data, such as pointers of Git LFS, are named as the cause, with the way to the data."""

from pathlib import Path

import pytest

from stages.benchmarks.glue import TASKS
from stages.corpus import conversion
from stages.files import commits
from stages.filtering import annotation, blocklists
from stages.sentence_pairs import reading as pairs
from stages.tasks import glue, squad, triviaqa
from stages.tokenization import vocabulary

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
ANNEX = "/annex/objects/SHA256E-s31390--f50d7ac4.tsv\n"
PAGE = "\n\n<!DOCTYPE html>\n<html lang=en><title>corpus/data.jsonl at main</title></html>\n"
STAND_INS = {
    LFS: "a Git LFS pointer in place of the data; run `git lfs pull`",
    ANNEX: "a git-annex pointer in place of the data; run `git annex get`",
    PAGE: "a web page in place of the data; fetch the file again",
}


def read_corpus(path: Path) -> None:
    list(conversion.read_records(path))


def read_glue(path: Path) -> None:
    glue.read_original(path.parents[1], TASKS["sst2"], TASKS["sst2"].splits[0])


def read_squad(path: Path) -> None:
    squad.read_original(path.parents[1], "squad1", "train")


def read_blocklists(path: Path) -> None:
    blocklists.compile_lists({"root": str(path.parents[1])}, path.parents[1])


def read_pairs(path: Path) -> None:
    list(pairs.read_files(path.parent, path.name, ("pt", "en")))


READERS = {
    "part_1.jsonl.zst": read_corpus,
    "corpus.txt": read_corpus,
    "SST-2/train.tsv": read_glue,
    "squad/train-v1.1.json": read_squad,
    "adult/domains": read_blocklists,
    "pairs.tsv": read_pairs,
    "vocab.txt": vocabulary.read_tokenizer,
    "en.binary": annotation.load_kenlm,
}


@pytest.mark.parametrize("content", STAND_INS, ids=["lfs", "annex", "page"])
@pytest.mark.parametrize("name", READERS)
def test_a_stand_in_is_named_as_the_cause(tmp_path, name, content):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    with pytest.raises(ValueError, match=f"{name}: {STAND_INS[content]}"):
        READERS[name](path)


@pytest.mark.parametrize("name", ["SST-2/train.tsv", "squad/train-v1.1.json", "pairs.tsv"])
def test_a_link_that_leads_nowhere_is_not_called_missing(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.symlink_to("../.git/annex/objects/gone")
    with pytest.raises(ValueError, match=f"{name}: a link to .*gone, which does not exist; .*git annex get"):
        READERS[name](path)


@pytest.mark.parametrize("suffix", ["parquet", "json", "csv"])
def test_a_pointer_in_a_local_folder_of_the_hubs_layout_is_named(tmp_path, suffix):
    (tmp_path / f"train.{suffix}").write_text(LFS)
    with pytest.raises(ValueError, match=f"train.{suffix}: {STAND_INS[LFS]}"):
        commits.load_split(str(tmp_path), None, "main", "train", "tasks.hub", ["label"])


def test_pointers_of_files_that_are_not_read_are_no_error(tmp_path):
    (tmp_path / "train.csv").write_text("label\n1\n")
    (tmp_path / "model.safetensors").write_text(LFS)
    data, _ = commits.load_split(str(tmp_path), None, "main", "train", "tasks.hub", ["label"])
    assert data["label"] == [1]


def test_a_pointer_in_place_of_a_tokenizer_is_named(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "tokenizer.json").write_text(LFS)
    with pytest.raises(ValueError, match=f"tokenizer.json: {STAND_INS[LFS]}"):
        vocabulary.load_tokenizer(str(tmp_path), "main")


def test_a_pointer_in_place_of_a_document_is_named_but_a_document_may_be_a_web_page(tmp_path):
    document = tmp_path / "a.txt"
    document.write_text(PAGE)
    assert list(triviaqa._read_documents([document], "question 1")) == [PAGE]
    document.write_text(LFS)
    with pytest.raises(ValueError, match=f"a.txt: {STAND_INS[LFS]}"):
        list(triviaqa._read_documents([document], "question 1"))
