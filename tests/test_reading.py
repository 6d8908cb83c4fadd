"""No byte of a source is lost or changed, and what cannot be read is an error that names it."""

import gzip
import json
import subprocess
import sys
from itertools import islice, repeat
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.corpus import sources
from stages.corpus import stage as corpus
from stages.files.compression import zstd
from stages.records import origins, reading, records
from stages.schema.sections import Corpus, CorpusHub

ROOT = Path(__file__).parents[1]


def compressed(path: Path, content: bytes) -> Path:
    match path.suffix:
        case ".zst":
            content = zstd.compress(content)
        case ".gz":
            content = gzip.compress(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def json_lines(*objects) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in objects)


def plain(*texts) -> bytes:
    return json_lines(*({"text": text} for text in texts))


def texts(lines) -> list[str]:
    return [json.loads(line)["content"] for line in lines]


def settings(root, files=("*",), documents=None, shards=3, repository="-", hub_files=None):
    hub = CorpusHub(repository=str(repository), configuration=None, revision="main", files=hub_files)
    corpus = Corpus(documents=documents, shards=shards, seed=1, files=list(files), hub=[hub])
    return SimpleNamespace(data=SimpleNamespace(root=str(root)), corpus=corpus, workers=1)


@pytest.fixture
def output(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "output"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@hypothesis.settings(deadline=None)
@given(content=st.binary(max_size=400), size=st.integers(1, 50))
def test_lines_joined_are_the_file(tmp_path_factory, suffix, content, size):
    content = content.replace(reading.BYTE_ORDER_MARK, b"")
    path = compressed(tmp_path_factory.mktemp("lines") / f"x{suffix}", content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "BLOCK", size)
        assert list(reading.lines(path)) == content.removesuffix(b"\n").split(b"\n")[: len(content) or 0]


def test_frames_skippable_frames_and_long_windows_are_read(tmp_path):
    long = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.enable_long_distance_matching: 1}
    skippable = (0x184D2A50).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"abc"
    frames = [zstd.compress(b"a\nb"), skippable, zstd.compress(b"c\n" + b"d" * 300_000, options=long)]
    path = tmp_path / "x.zst"
    path.write_bytes(b"".join(frames))
    assert list(reading.lines(path)) == [b"a", b"bc", b"d" * 300_000]


def test_a_file_that_expands_a_thousandfold_comes_in_small_pieces(tmp_path):
    line = b"a" * (1 << 20) + b"\n"
    path = compressed(tmp_path / "x.zst", line * 20)
    assert path.stat().st_size < 1e-3 * 20 * len(line)
    assert max(map(len, reading.blocks(path))) <= reading.BLOCK
    assert b"".join(reading.blocks(path)) == line * 20


@hypothesis.settings(deadline=None, max_examples=60)
@given(
    parts=st.lists(st.binary(max_size=600) | st.binary(max_size=3).map(lambda part: part * 70_000), max_size=4),
    sized=st.booleans(),
    checksum=st.booleans(),
    level=st.sampled_from([-5, 1, 3, 19]),
    lost=st.integers(1, 30),
)
def test_any_frames_are_read_whole_or_named_as_truncated(tmp_path_factory, parts, sized, checksum, level, lost):
    path = tmp_path_factory.mktemp("frames") / "x.zst"
    names = (zstd.CompressionParameter.compression_level, zstd.CompressionParameter.content_size_flag)
    options = dict(zip((*names, zstd.CompressionParameter.checksum_flag), (level, sized, checksum), strict=True))
    frames = [zstd.compress(part, options=options) for part in parts]
    path.write_bytes(b"".join(frames))
    if parts:
        assert b"".join(reading.blocks(path)) == b"".join(parts)
        path.write_bytes(path.read_bytes()[: -min(lost, len(frames[-1]) - 1)])
        with pytest.raises(ValueError, match="fetch the file again"):
            list(reading.blocks(path))


