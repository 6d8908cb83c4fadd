"""The three rules, and a ledger in which every document and byte is found again."""

import json
import shutil
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import hypothesis
import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.embedded.corpus import write_corpus
from stages.embedded.defects import plan
from stages.filtering import shards as filters
from stages.filtering import stage as filtering
from stages.filtering.rules import judge, rules_of
from stages.records import origins, records
from stages.records.ledger import TOTAL, read_ledger
from stages.records.records import Annotations
from stages.runner import jobs
from tests.toy_shards import EXCLUDED, build, kept_lines, settings, totals, write_shard

PAPER = judge(rules_of(settings()))
KEPT = {"missing_harmful_pp": "keep", "quality_warnings": "keep"}
PASSING = {"harmful_pp": 500.0, "categories": None, "quality_warnings": None}


def record(text="text", **metadata) -> bytes:
    return json.dumps({"content": text, "warc_headers": {}, "metadata": PASSING | metadata}).encode()


def balanced(folder: Path) -> pd.DataFrame:
    """The ledger of a folder, in which every document and byte of every shard has one fate."""
    ledger = read_ledger(folder / "ledger.csv")
    sums = ledger.groupby(["shard", "fate"])[["documents", "bytes"]].sum().unstack("fate", fill_value=0)
    for measure in ("documents", "bytes"):
        assert (sums[measure].drop(columns="in").sum(axis=1) == sums[measure]["in"]).all()
    return ledger


def dropped(folder: Path) -> pd.DataFrame:
    """By reason, the documents and bytes that were dropped."""
    rows = totals(folder)
    return rows[rows["fate"] == "dropped"].set_index("reason")


def logged(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "malformed.csv", keep_default_na=False)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("filtered").mkdir()
    return Path("filtered")


@pytest.mark.parametrize(
    ("metadata", "reasons"),
    [
        ({}, []),
        ({"harmful_pp": 5.0}, ["low"]),
        ({"harmful_pp": 5.0001}, []),
        ({"harmful_pp": 99_999.9}, []),
        ({"harmful_pp": 100_000.0}, ["high"]),
        ({"harmful_pp": 1e300}, ["high"]),
        ({"harmful_pp": -3.0}, ["low"]),
        ({"harmful_pp": None}, ["missing"]),
        ({"harmful_pp": 0.0}, ["missing"]),
        ({"harmful_pp": 0}, ["missing"]),
        ({"quality_warnings": []}, []),
        ({"quality_warnings": ["tiny", "header", "tiny"]}, ["tiny", "header"]),
        ({"quality_warnings": ["brand_new", "newer"]}, ["other"]),
        ({"annotation": ["footer"]}, ["footer"]),
        ({"categories": ["blog", "press"]}, []),
        ({"categories": ["blog", "sect", "adult", "sect"]}, ["sect", "adult"]),
        ({"categories": ["aggressive", "agressif", "porn"]}, ["agressif", "adult"]),
        (
            {"categories": ["warez"], "harmful_pp": 1, "quality_warnings": ["noisy"]},
            ["warez", "low", "noisy"],
        ),
    ],
)
def test_a_document_is_dropped_for_exactly_these_reasons(metadata, reasons):
    found = PAPER(records.annotations(record(**metadata)))
    assert [reason for _, reason in found] == reasons


def test_the_other_readings_of_the_rules_are_parameters():
    lenient = judge({"excluded_categories": (), "harmful_pp": {"above": 0.0, "below": 1e9}} | KEPT)
    document = Annotations(categories=("adult",), harmful_pp=None, quality_warnings=("tiny",))
    assert len(PAPER(document)) == 3
    assert lenient(document) == ()


def test_the_embedded_corpus_loses_what_was_planted(folder):
    write_corpus(Path("corpus"), 3000, 3, seed=1)
    planted = plan(3000)
    build(folder, malformed_share=0.01)
    balanced(folder)
    counts = totals(folder).set_index(["fate", "reason"])["documents"]
    assert counts["in", ""] == 3000
    malformed = sum(count for kind, count in planted.items() if kind.startswith("malformed:"))
    assert counts["kept", ""] == planted["sound"] == len(kept_lines(folder))
    assert counts["malformed", ""] == malformed
    assert len(logged(folder)) == malformed
    for category in EXCLUDED:
        alone = planted[f"category:{category}"]
        assert counts["dropped", category] >= alone > 0


