"""Means, intervals and comparisons over seeds."""

from math import isnan, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import permutation_test
from statsmodels.stats.multitest import multipletests

from stages.evidence.estimate import between, welch
from stages.evidence.statistics import (
    EXACT,
    FINETUNING,
    PRETRAINING,
    REPEATS,
    TRAINING,
    holm,
    p_of_difference,
    summarise,
    units,
    within_sd,
)

values = st.lists(st.floats(-100, 100), min_size=2, max_size=8).filter(lambda v: np.ptp(v) > 1e-3)


def runs(*groups: list[float]) -> pd.DataFrame:
    """Makes one group of fine-tuning runs for every pre-training seed."""
    rows = []
    for seed, group in enumerate(groups):
        for tuned, value in enumerate(group):
            rows.append((seed, tuned, value))
    return pd.DataFrame(rows, columns=["pretraining_seed", "finetuning_seed", "value"])


def test_finetuning_seeds_are_the_units_of_one_checkpoint():
    summary = summarise(runs([1.0, 2.0, 4.0]), 0.95)
    assert (summary.n, summary.runs, summary.unit) == (3, 3, FINETUNING)
    assert summary.mean == pytest.approx(7 / 3)
    assert summary.sd == pytest.approx(np.std([1, 2, 4], ddof=1))
    half = stats.t.ppf(0.975, 2) * summary.sd / sqrt(3)
    assert (summary.low, summary.high) == pytest.approx((7 / 3 - half, 7 / 3 + half))
    assert summary.within_sd == pytest.approx(summary.sd)


def test_several_pretraining_seeds_are_the_units_and_count_equally():
    summary = summarise(runs([1.0, 3.0], [6.0, 6.0, 6.0, 6.0]), 0.95)
    assert (summary.n, summary.runs, summary.unit) == (2, 6, PRETRAINING)
    assert summary.mean == 4.0  # not 28 / 6
    assert summary.sd == pytest.approx(np.std([2, 6], ddof=1))


def test_a_single_run_has_no_interval_and_equal_runs_have_an_interval_of_no_width():
    single = summarise(runs([1.0]), 0.95)
    assert single.n == 1
    assert isnan(single.sd) and isnan(single.low) and isnan(single.high) and isnan(single.within_sd)
    equal = summarise(runs([2.0, 2.0, 2.0]), 0.95)
    assert (equal.low, equal.high, equal.sd) == (2.0, 2.0, 0.0)


@pytest.mark.parametrize(
    ("stage", "pretraining_seed", "unit"),
    [
        ("parameters", None, EXACT),
        ("timing", None, REPEATS),
        ("pretraining", (1, 2), PRETRAINING),
        ("translation", (1, 2), TRAINING),
    ],
)
def test_what_was_not_fine_tuned_has_units_of_its_stage(stage, pretraining_seed, unit):
    frame = pd.DataFrame({"stage": stage, "pretraining_seed": pretraining_seed, "value": [1.0, 2.0]})
    assert units(frame.assign(finetuning_seed=None))[2] == unit


def test_no_runs_are_an_error():
    with pytest.raises(ValueError, match="no runs"):
        summarise(runs(), 0.95)


def test_spread_within_checkpoints_is_pooled():
    assert within_sd(runs([0.0, 2.0], [10.0, 10.0, 10.0])) == pytest.approx(sqrt(2 / 3))


@pytest.mark.nightly
def test_intervals_cover_the_mean_as_often_as_they_say():
    generator = np.random.default_rng(1)
    samples = generator.normal(size=(400, 5))
    covered = [(s := summarise(runs(list(sample)), 0.9)).low < 0 < s.high for sample in samples]
    assert 0.86 < np.mean(covered) < 0.94


@settings(deadline=None)
@given(values, values)
def test_welch_is_antisymmetric_and_its_interval_agrees_with_its_p(first, second):
    first, second = np.array(first), np.array(second)
    one, other = welch(first, second, 0.95), welch(second, first, 0.95)
    assert one.value == pytest.approx(-other.value, abs=1e-9)
    assert one.low == pytest.approx(-other.high, abs=1e-9)
    if abs(one.p - 0.05) > 1e-6:
        assert (one.low > 0 or one.high < 0) == (one.p < 0.05)


@settings(deadline=None)
@given(values, values)
def test_welch_agrees_with_scipy(first, second):
    first, second = np.array(first), np.array(second)
    made = welch(first, second, 0.95)
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert made.value / made.error == pytest.approx(expected.statistic)
    assert made.p == pytest.approx(expected.pvalue)
    assert (made.low, made.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))


