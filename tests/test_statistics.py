"""Means, intervals and comparisons over seeds."""

from math import isnan, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from stages.evidence.estimate import compare_arms, compare_by_welch
from stages.evidence.statistics import (
    EXACT,
    FINETUNING,
    PRETRAINING,
    ROUNDS,
    TRAINING,
    compute_critical_value,
    compute_error_of_difference,
    compute_within_sd,
    find_units,
    flip_signs_jointly,
    summarise_cell,
)
from tests.places import ROOT

values = st.lists(st.floats(-100, 100), min_size=2, max_size=8).filter(lambda v: np.ptp(v) > 1e-3)


def make_runs(*groups: list[float]) -> pd.DataFrame:
    """Makes a group of fine-tuning runs for every pre-training seed."""
    rows = []
    for seed, group in enumerate(groups):
        for tuned, value in enumerate(group):
            rows.append((seed, tuned, value))
    return pd.DataFrame(rows, columns=["pretraining_seed", "finetuning_seed", "value"])


def test_finetuning_seeds_are_the_units_of_one_checkpoint():
    summary = summarise_cell(make_runs([1.0, 2.0, 4.0]), 0.9)
    assert (summary.n, summary.runs, summary.unit) == (3, 3, FINETUNING)
    assert summary.mean == pytest.approx(7 / 3)
    assert summary.sd == summary.within_sd == pytest.approx(np.std([1, 2, 4], ddof=1))
    expected = stats.ttest_1samp([1, 2, 4], 0).confidence_interval(0.9)
    assert (summary.low, summary.high) == pytest.approx(tuple(expected))


def test_several_pretraining_seeds_are_the_units_and_count_equally():
    summary = summarise_cell(make_runs([1.0, 3.0], [6.0, 6.0, 6.0, 6.0]), 0.95)
    assert (summary.n, summary.runs, summary.unit) == (2, 6, PRETRAINING)
    assert summary.mean == 4.0  # not 28 / 6
    assert summary.sd == pytest.approx(np.std([2, 6], ddof=1))


def test_a_single_run_has_no_interval():
    single = summarise_cell(make_runs([1.0]), 0.95)
    assert single.n == 1
    assert np.isnan([single.sd, single.low, single.high, single.within_sd]).all()


def test_equal_runs_have_an_interval_of_no_width():
    equal = summarise_cell(make_runs([2.0, 2.0, 2.0]), 0.95)
    assert (equal.low, equal.high, equal.sd) == (2.0, 2.0, 0.0)


@pytest.mark.parametrize(
    ("stage", "pretraining_seed", "unit"),
    [
        ("parameters", None, EXACT),
        ("timing", None, ROUNDS),
        ("pretraining", (1, 2), PRETRAINING),
        ("translation", (1, 2), TRAINING),
    ],
)
def test_what_was_not_fine_tuned_has_units_of_its_stage(stage, pretraining_seed, unit):
    frame = pd.DataFrame({"stage": stage, "pretraining_seed": pretraining_seed, "value": [1.0, 2.0]})
    assert find_units(frame.assign(finetuning_seed=None))[2] == unit


def test_no_runs_are_an_error():
    with pytest.raises(ValueError, match="no runs"):
        summarise_cell(make_runs(), 0.95)


def test_spread_within_checkpoints_is_pooled():
    assert compute_within_sd(make_runs([0.0, 2.0], [10.0, 10.0, 10.0])) == pytest.approx(sqrt(2 / 3))


@settings(deadline=None)
@given(values, values)
def test_welch_agrees_with_scipy_in_either_order(first, second):
    first, second = np.array(first), np.array(second)
    made = compare_by_welch(first, second, 0.95)
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert made.value / made.error == pytest.approx(expected.statistic)
    assert made.p == pytest.approx(expected.pvalue)
    assert (made.low, made.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    swapped = compare_by_welch(second, first, 0.95)
    assert swapped.p == pytest.approx(made.p)
    assert (swapped.value, swapped.low) == pytest.approx((-made.value, -made.high), abs=1e-9)


# Equal but for rounding.
ROUNDED = [100 * (0.1 + 0.2), 100 * 0.3]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1.0], [1.0, 2.0]),
        ([30.0, 30.0], ROUNDED),
        ([3.0, 3.0], [1.0, 2.0]),
    ],
)
def test_without_variance_on_a_side_and_with_a_single_value_there_is_no_test(first, second):
    result = compare_by_welch(np.array(first), np.array(second), 0.95)
    assert isnan(result.p)
    assert isnan(result.low)
    assert not isnan(result.value)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=3, max_size=8))