@pytest.mark.parametrize("suffix", [".zst", ".gz"])
@pytest.mark.parametrize("content", [0, 1, 9, 200, -1, b"<html>404 Not Found</html>", b"\0" * 100])
def test_a_file_that_is_cut_short_or_not_what_its_name_says_is_an_error_that_names_it(tmp_path, suffix, content):
    path = compressed(tmp_path / f"part{suffix}", bytes(range(256)) * 40 + b"\n" * 1000)
    path.write_bytes(path.read_bytes()[:content] if isinstance(content, int) else content)
    with pytest.raises(ValueError, match=f"part{suffix}.*fetch the file again"):
        list(reading.lines(path))


def test_a_shard_without_lines_is_a_file_that_reads_as_one(tmp_path):
    path = tmp_path / "none.jsonl.zst"
    with reading.zstd_writer(path):
        pass
    assert path.stat().st_size and list(reading.lines(path)) == []


def test_a_damaged_shard_of_our_own_is_found_by_its_checksum(tmp_path):
    path = tmp_path / "part_1.jsonl.zst"
    with reading.zstd_writer(path) as file:
        file.write(bytes(range(256)))
    damaged = bytearray(path.read_bytes())
    damaged[30] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"part_1\.jsonl\.zst"):
        list(reading.lines(path))


PEAK = """
import sys
from pathlib import Path
from stages.filtering import shards as filtering
none = {"blocklists_folder": None, "kenlm_model": None, "quality_rules": False}
rules = {"excluded_categories": [], "harmful_pp": {"above": 5, "below": 9}}
rules |= {"missing_harmful_pp": "drop", "quality_warnings": "drop"}
settings = {"shard": sys.argv[1], "rules": rules, "annotation": none}
rows = filtering.filter_shard(settings, Path(sys.argv[1]).parent)["rows"]
status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
print(sum(row[3] for row in rows), int(status["VmHWM"].split()[0]) // 1024)
"""


def peak(folder: Path, lines) -> tuple[int, int]:
    """Documents, and MiB of memory at most, of filtering a shard in a process of its own."""
    with reading.zstd_writer(folder / "shard.jsonl.zst") as file:
        file.writelines(line + b"\n" for line in lines)
    command = [sys.executable, "-c", PEAK, str(folder / "shard.jsonl.zst")]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    documents, memory = map(int, done.stdout.split())
    return documents, memory


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_memory_is_bounded_by_the_longest_line_and_not_by_the_shard(tmp_path):
    short, long = (b'{"content":"%s","metadata":{"harmful_pp":8}}' % (b"a" * size) for size in (10_000, 200_000_000))
    documents, small = peak(tmp_path, [short] * 100)
    assert documents == 100
    documents, large = peak(tmp_path, repeat(short, 80_000))  # 800 MB
    assert documents == 80_000
    assert large < small + 30
    documents, longest = peak(tmp_path, [short, long, short])
    assert documents == 3
    assert longest < small + 3 * len(long) // 2**20 + 30


def test_shards_come_by_number(tmp_path):
    for number in (10, 9, 1):
        (tmp_path / f"part_{number}.jsonl.zst").touch()
    assert [path.name[5:-10] for path in reading.shards(tmp_path)] == ["1", "9", "10"]
    with pytest.raises(ValueError, match="no shard"):
        reading.shards(tmp_path / "empty")


def test_oscar_records_pass_byte_for_byte_and_unsound_ones_too(tmp_path):
    lines = [b'{ "content" : "\\u00e9", "metadata":{}} ', b"no JSON", b'{"content": 1}\r', b"\xff"]
    path = compressed(tmp_path / "en_meta_part_1.jsonl.zst", b"\n".join(lines))
    assert list(sources.file_records(path)) == lines
    path = compressed(tmp_path / "begins_badly.jsonl", b"\n".join(reversed(lines)))
    assert list(sources.file_records(path)) == lines[::-1]


def test_what_a_file_holds_is_decided_by_the_first_line_that_tells_however_many_tell_nothing(tmp_path):
    unsound = [b'{"metadata": {}}', *[b"no JSON"] * 150, b'{"title": "a"}']
    lines = [*unsound, b'{"content": "a"}']
    assert list(sources.file_records(compressed(tmp_path / "oscar.jsonl", b"\n".join(lines)))) == lines
    with pytest.raises(ValueError, match=r"plain\.jsonl, line 1: not a plain document"):
        list(sources.file_records(compressed(tmp_path / "plain.jsonl", b"\n".join([*unsound, plain("a")]))))