@hypothesis.settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_documents_and_bytes_balance_and_kept_lines_are_unchanged(tmp_path_factory, data):
    metadata = st.fixed_dictionaries(
        {},
        optional={
            "harmful_pp": st.sampled_from([None, 0, 3.0, 5, 80.5, 1e5, "7"]),
            "categories": st.none() | st.lists(st.sampled_from(["adult", "porn", "blog", "sect"]), max_size=3),
            "quality_warnings": st.none() | st.lists(st.sampled_from(["tiny", "odd", 3]), max_size=2),
        },
    )
    lines = st.builds(lambda text, changes: record(text, **changes), st.text(max_size=9), metadata)
    shards = data.draw(st.lists(st.lists(lines, min_size=1, max_size=6), min_size=1, max_size=3))
    limit = data.draw(st.none() | st.integers(1, 9))
    folder = tmp_path_factory.mktemp("balance")
    expected = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("filtered").mkdir()
        for number, shard in enumerate(shards, 1):
            write_shard(Path(f"corpus/part_{number}.jsonl.zst"), shard)
            for line in shard:
                try:
                    expected += [line] if not PAPER(records.annotations(line)) else []
                except ValueError:
                    continue
        if not expected:
            with pytest.raises(ValueError, match=r"passed the rules|no OSCAR records|has a harmful_pp"):
                build(Path("filtered"))
            return
        build(Path("filtered"), documents=limit)
        assert kept_lines(Path("filtered")) == expected[:limit]
        ledger = balanced(Path("filtered"))
    assert ledger.loc[(ledger["shard"] != TOTAL) & (ledger["fate"] == "in"), "documents"].sum() == sum(map(len, shards))


