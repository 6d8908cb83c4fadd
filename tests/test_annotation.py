"""Documents without metadata get the metadata that OSCAR would have given; other documents keep their metadata."""

import bz2
import json
import sys
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.filtering import blocklists
from stages.filtering.annotation import (
    Annotator,
    compute_harmful_perplexity,
    find_quality_warnings,
    list_missing,
    load_kenlm,
)
from stages.filtering.blocklists import Blocklist
from stages.records import records
from tests.files import write_file
from tests.toy_shards import EXCLUDED, FILTERED, build, read_kept_lines, read_totals, write_shard

pytestmark = pytest.mark.usefixtures("in_an_empty_folder")

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
LISTS = {
    "adult/domains": "bad.org\nbücher.example\n10.0.0.1\n2001:db8::1\n[2001:db8::2]:80\n# note\n\nUPPER.COM.\n",
    "adult/urls.gz": "half.org/bad/page\n",
    "sect/domains.zst": "bad.org\nsub.half.org\n",
    "sect/urls": "http://www.third.org/a\nthird.org/Case/x?q=1\nfront.org/?q=1\nfragment.org/#a\nwhole.org/\n",
}
LONG_LINES = "\n".join(["words that are long enough for a line, which has to be long " * 3] * 5)


def write_lists(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        write_file(root / name, content)
    return root


def compile_into(root: Path, folder: Path) -> Blocklist:
    folder.mkdir()
    blocklists.compile_lists({"root": str(root)}, folder)
    return Blocklist(folder)


def write_document(text="text", address=None, **metadata) -> bytes:
    headers = {"warc-target-uri": address} if address else {}
    return records.write_oscar_record(text, headers, metadata)


def make_annotation(lists: Path | None = None, model: Path | None = None, quality_rules: bool = False) -> dict:
    """Section filtering.annotation."""
    sources = {"blocklists": lists, "kenlm_model": model}
    paths = {key: path and str(path) for key, path in sources.items()}
    return {**paths, "quality_rules": quality_rules}


@pytest.fixture
def lists(tmp_path) -> Path:
    return write_lists(tmp_path / "ut1", LISTS)


@pytest.fixture(scope="module")
def blocklist(tmp_path_factory) -> Blocklist:
    folder = tmp_path_factory.mktemp("compiled")
    return compile_into(write_lists(folder / "ut1", LISTS), folder / "made")


@pytest.fixture
def model(tmp_path) -> Path:
    pytest.importorskip("kenlm", reason="the extra `kenlm` is not installed")
    path = tmp_path / "harmful.arpa"
    path.write_text(ARPA)
    return path


@pytest.mark.parametrize(
    ("address", "categories"),
    [
        ("https://bad.org/", "adult sect"),
        ("https://deep.sub.bad.org/any?x=http://good.org", "adult sect"),
        ("HTTP://User:Pass@BAD.ORG.:8080/x", "adult sect"),
        ("https://notbad.org/", ""),
        ("https://good.com/bad.org/", ""),
        ("https://org/", ""),
        ("https://half.org/bad/page?query#part", "adult"),
        ("https://half.org/bad/pages", ""),
        ("https://x.sub.half.org:443/", "sect"),
        ("https://third.org/Case/x", "sect"),
        ("https://third.org/case/x", ""),
        ("https://front.org/?other", "sect"),
        ("https://front.org/page", ""),
        ("https://sub.whole.org/page", "sect"),
        ("https://xn--bcher-kva.example/", "adult"),
        ("https://B%C3%9Ccher.%65xample/a", "adult"),
        ("http://10.0.0.1:80/x", "adult"),
        ("http://[2001:db8::1]:80/", "adult"),
        ("http://[2001:db8::2]/", "adult"),
        ("http://[2001:db8::3]/", ""),
        ("upper.com", "adult"),
        ("", ""),
        ("http://..//..", ""),
        ("http://\ud7ff.org", ""),
    ],
)
def test_host_parent_domains_and_address_without_query_are_looked_up(blocklist, address, categories):
    assert list(blocklist.find_categories(address)) == categories.split()


@hypothesis.settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_may_stand_for_an_address(text):
    for form in blocklists.list_forms(text):
        assert isinstance(form, str)


def test_a_host_of_many_labels_has_the_parents_that_a_name_can_have():
    _, longest, *others, _, _ = blocklists.list_forms("http://" + "ab." * 100_000 + "org")
    # a name has at most 253 characters
    assert longest == "ab." * 83 + "org"
    assert len(others) == 82


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("bad.org\nbücher.example\n".encode("latin-1"), ", line 2: not UTF-8"),
        ("bad.org\n".encode("utf-16-le"), ", line 1: a NUL character, so not UTF-8"),
        ("", ": no entry"),
        ("# note\n\n", r": no entry, such as bad.org or bad.org/page; fetch the list again, or delete the file"),
        ("||bad.org^\n! note\n", ": no entry"),
        ("<html>\n404 Not Found\n%%%\n<hr>nginx\n", ": a web page in place of the data"),
    ],
)
def test_a_list_without_sound_entries_is_refused(tmp_path, content, message):
    root = write_lists(tmp_path / "ut1", {"adult/domains": content, "adult/urls": "a.org/b\n"})
    with pytest.raises(ValueError, match=f"adult/domains{message}"):
        compile_into(root, tmp_path / "made")