PATTERNS = {
    "text/*.jsonl": {"text/a.jsonl"},
    "*/b.jsonl": {"other/b.jsonl"},
    "**/*.jsonl": {"text/a.jsonl", "other/b.jsonl"},
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("target", ["nowhere.jsonl", "b.jsonl"], ids=["nowhere", "itself"])
def test_a_link_that_leads_nowhere_is_named_and_not_left_out(pattern, target, tmp_path):
    compressed(tmp_path / "text" / "a.jsonl", plain("a"))
    compressed(tmp_path / "other" / "b.jsonl", plain("b"))
    (tmp_path / "text" / "b.jsonl").symlink_to(target)
    (tmp_path / "text" / "again").symlink_to(tmp_path)  # a loop of folders, which ** does not go round
    with pytest.raises(ValueError, match=rf"text/b\.jsonl: a link to {target}, which leads nowhere; mend it"):
        sources.find_files(tmp_path, [pattern])
    (tmp_path / "text" / "b.jsonl").unlink()
    found = {path.relative_to(tmp_path).as_posix() for path in sources.find_files(tmp_path, [pattern])}
    assert found == PATTERNS[pattern]


def test_every_line_of_a_shard_is_traced_to_its_line_of_the_source(tmp_path, output):
    root = tmp_path / "source"
    lines = [b'{"content": "0"}', b"", b"no JSON", b'{"content": "1"}', b" ", b"", b'{"content": "2"}']
    compressed(root / "a.jsonl", b"\n".join(lines))
    compressed(root / "b.jsonl.zst", b"\n".join(lines[2:]))
    corpus.write_files(output, settings(root, ["*"], shards=3))
    known, traced = origins.read(output), []
    for shard in reading.shards(output):
        for number, line in enumerate(reading.lines(shard), 1):
            traced.append(origins.locate(number, known[shard.name]))
            assert [*reading.lines(Path(traced[-1][0]))][traced[-1][1] - 1] == line
    expected = [("a.jsonl", line) for line in (1, 3, 4, 7)] + [("b.jsonl.zst", line) for line in (1, 2, 5)]
    assert traced == [(str(root / name), number) for name, number in expected]


def test_plain_documents_become_records_without_annotations(tmp_path):
    document = {"id": 7, "url": "http://a.org", "title": "-", "text": "Zwei\nZeilen \u2028 \U0001f600"}
    [line] = sources.file_records(compressed(tmp_path / "x.jsonl.gz", json_lines(document)))
    record = json.loads(line)
    assert record["content"] == document["text"]
    assert record["warc_headers"] == {"warc-record-id": "7", "warc-target-uri": "http://a.org"}
    assert record["metadata"] == {}
    assert records.annotations(line) == records.NO_ANNOTATIONS


def test_blank_lines_end_documents_of_a_text_file(tmp_path):
    content = "\ufeffA one.\r\nA two.\r\n\r\n \nB.\u2028C.\n\n\n".encode()
    path = compressed(tmp_path / "books.txt.gz", content)
    assert texts(sources.file_records(path)) == ["A one.\nA two.", "B.\u2028C."]


def test_first_level_headings_begin_articles_of_a_wikitext_file(tmp_path):
    content = " \n = A = \n \n one \n = x = \n \n = = Part = = \n two \n \n = B b = \n \n three \n"
    path = compressed(tmp_path / "wiki.raw", content.encode())
    assert texts(sources.file_records(path)) == [
        "= A =\n\none\n= x =\n\n= = Part = =\ntwo",
        "= B b =\n\nthree",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"no JSON", "line 2: not a plain document.*malformed"),
        (b'{"text": "cut', "line 2: not a plain document.*truncated"),
        (b'{"title": "a"}', "line 2: not a plain document.*missing required field `text`"),
        (b'{"text": null}', "line 2: not a plain document.*got `null`"),
        (b'{"text": "\\ud800"}', "line 2: not a plain document"),
        (b'{"text": "\xff"}', "line 2: not a plain document.*decode"),
        (b'{"text": "a", "url": 5}', "line 2: not a plain document.*url"),
        (b"[" * 100_000, "line 2: not a plain document"),
    ],
)
def test_a_line_that_is_no_plain_document_is_named(tmp_path, line, message):
    path = compressed(tmp_path / "x.jsonl", plain("good") + line + b"\n" + plain("good"))
    with pytest.raises(ValueError, match=rf"x\.jsonl, {message}"):
        list(sources.file_records(path))


