"""The benchmarks of speed: ratios are taken within a round, and every block is timed beside stock BERT."""

from stages.tools import benchmarks


def test_every_block_is_timed_beside_stock_bert():
    size = {"layers": 1, "hidden": 16, "heads": 2, "intermediate": 32, "positions": 8}
    table = benchmarks.compare_blocks(["original", "shared"], size, 0.1, 2, "float32", rounds=1)
    blocks = table["operator"] + " " + table["form"]
    assert blocks.tolist() == ["original stock", "original torch", "original ours", "shared ours", "original masked"]
    assert table["speed-up"][0] == table["allowed"][0] == 1.0
