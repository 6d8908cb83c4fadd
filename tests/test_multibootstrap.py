"""The Multi-Bootstrap: metrics under weights, weights that average to the plain mean, and what too few seeds give."""

import re

import numpy as np
import pandas as pd
import pytest
from stages.report.words import content

from stages.analysis import multibootstrap
from stages.benchmarks import metrics

GENERATOR = np.random.default_rng(1)
TRUTH = GENERATOR.integers(2, size=40).astype(float)
VALUES = GENERATOR.integers(2, size=(3, 40)).astype(float)


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews_correlation"])
def test_weighted_metrics_equal_those_of_the_repeated_examples(metric):
    counts = GENERATOR.multinomial(40, np.full(40, 1 / 40), size=2)
    found = multibootstrap.METRIC[metric](VALUES, TRUTH, counts.T.astype(float))
    for run in range(3):
        for draw in range(2):
            rows = np.repeat(np.arange(40), counts[draw])
            assert found[run, draw] == pytest.approx(metrics.METRICS[metric](TRUTH[rows], VALUES[run][rows]))


@pytest.mark.parametrize("metric", ["pearson", "spearmanr"])
def test_correlations_of_the_whole_set_are_those_of_the_benchmark(metric):
    values, truth = GENERATOR.normal(size=(2, 30)), GENERATOR.normal(size=30)
    found = multibootstrap.METRIC[metric](values, truth, np.ones((30, 1)))
    for run in range(2):
        assert found[run, 0] == pytest.approx(metrics.METRICS[metric](truth, values[run]))


def test_constant_predictions_have_no_correlation():
    assert multibootstrap.pearson(np.ones((1, 30)), np.arange(30.0), np.ones((30, 1)))[0, 0] == 0


def runs() -> pd.MultiIndex:
    return pd.MultiIndex.from_tuples([(1, 1), (1, 2), (1, 3), (2, 1)])


def test_seed_weights_sum_to_one_and_average_to_the_mean_over_pretraining_seeds():
    weights = multibootstrap.seed_weights(runs(), 4000, np.random.default_rng(1))
    assert weights.sum(axis=1) == pytest.approx(1)
    assert weights.mean(axis=0) == pytest.approx(multibootstrap.seed_mean_weights(runs()), abs=0.02)
    assert multibootstrap.seed_mean_weights(runs()) == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])


def test_rows_of_one_pretraining_seed_are_averaged_and_not_resampled():
    weights = multibootstrap.seed_weights(runs(), 50, np.random.default_rng(1))
    assert (weights[:, 0] == weights[:, 1]).all() and (weights[:, 0] == weights[:, 2]).all()
    assert set(np.round(3 * weights[:, 0], 6)) == {0.0, 0.5, 1.0}


@pytest.mark.parametrize("seeds", [1, 4])
def test_fewer_than_five_pretraining_seeds_give_no_interval(seeds):
    frame, labels = predictions({"original": 0.9, "shared": 0.6}, seeds=seeds)
    found = multibootstrap.against_original(frame, labels, 20, 1, 0.95)
    assert found.empty and list(found.columns) == multibootstrap.RESULT


def predictions(rates: dict[str, float], seeds: int = 5, examples: int = 200) -> tuple[pd.DataFrame, dict]:
    """sst2, with a share of right answers for every operator."""
    generator = np.random.default_rng(3)
    labels = pd.Series(generator.integers(2, size=examples), index=[str(n) for n in range(examples)])
    rows = [
        {"protocol": "courtois2024", "size": "tiny", "operator": operator, "evaluated_on": "sst2"}
        | {"pretraining_seed": seed, "finetuning_seed": 1, "example_id": name}
        | {"prediction": float(label if generator.random() < rate else 1 - label)}
        for operator, rate in rates.items()
        for seed in range(seeds)
        for name, label in labels.items()
    ]
    return pd.DataFrame(rows), {"sst2": labels}


def test_a_clear_difference_is_found_and_its_sign_is_operator_minus_original():
    frame, labels = predictions({"original": 0.9, "shared": 0.6})
    row = multibootstrap.against_original(frame, labels, 300, 1, 0.95).iloc[0]
    assert row["estimate"] == pytest.approx(-30, abs=5)
    assert row["low"] < row["estimate"] < row["high"] < 0 and row["share_above"] == 0