def test_files_that_are_no_corpus_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"x\.jsonl: no line .* `content`.*line 2 has the columns body, title"):
        list(sources.file_records(compressed(tmp_path / "x.jsonl", b"[1]\n" + json_lines({"title": "a", "body": "b"}))))
    for name, content in {"latin": b"a\n\xe9\n", "wide": b"a\n\xff\xfea\0", "narrow": b"a\nb\0\n\0"}.items():
        with pytest.raises(ValueError, match=rf"{name}\.txt, line 2: .*not UTF-8.*convert the file"):
            list(sources.file_records(compressed(tmp_path / f"{name}.txt", content)))
    with pytest.raises(ValueError, match=r"x\.jsonl: no line .*save the file as UTF-8"):
        list(sources.file_records(compressed(tmp_path / "x.jsonl", plain("a").decode().encode("utf-16"))))
    (tmp_path / "x.parquet").touch()
    with pytest.raises(ValueError, match=r"x\.parquet is of no known form"):
        sources.find_files(tmp_path, ["*.parquet"])
    with pytest.raises(ValueError, match=r"`\*\.warc` matches no file below "):
        sources.find_files(tmp_path, ["*.jsonl", "*.warc"])
    for pattern in ("/absolute/*.jsonl", ""):
        with pytest.raises(ValueError, match="matches no file"):
            sources.find_files(tmp_path, [pattern])


@pytest.mark.parametrize(("shards", "limit"), [(1, None), (2, 7), (3, None), (4, 3), (50, None)])
def test_shards_hold_the_source_in_its_order(tmp_path, output, shards, limit):
    root = tmp_path / "source"
    compressed(root / "part_2.jsonl.zst", plain(*"abcd"))
    compressed(root / "part_10.jsonl", plain(*"efg"))
    compressed(root / "tail.txt", b"h\n\ni\n")
    corpus.write_files(output, settings(root, ["part_*", "tail*"], limit, shards))
    found = [texts(reading.lines(path)) for path in reading.shards(output)]
    assert [text for shard in found for text in shard] == list("abcdefghi")[:limit]
    assert len(found) == min(shards, limit or 9)
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_an_empty_source_is_an_error(tmp_path, output):
    compressed(tmp_path / "x.jsonl", b"\n\n")
    with pytest.raises(ValueError, match="no document in the 1 files"):
        corpus.write_files(output, settings(tmp_path, ["x.jsonl"]))


def test_the_hub_needs_the_number_of_documents(tmp_path, output):
    with pytest.raises(ValueError, match=r"corpus\.documents: null"):
        corpus.write_hub(output, settings(tmp_path, repository=tmp_path))


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [("train.jsonl", None, "has no rows; mend"), ("train.txt", ["*.txt"], "no document in any of these")],
)
def test_a_dataset_of_the_hub_without_documents_is_an_error(name, files, message, tmp_path, output):
    root = compressed(tmp_path / "repository" / name, b"").parent
    with pytest.raises(ValueError, match=f"corpus.hub: .*{message}"):
        corpus.write_hub(output, settings(tmp_path, documents=5, shards=2, repository=root, hub_files=files))


def test_a_dataset_in_the_layout_of_the_hub_is_streamed(tmp_path, output):
    root = compressed(tmp_path / "repository" / "train.jsonl", plain(*"abcdefg")).parent
    corpus.write_hub(output, settings(tmp_path, documents=5, shards=2, repository=root))
    assert [texts(reading.lines(path)) for path in reading.shards(output)] == [["a", "b"], ["c", "d", "e"]]


