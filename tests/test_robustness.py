"""Statistics of noise and transfer, on made-up observations whose answers are known."""

import numpy as np
import pandas as pd
import pytest

from stages.evidence import robustness
from stages.presentation import robustness as tables


def observed(curves: dict[str, dict[str, float]], seeds=((1, 1), (1, 2), (2, 1), (2, 2)), spread=0.0) -> pd.DataFrame:
    """Noise rows: operator -> condition -> accuracy; run k adds k * spread."""
    return pd.DataFrame(
        {
            "stage": "noise",
            "protocol": "p",
            "size": "tiny",
            "operator": operator,
            "evaluated_on": "sst2",
            "metric": "accuracy",
            "condition": condition,
            "pretraining_seed": p,
            "finetuning_seed": f,
            "value": value + k * spread,
        }
        for operator, conditions in curves.items()
        for condition, value in conditions.items()
        for k, (p, f) in enumerate(seeds)
    )


LINE = {"noise=0": 0.9, "noise=0.2": 0.8, "noise=0.4": 0.7}


def test_the_clean_score_is_level_zero_of_every_kind_of_noise():
    rows = robustness.levels(observed({"original": LINE | {"typos=0.4": 0.6}}))
    typos = rows[rows["kind"] == "typos"]
    assert sorted(set(zip(typos["level"], typos["value"], strict=True))) == [(0.0, 0.9), (0.4, 0.6)]


def test_a_straight_line_has_its_loss_area_and_slope():
    made = robustness.measures(robustness.levels(observed({"original": LINE})))
    values = made.groupby("measure")["value"].mean()
    assert values["lost"] == pytest.approx(0.2)
    assert values["area"] == pytest.approx(0.8)
    assert values["slope"] == pytest.approx(-0.5)
    assert len(made) == 3 * 4  # three measures a run


def test_pairs_of_seeds_take_out_what_they_share():
    noisy = {"original": LINE, "shared": {key: value + 0.01 for key, value in LINE.items()}}
    rows = robustness.levels(observed(noisy, spread=0.02))
    tests = robustness.against_original(rows)
    assert set(tests["operator"]) == {"shared"} and len(tests) == 3
    np.testing.assert_allclose(tests["difference"], 0.01)
    assert tests["p"].isna().all()  # every pair differs by the same: no spread to test with
    assert set(tests["n"]) == {2} and set(tests["unit_of_inference"]) == {"pre-training seeds"}


def test_holm_adjusts_over_the_levels_of_one_curve():
    generator = np.random.default_rng(0)
    rows = observed({"original": LINE, "shared": LINE}, seeds=[(1, f) for f in range(6)])
    rows["value"] += generator.normal(0, 0.01, len(rows)) + 0.02 * (rows["operator"] == "shared")
    tests = robustness.against_original(robustness.levels(rows))
    assert set(tests["unit_of_inference"]) == {"fine-tuning seeds"}
    assert (tests["p_holm"] >= tests["p"]).all()
    assert tests["p_holm"].min() == pytest.approx(3 * tests["p"].min())


def test_transfer_and_probes_are_summarised_by_their_own_keys():
    rows = observed({"original": LINE})
    transfer = rows.assign(stage="cross_domain", task="mnli", evaluated_on="qqp", condition=None)
    probed = rows.assign(condition="layer=1", metric="self_weight")
    [cell] = robustness.transfer(transfer, 0.95).to_dict("records")
    assert (cell["task"], cell["evaluated_on"], cell["runs"]) == ("mnli", "qqp", 12)
    [probe] = robustness.probes(pd.concat([rows, probed]), 0.95).to_dict("records")
    assert (probe["condition"], probe["metric"]) == ("layer=1", "self_weight")


def test_the_tables_of_the_report_show_every_level_split_and_probe():
    rows = robustness.levels(observed({"original": LINE, "shared": LINE | {"typos=0.4": 0.6}}, spread=0.01))
    measured = robustness.summaries(robustness.measures(rows), 0.95)
    grid = tables.noise(robustness.curves(rows, 0.95), measured, robustness.against_original(rows))
    assert [heading.label for heading in grid.headings][2:6] == ["0 %", "20 %", "40 %", "Lost"]
    first = [value.text for value in grid.groups[0].lines[0].values]
    assert first[:6] == ["sst2", "embeddings", "91.5", "81.5", "71.5", "20.0"]
    transfer = observed({"original": {None: 0.8}}).assign(stage="cross_domain", task="mnli")
    more = [
        transfer.assign(metric=name, value=v) for name, v in (("balanced_accuracy", 0.6), ("majority_accuracy", 0.5))
    ]
    grid = tables.transfer(robustness.transfer(pd.concat([transfer, *more]), 0.95))
    assert [[value.text for value in group.lines[0].values] for group in grid.groups] == [
        ["mnli", "80.0", "60.0"],
        ["", "50.0", "50.0"],
    ]
    probed = observed({"shared": {"layer=1": 0.25}}).assign(metric="self_weight")
    [group] = tables.probes(robustness.probes(probed, 0.95)).groups
    assert [value.text for value in group.lines[0].values] == ["sst2", "layer 1", "0.250"]


def test_without_rows_there_are_tables_without_rows():
    nothing = observed({"original": LINE}).assign(task="sst2").iloc[:0]
    for frame in (robustness.transfer(nothing, 0.95), robustness.probes(nothing, 0.95)):
        assert frame.empty and "mean" in frame.columns
    levels = robustness.levels(nothing)
    measured = robustness.summaries(robustness.measures(levels), 0.95)
    grid = tables.noise(robustness.curves(levels, 0.95), measured, robustness.against_original(levels))
    assert [line.note for group in grid.groups for line in group.lines] == ["not run at this scale"]
