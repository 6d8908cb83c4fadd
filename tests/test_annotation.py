"""Documents that lack metadata get it as OSCAR would have given it; those that have it keep it."""

import bz2
import gzip
import json
import sys
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.files.compression import zstd
from stages.filtering import blocklists
from stages.filtering.annotation import Annotator, harmful_perplexity, load_kenlm, missing, quality_warnings
from stages.filtering.blocklists import Blocklist
from stages.records import records
from tests.toy_shards import EXCLUDED, build, kept_lines, totals, write_shard

ARPA = """\\data\\
ngram 1=5
ngram 2=2

\\1-grams:
-2.0\t<unk>
0\t<s>\t0
-1.0\t</s>\t0
-1.5\tharmless\t0
-0.5\tharmful\t0

\\2-grams:
-0.1\t<s> harmful
-0.2\tharmful harmful

\\end\\
"""


def lists(root: Path, **categories: dict[str, str]) -> Path:
    for category, files in categories.items():
        (root / category).mkdir(parents=True)
        for name, content in files.items():
            packed = {".gz": gzip.compress, ".zst": zstd.compress}.get(Path(name).suffix, bytes)
            (root / category / name).write_bytes(packed(content.encode()))
    return root


def compiled(root: Path, folder: Path) -> Blocklist:
    folder.mkdir()
    blocklists.compile_lists({"root": str(root)}, folder)
    return Blocklist(folder)


def document(text="text", address=None, **metadata) -> bytes:
    headers = {"warc-target-uri": address} if address else {}
    return records.oscar_record(text, headers, metadata)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("filtered").mkdir()
    return Path("filtered")


@pytest.fixture
def model(tmp_path) -> Path:
    pytest.importorskip("kenlm", reason="the extra `kenlm` is not installed")
    path = tmp_path / "harmful.arpa"
    path.write_text(ARPA)
    return path


LISTS = {
    "adult": {"domains": "bad.org\nbücher.example\n10.0.0.1\n# note\n\nUPPER.COM.\n", "urls.gz": "half.org/bad/page\n"},
    "sect": {"domains.zst": "bad.org\nsub.half.org\n", "urls": "http://www.third.org/a\nthird.org/Case/x?q=1\n"},
}


@pytest.mark.parametrize(
    ("address", "categories"),
    [
        ("https://bad.org/", ["adult", "sect"]),
        ("https://deep.sub.bad.org/any?x=http://good.org", ["adult", "sect"]),
        ("HTTP://User:Pass@BAD.ORG.:8080/x", ["adult", "sect"]),
        ("https://notbad.org/", []),
        ("https://bad.org.good.com/", []),
        ("https://good.com/bad.org/", []),
        ("https://good.com/?u=bad.org", []),
        ("https://org/", []),
        ("https://half.org/bad/page?query#part", ["adult"]),
        ("https://half.org/bad/page/", ["adult"]),
        ("https://half.org/bad/pages", []),
        ("https://half.org/bad", []),
        ("https://x.sub.half.org:443/", ["sect"]),
        ("https://www.third.org/a", ["sect"]),
        ("https://third.org/Case/x", ["sect"]),
        ("https://third.org/case/x", []),
        ("https://bücher.example/a", ["adult"]),
        ("https://www.BÜCHER.example", ["adult"]),
        ("https://xn--bcher-kva.example/", ["adult"]),
        ("https://B%C3%9Ccher.%65xample/a", ["adult"]),
        ("http://10.0.0.1:80/x", ["adult"]),
        ("http://10.0.0.2/", []),
        ("http://[2001:db8::1]:80/", []),
        ("upper.com", ["adult"]),
        ("//upper.com/x", ["adult"]),
        ("", []),
        ("http://", []),
        ("http://..//..", []),
        ("http://\ud7ff" + "a" * 300 + ".org", []),
    ],
)
def test_host_parent_domains_and_address_without_query_are_looked_up(tmp_path, address, categories):
    assert list(compiled(lists(tmp_path / "ut1", **LISTS), tmp_path / "made").categories(address)) == categories