def test_urls_of_ut1_without_an_entry_are_counted_beside_domains(tmp_path):
    """The only line of jobsearch/urls in UT1 names a file of the server."""
    lists = {"jobsearch/domains": "a.org\n", "jobsearch/urls": "/tmp/jobs.add\n", "adult/urls": "# note\n"}
    root = write_lists(tmp_path / "ut1", lists)
    with pytest.raises(ValueError, match="adult/urls: no entry"):
        compile_into(root, tmp_path / "refused")
    (root / "adult/urls").write_text("b.org/c\n")
    assert compile_into(root, tmp_path / "made").find_categories("http://www.a.org/") == ("jobsearch",)


def test_a_line_of_any_length_is_an_entry_and_a_line_without_host_and_path_is_not(tmp_path):
    long = "a.org/" + "x" * 300_000
    root = write_lists(tmp_path / "ut1", {"adult/urls": f"{long}\nb.org\nc.org/a'\n/\n.\n?x\n"})
    found = compile_into(root, tmp_path / "made")
    for address in ("http://b.org/", "http://c.org/a'", long):
        assert found.find_categories(address) == ("adult",)
    for address in ("http://a.org/x", "http://c.org/a", "http://", "/"):
        assert not found.find_categories(address)


@pytest.mark.parametrize(
    "content",
    [
        ".bad.org",
        "0.0.0.0 *.BAD.org",
        "0.0.0.0 bad.org # note",
        "::1  bad.org",
        '"bad.org"',
        "bad.org/*",
        "first.org\rbad.org\rlast.org\r",
    ],
)
def test_the_customary_ways_to_write_an_entry_block_the_same_site(tmp_path, content):
    root = write_lists(tmp_path / "ut1", {"adult/domains": content})
    found = compile_into(root, tmp_path / "made")
    for address in ("http://bad.org/", "https://www.bad.org:443/page"):
        assert found.find_categories(address) == ("adult",)
    for address in ("http://notbad.org/", "http://0.0.0.0/", "http://127.0.0.1/", "http://[::1]/"):
        assert not found.find_categories(address)


def test_lines_that_are_no_entries_are_counted_and_the_first_are_named(tmp_path, capsys):
    write_shard([write_document(LONG_LINES, "http://good.org/", harmful_pp=9.0)])
    names = (
        "||bad.org^ \x1b[2J$third-party" + "x" * 300,
        "localhost",
        "bad.org reason",
        "bad.org/a b",
        '"bad.org","adult"',
        "bad.org/a/*",
        "*",
    )
    files = {"adult/domains": "\n".join(["bad.org", *names]), "adult/urls": "# note\n\nbad.org/b\n?x\n"}
    root = write_lists(tmp_path / "ut1", files)
    record = build(annotation=make_annotation(root, None, True), excluded_categories=["adult"])["blocklists"]
    assert record["entries"] == {"adult": 2}
    assert record["no_entries"] == 8
    first, *others = record["first_no_entries"]
    path = root / "adult" / "domains"
    assert first == f"{path}, line 2: '||bad.org^ \\x1b[2J$third-party{'x' * 9}…{'x' * 38}'"
    assert others == [f"{path}, line {line}: {name!r}" for line, name in enumerate(names[1:5], 3)]
    assert f"8 lines of the blocklists are no entries; the first:\n  {first}\n" in capsys.readouterr().out