def oscar(number: int, **metadata) -> dict:
    headers = {"content-type": "a"}
    return {"content": f"text {number}", "warc_headers": headers, "metadata": {"harmful_pp": 9.5} | metadata}


@pytest.fixture
def repository(tmp_path) -> Path:
    """OSCAR-2301's own layout: en_meta/en_meta_part_N.jsonl.zst, with checksums beside them."""
    root = tmp_path / "OSCAR-2301"
    compressed(root / "en_meta" / "checksum.sha256", b"0  en_meta_part_1.jsonl.zst\n")
    for part in (1, 2, 10):
        lines = json_lines(*(oscar(100 * part + number) for number in range(3)))
        compressed(root / "en_meta" / f"en_meta_part_{part}.jsonl.zst", lines.replace(b": 9.5", b":9.50"))
    return root


PARTS = ["en_meta/en_meta_part_[1-9].jsonl.zst", "en_meta/en_meta_part_[1-9][0-9].jsonl.zst"]


def test_files_of_a_hub_repository_are_taken_byte_for_byte_each_a_shard(repository, output):
    corpus.write_hub(output, settings(output, repository=repository, hub_files=PARTS))
    theirs = [repository / "en_meta" / f"en_meta_part_{part}.jsonl.zst" for part in (1, 2, 10)]
    ours = [output / f"part_{number}.jsonl.zst" for number in (1, 2, 3)]
    assert [[*reading.lines(path)] for path in ours] == [[*reading.lines(path)] for path in theirs]
    assert records.annotations(next(reading.lines(ours[0]))).harmful_pp == 9.5
    found = origins.locate(2, origins.read(output)["part_3.jsonl.zst"])
    assert found == (f"{repository}/en_meta/en_meta_part_10.jsonl.zst", 2)


def test_files_of_a_hub_repository_are_read_up_to_a_number_of_documents(repository, output):
    corpus.write_hub(output, settings(output, documents=5, shards=2, repository=repository, hub_files=PARTS))
    found = [texts(reading.lines(path)) for path in reading.shards(output)]
    assert found == [["text 100", "text 101"], ["text 102", "text 200", "text 201"]]


def test_several_datasets_are_read_one_after_the_other(repository, tmp_path, output):
    books = compressed(tmp_path / "books" / "train.jsonl", plain("a book")).parent
    both = settings(output, documents=10, shards=1, repository=repository, hub_files=PARTS[:1])
    other = both.corpus.hub[0].model_copy(update={"repository": str(books), "files": None})
    both.corpus = both.corpus.model_copy(update={"hub": (other, *both.corpus.hub)})
    corpus.write_hub(output, both)
    assert texts(reading.lines(output / "part_1.jsonl.zst"))[:2] == ["a book", "text 100"]


@pytest.mark.parametrize("text_column", ["content", "text"])
def test_rows_of_the_hub_keep_the_metadata_of_oscar(tmp_path, output, text_column):
    row = oscar(1, categories=["adult"], quality_warnings=None, sentence_identifications=[None])
    if text_column == "text":  # as OSCAR's loader names them
        row = {"id": 0, "text": row["content"], "meta": row["metadata"] | {"warc_headers": row["warc_headers"]}}
    root = compressed(tmp_path / "repository" / "train.jsonl", json_lines(row)).parent
    corpus.write_hub(output, settings(tmp_path, documents=1, shards=1, repository=root))
    [line] = reading.lines(output / "part_1.jsonl.zst")
    assert records.annotations(line) == records.Annotations(("adult",), 9.5, None)
    assert json.loads(line)["warc_headers"] == {"content-type": "a"}


def test_a_pattern_that_matches_no_file_of_the_hub_is_named(repository, output):
    with pytest.raises(ValueError, match=r"`fr_meta/\*` matches no file"):
        corpus.write_hub(output, settings(output, repository=repository, hub_files=["fr_meta/*"]))