HOSTILE = {
    "empty line": b"",
    "blanks": b"  \t",
    "not JSON": b"<html><body>502 Bad Gateway</body></html>",
    "cut off": b'{"content": "tex',
    "NUL bytes": b"\0" * 50,
    "NUL in text": b'{"content": "a\0b", "metadata": {"harmful_pp": 9}}',
    "control character": b'{"content": "a\x01b", "metadata": {"harmful_pp": 9}}',
    "invalid UTF-8 in text": b'{"content": "\xff\xfe", "metadata": {"harmful_pp": 9}}',
    "invalid UTF-8 elsewhere": b'{"content": "a", "x": "\xff", "metadata": {"harmful_pp": 9}}',
    "surrogate in UTF-8": b'{"content": "\xed\xa0\x80", "metadata": {"harmful_pp": 9}}',
    "escaped lone surrogate": b'{"content": "\\ud800", "metadata": {"harmful_pp": 9}}',
    "unknown escape": b'{"content": "\\q", "metadata": {"harmful_pp": 9}}',
    "UTF-16": '{"content": "a"}'.encode("utf-16"),
    "list": b'["content"]',
    "string": b'"content"',
    "number": b"42",
    "null": b"null",
    "two objects": b'{"content": "a"} {"content": "b"}',
    "trailing comma": b'{"content": "a",}',
    "single quotes": b"{'content': 'a'}",
    "no content": b'{"text": "a", "metadata": {"harmful_pp": 9}}',
    "content null": b'{"content": null, "metadata": {"harmful_pp": 9}}',
    "content a list": b'{"content": ["a"], "metadata": {"harmful_pp": 9}}',
    "metadata a list": b'{"content": "a", "metadata": []}',
    "score a string": b'{"content": "a", "metadata": {"harmful_pp": "9.5"}}',
    "score NaN": b'{"content": "a", "metadata": {"harmful_pp": NaN}}',
    "score too large": b'{"content": "a", "metadata": {"harmful_pp": 1e999}}',
    "score true": b'{"content": "a", "metadata": {"harmful_pp": true}}',
    "warnings a string": b'{"content": "a", "metadata": {"quality_warnings": "tiny"}}',
    "categories of numbers": b'{"content": "a", "metadata": {"categories": [1]}}',
    "later duplicate key of a wrong type": b'{"content": "a", "content": 3}',
    "deep nesting": b'{"content": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "unclosed nesting": b'{"content": ' + b"[" * 100_000,
}


def test_each_kind_of_malformed_line_is_counted_and_costs_no_good_document(folder):
    good = [record(f"good {number}") for number in range(len(HOSTILE) + 1)]
    lines = [line for pair in zip(good, HOSTILE.values(), strict=False) for line in pair] + good[-1:]
    write_shard(Path("corpus/part_1.jsonl.zst"), lines)
    build(folder)
    assert kept_lines(folder) == good
    lines = logged(folder)
    assert lines["line"].tolist() == [2 * number for number in range(1, len(HOSTILE) + 1)]
    assert set(lines["file"]) == {"corpus/part_1.jsonl.zst"}
    assert lines["reason"].all()
    balanced(folder)


def test_a_malformed_line_is_named_by_its_place_in_the_source(folder):
    write_shard(Path("corpus/part_1.jsonl.zst"), [record(), b"one", record(), b"two"])
    write_shard(Path("corpus/part_2.jsonl.zst"), [b"three"])
    origins.write(Path("corpus"), {"part_1.jsonl.zst": [(1, "a.jsonl", 7), (3, "b.jsonl", 1)]})
    build(folder)
    found = logged(folder)
    assert found["file"].tolist() == ["a.jsonl", "b.jsonl", "corpus/part_2.jsonl.zst"]
    assert found["line"].tolist() == [8, 2, 1]


def split_at_feeds(block: bytes) -> tuple[np.ndarray, np.ndarray]:
    feeds = [number for number, byte in enumerate(block) if byte == ord("\n")]
    return np.array([0, *(feed + 1 for feed in feeds)]), np.array([*feeds, len(block)])


JSON_PARTS = [
    b'{"content":"a"}',
    b'{"content":"b","metadata":{"harmful_pp":3}}',
    b'{"content":"\xff"}',
    b'{"content":3}',
]
JSON_PARTS += [b"{}", b'{"x":{}', b'{"x":[{}', b'"content"', b"null", *(bytes([code]) for code in b'\n\r {}":,[]\\')]


@hypothesis.settings(deadline=None, max_examples=1000)
@given(st.lists(st.sampled_from(JSON_PARTS), max_size=14).map(b"".join))
def test_lines_decoded_together_are_judged_as_each_alone(block):
    together = records.read_metadata(block, *split_at_feeds(block))
    for line, found in zip(block.split(b"\n"), together, strict=True):
        try:
            assert found == records.annotations(line)
        except ValueError as error:
            assert str(found) == str(error)


@hypothesis.settings(deadline=None, max_examples=500)
@given(
    st.lists(
        st.sampled_from([b"a", b'"', b"\\", b"\\u00e9", b"\\ud83d", b"\\ude00", b"\\n", b"\\x", b"\x1f", b"\xc3\xa9"])
    )
)
def test_text_is_checked_as_strictly_as_if_it_were_decoded(parts):
    line = b'{"content":"' + b"".join(parts) + b'"}'
    try:
        records.annotations(line)
    except ValueError:
        with pytest.raises(ValueError):
            records.content(line)
    else:
        assert records.content(line) == msgspec.json.decode(line)["content"]


STRANGE = {
    "HTML as text": record("<!DOCTYPE html><script>x</script>"),
    "NUL, escaped": record("a\u0000b"),
    "empty text": record(""),
    "spaces and another order": b'{ "metadata" : {"harmful_pp":9e0} , "content" :"a" }',
    "carriage return": record("a") + b"\r",
    "unknown fields": b'{"content": "a", "new": {"deep": [[1]]}, "metadata": {"harmful_pp": 9, "x": 1}}',
    "earlier duplicate key of a wrong type": b'{"content": 3, "content": "b", "metadata": {"harmful_pp": 9}}',
    "duplicate key": b'{"content": "a", "content": "b", "metadata": {"harmful_pp": 9}}',
    "line separators": record("a\u2028b\u2029c\u0085d").decode().encode(),
    "astral": json.dumps({"content": "\U0001f600", "metadata": PASSING}, ensure_ascii=False).encode(),
    "a long line": record("a" * 5_000_000),
}


def test_strange_but_sound_records_are_kept_byte_for_byte(folder):
    write_shard(Path("corpus/part_1.jsonl.zst"), list(STRANGE.values()))
    build(folder)
    assert kept_lines(folder) == list(STRANGE.values())


def test_more_malformed_lines_than_allowed_stop_the_stage(folder):
    write_shard(Path("corpus/part_1.jsonl.zst"), [record()] * 98 + [b"one", b"two"])
    with pytest.raises(ValueError, match=r"2 of 100 .*malformed_share \(0\.01\)(.|\n)*part_1.*, line 99: JSON"):
        build(folder, malformed_share=0.01)
    build(folder, malformed_share=0.02)


def test_a_ledger_that_is_none_is_refused(tmp_path):
    path = tmp_path / "ledger.csv"
    for content in (None, "", "shard,documents\nx,1\n"):
        if content is not None:
            path.write_text(content)
        with pytest.raises(ValueError, match=r"ledger\.csv: .*run `dvc repro filtering`"):
            read_ledger(path)


def test_a_corpus_of_which_nothing_passes_stops_the_stage(folder):
    write_shard(Path("corpus/part_1.jsonl.zst"), [record(harmful_pp=None)] * 3 + [record(harmful_pp=1)])
    with pytest.raises(ValueError, match=r"none of 4 .*harmful_pp missing \(3\), harmful_pp low \(1\); relax"):
        build(folder)


def test_a_truncated_shard_stops_the_stage_and_is_named(folder):
    path = Path("corpus/part_1.jsonl.zst")
    write_shard(path, [record("some text " * 50)] * 100)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(RuntimeError, match=r"part_1\.jsonl\.zst: truncated"):
        build(folder)


CHOICES = [("first", limit, 1) for limit in (1, 3, 4, 7, None)]
CHOICES += [("sample", *choice) for choice in ((1, 1), (4, 1), (4, 2), (8, 1), (20, 1))]


@pytest.mark.parametrize(("selection", "limit", "seed"), CHOICES)
def test_documents_are_selected_over_all_shards(folder, selection, limit, seed):
    lines = [record(str(number)) for number in range(9)]
    for number, name in enumerate(("part_2", "part_9", "part_10")):
        shard = [record(harmful_pp=1), *lines[3 * number : 3 * number + 3]]
        write_shard(Path(f"corpus/{name}.jsonl.zst"), shard)
    build(folder, documents=limit, selection=selection, seed=seed)
    selected = min(limit or 9, 9)
    chosen = range(selected) if selection == "first" else filters.sample(9, selected, seed)
    assert kept_lines(folder) == [lines[number] for number in chosen]
    ledger = balanced(folder).set_index(["fate", "shard"])
    for name, numbers in (("part_2", range(3)), ("part_9", range(3, 6)), ("part_10", range(6, 9))):
        assert ledger.loc[("kept", f"{name}.jsonl.zst"), "documents"].item() == len({*chosen} & {*numbers})
    assert ledger.loc[("kept", TOTAL), "bytes"].item() == sum(len(lines[number]) for number in chosen)
    assert ledger.loc[("not_selected", TOTAL), "documents"].item() == 9 - selected


def test_each_document_is_as_likely_to_be_drawn():
    assert filters.sample(10, 10, 1).tolist() == list(range(10))
    for count in (3, 7):
        drawn = Counter()
        for seed in range(3000):
            chosen = filters.sample(10, count, seed).tolist()
            assert chosen == sorted(set(chosen)) and len(chosen) == count
            drawn.update(chosen)
        assert all(abs(drawn[number] / 3000 - count / 10) < 0.04 for number in range(10))
    assert len(filters.sample(10**12, 1000, 1)) == 1000


def test_a_document_counts_once_under_its_first_reason_and_under_each(folder):
    bad = record(categories=["sect", "adult"], harmful_pp=1, quality_warnings=["tiny"])
    write_shard(Path("corpus/part_1.jsonl.zst"), [bad, record(harmful_pp=2), record()])
    build(folder)
    counts = dropped(folder)
    assert counts["documents"].to_dict() == {"sect": 1, "adult": 0, "low": 1, "tiny": 0}
    assert counts["all_documents"].to_dict() == {"sect": 1, "adult": 1, "low": 2, "tiny": 1}
    assert counts.loc["sect", ["bytes", "all_bytes"]].tolist() == [len(bad), len(bad)]
    assert counts.loc["adult", ["bytes", "all_bytes"]].tolist() == [0, len(bad)]


def test_more_processes_give_the_same_bytes(folder):
    write_corpus(Path("corpus"), 2000, 4, seed=2)
    build(folder)
    one = {path.name: path.read_bytes() for path in folder.iterdir()}
    for path in Path("data/jobs").rglob("result.json"):
        path.unlink()
    Path("again").mkdir()
    filtering.build(Path("corpus"), Path("again"), settings(), workers=2)
    assert {path.name: path.read_bytes() for path in Path("again").iterdir()} == one


def test_a_cluster_that_loses_a_worker_midway_gives_the_same_bytes(folder, cluster):
    shards = 12
    for number in range(shards):
        lines = [record(f"text {number}"), record(harmful_pp=1), b"no JSON"] * 3_000
        write_shard(Path(f"corpus/part_{number}.jsonl.zst"), lines)

    def kill_midway():
        while not list(jobs.FOLDER.rglob("result.json")):
            time.sleep(0.01)
        cluster.workers[0].kill()

    killer = threading.Thread(target=kill_midway)
    killer.start()
    filtering.build(Path("corpus"), folder, settings(), workers=cluster.address)
    killer.join()
    assert cluster.workers[0].wait() == -signal.SIGKILL
    shutil.rmtree(jobs.FOLDER)
    Path("again").mkdir()
    build(Path("again"))
    contents = [{path.name: path.read_bytes() for path in place.iterdir()} for place in (folder, Path("again"))]
    assert contents[0] == contents[1]


def test_real_records_of_oscar_22_are_judged_by_their_annotation(folder, shared_data):
    lines = (shared_data / "oscar" / "oscar_sample.jsonl").read_bytes().splitlines()
    write_shard(Path("corpus/part_1.jsonl.zst"), lines)
    build(folder, missing_harmful_pp="keep", malformed_share=0.0)
    unwarned = [line for line in lines if not json.loads(line)["metadata"]["annotation"]]
    assert 0 < len(unwarned) < 63
    assert kept_lines(folder) == unwarned
    balanced(folder)
    with pytest.raises(ValueError, match="none of 63 documents has a harmful_pp score.*kenlm_model, or say .*: keep"):
        build(Path("again"))
