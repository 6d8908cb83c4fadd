"""No byte of a source is lost or changed, and an unreadable source is an error with the name of the source."""

import json
import re
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.corpus import conversion, hub
from stages.corpus import stage as corpus
from stages.files import stand_ins
from stages.files.compression import zstd
from stages.files.storage import compute_sha256
from stages.originals import corpus_files
from stages.records import origins, reading, records
from stages.schema.sections import Corpus, CorpusHub
from tests.files import write_file
from tests.toy_shards import measure_memory


def write_json_lines(*objects) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in objects)


def write_plain(*texts) -> bytes:
    return write_json_lines(*({"text": text} for text in texts))


def read_texts(lines) -> list[str]:
    return [json.loads(line)["content"] for line in lines]


def make_settings(root="-", patterns=("*",), documents=None, shards=3, hub=()) -> SimpleNamespace:
    """Settings of stage corpus; hub: (repository, patterns of files or None) of each dataset."""
    datasets = []
    for repository, files in hub or [("no/one", None)]:
        datasets.append(CorpusHub(repository=str(repository), configuration=None, revision="main", files=files))
    section = Corpus(documents=documents, shards=shards, files=list(patterns), hub=datasets)
    return SimpleNamespace(data=SimpleNamespace(folder=Path(root)), corpus=section, workers=1)


@pytest.fixture
def output(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "output"
    folder.mkdir()
    return folder


def read_shards(output: Path) -> list[list[str]]:
    return [read_texts(reading.read_lines(path)) for path in reading.list_shards(output)]


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@hypothesis.settings(deadline=None, max_examples=50)
@given(content=st.binary(max_size=400), size=st.integers(1, 50))
def test_lines_joined_are_the_file(tmp_path_factory, suffix, content, size):
    content = content.replace(reading.BYTE_ORDER_MARK, b"")
    # plain files that begin so are refused; hypothesis draws such constants from the code
    refused = [*map(re.escape, reading.SIGNATURES.values()), *stand_ins.POINTERS, *stand_ins.PAGE]
    hypothesis.assume(suffix or not any(re.match(form, content) for form in refused))
    path = write_file(tmp_path_factory.mktemp("lines") / f"x{suffix}", content)
    expected = content.removesuffix(b"\n").split(b"\n") if content else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "BLOCK", size)
        assert list(reading.read_lines(path)) == expected


def test_frames_skippable_frames_and_long_windows_are_read(tmp_path):
    long = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.enable_long_distance_matching: 1}
    skippable = (0x184D2A50).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"abc"
    path = tmp_path / "x.zst"
    path.write_bytes(zstd.compress(b"a\nb") + skippable + zstd.compress(b"c\n" + b"d" * 300_000, options=long))
    assert list(reading.read_lines(path)) == [b"a", b"bc", b"d" * 300_000]


@hypothesis.settings(deadline=None, max_examples=60)
@given(
    parts=st.lists(st.binary(max_size=600) | st.binary(max_size=3).map(lambda part: part * 70_000), max_size=4),
    sized=st.booleans(),
    checksum=st.booleans(),
    level=st.sampled_from([-5, 1, 3, 19]),
    lost=st.integers(1, 30),
)
def test_any_frames_are_read_whole_or_named_as_truncated(tmp_path_factory, parts, sized, checksum, level, lost):
    options = {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.content_size_flag: sized,
        zstd.CompressionParameter.checksum_flag: checksum,
    }
    frames = [zstd.compress(part, options=options) for part in [b"first", *parts]]
    content = b"".join(frames)
    path = tmp_path_factory.mktemp("frames") / "x.zst"
    path.write_bytes(content)
    assert b"\n".join(reading.read_line_blocks(path)) == (b"first" + b"".join(parts)).removesuffix(b"\n")
    path.write_bytes(content[: -min(lost, len(frames[-1]) - 1)])
    with pytest.raises(ValueError, match="fetch the file again"):
        list(reading.read_line_blocks(path))


