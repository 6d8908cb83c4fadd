"""Comparisons of the speed of pre-training over rounds, and of transfer over seeds."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from stages.evidence.fields import TEXTS
from stages.evidence.verdicts import Difference
from stages.files import observations
from tests.toy_evidence import compare

# tokens per second in five rounds, of which the second is slower for all
ORIGINAL = np.array([24000.0, 20000.0, 23000.0, 24500.0, 23500.0])
GAIN = np.array([1.11, 1.14, 1.12, 1.15, 1.13])
# operations per token, as a share of the operations that the machine could do in a second
WORK = {"original": 2e-5, "shared": 1.6e-5, "pairwise": 1.9e-5}
PLACE = ["quantity", "at", "unit_of_inference"]


def observe(rows: list[dict]) -> pd.DataFrame:
    """Makes observations of some of their fields, with the types of a file that is read."""
    frame = pd.DataFrame(rows).reindex(columns=list(observations.COLUMNS))
    return frame.astype({**dict.fromkeys(TEXTS, "str"), **observations.TYPES})


def time_rounds(rates: dict[str, np.ndarray]) -> pd.DataFrame:
    """Makes observations of pre-training from the tokens per second of each operator by round."""
    rows = []
    for operator, values in rates.items():
        for number, rate in enumerate(values, 1):
            place = {"stage": "timing", "operator": operator, "size": "tiny", "condition": f"round={number}"}
            rows.append(place | {"metric": "tokens_per_second", "value": rate})
            rows.append(place | {"metric": "share_of_peak", "value": rate * WORK[operator]})
    return observe(rows)


def test_speeds_are_compared_by_the_ratio_within_a_round_in_per_cent_of_the_original():
    rows = time_rounds({"original": ORIGINAL, "shared": ORIGINAL * GAIN, "pairwise": ORIGINAL / GAIN})
    found = compare(rows=rows).set_index("arm")
    shared = found.loc["shared"]
    assert shared[[*PLACE, "n"]].to_list() == ["speed", "pretraining", "rounds", 5]
    assert shared["estimate"] == pytest.approx(100 * (stats.gmean(GAIN) - 1))
    test = stats.ttest_1samp(np.log(GAIN), 0)
    assert shared["p"] == pytest.approx(test.pvalue)
    alone = 100 * np.expm1(test.confidence_interval(0.95))
    assert shared[["low_unadjusted", "high_unadjusted"]].to_list() == pytest.approx(list(alone))
    together = 100 * np.expm1(test.confidence_interval(0.975))
    assert shared[["low", "high"]].to_list() == pytest.approx(list(together))
    assert found["verdict"].to_dict() == {"shared": Difference.HIGHER, "pairwise": Difference.LOWER}
    assert 0 < shared["detectable"] < 10


def test_two_rounds_have_neither_interval_nor_verdict():
    shared = compare(rows=time_rounds({"original": ORIGINAL[:2], "shared": (ORIGINAL * GAIN)[:2]})).iloc[0]
    assert (shared["verdict"], shared["reason"]) == (Difference.TOO_FEW, "an interval takes 3 rounds")
    assert shared[["low", "low_unadjusted", "p"]].isna().all()


# With its share of the operations, shared may be a quarter faster than the original, and is allowed a tenth more.
@pytest.mark.parametrize(
    ("original", "shared", "busy"),
    [
        ([1.0] * 5, 1.36 * GAIN / GAIN.mean(), False),
        ([1.0] * 5, 1.42 * GAIN / GAIN.mean(), True),
        # much slower in all rounds is no sign
        ([1.0] * 5, 0.3 * GAIN, False),
        # two rounds, one of which was disturbed
        ([1.0, 0.5], [1.15, 1.14], True),
        ([1.0, 1.0, 0.7, 1.0, 1.0], GAIN, False),
        ([1.0, 1.0, 0.6, 1.0, 1.0], GAIN, True),
        ([1.0, 0.6, 0.6, 1.0, 1.0], GAIN, True),
    ],
)
def test_a_machine_is_busy_above_the_allowed_speed_or_in_a_round_far_below_the_usual(original, shared, busy):
    rates = {"original": 24000 * np.array(original), "shared": 24000 * np.array(shared)}
    [shared] = compare(rows=time_rounds(rates)).to_dict("records")
    assert (shared["verdict"] == Difference.BUSY) == busy
    if busy:
        assert "10 % above" in shared["reason"]
        assert "below 67 %" in shared["reason"]


def test_transfer_is_the_mean_on_other_tasks_by_seed_without_the_mismatched_split():
    rows = []
    pairs = {("mnli", "qqp"): 0.6, ("qqp", "mnli_m"): 0.7, ("qqp", "mnli_mm"): 0.0, ("qqp", "qqp"): 1.0}
    shift = {"original": [0.0, 0.01, 0.03], "shared": [0.01, 0.03, 0.08], "pairwise": [-0.2, -0.2, -0.19]}
    for operator, shifts in shift.items():
        for (task, split), value in pairs.items():
            cell = {"operator": operator, "task": task, "evaluated_on": split}
            for seed, added in enumerate(shifts):
                rows.append(cell | {"pretraining_seed": seed, "finetuning_seed": 1, "value": value + added})
    fields = {"stage": "cross_domain", "protocol": "p", "size": "tiny", "metric": "balanced_accuracy"}
    rows = observe(rows).assign(**fields)
    found = compare(rows=rows).set_index("arm")
    shared = found.loc["shared"]
    assert shared[PLACE].to_list() == ["transfer", "elsewhere", "pre-training seeds"]
    difference = 100 * np.subtract(shift["shared"], shift["original"])
    assert shared["estimate"] == pytest.approx(difference.mean())
    assert shared["p"] == pytest.approx(stats.ttest_1samp(difference, 0).pvalue)
    assert set(found["tests"]) == {2}
    # an original above 50 % is something to compare with
    assert not found["at_chance"].any()
    assert set(compare(rows=rows.assign(value=rows["value"] - 0.3))["verdict"]) == {Difference.AT_CHANCE}
