"""Times to an event that some runs never reach."""

from math import isnan, log, nan

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from stages.analysis import contrasts
from stages.evidence import convergence, measurements, power, survival
from stages.evidence.fields import FIELDS
from stages.evidence.verdicts import Difference

END = 1000.0
PLATEAU = [10.0, 8.0, 7.0] + [6.8] * 10
LEAVING = [*PLATEAU, *np.arange(6.5, 3.9, -0.3)]
STUCK = [*PLATEAU, *[6.8] * 9]


def compare(**arms: list[float | None]) -> pd.DataFrame:
    """Compares runs by arm; a number is the step of a run, None is a run without the event before END."""
    rows = []
    for arm, steps in arms.items():
        for seed, step in enumerate(steps):
            reached = step is not None
            rows.append((arm, seed, log(step if reached else END), reached))
    frame = pd.DataFrame(rows, columns=["operator", "pretraining_seed", "value", "reached"])
    frame = frame.assign(quantity="steps", at="loss=3", protocol=None, size="tiny", stage="pretraining")
    frame = frame.assign(finetuning_seed=None, score=nan, most_frequent_high=nan)
    return contrasts.make_contrasts({"reproduced": frame}, 0.95, 0.05).set_index("arm")


def measure_losses(**arms: list[list[float]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Makes observations of the losses of runs by operator, every ten steps, and computes measurements."""
    rows = []
    for operator, runs in arms.items():
        for seed, losses in enumerate(runs):
            for place, value in enumerate(losses, start=1):
                rows.append((operator, seed, f"step={10 * place}", value))
    observed = pd.DataFrame(rows, columns=["operator", "pretraining_seed", "condition", "value"])
    observed = observed.assign(size="tiny", stage="pretraining", metric="validation_loss")
    return observed, measurements.compute_measurements(observed)


@pytest.mark.parametrize(
    ("losses", "step", "reached"),
    [
        ([7.0, 6.0, 5.0, 4.0], 250.0, True),  # between two evaluations
        ([7.0, 5.5, 6.0, 5.0], 200.0, True),  # above the level again
        ([7.0, 6.0, 5.9, 5.6], 400.0, False),
        ([7.0, nan, 5.0, 4.0], 300.0, True),  # nothing known before
    ],
)
def test_a_level_is_crossed_between_the_evaluations_around_the_crossing(losses, step, reached):
    steps = np.array([100, 200, 300, 400])
    assert survival.find_crossing(steps, np.array(losses), 5.5) == (step, reached)
    assert survival.find_crossing(steps, -np.array(losses), -5.5, rising=True) == (
        step,
        reached,
    )


def test_steps_are_compared_by_the_ratio_within_a_seed_in_per_cent_of_the_reference():
    found = compare(original=[500, 520, 540], pairwise=[300, 310, 355]).loc["pairwise"]
    logarithms = np.log(np.array([300, 310, 355]) / np.array([500, 520, 540]))
    interval = stats.ttest_1samp(logarithms, 0).confidence_interval(0.95)
    assert found["estimate"] == pytest.approx(100 * np.expm1(logarithms.mean()))
    assert found[["low", "high"]].tolist() == pytest.approx(list(100 * np.expm1(interval)))
    assert found["verdict"] == Difference.LOWER


@pytest.mark.parametrize("third", [None, 355])
def test_an_arm_with_a_run_that_never_gets_there_has_counts_and_no_interval(third):
    row = compare(original=[500, 520, 540], pairwise=[300, 310, third]).loc["pairwise"]
    assert row[["never", "never_reference"]].tolist() == [int(third is None), 0]
    assert row[["estimate", "low", "p"]].isna().all() == (third is None)
    assert (row["verdict"] == Difference.TOO_FEW) == (third is None)


def test_events_at_one_step_have_no_test():
    assert isnan(compare(original=[500] * 3, shared=[500] * 3).loc["shared", "p"])


def test_intervals_cover_all_arms_together_and_power_is_at_their_level():
    draw = np.random.default_rng(1).normal
    means = {"original": 500, "a": 450, "b": 500, "c": 500}
    frame = compare(**{arm: list(draw(mean, 20, 4)) for arm, mean in means.items()})
    assert set(frame["tests"]) == {3}
    row = frame.loc["a"]
    detectable = np.log1p(row["detectable"] / 100)
    share = power.compute_power(detectable, row["error"], row["freedom"], 0.05 / 3)
    assert share == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("stuck", "verdict"),
    [(0, Difference.HIGHER), (1, Difference.TOO_FEW), (3, Difference.HIGHER)],
)
def test_an_arm_of_which_only_some_runs_leave_the_plateau_has_no_interval_of_the_loss(stuck, verdict):
    ends = {"original": [2.0, 2.1, 2.2], "shared": [3.0, 3.1, 3.21]}
    ends["shared"][3 - stuck :] = [6.0, 6.1, 6.21][3 - stuck :]
    arms = {operator: [[7.0, end] for end in losses] for operator, losses in ends.items()}
    _, measured = measure_losses(**arms)
    losses = convergence.select_final_losses(measured).assign(quantity="loss", at="validation_loss")
    losses = losses.reindex(columns=[*losses.columns, *contrasts.CHANCE])
    [row] = contrasts.make_contrasts({"reproduced": losses}, 0.95, 0.05).to_dict("records")
    assert row["verdict"] == verdict
    assert row["never"] == stuck


def test_a_run_that_some_fine_tuning_seeds_see_arrive_is_known_up_to_the_last_step_of_the_others():
    metric = "steps_to_95_percent"
    rows = pd.DataFrame({"metric": [metric, metric + convergence.NOT_REACHED], "value": [200.0, END]})
    rows = rows.assign(size="tiny", operator="original", pretraining_seed=1).reindex(columns=FIELDS)
    for count, expected in ((2, (END, False)), (1, (200.0, True))):
        found = convergence.collect_events(rows.iloc[:count]).iloc[0]
        assert (found["step"], found["reached"]) == expected


def test_only_an_operator_all_of_whose_runs_get_there_has_a_mean_time():
    runs = pd.DataFrame({"step": [200, 400, 700, END, END], "reached": [True, True, True, False, False]})
    mean, *_, number, never = survival.estimate_mean_time(runs, 0.95)
    assert isnan(mean)
    assert (number, never) == (5, 2)
    assert survival.estimate_mean_time(runs[:3], 0.95)[0] == pytest.approx(1300 / 3)


def test_runs_that_do_not_reach_a_level_are_events_that_never_came():
    observed, measured = measure_losses(original=[LEAVING, STUCK])
    curves = convergence.summarise_curves(observed, measured)
    table = convergence.estimate_milestones(measured, curves, 0.95).set_index("milestone")
    assert isnan(table.loc["loss=5", "mean"])
    assert table.loc["loss=5", ["never", "runs"]].tolist() == [1, 2]
    assert "loss=2" not in table.index