@pytest.mark.parametrize("suffix", [".zst", ".gz"])
@pytest.mark.parametrize("content", [0, 1, 9, 200, -1, b"<html>404 Not Found</html>", b"\0" * 100])
def test_a_file_that_is_cut_short_or_of_another_kind_is_named(tmp_path, suffix, content):
    path = write_file(tmp_path / f"part{suffix}", bytes(range(256)) * 40 + b"\n" * 1000)
    path.write_bytes(path.read_bytes()[:content] if isinstance(content, int) else content)
    with pytest.raises(ValueError, match=f"part{suffix}.*fetch the file again"):
        list(reading.read_lines(path))


@pytest.mark.parametrize("suffix", reading.SIGNATURES)
def test_a_compressed_file_under_the_name_of_a_plain_file_is_named_with_its_right_name(tmp_path, suffix):
    path = write_file(tmp_path / f"part.jsonl{suffix}", write_plain("a")).rename(tmp_path / "part.jsonl")
    with pytest.raises(ValueError, match=rf"part\.jsonl: compressed, .*; rename the file to part\.jsonl\{suffix}$"):
        list(reading.read_lines(path))


def test_a_shard_without_lines_is_a_sound_file(tmp_path):
    path = tmp_path / "none.jsonl.zst"
    with reading.open_zstd_writer(path):
        pass
    assert path.stat().st_size
    assert list(reading.read_lines(path)) == []


def test_a_damaged_shard_of_our_own_is_found_by_its_checksum(tmp_path):
    path = tmp_path / "part_1.jsonl.zst"
    with reading.open_zstd_writer(path) as file:
        file.write(bytes(range(256)))
    damaged = bytearray(path.read_bytes())
    damaged[30] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"part_1\.jsonl\.zst"):
        list(reading.read_lines(path))


FILTER = """
import sys
from pathlib import Path
from stages.filtering import shards as filtering
none = {"blocklists": None, "kenlm_model": None, "quality_rules": False}
rules = {"excluded_categories": [], "harmful_pp": {"above": 5, "below": 9}}
rules |= {"missing_harmful_pp": "drop", "quality_warnings": "drop"}
argument = {"shard": sys.argv[1], "rules": rules, "annotation": none}
documents, _ = filtering.filter_shard(argument, Path(sys.argv[1]).parent)["passed"]
print(documents)
"""


def measure_filtering(folder: Path, lines) -> list[int]:
    """Filters a shard in a new process; returns the number of documents and the peak of memory in bytes."""
    path = folder / "shard.jsonl.zst"
    with reading.open_zstd_writer(path, level=1) as file:
        file.writelines(line + b"\n" for line in lines)
    return measure_memory(FILTER, path)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_memory_is_bounded_by_the_longest_line_and_not_by_the_shard(tmp_path):
    line = b'{"content":"%s","metadata":{"harmful_pp":8}}'
    short = line % (b"a" * 10_000)
    long = line % (b"a" * 100_000_000)
    documents, small = measure_filtering(tmp_path, [short] * 100)
    assert documents == 100
    # 300 MB
    documents, large = measure_filtering(tmp_path, repeat(short, 30_000))
    assert documents == 30_000
    assert large < small + 30_000_000
    documents, longest = measure_filtering(tmp_path, [short, long, short])
    assert documents == 3
    assert longest < small + 3 * len(long) + 30_000_000


def test_shards_come_by_number_and_files_of_equal_numbers_by_name(tmp_path):
    names = [f"part_{number}.jsonl.zst" for number in ("1", "02", "2", "10")]
    for name in reversed(names):
        (tmp_path / name).touch()
    assert [path.name for path in reading.list_shards(tmp_path)] == names
    with pytest.raises(ValueError, match="no shard"):
        reading.list_shards(tmp_path / "empty")


