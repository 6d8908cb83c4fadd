"""The three rules, and a ledger that accounts for every document and byte."""

import json
import re
from collections import Counter
from itertools import chain
from pathlib import Path

import hypothesis
import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.filtering.rules import make_reason_finder, select_rules
from stages.filtering.selection import sample_numbers
from stages.records import origins, reading, records
from stages.records.ledger import TOTAL, read_ledger
from stages.records.records import Metadata
from tests.places import ROOT
from tests.toy_shards import EXCLUDED, FILTERED, build, make_settings, read_kept_lines, read_totals, write_shard

EMBEDDED = ROOT / "data/embedded"
pytestmark = pytest.mark.usefixtures("in_an_empty_folder")

PAPER = make_reason_finder(select_rules(make_settings()))
PASSING = {"harmful_pp": 500.0, "categories": None, "quality_warnings": None}


def write_record(text="text", **metadata) -> bytes:
    return json.dumps({"content": text, "warc_headers": {}, "metadata": PASSING | metadata}).encode()


def read_balanced_ledger() -> pd.DataFrame:
    """Reads the ledger, and checks that every document and byte of a shard has exactly a single fate."""
    ledger = read_ledger(FILTERED / "ledger.csv")
    for measure in ("documents", "bytes"):
        sums = ledger.pivot_table(index="shard", columns="fate", values=measure, aggfunc="sum", fill_value=0)
        assert (sums.drop(columns="in").sum(axis=1) == sums["in"]).all()
    return ledger


def read_malformed() -> pd.DataFrame:
    return pd.read_csv(FILTERED / "malformed.csv", keep_default_na=False)


@pytest.mark.parametrize(
    ("metadata", "reasons"),
    [
        ({}, ""),
        ({"harmful_pp": 5.0}, "low"),
        ({"harmful_pp": 5.0001}, ""),
        ({"harmful_pp": 99_999.9}, ""),
        ({"harmful_pp": 100_000.0}, "high"),
        ({"harmful_pp": None}, "missing"),
        ({"quality_warnings": ["tiny", "header", "tiny"]}, "tiny header"),
        ({"quality_warnings": ["brand_new", "newer"]}, "other"),
        ({"annotation": ["footer"]}, "footer"),
        ({"categories": ["blog", "sect", "adult", "sect"]}, "sect adult"),
        ({"categories": ["aggressive", "agressif", "porn"]}, "agressif adult"),
    ],
)
def test_a_document_is_dropped_for_exactly_these_reasons(metadata, reasons):
    found = PAPER(records.read_metadata_of_line(write_record(**metadata)))
    assert [reason for _, reason in found] == reasons.split()


def test_every_rule_can_be_switched_off():
    lenient = make_settings(
        excluded_categories=(),
        harmful_pp={"above": 0.0, "below": 1e9},
        missing_harmful_pp="keep",
        quality_warnings="keep",
    )
    metadata = Metadata(categories=("adult",), harmful_pp=None, quality_warnings=("tiny",))
    assert len(PAPER(metadata)) == 3
    assert not make_reason_finder(select_rules(lenient))(metadata)


def write_embedded_corpus(shards: int) -> None:
    """Writes the documents of data/embedded into shards."""
    lines = list(reading.read_lines(EMBEDDED / "text/corpus.jsonl.zst"))
    for number in range(shards):
        write_shard(lines[number::shards], f"part_{number + 1}")


def test_the_embedded_corpus_loses_what_was_planted():
    write_embedded_corpus(3)
    build()
    read_balanced_ledger()
    counts = read_totals().set_index(["fate", "reason"])["documents"]
    assert counts["in", ""] == 2500
    assert counts["kept", ""] == len(read_kept_lines()) == 1640
    assert counts["malformed", ""] == len(read_malformed()) == 10
    # one document in a hundred for each category
    for category in EXCLUDED:
        assert counts["dropped", category] >= 25


METADATA = st.fixed_dictionaries(
    {},
    optional={
        "harmful_pp": st.sampled_from([None, 0, 3.0, 5, 80.5, 1e5, "7"]),
        "categories": st.none() | st.lists(st.sampled_from(["adult", "porn", "blog", "sect"]), max_size=3),
        "quality_warnings": st.none() | st.lists(st.sampled_from(["tiny", "odd", 3]), max_size=2),
    },
)
LINES = st.builds(lambda text, changes: write_record(text, **changes), st.text(max_size=9), METADATA)


