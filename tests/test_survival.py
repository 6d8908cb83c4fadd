"""Times to an event that some runs never reach."""

from math import isnan, nan

import numpy as np
import pandas as pd
import pytest

from stages.analysis import contrasts
from stages.evidence import convergence, measurements, power, survival

END = 1000.0


def events(**arms: list[float | None]) -> pd.DataFrame:
    """A run for every number; None is one that never gets there before END."""
    rows = [
        {"milestone": "loss=3", "operator": arm, "seed": seed, "step": END if step is None else step}
        | {"reached": step is not None}
        for arm, steps in arms.items()
        for seed, step in enumerate(steps)
    ]
    return pd.DataFrame(rows)


def compared(**arms: list[float | None]) -> pd.DataFrame:
    """The contrasts of these runs, by arm."""
    frame = events(**arms).rename(columns={"milestone": "at", "seed": "pretraining_seed", "step": "value"})
    frame = frame.assign(quantity="steps", protocol=None, size="tiny", stage="pretraining", finetuning_seed=None)
    frame = frame.assign(score=nan, most_frequent_high=nan)
    return contrasts.table({"reproduced": frame}, 0.95, 0.05).set_index("arm")


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([7.0, 6.0, 5.0, 4.0], (250.0, True)),  # half way between the evaluations at 200 and 300
        ([7.0, 5.5, 6.0, 5.0], (200.0, True)),  # at the level, and above it again
        ([7.0, 6.0, 5.9, 5.6], (400.0, False)),
        ([5.0, 4.0, 3.0, 2.0], (100.0, True)),
        ([7.0, nan, 5.0, 4.0], (300.0, True)),  # nothing is known before
    ],
)
def test_a_level_is_crossed_between_the_evaluations_around_it(losses, expected):
    assert survival.crossing(pd.Series([100, 200, 300, 400]), pd.Series(losses), 5.5) == expected


def test_one_run_that_never_gets_there_turns_earlier_into_undecided():
    row = compared(original=[500, 520, 540], pairwise=[300, 310, None]).loc["pairwise"]
    assert row["estimate"] > 0 and row["low"] < 0 < row["high"] and row["never"] == 1
    alone = compared(original=[500, 520, 540], pairwise=[300, 310, 355]).loc["pairwise"]
    assert alone["high"] < 0 and alone["direction"] == "lower"


def test_a_run_that_some_fine_tuning_seeds_see_arrive_is_known_up_to_the_last_step_of_the_others():
    metric = next(iter(convergence.MILESTONES))
    shared = {"size": "tiny", "operator": "original", "condition": None, "pretraining_seed": 1}
    rows = pd.DataFrame(
        [
            shared | {"metric": metric, "value": 200.0},
            shared | {"metric": metric + convergence.NOT_REACHED, "value": END},
        ]
    )
    found = convergence.events(rows).iloc[0]
    assert (found["step"], found["reached"]) == (END, False)
    assert convergence.events(rows.iloc[:1]).iloc[0][["step", "reached"]].tolist() == [200.0, True]


def test_the_restricted_mean_is_the_area_under_the_curve_of_kaplan_and_meier():
    some = events(original=[200, 400, 700, None, None])
    mean = survival.restricted_means(some, ["milestone"], 0.95).iloc[0]
    curve = survival.curves(some, ["milestone", "operator"])
    widths = np.diff([*curve["step"], END])
    assert mean["mean"] == pytest.approx((widths * curve["waiting"]).sum()) == (200 + 400 + 700 + 2 * END) / 5
    assert (mean["never"], mean["runs"], mean["horizon"]) == (2, 5, END)
    assert curve["at_risk"].tolist() == [5, 5, 4, 3]


def test_an_arm_that_never_gets_there_has_a_mean_and_an_exact_test_and_no_interval():
    row = compared(original=[500, 520, 540], symmetric=[None, None, None]).loc["symmetric"]
    assert row["never"] == 3 and row["p"] == pytest.approx(2 / 20) and isnan(row["low"]) and not row["paired"]


def test_p_values_are_adjusted_over_all_arms_and_power_is_that_of_the_first_step():
    generator = np.random.default_rng(1)
    arms = {
        name: list(generator.normal(mean, 20, 4))
        for name, mean in zip(("original", "a", "b", "c"), (500, 450, 500, 500), strict=True)
    }
    frame = compared(**arms)
    assert set(frame["tests"]) == {3} and (frame["p_holm"] >= frame["p"]).all()
    assert frame["p_holm"].min() == pytest.approx(3 * frame["p"].min())
    row = frame.loc["a"]
    share = power.direction(row["detectable"], row["error"], row["freedom"], 0.05 / 3)
    assert share == pytest.approx(0.8)


def test_events_at_one_step_have_no_test():
    assert isnan(compared(original=[500] * 3, shared=[500] * 3).loc["shared", "p"])


def losses(operator: str, *runs: list[float], every: int = 10) -> pd.DataFrame:
    rows = [
        {"stage": "pretraining", "operator": operator, "size": "tiny", "metric": "validation_loss"}
        | {"condition": f"step={every * (place + 1)}", "pretraining_seed": seed, "value": value}
        for seed, run in enumerate(runs)
        for place, value in enumerate(run)
    ]
    return pd.DataFrame(rows)


PLATEAU = [10.0, 8.0, 7.0] + [6.8] * 10


def test_a_plateau_is_told_by_its_shape_and_not_by_a_step():
    falling = [6.8 - 0.3 * n for n in range(1, 10)]
    loss = np.array(PLATEAU + falling)
    for every in (1, 250, 10_000):
        step = every * np.arange(1, len(loss) + 1)
        start, end = convergence.plateau(step, loss)
        assert start < end and (start / every, end / every) == (4, 10)
    stuck = np.array(PLATEAU + [6.8] * 9)
    assert convergence.plateau(np.arange(len(stuck)), stuck)[1] is None
    assert convergence.plateau(np.arange(20), np.linspace(10, 1, 20)) is None  # falls all the time
    assert convergence.plateau(np.arange(5), loss[:5]) is None


def test_a_run_whose_loss_never_gets_below_the_level_of_the_plateau_is_censored_at_its_last_step():
    measured = measurements.measurements(losses("shared", list(np.linspace(12, 6, 20))))  # falls fast to its end
    (run,) = convergence.selected(measured, {"metric": "plateau_end_step", "operator": "shared"}).itertuples()
    assert run.value == 200 and not run.reached


def test_runs_that_do_not_leave_the_plateau_are_events_that_never_came():
    falling = [6.8 - 0.3 * n for n in range(1, 10)]
    rows = losses("original", PLATEAU + falling, PLATEAU + [6.8] * 9)
    measured = measurements.measurements(rows)
    found = convergence.events(measured).set_index(["milestone", "pretraining_seed"])
    assert found.loc[("plateau_end_step", 0), ["step", "reached"]].tolist() == [100, True]
    assert found.loc[("plateau_end_step", 1), ["step", "reached"]].tolist() == [220, False]
    table = convergence.milestones(measured, convergence.curves(rows, measured), 0.95).set_index("milestone")
    assert table.loc["plateau_end_step", ["mean", "never", "runs"]].tolist() == [160, 1, 2]
    assert table.loc["loss=5", "never"] == 1 and "loss=2" not in table.index