UNSOUND = [b'{ "content" : "\\u00e9", "metadata":{}} ', b"no JSON", b'{"content": 1}\r', b"\xff"]


@pytest.mark.parametrize(("name", "lines"), [("part_1.jsonl.zst", UNSOUND), ("begins_badly.jsonl", UNSOUND[::-1])])
def test_oscar_records_pass_byte_for_byte_and_unsound_records_too(tmp_path, name, lines):
    path = write_file(tmp_path / name, b"\n".join(lines))
    assert list(conversion.read_records(path)) == lines


def test_the_first_line_with_a_text_decides_on_the_kind_of_a_file(tmp_path):
    unsound = [b'{"metadata": {}}', *[b"no JSON"] * 150, b'{"title": "a"}']
    lines = [*unsound, b'{"content": "a"}']
    assert list(conversion.read_records(write_file(tmp_path / "oscar.jsonl", b"\n".join(lines)))) == lines
    *others, last = conversion.read_records(
        write_file(tmp_path / "plain.jsonl", b"\n".join([*unsound, write_plain("a")]))
    )
    assert len(others) == len(unsound)
    assert records.read_content(last) == "a"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("whole", [[{"text": "a"}, {"text": "b"}], {"text": "a"}])
def test_json_that_is_no_object_a_line_is_refused_with_the_way_to_convert_it(tmp_path, whole, indent):
    path = write_file(tmp_path / "a.jsonl", json.dumps(whole, indent=indent).encode())
    if whole == {"text": "a"} and not indent:
        assert len(list(conversion.read_records(path))) == 1
    else:
        with pytest.raises(ValueError, match=r"a\.jsonl: JSON, but not an object on each line; .*`jq -c \. FILE`"):
            list(conversion.read_records(path))


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("text/*.jsonl", ["text/a.jsonl"]),
        ("*/b.jsonl", ["other/b.jsonl"]),
        ("**/*.jsonl", ["other/b.jsonl", "text/a.jsonl"]),
    ],
)
@pytest.mark.parametrize("target", ["nowhere.jsonl", "b.jsonl"], ids=["nowhere", "itself"])
def test_a_broken_link_is_named_and_not_left_out(pattern, found, target, tmp_path):
    for path in (tmp_path / "text" / "a.jsonl", tmp_path / "other" / "b.jsonl"):
        write_file(path, write_plain("a"))
    link = tmp_path / "text" / "b.jsonl"
    link.symlink_to(target)
    with pytest.raises(ValueError, match=rf"text/b\.jsonl: a link to {target}, which does not exist"):
        corpus_files.find_files(tmp_path, [pattern])
    link.unlink()
    assert sorted(corpus_files.find_files(tmp_path, [pattern])) == [tmp_path / name for name in found]


@pytest.mark.parametrize(
    "name",
    ["._part_1.jsonl.zst", ".part_1.jsonl.zst.icloud.jsonl", ".ipynb_checkpoints/part_1.jsonl.zst", ".git/a.jsonl.zst"],
)
def test_hidden_files_and_the_content_of_hidden_folders_are_no_data(name, tmp_path, output):
    shown = write_file(tmp_path / "part_1.jsonl.zst", write_plain("a"))
    hidden = tmp_path / name
    hidden.parent.mkdir(exist_ok=True)
    hidden.write_bytes(b"\0\5\x16\7 what a Mac leaves in an archive")
    for pattern in ("*.jsonl*", "**/*.jsonl*"):
        assert corpus_files.find_files(tmp_path, [pattern]) == [shown]
        assert hub.list_files(str(tmp_path), "main", (pattern,)) == ["part_1.jsonl.zst"]
    # a folder of shards
    assert reading.list_shards(tmp_path) == [shown]