def is_kept(line: bytes) -> bool:
    try:
        found = records.read_metadata_of_line(line)
    except ValueError:
        return False
    return found is not None and not PAPER(found)


@hypothesis.settings(deadline=None, max_examples=5)
@given(
    shards=st.lists(st.lists(LINES, min_size=1, max_size=6), min_size=1, max_size=3),
    limit=st.none() | st.integers(1, 9),
)
def test_documents_and_bytes_balance_and_kept_lines_are_unchanged(tmp_path_factory, shards, limit):
    shards[0].append(write_record("passes"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("balance"))
        for number, shard in enumerate(shards, 1):
            write_shard(shard, f"part_{number}")
        build(documents=limit)
        lines = [*chain.from_iterable(shards)]
        assert read_kept_lines() == list(filter(is_kept, lines))[:limit]
        ledger = read_balanced_ledger()
    of_total = ledger[(ledger["shard"] == TOTAL) & (ledger["fate"] == "in")]
    assert of_total["documents"].item() == len(lines)


def test_documents_that_are_all_empty_are_refused_with_the_key_that_was_read():
    write_shard([write_record("")] * 3)
    with pytest.raises(ValueError, match=r"all 3 documents are empty; .* the key `content` is read .*, else `text`"):
        build()


HOSTILE = {
    "empty line": b"",
    "cut off": b'{"content": "tex',
    "NUL bytes": b"\0" * 50,
    "control character": b'{"content": "a\x01b", "metadata": {"harmful_pp": 9}}',
    "invalid UTF-8 in text": b'{"content": "\xff\xfe", "metadata": {"harmful_pp": 9}}',
    "surrogate in UTF-8": b'{"content": "\xed\xa0\x80", "metadata": {"harmful_pp": 9}}',
    "escaped lone surrogate": b'{"content": "\\ud800", "metadata": {"harmful_pp": 9}}',
    "UTF-16": '{"content": "a"}'.encode("utf-16"),
    "list": b'["content"]',
    "null": b"null",
    "two objects": b'{"content": "a"} {"content": "b"}',
    "no content": b'{"text": "a", "metadata": {"harmful_pp": 9}}',
    "content null": b'{"content": null, "metadata": {"harmful_pp": 9}}',
    "metadata a list": b'{"content": "a", "metadata": []}',
    "score a string": b'{"content": "a", "metadata": {"harmful_pp": "9.5"}}',
    "score NaN": b'{"content": "a", "metadata": {"harmful_pp": NaN}}',
    "score too large": b'{"content": "a", "metadata": {"harmful_pp": 1e999}}',
    "warnings a string": b'{"content": "a", "metadata": {"quality_warnings": "tiny"}}',
    "categories of numbers": b'{"content": "a", "metadata": {"categories": [1]}}',
    "later duplicate key of a wrong type": b'{"content": "a", "content": 3}',
    "deep nesting": b'{"content": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


def test_each_kind_of_malformed_line_is_counted_and_costs_no_good_document():
    good, lines = [], []
    for bad in HOSTILE.values():
        good.append(write_record(f"good {len(good)}"))
        lines += [good[-1], bad]
    # a shard must not end in the empty line
    write_shard([*lines, write_record()])
    build()
    assert read_kept_lines() == [*good, write_record()]
    malformed = read_malformed()
    assert malformed["line"].tolist() == list(range(2, len(lines) + 1, 2))
    assert set(malformed["file"]) == {"corpus/part_1.jsonl.zst"}
    assert malformed["reason"].all()
    read_balanced_ledger()


def test_a_malformed_line_is_named_by_its_place_in_the_source():
    write_shard([write_record(), b"one", write_record(), b"two"])
    write_shard([b"three"], "part_2")
    origins.write(Path("corpus"), {"part_1.jsonl.zst": [(1, "a.jsonl", 7), (3, "b.jsonl", 1)]})
    build()
    found = read_malformed()
    assert found["file"].tolist() == ["a.jsonl", "b.jsonl", "corpus/part_2.jsonl.zst"]
    assert found["line"].tolist() == [8, 2, 1]


JSON_PARTS = [
    b'{"content":"a"}',
    b'{"content":"b","metadata":{"harmful_pp":3}}',
    b'{"content":"\xff"}',
    b'{"content":""}',
    b'{"content":"\\u200b "}',
    b'{"content":" b"}',
    b'{"content":3}',
    b"{}",
    b'{"x":{}',
    b'{"x":[{}',
    b'"content"',
    b"null",
    *(bytes([code]) for code in b'\n\r {}":,[]\\'),
]


@hypothesis.settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(JSON_PARTS), max_size=14).map(b"".join))
def test_lines_decoded_together_are_judged_as_each_alone(block):
    lines = block.split(b"\n")
    lengths = np.array([len(line) for line in lines])
    # a line feed stands before every line but the first
    ends = lengths.cumsum() + np.arange(len(lines))
    together = records.read_metadata_of_block(block, ends - lengths, ends)
    for line, found in zip(lines, together, strict=True):
        try:
            assert found == records.read_metadata_of_line(line)
        except ValueError as error:
            assert str(found) == str(error)


