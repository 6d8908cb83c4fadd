"""The power of a test is that of the library, and the smallest effect is the effect of a stated power."""

import numpy as np
import pytest
from statsmodels.stats.power import TTestIndPower

from stages.evidence import power

SEEDS, ALPHA = 5, 0.05


@pytest.mark.parametrize("effect", [1.0, 2.0])
def test_power_is_that_of_student_s_test_with_the_right_sign(effect):
    found = power.compute_power(effect, np.sqrt(2 / SEEDS), 2 * SEEDS - 2, ALPHA)
    # half the level on the side of the effect
    assert found == pytest.approx(TTestIndPower().power(effect, SEEDS, ALPHA / 2, alternative="larger"))


def test_the_smallest_effect_is_found_with_the_power_that_is_stated():
    least = power.compute_smallest_effect(0.5, 6, ALPHA)
    assert power.compute_power(least, 0.5, 6, ALPHA) == pytest.approx(power.OFTEN)