def test_a_name_with_brackets_is_that_file_and_a_file_that_comes_twice_or_in_a_linked_folder_is_an_error(tmp_path):
    root = tmp_path / "root"
    for name in ("wiki[1].txt", "wiki1.txt", "../elsewhere/b.txt"):
        write_file(root / name, b"a")
    assert corpus_files.find_files(root, ["wiki[1].txt"]) == [root / "wiki[1].txt"]
    (root / "wiki1.txt.gz").touch()
    (root / "latest.txt").symlink_to("wiki1.txt")
    for patterns in (["wiki1.txt*"], ["latest.txt", "wiki1.txt"]):
        with pytest.raises(ValueError, match=r"wiki1\.txt.* are the same documents by name; remove or rename"):
            corpus_files.find_files(root, patterns)
    (root / "linked").symlink_to("../elsewhere")
    with pytest.raises(ValueError, match=r"linked: a link to a folder, which \*\* does not follow"):
        corpus_files.find_files(root, ["**/*.txt"])
    assert corpus_files.find_files(root, ["linked/*"]) == [root / "linked" / "b.txt"]


def test_a_folder_above_the_patterns_may_be_hidden(tmp_path):
    shown = write_file(tmp_path / ".cache" / "text" / "a.jsonl", write_plain("a"))
    assert corpus_files.find_files(shown.parent, ["*.jsonl"]) == [shown]
    assert corpus_files.find_files(shown.parent, ["../text/*.jsonl"]) == [shown.parent / ".." / "text" / "a.jsonl"]


def test_every_line_of_a_shard_is_traced_to_its_line_of_the_source(tmp_path, output):
    root = tmp_path / "source"
    lines = [b'{"content": "0"}', b"", b"no JSON", b'{"content": "1"}', b" ", b"", b'{"content": "2"}']
    files = [write_file(root / "a.jsonl", b"\n".join(lines)), write_file(root / "b.jsonl.zst", b"\n".join(lines[2:]))]
    corpus.write_files(output, make_settings(root))
    known, traced = origins.read(output), []
    for shard in reading.list_shards(output):
        for number, line in enumerate(reading.read_lines(shard), 1):
            found = origins.locate_line(number, known[shard.name])
            assert found
            file, place = found
            assert list(reading.read_lines(Path(file)))[place - 1] == line
            traced.append((Path(file), place))
    assert traced == [(files[0], line) for line in (1, 3, 4, 7)] + [(files[1], line) for line in (1, 2, 5)]
    # a line behind its neighbour in the source needs no row
    assert [len(rows) for rows in known.values()] == [2, 2, 2]


def test_plain_documents_become_records_without_annotations(tmp_path):
    document = {"id": 0, "url": "http://a.org", "title": "-", "text": "Zwei\nZeilen \u2028 \U0001f600"}
    [line] = conversion.read_records(write_file(tmp_path / "x.jsonl.gz", write_json_lines(document)))
    headers = {"warc-record-id": "0", "warc-target-uri": "http://a.org"}
    assert json.loads(line) == {"content": document["text"], "warc_headers": headers, "metadata": {}}
    assert records.read_metadata_of_line(line) == records.NO_METADATA


@pytest.mark.parametrize(
    ("name", "content", "documents"),
    [
        ("books.txt.gz", "\ufeffA one.\r\nA two.\r\n\r\n \nB.\u2028C.\n\n\n", ["A one.\nA two.", "B.\u2028C."]),
        (
            "wiki.raw",
            " \n = A = \n \n one \n = x = \n \n = = Part = = \n two \n \n = B b = \n \n three \n",
            ["= A =\n\none\n= x =\n\n= = Part = =\ntwo", "= B b =\n\nthree"],
        ),
        ("stripped.raw", "= A =\n\none\n\n= B =\n\ntwo\n", ["= A =\n\none", "= B =\n\ntwo"]),
    ],
)
def test_blank_lines_and_first_level_headings_separate_documents(tmp_path, name, content, documents):
    path = write_file(tmp_path / name, content.encode())
    assert read_texts(conversion.read_records(path)) == documents