@hypothesis.settings(deadline=None, max_examples=200)
@given(st.text(max_size=60))
def test_any_text_may_stand_for_an_address(text):
    assert all(isinstance(form, str) for form in blocklists.forms(text))


def test_parent_domains_are_those_of_names_and_never_the_last_label_alone():
    assert list(blocklists.forms("http://a.b.org")) == ["a.b.org", "b.org"]
    assert list(blocklists.forms("http://10.0.0.1/a/")) == ["10.0.0.1", "10.0.0.1/a", "10.0.0.1/a"]
    assert next(blocklists.forms("http://[2001:DB8::1]:80")) == "2001:db8::1"


def test_a_host_of_many_labels_has_the_parents_that_a_name_can_have():
    parents = list(blocklists.forms("http://" + "ab." * 100_000 + "org"))[1:]
    assert len(parents) == 83  # of at most 253 characters
    assert parents[0] == "ab." * 83 + "org"


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("bad.org\nbücher.example\n".encode("latin-1"), ", line 2"),
        ("bad.org\n".encode("utf-16-le"), ", line 1"),
    ],
)
def test_a_list_in_another_encoding_is_refused_by_its_line(tmp_path, content, place):
    root = lists(tmp_path / "ut1", adult={"domains": ""})
    (root / "adult" / "domains").write_bytes(content)
    with pytest.raises(ValueError, match=f"adult/domains{place}: no text in UTF-8; convert the list"):
        compiled(root, tmp_path / "made")


def test_a_list_without_an_entry_is_refused(tmp_path):
    with pytest.raises(ValueError, match="adult/domains: no entry; fetch the list again"):
        compiled(lists(tmp_path / "ut1", adult={"domains": "# note\n\n"}), tmp_path / "made")


def test_a_line_of_any_length_is_an_entry_and_one_without_host_and_path_is_none(tmp_path):
    written = f"a.org/{'x' * 300_000}\nb.org\n/\n.\n?x\n"
    found = compiled(lists(tmp_path / "ut1", adult={"urls": written}), tmp_path / "made")
    addresses = ("http://b.org/", f"a.org/{'x' * 300_000}", "http://a.org/x", "http://", "/")
    assert [bool(found.categories(address)) for address in addresses] == [True, True, False, False, False]


def test_links_and_folders_without_lists_are_no_categories(tmp_path):
    root = lists(tmp_path / "ut1", adult={"domains": "a.org"}, empty={"usage": "black"})
    (root / "porn").symlink_to(root / "adult")
    (root / "README").touch()
    assert list(blocklists.folders(root)) == ["adult"]
    for nothing in (root / "empty", root / "nowhere"):
        with pytest.raises(ValueError, match="filtering.annotation.blocklists: .*no folder with a file `domains`"):
            blocklists.folders(nothing)


def test_more_categories_than_a_byte_can_tell_apart_are_refused(tmp_path):
    root = lists(tmp_path / "ut1", **{f"category{number:03}": {"domains": f"{number}.org"} for number in range(256)})
    assert compiled(root, tmp_path / "made").categories("http://255.org") == ("category255",)
    lists(root, further={"domains": "a.org"})
    with pytest.raises(ValueError, match="ut1 has 257 categories, more than 256; leave there those"):
        blocklists.folders(root)


def test_millions_of_entries_take_nine_bytes_each(tmp_path):
    names = [f"site{number}.example" for number in range(200_000)]
    found = compiled(lists(tmp_path / "ut1", adult={"domains": "\n".join(names)}), tmp_path / "made")
    assert sum(path.stat().st_size for path in (tmp_path / "made").iterdir()) < 9.1 * len(names)
    assert all(found.categories(f"http://www.{name}/") == ("adult",) for name in names[::5000])
    assert found.categories("http://site200000.example/") == ()