def test_a_list_that_is_a_broken_link_is_named(tmp_path):
    root = write_lists(tmp_path / "ut1", {"adult/urls": "a.org/b"})
    (root / "adult" / "domains").symlink_to("nowhere")
    with pytest.raises(ValueError, match="adult/domains: a link to nowhere, which does not exist"):
        blocklists.find_lists(root)


def test_links_and_folders_without_lists_are_no_categories(tmp_path):
    root = write_lists(tmp_path / "ut1", {"adult/domains": "a.org", "empty/usage": "black"})
    (root / "porn").symlink_to(root / "adult")
    assert list(blocklists.find_lists(root)) == ["adult"]
    for nothing in (root / "empty", root / "nowhere"):
        with pytest.raises(ValueError, match="filtering.annotation.blocklists: .*no folder with a file `domains`"):
            blocklists.find_lists(nothing)


def test_an_entry_takes_nine_bytes(tmp_path):
    lines = "\n".join(f"site{number}.example" for number in range(50_000))
    found = compile_into(write_lists(tmp_path / "ut1", {"adult/domains": lines}), tmp_path / "made")
    assert sum(path.stat().st_size for path in (tmp_path / "made").iterdir()) < 9.1 * 50_000
    assert found.find_categories("http://www.site49999.example/") == ("adult",)
    assert not found.find_categories("http://site50000.example/")


def test_every_entry_of_the_real_lists_is_found_under_its_category(tmp_path, shared_data):
    root = shared_data / "ut1"
    assert blocklists.compile_lists({"root": str(root)}, tmp_path)["no_entries"] == 0
    found = Blocklist(tmp_path)
    categories = blocklists.find_lists(root)
    assert set(categories) == set(EXCLUDED)
    for category, files in categories.items():
        for path in files:
            entries = path.read_text(errors="replace").splitlines()
            for entry in entries[::37]:
                assert category in found.find_categories(f"http://{entry}"), entry
    assert not found.find_categories("https://en.wikipedia.org/wiki/Attention")


def test_quality_warnings_are_those_of_real_oscar_records(shared_data):
    for line in (shared_data / "oscar" / "oscar_sample.jsonl").read_text().splitlines():
        record = json.loads(line)
        assert list(find_quality_warnings(record["content"])) == (record["metadata"]["annotation"] or [])


LONG = "word " * 20


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([LONG] * 5, ""),
        ([LONG] * 4, "tiny"),
        # a fifth of four lines is no line
        (["short", LONG, LONG, "short"], "tiny"),
        ([""], "tiny short_sentences"),
        ([LONG] * 10 + ["short"] * 9, "footer"),
        (["short"] * 2 + [LONG] * 10, "header"),
        ([LONG, "short"] * 5, ""),
        (["é" * 50] * 5, ""),
        (["a" + "!" * 150] * 5, "noisy"),
        (["ab" * 25] * 5, "short_sentences header footer"),
    ],
)
def test_quality_warnings_follow_the_published_rules(lines, expected):
    assert list(find_quality_warnings("\n".join(lines))) == expected.split()


def test_a_whole_document_is_scored_as_a_single_line(model):
    loaded = load_kenlm(model)
    twice = compute_harmful_perplexity(loaded, "harmful\nharmful")
    assert twice == pytest.approx(10 ** ((0.1 + 0.2 + 1.0) / 3), rel=1e-4)
    assert twice == compute_harmful_perplexity(loaded, "harmful harmful")
    scores = [compute_harmful_perplexity(loaded, text) for text in ("harmful", "harmless", "other")]
    assert scores == sorted(scores)
    assert compute_harmful_perplexity(loaded, "") > 0