NO_STRING = "`text` of a plain document, is not a string"


@pytest.mark.parametrize(
    ("name", "unsound", "reason"),
    [
        ("x.jsonl", b"no JSON", "malformed"),
        ("x.jsonl", b'{"text": "cut', "truncated"),
        ("x.jsonl", b'{"title": "a"}', NO_STRING),
        ("x.jsonl", b'{"text": null}', NO_STRING),
        ("x.jsonl", b'{"text": ["a"]}', NO_STRING),
        ("x.jsonl", b'{"text": "\\ud800"}', "half of a surrogate pair"),
        ("x.jsonl", b'{"text": "\xff"}', "not UTF-8"),
        ("x.jsonl", b"[" * 100_000, "got `array`"),
        ("x.txt.gz", b"a\nb\xe9\nc", "not UTF-8"),
        ("x.txt", b"a\0", "not UTF-8"),
        ("x.raw", b" = A\xe9 = \n \n one", "not UTF-8"),
    ],
)
def test_unsound_documents_of_every_form_are_lines_that_the_filter_counts(name, unsound, reason, tmp_path, output):
    root = tmp_path / "source"
    good = write_plain("good") if name == "x.jsonl" else b" = Good = \n"
    path = write_file(root / name, good + b"\n" + unsound + b"\n\n" + good)
    corpus.write_files(output, make_settings(root, [name], shards=1))
    [shard] = reading.list_shards(output)
    first, line, last = reading.read_lines(shard)
    with pytest.raises(ValueError, match=reason):
        records.read_metadata_of_line(line)
    for sound in (first, last):
        assert records.read_metadata_of_line(sound) == records.NO_METADATA
    assert origins.locate_line(2, origins.read(output)[shard.name]) == (str(path), 3)


def test_fields_of_plain_documents_that_decide_nothing_may_have_any_type(tmp_path):
    document = {"text": "a", "url": ["http://a.org"], "id": {"number": 1}, "metadata": "none"}
    [line] = conversion.read_records(write_file(tmp_path / "x.jsonl", write_json_lines(document)))
    assert records.read_metadata_of_line(line) == records.NO_METADATA
    with pytest.raises(ValueError, match="warc-target-uri"):
        records.read_address(line)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", b'[1]\n{"title": "a", "body": "b"}\n', r"x\.jsonl: no line .*line 2 has the columns \['body', "),
        ("x.jsonl", '{"text": "a"}'.encode("utf-16"), r"x\.jsonl: no line .*save the file as UTF-8"),
        ("x.jsonl", b'{"text": "a", "score": NaN}', r"x\.jsonl: no line .*line 1: .*invalid character \(byte 23\)"),
    ],
)
def test_a_file_that_is_no_corpus_is_refused_by_its_line(tmp_path, name, content, message):
    path = write_file(tmp_path / name, content)
    with pytest.raises(ValueError, match=message):
        list(conversion.read_records(path))


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (["*.parquet"], r"x\.parquet has an unknown form"),
        (["*.jsonl", "*.warc"], r"`\*\.warc` matches no file below "),
        (["/absolute/*.jsonl"], "matches no file"),
        ([""], "matches no file"),
    ],
)
def test_a_pattern_without_a_corpus_is_refused(tmp_path, patterns, message):
    for name in ("x.parquet", "x.jsonl"):
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match=message):
        corpus_files.find_files(tmp_path, patterns)


@pytest.mark.parametrize(
    ("content", "limit", "documents", "hint"),
    [(b"a\nb\n", None, 1, True), (b"a\n\nb\n", None, 2, False), (b"a\n\nb\n", 1, 1, False)],
)
def test_a_text_file_that_is_one_document_is_named_with_a_hint(
    content, limit, documents, hint, tmp_path, output, capsys
):
    root = tmp_path / "source"
    path = write_file(root / "x.txt", content)
    corpus.write_files(output, make_settings(root, documents=limit))
    out = capsys.readouterr().out
    assert (f"1 text file(s) with a single document, the first {path}; a blank line ends a document" in out) == hint
    assert f"corpus: {documents} documents" in out