TEXT_PARTS = [b"a", b'"', b"\\", b"\\u00e9", b"\\ud83d", b"\\ude00", b"\\n", b"\\x", b"\x1f", b"\xc3\xa9"]


@hypothesis.settings(deadline=None, max_examples=150)
@given(st.lists(st.sampled_from(TEXT_PARTS)))
def test_text_is_checked_as_strictly_as_if_it_were_decoded(parts):
    line = b'{"content":"' + b"".join(parts) + b'"}'
    try:
        records.read_metadata_of_line(line)
    except ValueError:
        with pytest.raises(ValueError):
            records.read_content(line)
    else:
        assert records.read_content(line) == msgspec.json.decode(line)["content"]


STRANGE = {
    "NUL, escaped": write_record("a\u0000b"),
    "carriage return": write_record("a") + b"\r",
    "unknown fields": b'{"content": "a", "new": {"deep": [[1]]}, "metadata": {"harmful_pp": 9, "x": 1}}',
    "earlier duplicate key of a wrong type": b'{"content": 3, "content": "b", "metadata": {"harmful_pp": 9}}',
    "duplicate key": b'{"content": "a", "content": "b", "metadata": {"harmful_pp": 9}}',
    "line separators, escaped": write_record("a\u2028b\u2029c\u0085d"),
    "a long line": write_record("a" * 5_000_000),
}


def test_strange_but_sound_records_are_kept_byte_for_byte():
    write_shard(list(STRANGE.values()))
    build()
    assert read_kept_lines() == list(STRANGE.values())


@pytest.mark.parametrize("text", [" \r\n\t\u00a0\u3000", "\u200b\ufeff\u0000", "\ufffd \ufffd"])
def test_a_document_without_text_is_dropped_as_empty_before_all_other_reasons(text, capsys):
    kept = [write_record(" begins with a space"), write_record("\u4e2d")]
    empty = write_record(text, categories=["adult"])
    write_shard([*kept, empty, b"bad"])
    build()
    assert read_kept_lines() == kept
    dropped = read_totals().query("fate == 'dropped'")
    assert dropped[["rule", "reason", "documents"]].to_numpy().tolist() == [["text", "empty", 1]]
    read_balanced_ledger()
    counted = "filtering: 4 documents: 2 kept, 0 not selected, 1 malformed, 1 dropped, of which 1 are empty\n"
    assert counted in capsys.readouterr().out


def test_an_empty_document_does_not_hide_that_no_document_has_a_perplexity():
    write_shard([write_record(harmful_pp=None), write_record("two", harmful_pp=None), write_record("")])
    with pytest.raises(ValueError, match="all 2 documents lack a harmful_pp score"):
        build()


def test_a_corpus_of_which_no_document_passes_stops_the_stage():
    write_shard([*[write_record(harmful_pp=None)] * 3, write_record(harmful_pp=1)])
    with pytest.raises(ValueError, match=r"all 4 .*harmful_pp missing \(3\), harmful_pp low \(1\); relax"):
        build()


def test_a_shard_that_was_cut_off_stops_the_stage():
    path = write_shard([b"(cut off below)" * 99])
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(RuntimeError, match=r"part_1\.jsonl\.zst: truncated"):
        build()