def write_arpa(order: int, words: str) -> str:
    """An ARPA file of words of equal probability, and of one sequence of each further length."""
    sections = ["\n".join(f"-1\t{word}\t0" for word in words.split())]
    sections += [f"-1\t{' '.join(['a'] * length)}\t0" for length in range(2, order + 1)]
    counts = "\n".join(f"ngram {length}={section.count('-1')}" for length, section in enumerate(sections, 1))
    grams = "\n\n".join(f"\\{length}-grams:\n{section}" for length, section in enumerate(sections, 1))
    return f"\\data\\\n{counts}\n\n{grams}\n\n\\end\\\n"


UNREADABLE = {
    "nowhere": (None, "no such file"),
    "damaged": ("mmap lm http://kheafield.com/code format version 5\n\0", "KenLM cannot read.*; fetch the file again,"),
    "of order 7": (write_arpa(7, "<unk> <s> </s> a"), ".* order 7 but KenLM was compiled .* 6.*; .* a lower order,"),
    "of words": (write_arpa(2, "<unk> a"), ".* missing <s> and .* reject these models.; .* sentence markers,"),
    "cut": (write_arpa(3, "<unk> <s> </s> a")[:70], ".*: End of file.*; fetch the file again,"),
}


@pytest.mark.parametrize(("name", "content", "message"), [(name, *case) for name, case in UNREADABLE.items()])
def test_a_model_that_cannot_be_loaded_is_named_with_the_whole_reason(tmp_path, model, name, content, message):
    if content:
        (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=f"filtering.annotation.kenlm_model: .*{name}: {message}.*set the key to null"):
        load_kenlm(tmp_path / name)


def test_the_package_that_a_model_needs_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "kenlm", None)
    (tmp_path / "model").touch()
    with pytest.raises(ValueError, match=r"pip install '\.\[kenlm\]'"):
        load_kenlm(tmp_path / "model")


def test_known_metadata_are_kept_and_missing_metadata_are_added(tmp_path, lists, model):
    compile_into(lists, tmp_path / "made")
    annotate = Annotator(str(tmp_path / "made"), str(model), quality_rules=True)

    def annotated(**metadata) -> records.Metadata:
        line = write_document("harmful", "http://bad.org", **metadata)
        return annotate(line, records.read_metadata_of_line(line))

    added = annotated()
    assert added.categories == ("adult", "sect")
    assert added.quality_warnings == ("tiny", "short_sentences")
    assert added.harmful_pp == pytest.approx(10 ** (1.1 / 2), rel=1e-4)
    known = annotated(categories=None, harmful_pp=7.5, quality_warnings=None)
    assert known == records.Metadata(None, 7.5, None)
    assert annotated(annotation=None).quality_warnings is records.UNSET
    assert not any(annotate.unknown.values())


@pytest.mark.parametrize(("harmful_pp", "lacking"), [(7.5, []), (0, ["harmful_pp"]), (None, ["harmful_pp"])])
def test_a_perplexity_of_zero_or_null_is_missing(harmful_pp, lacking):
    line = write_document(categories=None, harmful_pp=harmful_pp, quality_warnings=None)
    assert list_missing(records.read_metadata_of_line(line)) == lacking


def test_plain_documents_are_judged_by_added_metadata_and_kept_byte_for_byte(lists, model):
    good = [write_document(LONG_LINES, f"http://good.org/{number}") for number in range(3)]
    bad = [
        write_document(LONG_LINES, "http://x.bad.org/"),
        write_document("short", "http://good.org"),
        write_document("harmful " * 900),
    ]
    write_shard([*good[:1], *bad, *good[1:]])
    choice = {"excluded_categories": ["adult", "sect"], "annotation": make_annotation(lists, model, True)}
    build(**choice)
    assert read_kept_lines() == good
    dropped = read_totals().query("fate == 'dropped'").set_index("reason")["all_documents"]
    assert dropped.to_dict() == {"adult": 1, "sect": 1, "low": 1, "tiny": 2, "short_sentences": 1}
    # a changed model and changed lists are read again
    model.write_text(ARPA.replace("-0.1", "-1.1").replace("-0.2", "-2.2"))
    build(**choice)
    assert "low" not in set(read_totals()["reason"])
    (lists / "adult" / "domains").write_text("good.org\n")
    with pytest.raises(ValueError, match="all 6 documents were dropped"):
        build(**choice)