def test_runs_of_equal_seeds_are_paired_in_any_order(pairs):
    first, second = np.array(pairs).T
    assume(min(np.ptp(first), np.ptp(second), np.ptp(first - second)) > 1e-3)
    own = make_runs(*first[:, None].tolist())
    other = make_runs(*second[:, None].tolist())
    made = compare_arms(own, other.iloc[::-1], 0.95)
    expected = stats.ttest_rel(first, second)
    assert made.paired
    assert (made.unit, made.n) == (PRETRAINING, (len(pairs), len(pairs)))
    assert made.p == pytest.approx(expected.pvalue)
    assert (made.low, made.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    other["pretraining_seed"] += 1
    assert not compare_arms(own, other, 0.95).paired


def test_an_arm_whose_runs_are_all_equal_is_compared_by_its_pairs_and_equal_differences_have_no_interval():
    own, other = make_runs([1.0], [1.0], [1.0]), make_runs([2.0], [2.5], [4.0])
    made = compare_arms(own, other, 0.95)
    expected = stats.ttest_1samp([-1.0, -1.5, -3.0], 0).confidence_interval(0.95)
    assert (made.low, made.high) == pytest.approx(tuple(expected))
    equal = compare_arms(own, make_runs([2.0], [2.0], [2.0]), 0.95)
    assert isnan(equal.low) and equal.differences.empty


def test_finetuning_seeds_of_two_checkpoints_are_not_paired():
    single = compare_arms(make_runs([1.0, 2.0, 4.0]), make_runs([0.0, 2.0, 2.0]), 0.95)
    assert not single.paired
    assert (single.unit, single.n) == (FINETUNING, (3, 3))


def test_finetuning_seeds_of_several_checkpoints_are_averaged():
    several = compare_arms(make_runs([1.0, 3.0], [2.0, 6.0], [3.0, 4.0]), make_runs([1.0], [1.0], [2.0]), 0.95)
    assert several.paired
    assert several.unit == PRETRAINING
    assert several.value == pytest.approx(np.mean([2.0, 4.0, 3.5]) - np.mean([1.0, 1.0, 2.0]))


def test_one_checkpoint_against_several_is_no_comparison_of_operators():
    assert compare_arms(make_runs([1.0], [2.0], [4.0]), make_runs([0.0, 2.0, 3.0]), 0.95).unit == FINETUNING


def test_fewer_than_three_seeds_have_neither_interval_nor_test():
    made = compare_arms(make_runs([1.0], [2.0]), make_runs([3.0], [5.0], [6.0]), 0.95)
    assert isnan(made.low)
    assert isnan(made.p)
    assert made.value == pytest.approx(1.5 - 14 / 3)


def judge_against(printed: float, measured: np.ndarray) -> tuple[float, float]:
    """Computes the single 95 % interval of the difference from a published number."""
    half = compute_error_of_difference(measured) * compute_critical_value(0.05, 1, len(measured) - 1)
    difference = float(np.mean(measured)) - printed
    return difference - half, difference + half


def test_a_single_run_has_no_interval_of_the_difference_from_a_published_number():
    assert np.isnan(judge_against(80.0, np.array([80.0]))).all()


def test_a_published_number_is_compared_as_a_sample_of_one():
    measured = np.array([82.0, 81.0, 80.5, 79.5])
    expected = stats.ttest_ind(measured, [80.0]).confidence_interval(0.95)
    assert judge_against(80.0, measured) == pytest.approx(tuple(expected))


@given(st.integers(1, 20), st.integers(1, 30))
def test_simultaneous_intervals_share_the_level_equally(tests, freedom):
    value = compute_critical_value(0.05, tests, freedom)
    assert 2 * stats.t.sf(value, freedom) * tests == pytest.approx(0.05)


@pytest.mark.parametrize(("arm", "wide"), [("original", 0), ("operator", 1)])
def test_an_interval_of_a_family_is_wrong_as_often_as_the_page_on_statistics_says(arm, wide):
    rates = pd.read_csv(ROOT / "reports/examples/statistics/error_rates.csv")
    [share] = rates.query("arms == 4 and seeds == 3 and wider == @arm and not bimodal")["paired"]
    runs = np.random.default_rng(0).normal(size=(40_000, 4, 3))
    runs[:, wide] *= 4
    differences = runs[:, 1:] - runs[:, :1]
    half = compute_critical_value(0.05, 3, 2) * differences.std(axis=2, ddof=1) / sqrt(3)
    found = np.abs(differences.mean(axis=2)) > half
    assert found.any(axis=1).mean() == pytest.approx(share, abs=0.004)


def test_the_sign_flips_of_one_contrast_equal_the_exact_test_of_scipy():
    differences = np.random.default_rng(3).normal(0.8, 1, size=7)

    def compute_t(sample, axis):
        return np.mean(sample, axis) / np.std(sample, axis, ddof=1)

    expected = stats.permutation_test((differences,), compute_t, permutation_type="samples", n_resamples=np.inf)
    [p] = flip_signs_jointly(differences[:, None])
    assert p == pytest.approx(expected.pvalue)


def test_joint_sign_flips_adjust_for_the_family_and_a_copy_of_a_contrast_costs_nothing():
    differences = np.random.default_rng(4).normal([0.0, 0.5, 30.0], 1, size=(6, 3))
    single = [flip_signs_jointly(differences[:, [place]])[0] for place in range(3)]
    together = flip_signs_jointly(differences)
    assert (together >= single).all()
    assert together[2] == pytest.approx(2 / 64)
    copied = flip_signs_jointly(np.column_stack([differences, differences]))
    np.testing.assert_array_equal(copied, np.tile(together, 2))
