"""The benchmarks of speed: ratios are taken within a round, and every way is timed beside another implementation."""

import pytest

from stages.files.paths import FILTERED, TOKENIZER
from stages.records.records import PlainDocument, write_record
from stages.tokenization.vocabulary import train_tokenizer
from stages.tools import benchmarks, documents
from tests import toy_shards


def test_every_block_is_timed_beside_stock_bert():
    size = {"layers": 1, "hidden": 16, "heads": 2, "intermediate": 32, "positions": 8}
    table = benchmarks.compare_blocks(["original", "shared"], size, 0.1, 2, "float32", rounds=1)
    blocks = table["operator"] + " " + table["form"]
    assert blocks.tolist() == ["original stock", "original torch", "original ours", "shared ours", "original masked"]
    assert table["speed-up"][0] == table["allowed"][0] == 1.0


@pytest.mark.usefixtures("in_an_empty_folder")
def test_documents_without_metadata_are_filtered_and_tokenized_alike_in_both_ways(monkeypatch, capsys):
    monkeypatch.setattr(documents, "DOCUMENTS", 40)
    shard = toy_shards.write_shard([write_record(PlainDocument("a cat, a [MASK]. " * 99))] * 3)
    FILTERED.parent.mkdir()
    shard.parent.rename(FILTERED)
    TOKENIZER.parent.mkdir(parents=True)
    train_tokenizer([FILTERED / shard.name], 150).save(str(TOKENIZER))
    for way in ("filtering", "tokenization"):
        benchmarks.BENCHMARKS[way](rounds=1)
    assert capsys.readouterr().out.count("speed-up") == 2