@pytest.mark.parametrize(("shards", "limit"), [(1, None), (2, 7), (4, 3), (50, None)])
def test_shards_hold_the_source_in_its_order(tmp_path, output, shards, limit):
    root = tmp_path / "source"
    write_file(root / "part_2.jsonl.zst", write_plain(*"abcd"))
    write_file(root / "part_10.jsonl", write_plain(*"efg"))
    write_file(root / "tail.txt", b"h\n\ni\n")
    corpus.write_files(output, make_settings(root, ["part_*", "tail*"], limit, shards))
    found = read_shards(output)
    assert "".join(map("".join, found)) == "abcdefghi"[:limit]
    assert len(found) == min(shards, limit or 9)
    sizes = sorted(map(len, found))
    assert sizes[-1] - sizes[0] <= 1


def test_an_empty_source_is_an_error(tmp_path, output):
    write_file(tmp_path / "x.jsonl", b"\n\n")
    with pytest.raises(ValueError, match="no document in the 1 files"):
        corpus.write_files(output, make_settings(tmp_path, ["x.jsonl"]))


def write_oscar(number: int, **metadata) -> dict:
    headers = {"content-type": "a"}
    return {"content": f"text {number}", "warc_headers": headers, "metadata": {"harmful_pp": 9.5} | metadata}


PARTS = ["en_meta/en_meta_part_[1-9].jsonl.zst", "en_meta/en_meta_part_[1-9][0-9].jsonl.zst"]


@pytest.fixture
def repository(tmp_path) -> Path:
    """OSCAR-2301's own layout: en_meta/en_meta_part_N.jsonl.zst, with checksums beside them."""
    root = tmp_path / "OSCAR-2301"
    checksums = ""
    for part in (1, 2, 10):
        lines = write_json_lines(*(write_oscar(100 * part + number) for number in range(3)))
        file = write_file(root / "en_meta" / f"en_meta_part_{part}.jsonl.zst", lines.replace(b": 9.5", b":9.50"))
        checksums += f"{compute_sha256(file)}  {file.name}\n"
    write_file(root / "en_meta" / "checksum.sha256", checksums.encode())
    return root


def write_hub(output: Path, *datasets: tuple, **settings) -> tuple[list[str], list[dict]]:
    """Writes the shards of datasets, each as repository and patterns of files or None."""
    return corpus.write_hub(output, make_settings(hub=datasets, **settings))


def test_files_of_a_hub_repository_are_taken_byte_for_byte_each_a_shard(repository, output):
    read, files = write_hub(output, (repository, PARTS))
    assert read == [str(repository)]
    for number, part in enumerate((1, 2, 10), 1):
        file = repository / "en_meta" / f"en_meta_part_{part}.jsonl.zst"
        assert list(reading.read_lines(output / f"part_{number}.jsonl.zst")) == list(reading.read_lines(file))
        assert files[number - 1] == conversion.describe_file(file, str(file), 3)
    found = origins.locate_line(2, origins.read(output)["part_3.jsonl.zst"])
    assert found == (f"{repository}/en_meta/en_meta_part_10.jsonl.zst", 2)
    (repository / "en_meta" / "checksum.sha256").unlink()
    write_file(file, write_plain("another"))
    write_hub(output, (repository, PARTS))
    assert read_shards(output)[-1] == ["another"]


def test_several_datasets_are_read_in_order_up_to_a_number_of_documents(repository, tmp_path, output):
    books = write_file(tmp_path / "books" / "train.jsonl", write_plain("a book")).parent
    _, files = write_hub(output, (books, None), (repository, PARTS), documents=5, shards=2)
    assert read_shards(output) == [["a book", "text 100"], ["text 101", "text 102", "text 200"]]
    names = [f"{repository}/en_meta/en_meta_part_{part}.jsonl.zst" for part in (1, 2)]
    assert [(file["file"], file["documents"]) for file in files] == list(zip(names, (3, 1), strict=True))