def test_operators_are_compared_on_the_same_examples_and_seeds_of_a_resample():
    frame, labels = predictions({"original": 0.7})  # the seeds differ, and both operators err alike
    found = multibootstrap.against_original(pd.concat([frame, frame.assign(operator="shared")]), labels, 100, 1, 0.95)
    assert found[["estimate", "low", "high"]].to_numpy() == pytest.approx(0, abs=1e-12)
    other = frame.assign(operator="shared", pretraining_seed=frame["pretraining_seed"] + 5)
    found = multibootstrap.against_original(pd.concat([frame, other]), labels, 100, 1, 0.95)
    assert (found["low"] < -1e-3).all()


def test_the_interval_has_the_share_that_is_asked_for_and_ties_count_half():
    found = multibootstrap._summary(np.append(1.0, np.arange(101.0)), 0.9)
    assert (found["low"], found["high"]) == pytest.approx((5, 95))
    assert multibootstrap._summary(np.array([0.0, -1.0, 0.0, 0.0, 1.0]), 0.9)["share_above"] == 0.5


def test_the_glue_score_is_the_mean_of_its_columns_and_so_are_its_resamples():
    frame, labels = predictions({"original": 0.9, "shared": 0.6}, examples=60)
    whole = pd.concat([frame.assign(evaluated_on=column) for column in multibootstrap.COLUMNS])
    labels = dict.fromkeys(multibootstrap.COLUMNS, labels["sst2"])
    found = multibootstrap.against_original(whole, labels, 100, 1, 0.95).set_index("column")
    row, columns = found.loc[multibootstrap.GLUE_SCORE], found.drop(index=multibootstrap.GLUE_SCORE)
    assert row["estimate"] == pytest.approx(columns["estimate"].mean())
    assert row["low"] < row["estimate"] < row["high"] < 0 and row["examples"] == 60 * len(columns)


def test_equal_seeds_give_equal_draws_and_chunks_change_nothing(monkeypatch):
    frame, labels = predictions({"original": 0.7, "shared": 0.7})
    once = multibootstrap.against_original(frame, labels, 100, 1, 0.95)
    monkeypatch.setattr(multibootstrap, "CHUNK", 200 * 7)
    pd.testing.assert_frame_equal(once, multibootstrap.against_original(frame, labels, 100, 1, 0.95))


def test_predictions_of_other_examples_are_an_error():
    frame, labels = predictions({"original": 0.7, "shared": 0.7}, examples=20)
    labels["sst2"].index = [f"x{name}" for name in labels["sst2"].index]
    with pytest.raises(ValueError, match="sst2 of original: predictions are not of the examples"):
        multibootstrap.against_original(frame, labels, 100, 1, 0.95)


def test_columns_that_the_original_lacks_are_left_out_and_the_others_compared():
    frame, labels = predictions({"original": 0.9, "shared": 0.6}, examples=60)
    labels = dict.fromkeys(("rte", "sst2", "mrpc"), labels["sst2"])
    more = [frame[frame["operator"] == "shared"].assign(evaluated_on=column) for column in ("mrpc", "rte")]
    found = multibootstrap.against_original(pd.concat([*more, frame]), labels, 20, 1, 0.95)
    assert found[["operator", "column"]].to_numpy().tolist() == [["shared", "sst2"]]


def test_the_report_states_the_coverage_of_as_few_seeds_as_it_shows_intervals_for():
    rng, seeds = np.random.default_rng(1), multibootstrap.FEWEST
    differences, drawn = rng.normal(size=(3000, seeds)), rng.integers(seeds, size=(1000, seeds))
    low, high = np.percentile(differences[:, drawn].mean(-1), [2.5, 97.5], axis=1)
    [note] = content("tables")["multibootstrap"]["notes"]
    stated = re.search(r"even with five a nominal 95 % interval covers the truth in (\d+) %", " ".join(note.split()))
    assert seeds == 5 and int(stated[1]) == pytest.approx(100 * np.mean((low <= 0) & (high >= 0)), abs=3)
