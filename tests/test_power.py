"""The power of a test is the share of simulated runs in which an effect is found."""

import numpy as np
import pytest
from scipy import stats

from stages.evidence import power

RUNS, SEEDS, ALPHA = 2000, 5, 0.05


@pytest.mark.parametrize("effect", [1.0, 2.0])
def test_power_is_the_share_of_runs_in_which_student_s_test_finds_an_effect(effect):
    arms, references = np.random.default_rng(7).normal(size=(2, RUNS, SEEDS))
    tests = stats.ttest_ind(arms + effect, references, axis=1)
    found = (tests.pvalue < ALPHA) & (tests.statistic > 0)
    expected = power.compute_power(effect, np.sqrt(2 / SEEDS), 2 * SEEDS - 2, ALPHA)
    assert found.mean() == pytest.approx(expected, abs=0.03)


def test_the_smallest_effect_is_found_with_the_power_that_is_stated():
    least = power.compute_smallest_effect(0.5, 6, ALPHA)
    assert power.compute_power(least, 0.5, 6, ALPHA) == pytest.approx(power.OFTEN)