def cut_between_frames(file: Path) -> Path:
    """Repeats the frame of a file in another file, and loses the second frame of that, as a stopped download might."""
    whole = file.read_bytes()
    file.write_bytes(whole + whole)
    checksums = file.with_name("checksum.sha256")
    write_file(checksums, f"{'0' * 64}  other.zst\n{compute_sha256(file)} *{file.name}\n".encode())
    file.write_bytes(whole)
    return checksums


def test_a_file_that_was_cut_between_two_frames_is_refused_by_the_checksum_beside_it(tmp_path, repository, output):
    file = write_file(tmp_path / "source" / "a.jsonl.zst", write_plain(*"abc"))
    checksums = cut_between_frames(file)
    with pytest.raises(ValueError, match=rf"{file}: the SHA-256 differs from .* in {checksums}; fetch the file"):
        corpus.write_files(output, make_settings(file.parent, ["*.zst"]))
    # the count is not computed again, the comparison is, in digits of any case
    checksums.write_text(f"{compute_sha256(file).upper()}  {file.name}")
    [read] = corpus.write_files(output, make_settings(file.parent, ["*.zst"]))
    assert read == {"file": str(file), "documents": 3, "bytes": file.stat().st_size, "sha256": compute_sha256(file)}
    part = repository / "en_meta" / "en_meta_part_1.jsonl.zst"
    cut_between_frames(part)
    for documents in (None, 2):
        with pytest.raises(ValueError, match=f"{part}: the SHA-256 differs"):
            write_hub(output, (repository, PARTS), documents=documents)


# as in the files, and as OSCAR's loader names the columns
ROW = write_oscar(1, categories=["adult"], quality_warnings=None, sentence_identifications=[None])
LOADED = {"id": 0, "text": ROW["content"], "meta": ROW["metadata"] | {"warc_headers": ROW["warc_headers"]}}


@pytest.mark.parametrize("row", [ROW, LOADED], ids=["files", "loader"])
def test_rows_of_the_hub_keep_the_metadata_of_oscar(tmp_path, output, row):
    root = write_file(tmp_path / "repository" / "train.jsonl", write_json_lines(row)).parent
    write_hub(output, (root, None), documents=1, shards=1)
    [line] = reading.read_lines(output / "part_1.jsonl.zst")
    assert records.read_metadata_of_line(line) == records.Metadata(("adult",), 9.5, None)
    assert json.loads(line)["warc_headers"] == {"content-type": "a"}


def test_a_row_of_the_hub_without_a_text_is_left_to_the_filter(tmp_path, output):
    rows = write_json_lines({"text": "a", "url": None}, {"text": None, "url": "b"})
    root = write_file(tmp_path / "repository" / "train.jsonl", rows).parent
    write_hub(output, (root, None), documents=2, shards=1)
    sound, unsound = reading.read_lines(output / "part_1.jsonl.zst")
    assert records.read_content(sound) == "a"
    with pytest.raises(ValueError, match=NO_STRING):
        records.read_metadata_of_line(unsound)


def test_a_binary_text_of_the_hub_is_unsound_and_not_base64(tmp_path, output):
    repository = tmp_path / "repository"
    repository.mkdir()
    pd.DataFrame({"text": [b"plain words"]}).to_parquet(repository / "train.parquet")
    write_hub(output, (repository, None), documents=1, shards=1)
    [line] = reading.read_lines(output / "part_1.jsonl.zst")
    with pytest.raises(ValueError, match=NO_STRING):
        records.read_metadata_of_line(line)