def test_a_fault_in_a_file_of_the_hub_is_named_as_the_repository_names_it_and_nothing_is_left(repository, output):
    compressed(repository / "books" / "a.jsonl", plain("a book") + b'{"text": 1}\n')
    with pytest.raises(RuntimeError, match=rf"{repository}/books/a\.jsonl, line 2: not a plain document"):
        corpus.write_hub(output, settings(output, repository=repository, hub_files=["books/*"]))
    assert not [path for path in Path("data/jobs").rglob("a.jsonl")]
    (repository / "table.parquet").touch()
    with pytest.raises(ValueError, match=r"corpus\.hub\.files: .*table\.parquet is of no known form"):
        corpus.write_hub(output, settings(output, repository=repository, hub_files=["*.parquet"]))


def test_a_repository_that_cannot_be_reached_says_how_to_log_in(output, monkeypatch):
    def refuse(*_, **__):
        raise OSError("401 Client Error: gated repository")

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", refuse)
    with pytest.raises(ValueError, match=r"oscar-corpus/OSCAR-2301 \(main\).*401.*set HF_TOKEN or run `hf auth login`"):
        corpus.write_hub(output, settings(output, documents=1, repository="oscar-corpus/OSCAR-2301"))


def test_files_of_the_hub_are_listed_and_fetched_at_the_pinned_commit(output, monkeypatch):
    """The hub's file system, in memory."""
    asked = []

    class FileSystem:
        def glob(self, pattern):
            asked.append(pattern)
            return [f"datasets/a/b@1234/en/part_{number}.jsonl" for number in (10, 2)]

        def get_file(self, name, target):
            asked.append(name)
            Path(target).write_bytes(plain(name))

    monkeypatch.setattr("huggingface_hub.HfFileSystem", FileSystem)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda *_, **__: SimpleNamespace(sha="1234"))
    read = corpus.write_hub(output, settings(output, documents=9, shards=1, repository="a/b", hub_files=["en/*"]))
    assert read == ["a/b@1234"]
    names = [f"datasets/a/b@1234/en/part_{number}.jsonl" for number in (2, 10)]
    assert texts(reading.lines(output / "part_1.jsonl.zst")) == names
    assert asked == ["datasets/a/b@1234/en/*", *names]


def test_a_dataset_that_is_nowhere_is_an_error(tmp_path, output):
    with pytest.raises(ValueError, match=r"corpus\.hub: .*nowhere .* cannot be loaded"):
        corpus.write_hub(output, settings(tmp_path, documents=1, repository=tmp_path / "nowhere"))


def test_a_dataset_without_text_is_refused(tmp_path, output):
    root = compressed(tmp_path / "repository" / "train.jsonl", json_lines({"body": "a"})).parent
    with pytest.raises(ValueError, match=r"corpus\.hub: .*no string `text` or `content` among the columns body"):
        corpus.write_hub(output, settings(tmp_path, documents=1, repository=root))


def test_real_files_are_read_whole(shared_data):
    expected = {"oscar/oscar_sample.jsonl": 63, "text/imdb/imdb_test_5000.jsonl.zst": 5000}
    expected |= {f"text/wikitext-2-raw/wiki.{split}.raw": 60 for split in ("valid", "test")}  # articles
    for name, documents in expected.items():
        assert sources.count({"path": str(shared_data / name), "limit": None}, None) == {"documents": documents}


def test_a_long_window_of_real_wikipedia_is_read(shared_data):
    path = shared_data / "text" / "enwiki_sample.jsonl.zst"
    found = [json.loads(line) for line in islice(sources.file_records(path), 100, 300)]
    assert len(found) == 200
    assert all("wikipedia.org" in record["warc_headers"]["warc-target-uri"] for record in found)


def test_real_oscar_records_pass_byte_for_byte(shared_data):
    path = shared_data / "oscar" / "oscar_sample.jsonl"
    assert b"".join(line + b"\n" for line in sources.file_records(path)) == path.read_bytes()


def test_files_whose_numbers_are_equal_stand_by_their_names_however_they_were_found():
    wanted = [Path(name) for name in ("part_1", "part_02", "part_2", "part_10")]
    assert reading.in_natural_order(wanted) == reading.in_natural_order(wanted[::-1]) == wanted