ROUNDED = [100 * (0.1 + 0.2), 100 * 0.3]  # equal but for rounding


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        ([1.0], [1.0, 2.0], None),
        ([1.0, 1.0], [1.0, 2.0], None),
        ([30.0, 30.0], ROUNDED, None),
        ([1.0, 1.0], [2.0, 2.0], 2 / 6),
        ([1.0, 2.0], [3.0, 3.0], 2 / 6),
        ([1.0, 2.0, 1.5, 1.2, 1.3], [0.0] * 5, 2 / 252),
        ([1.0, 2.0], ROUNDED, 2 / 6),
    ],
)
def test_without_variance_on_a_side_there_is_a_permutation_test_where_they_lie_apart(first, second, p):
    first, second = np.array(first), np.array(second)
    for one, other in ((first, second), (second, first)):
        result = welch(one, other, 0.95)
        assert isnan(result.p) if p is None else result.p == pytest.approx(p)
        if p is not None:
            values = permutation_test((one, other), lambda x, y: np.mean(x) - np.mean(y), n_resamples=np.inf)
            assert result.p == pytest.approx(values.pvalue)
        assert isnan(result.low) and not isnan(result.value)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=3, max_size=8))
def test_runs_of_equal_seeds_are_paired_in_whatever_order_they_come(pairs):
    first, second = np.array(pairs).T
    if any(np.ptp(values) < 1e-3 for values in (first, second, first - second)):
        return
    own, other = (runs(*([value] for value in values)) for values in (first, second))
    made = between(own, other.iloc[::-1], 0.95)
    expected = stats.ttest_rel(first, second)
    assert made.paired and made.unit == PRETRAINING and made.n == (len(pairs), len(pairs))
    assert made.p == pytest.approx(expected.pvalue)
    assert (made.low, made.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert not between(own, other.assign(pretraining_seed=other["pretraining_seed"] + 1), 0.95).paired


def test_what_a_seed_has_in_common_does_not_hide_a_difference():
    own, other = runs([1.0], [5.0], [9.0]), runs([0.9], [4.9], [8.88])
    assert between(own, other, 0.95).p < 0.05 < welch(np.array([1.0, 5.0, 9.0]), np.array([0.9, 4.9, 8.88]), 0.95).p


def test_finetuning_seeds_of_two_checkpoints_are_not_paired_and_are_averaged_on_several():
    single = between(runs([1.0, 2.0, 4.0]), runs([0.0, 2.0, 2.0]), 0.95)
    assert not single.paired and (single.unit, single.n) == (FINETUNING, (3, 3))
    several = between(runs([1.0, 3.0], [2.0, 6.0], [3.0, 4.0]), runs([1.0], [1.0], [2.0]), 0.95)
    assert several.paired and several.unit == PRETRAINING and several.value == pytest.approx(3.5 / 3 + 2 - 1 / 3 - 1.0)


def test_fewer_than_three_seeds_have_neither_interval_nor_test():
    made = between(runs([1.0], [2.0]), runs([3.0], [5.0], [6.0]), 0.95)
    assert isnan(made.low) and isnan(made.p) and made.value == pytest.approx(1.5 - 14 / 3)


GENERATOR = np.random.default_rng(5)


@pytest.mark.parametrize(
    ("values", "differs"),
    [([80.0, 80.1, 79.9, 80.05], False), ([82.0, 82.1, 81.9, 82.05], True), ([78.0, 82.0, 80.5, 79.5], False),
     ([80.0], False)],
)  # fmt: skip
def test_a_difference_from_a_published_number(values, differs):
    assert (p_of_difference(np.array(values), 80.0) < 0.05) == differs


@pytest.mark.nightly
def test_a_published_number_is_one_more_run_and_not_known_without_error():
    """Ten runs tell their own mean well, and one run of others still lies anywhere in their spread."""
    values = GENERATOR.normal(80, 1, size=(400, 11))
    p_values = np.array([p_of_difference(row[:10], float(row[10])) for row in values])
    assert np.mean(p_values < 0.05) < 0.05 + 2 * sqrt(0.05 * 0.95 / 400)


def test_holms_method_is_that_of_statsmodels_among_the_tests_that_have_a_p_value():
    generator = np.random.default_rng(0)
    for size in range(1, 12):
        p_values = generator.uniform(size=size) ** 4
        p_values[generator.uniform(size=size) < 0.2] = np.nan
        tested, expected = ~np.isnan(p_values), np.full(size, np.nan)
        if tested.any():
            expected[tested] = multipletests(p_values[tested], method="holm")[1]
        assert np.array_equal(holm(p_values), expected, equal_nan=True)