def test_every_entry_of_the_real_lists_is_found_under_its_category(tmp_path, shared_data):
    root = shared_data / "ut1"
    found = compiled(root, tmp_path / "made")
    assert set(blocklists.folders(root)) == set(EXCLUDED)
    for category in EXCLUDED:
        for name in ("domains", "urls"):
            path = root / category / name
            for entry in path.read_text(errors="replace").split("\n")[:-1:37] if path.exists() else ():
                assert category in found.categories(f"http://{entry}"), entry
    assert found.categories("https://en.wikipedia.org/wiki/Attention") == ()


def test_quality_warnings_are_those_of_real_oscar_records(shared_data):
    for line in (shared_data / "oscar" / "oscar_sample.jsonl").read_text().splitlines():
        record = json.loads(line)
        assert list(quality_warnings(record["content"])) == (record["metadata"]["annotation"] or [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n".join(["word " * 20] * 5), []),
        ("\n".join(["word " * 20] * 4), ["tiny"]),
        ("", ["tiny", "short_sentences"]),
        ("\n".join(["word " * 20] * 10 + ["short"] * 9), ["footer"]),
        ("\n".join(["short"] * 2 + ["word " * 20] * 10), ["header"]),
        ("\n".join(["word " * 20, "short"] * 5), []),
        ("\n".join(["é" * 50] * 5), []),
        ("\n".join(["a" + "!" * 150] * 5), ["noisy"]),
        ("\n".join(["ab" * 25] * 5), ["short_sentences", "header", "footer"]),
    ],
)
def test_quality_warnings_follow_the_published_rules(text, expected):
    assert list(quality_warnings(text)) == expected


def test_a_whole_document_is_scored_as_one_line(model):
    loaded = load_kenlm(model)
    assert harmful_perplexity(loaded, "harmful\nharmful") == pytest.approx(10 ** ((0.1 + 0.2 + 1.0) / 3), rel=1e-4)
    assert harmful_perplexity(loaded, "harmful harmful") == harmful_perplexity(loaded, "harmful\nharmful")
    assert (
        harmful_perplexity(loaded, "harmful")
        < harmful_perplexity(loaded, "harmless")
        < harmful_perplexity(loaded, "other")
    )
    assert harmful_perplexity(loaded, "") > 0


def test_a_model_that_cannot_be_loaded_is_an_error(tmp_path, model, monkeypatch):
    (tmp_path / "damaged").write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0")
    for name, message in {"nowhere": "no such file", "damaged": "not a KenLM model"}.items():
        with pytest.raises(ValueError, match=f"filtering.annotation.kenlm_model: .*{name}: {message}.*say null"):
            load_kenlm(tmp_path / name)
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(ValueError, match=r"pip install '\.\[kenlm\]'"):
        load_kenlm(model)


def test_known_metadata_are_kept_and_missing_ones_added(tmp_path, model):
    compiled(lists(tmp_path / "ut1", **LISTS), tmp_path / "made")
    annotate = Annotator(str(tmp_path / "made"), str(model), quality_rules=True)
    bare = document("harmful", "http://bad.org")
    added = annotate(bare, records.annotations(bare))
    assert (added.categories, added.quality_warnings) == (("adult", "sect"), ("tiny", "short_sentences"))
    assert added.harmful_pp == pytest.approx(10 ** (1.1 / 2), rel=1e-4)
    known = document("harmful", "http://bad.org", categories=None, harmful_pp=7.5, quality_warnings=None)
    assert annotate(known, records.annotations(known)) == records.annotations(known)
    old = document("harmful", "http://bad.org", annotation=None)
    assert annotate(old, records.annotations(old)).quality_warnings is records.UNSET
    assert not any(annotate.unknown.values())


@pytest.mark.parametrize(("harmful_pp", "lacking"), [(7.5, []), (0, ["harmful_pp"]), (None, ["harmful_pp"])])
def test_a_perplexity_of_zero_or_null_is_none(harmful_pp, lacking):
    line = document("text", "http://a.org", categories=None, harmful_pp=harmful_pp, quality_warnings=None)
    assert missing(records.annotations(line)) == lacking