ODD_HEADERS = [b"[]", b'"text"', b'{"warc-target-uri": 5}', b'{"warc-target-uri": []}']


def test_a_record_whose_address_cannot_be_read_is_malformed_and_costs_no_other(lists):
    good = write_document(LONG_LINES, "http://good.org")
    odd = [b'{"content": "a", "warc_headers": %s, "metadata": {}}' % headers for headers in ODD_HEADERS]
    write_shard([good, *odd, good])
    build(missing_harmful_pp="keep", annotation=make_annotation(lists, None, True), excluded_categories=["adult"])
    assert read_kept_lines() == [good, good]
    malformed = (FILTERED / "malformed.csv").read_text().splitlines()[1:]
    assert [line.split(",")[1] for line in malformed] == list("2345")


def test_an_address_that_is_not_looked_up_may_have_any_type(lists):
    odd = [b'{"content": "a", "warc_headers": %s, "metadata": {}}' % headers for headers in ODD_HEADERS]
    known = [b'{"content": "a", "warc_headers": [], "metadata": {"categories": null}}']
    write_shard([*odd, *known])
    build(missing_harmful_pp="keep", quality_warnings="keep", annotation=make_annotation(None, None, True))
    assert read_kept_lines() == [*odd, *known]
    sources = make_annotation(lists, None, True)
    choice = {"excluded_categories": ["adult"], "quality_warnings": "keep"}
    build(missing_harmful_pp="keep", annotation=sources, **choice)
    assert read_kept_lines() == known


def test_documents_without_scores_and_a_model_are_an_error_unless_they_are_kept(capsys):
    lines = [write_document(str(number)) for number in range(4)]
    write_shard(lines)
    with pytest.raises(ValueError, match=r"all 4 documents lack a harmful_pp .*kenlm_model, or set .* to keep"):
        build()
    build(missing_harmful_pp="keep")
    assert read_kept_lines() == lines
    assert "the categories of 4 documents are unknown (filtering.annotation.blocklists)" in capsys.readouterr().out


def test_the_numbers_of_entries_and_of_listed_documents_are_printed(lists, capsys):
    good = write_document("good", "http://good.org")
    unlisted = [write_document("text"), write_document("text", "http://bad.org", categories=None)]
    write_shard(
        [good, *unlisted, write_document("bad", "http://x.bad.org"), write_document("bad", "http://half.org/bad/page")]
    )
    choice = {"missing_harmful_pp": "keep", "quality_warnings": "keep", "excluded_categories": ["adult", "sect"]}
    build(annotation=make_annotation(lists), **choice)
    assert read_kept_lines() == [good, *unlisted]
    out = capsys.readouterr().out
    assert "the blocklists have 14 entries; 2 of 3 addresses that were looked up are in the lists" in out
    assert "no document is of" not in out


def test_an_excluded_category_of_no_document_is_named(capsys):
    write_shard([write_document(categories=["adult"]), write_document(categories=None)])
    build(missing_harmful_pp="keep", quality_warnings="keep", excluded_categories=["adult", "Sect"])
    assert "filtering: no document is of filtering.excluded_categories Sect\n" in capsys.readouterr().out


def test_an_excluded_category_without_a_list_is_an_error(tmp_path):
    write_shard([write_document()])
    # porn is a second name of adult
    root = write_lists(tmp_path / "ut1", {"porn/domains": "a.org"})
    with pytest.raises(ValueError, match="no list of sect; add the lists, or take"):
        build(annotation=make_annotation(root), excluded_categories=["adult", "sect"])


def test_a_damaged_list_is_named(tmp_path):
    write_shard([write_document()])
    root = write_lists(tmp_path / "ut1", {"adult/domains.gz": ""})
    (root / "adult" / "domains.gz").write_bytes(bz2.compress(b"a.org"))
    with pytest.raises(RuntimeError, match=r"adult/domains\.gz: not a sound"):
        build(annotation=make_annotation(root), excluded_categories=["adult"])