@pytest.mark.parametrize(
    ("name", "content", "files", "documents", "error", "message"),
    [
        ("train.jsonl", b"", None, None, ValueError, r"corpus\.documents: null"),
        ("train.jsonl", b"", None, 5, ValueError, "corpus.hub: .*has no rows"),
        ("repository.py", b"", None, 5, ValueError, "corpus.hub: .*scripts are no longer supported"),
        ("train.txt", b"", ["*.txt"], 5, ValueError, "corpus.hub: .*no document in any of these"),
        ("train.jsonl", write_plain("a"), ["fr_meta/*"], 5, ValueError, r"`fr_meta/\*` matches no file"),
        ("a.parquet", b"", ["*"], 5, ValueError, r"corpus\.hub\.files: .*a\.parquet has an unknown form"),
        ("train.jsonl", b'{"body": "a"}', None, 1, ValueError, r"no `text` or `content` among the columns \['body'\]"),
        ("a.jsonl", b"{}\n", ["*"], None, RuntimeError, r"repository/a\.jsonl: no line is a JSON object"),
    ],
)
def test_a_dataset_of_the_hub_that_cannot_be_read_is_named(
    tmp_path, output, name, content, files, documents, error, message
):
    root = write_file(tmp_path / "repository" / name, content).parent
    with pytest.raises(error, match=message):
        write_hub(output, (root, files), documents=documents)
    # no fetched file is left
    assert not list(Path("data/jobs").rglob("a.jsonl"))


@pytest.mark.parametrize("name", ["./nowhere", "./" + 256 * "a"])
def test_a_dataset_that_is_nowhere_is_an_error(output, name):
    with pytest.raises(ValueError, match=rf"corpus\.hub: {name} .* cannot be loaded"):
        write_hub(output, (name, None), documents=1)


def test_a_repository_that_cannot_be_reached_says_how_to_log_in(output, monkeypatch):
    def refuse(*_, **__):
        raise OSError("401 Client Error: gated repository")

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", refuse)
    with pytest.raises(ValueError, match=r"oscar-corpus/OSCAR-2301 \(main\).*401.*set HF_TOKEN or run `hf auth login`"):
        write_hub(output, ("oscar-corpus/OSCAR-2301", None), documents=1)


class FileSystem:
    """The hub's file system, in memory, in which a file holds its own name."""

    def glob(self, pattern: str) -> list[str]:
        folder = pattern.removesuffix("*")
        return [f"{folder}part_10.jsonl", f"{folder}part_2.jsonl"]

    def get_file(self, name: str, target: str) -> None:
        Path(target).write_bytes(write_plain(name))


def test_files_of_the_hub_are_listed_and_fetched_at_the_pinned_commit(output, monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfFileSystem", FileSystem)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda *_, **__: SimpleNamespace(sha="1234"))
    read, files = write_hub(output, ("a/b", ["en/*"]), documents=9, shards=1)
    assert read == ["a/b@1234"]
    assert [file["file"] for file in files] == [f"a/b@1234/en/part_{number}.jsonl" for number in (2, 10)]
    assert read_shards(output) == [[f"datasets/a/b@1234/en/part_{number}.jsonl" for number in (2, 10)]]


@pytest.mark.parametrize(
    ("name", "documents"),
    [
        ("oscar/oscar_sample.jsonl", 63),
        ("text/imdb/imdb_test_5000.jsonl.zst", 5000),
        # articles
        ("text/wikitext-2-raw/wiki.valid.raw", 60),
        ("text/wikitext-2-raw/wiki.test.raw", 60),
    ],
)
def test_real_files_are_read_whole(shared_data, name, documents):
    assert conversion.count_documents({"path": str(shared_data / name), "limit": None}, None)["documents"] == documents


def test_real_oscar_records_pass_byte_for_byte(shared_data):
    path = shared_data / "oscar" / "oscar_sample.jsonl"
    assert b"".join(line + b"\n" for line in conversion.read_records(path)) == path.read_bytes()