def test_plain_documents_are_judged_by_what_was_added_and_kept_byte_for_byte(folder, tmp_path, model):
    good = "\n".join(["harmless words that are long enough for a line " * 3] * 5)
    lines = [document(good, f"http://good.org/{number}") for number in range(3)]
    bad = [document(good, "http://x.bad.org/"), document("short", "http://good.org"), document("harmful " * 900)]
    write_shard(Path("corpus/part_1.jsonl.zst"), [lines[0], *bad, *lines[1:]])
    root = lists(tmp_path / "ut1", **LISTS)
    added = {"blocklists": str(root), "kenlm_model": str(model), "quality_rules": True}
    choice = {"excluded_categories": ["adult", "sect"], "annotation": added}
    build(folder, **choice)
    assert kept_lines(folder) == lines
    rows = totals(folder)
    dropped = rows[rows["fate"] == "dropped"].set_index("reason")["all_documents"]
    assert dropped.to_dict() == {"adult": 1, "sect": 1, "low": 1, "tiny": 2, "short_sentences": 1}
    (root / "adult" / "domains").write_text("good.org\n")
    with pytest.raises(ValueError, match="none of 6 documents passed"):
        build(folder, **choice)


ODD_HEADERS = [b"[]", b'"text"', b'{"warc-target-uri": 5}', b'{"warc-target-uri": []}']


def test_a_record_whose_address_cannot_be_read_is_malformed_and_costs_no_other(folder, tmp_path):
    good = document("\n".join(["words that are long enough for a line, they have to be " * 3] * 5), "http://good.org")
    odd = [b'{"content": "a", "warc_headers": %s, "metadata": {}}' % headers for headers in ODD_HEADERS]
    write_shard(Path("corpus/part_1.jsonl.zst"), [good, *odd, good])
    added = {"blocklists": str(lists(tmp_path / "ut1", **LISTS)), "kenlm_model": None, "quality_rules": True}
    choice = {"excluded_categories": ["adult"], "missing_harmful_pp": "keep", "annotation": added}
    build(folder, **choice)
    assert kept_lines(folder) == [good, good]
    assert [line.split(",")[1] for line in (folder / "malformed.csv").read_text().splitlines()[1:]] == list("2345")


def test_odd_headers_of_a_record_that_needs_no_annotation_stop_no_later_stage():
    for headers in ODD_HEADERS:
        assert records.content(b'{"content": "a", "warc_headers": %s}' % headers) == "a"


def test_no_scores_and_no_model_is_an_error_that_says_what_to_do(folder, capsys):
    lines = [document(str(number)) for number in range(4)]
    write_shard(Path("corpus/part_1.jsonl.zst"), lines)
    with pytest.raises(ValueError, match=r"none of 4 documents has a harmful_pp .*kenlm_model, or say .*: keep"):
        build(folder)
    build(folder, missing_harmful_pp="keep")
    assert kept_lines(folder) == lines
    assert "the categories of 4 documents are unknown (filtering.annotation.blocklists)" in capsys.readouterr().out


def test_an_excluded_category_without_a_list_is_an_error(folder, tmp_path):
    write_shard(Path("corpus/part_1.jsonl.zst"), [document()])
    root = lists(tmp_path / "ut1", porn={"domains": "a.org"})
    added = {"blocklists": str(root), "kenlm_model": None, "quality_rules": False}
    with pytest.raises(ValueError, match="no list of sect; add the lists, or take"):
        build(folder, annotation=added, excluded_categories=["adult", "sect"])


def test_a_damaged_list_is_named(folder, tmp_path):
    write_shard(Path("corpus/part_1.jsonl.zst"), [document()])
    root = lists(tmp_path / "ut1", adult={"domains.gz": "a.org"})
    (root / "adult" / "domains.gz").write_bytes(bz2.compress(b"a.org"))
    added = {"blocklists": str(root), "kenlm_model": None, "quality_rules": False}
    with pytest.raises(RuntimeError, match=r"adult/domains\.gz: not a sound"):
        build(folder, annotation=added, excluded_categories=["adult"])
