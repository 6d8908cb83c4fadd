"""The benchmarks of speed: ratios are taken within a round, and every block is timed beside stock BERT."""

import pytest

from stages.files.observations import Observation
from stages.tools import benchmarks


@pytest.mark.parametrize(("metric", "ratio"), [("seconds_per_epoch", 2.0), ("tokens_per_second", 0.5)])
def test_a_ratio_above_one_is_faster_than_trainer_within_a_round(metric, ratio):
    rows = []
    for number in (1, 2):
        columns = {"stage": "timing", "metric": metric, "operator": "original", "size": "tiny"}
        trainer = f"implementation=trainer precision=float32 round={number}"
        rows.append(Observation(value=float(number), condition=f"round={number}", **columns))
        rows.append(Observation(value=2.0 * number, condition=trainer, **columns))
    kernel = {"metric": "attention_calls", "condition": "kernel=flash"}
    rows.append(Observation(value=2.0, **{**columns, **kernel}))
    ours, _ = benchmarks.compare_training(rows).to_dict("records")
    assert ours["x implementation=trainer precision=float32 "] == ratio
    assert ours["x ours"] == 1.0


def test_every_block_is_timed_beside_stock_bert():
    size = {"layers": 1, "hidden": 16, "heads": 2, "intermediate": 32, "positions": 8}
    table = benchmarks.compare_blocks(["original", "shared"], size, 0.1, 2, "float32", rounds=1)
    blocks = table["operator"] + " " + table["form"]
    assert blocks.tolist() == ["original stock", "original torch", "original ours", "shared ours", "original masked"]
    assert table["speed-up"][0] == table["allowed"][0] == 1.0