def test_malformed_lines_up_to_the_share_are_allowed_and_of_more_the_first_three_are_shown():
    write_shard([write_record()] * 96 + [b"bad"] * 4)
    build(malformed_share=0.04)
    assert len(read_kept_lines()) == 96
    with pytest.raises(
        ValueError, match=r"4 of 100 .*malformed_share \(0\.03\)(.|\n)*part_1.*, line 97: JSON"
    ) as error:
        build(Path("again"), malformed_share=0.03)
    assert re.findall(r"line (\d+):", str(error.value)) == ["97", "98", "99"]


@pytest.mark.parametrize("content", [None, "", "shard,documents\nx,1\n"])
def test_a_file_that_is_not_a_ledger_is_refused(content):
    path = Path("ledger.csv")
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=r"ledger\.csv: .*run `dvc repro filtering`"):
        read_ledger(path)


@pytest.mark.parametrize(
    ("selection", "limit", "seed"),
    [("first", 4, 1), ("first", None, 1), ("sample", 8, 2), ("sample", 20, 1)],
)
def test_documents_are_selected_over_all_shards(selection, limit, seed):
    lines = [write_record(str(number)) for number in range(9)]
    for first, name in ((0, "part_2"), (3, "part_9"), (6, "part_10")):
        write_shard([write_record(harmful_pp=1), *lines[first : first + 3]], name)
    build(documents=limit, selection=selection, seed=seed)
    selected = min(limit or 9, 9)
    chosen = range(selected) if selection == "first" else sample_numbers(9, selected, seed)
    kept = [lines[number] for number in chosen]
    assert read_kept_lines() == kept
    read_balanced_ledger()
    totals = read_totals().set_index("fate")
    assert totals.loc["kept", ["documents", "bytes"]].tolist() == [selected, sum(map(len, kept))]
    assert totals.loc["not_selected", "documents"] == 9 - selected


@pytest.mark.parametrize("count", [3, 7])
def test_each_document_is_as_likely_to_be_drawn(count):
    drawn = Counter()
    for seed in range(1000):
        chosen = sample_numbers(10, count, seed).tolist()
        assert chosen == sorted(set(chosen))
        drawn.update(chosen)
    for number in range(10):
        assert drawn[number] / 1000 == pytest.approx(count / 10, abs=0.06)


def test_samples_of_all_and_of_a_trillion_documents_are_drawn():
    assert sample_numbers(10, 10, 1).tolist() == list(range(10))
    assert len(sample_numbers(10**12, 1000, 1)) == 1000


def test_a_document_counts_once_under_its_first_reason_and_under_each():
    bad = write_record(categories=["sect", "adult"], harmful_pp=1, quality_warnings=["tiny"])
    write_shard([bad, write_record(harmful_pp=2), write_record()])
    build()
    counts = read_totals().query("fate == 'dropped'").set_index("reason")
    assert counts["documents"].to_dict() == {"sect": 1, "adult": 0, "low": 1, "tiny": 0}
    assert counts["all_documents"].to_dict() == {"sect": 1, "adult": 1, "low": 2, "tiny": 1}
    assert counts.loc["sect", ["bytes", "all_bytes"]].tolist() == [len(bad), len(bad)]
    assert counts.loc["adult", ["bytes", "all_bytes"]].tolist() == [0, len(bad)]


def read_contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_more_processes_give_the_same_bytes():
    write_embedded_corpus(4)
    build()
    # without their results, the jobs run again
    for path in Path("data/jobs").rglob("result.json"):
        path.unlink()
    build(Path("again"), workers=2)
    assert read_contents(Path("again")) == read_contents(FILTERED)


def test_real_records_of_oscar_22_are_judged_by_their_annotation(shared_data):
    lines = (shared_data / "oscar/oscar_sample.jsonl").read_bytes().splitlines()
    write_shard(lines)
    build(missing_harmful_pp="keep", malformed_share=0.0)
    unwarned = [line for line in lines if not json.loads(line)["metadata"]["annotation"]]
    assert 0 < len(unwarned) < 63
    assert read_kept_lines() == unwarned
    read_balanced_ledger()
    with pytest.raises(ValueError, match="all 63 documents lack a harmful_pp score.*kenlm_model, or set .* to keep"):
        build(Path("again"))
