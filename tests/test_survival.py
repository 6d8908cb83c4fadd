"""Times to an event that some runs never reach."""

from math import isnan

import numpy as np
import pandas as pd
import pytest

from stages.analysis import milestones
from stages.evidence import convergence, measurements, survival

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


def test_one_run_that_never_gets_there_turns_earlier_into_undecided():
    some = events(original=[500, 520, 540], pairwise=[300, 310, None])
    row = survival.compared(some, ["milestone"], 0.95).iloc[0]
    assert row["difference"] > 0 and row["low"] < 0 < row["high"] and row["never"] == 1
    alone = events(original=[500, 520, 540], pairwise=[300, 310])
    assert survival.compared(alone, ["milestone"], 0.95).iloc[0]["high"] < 0  # as if the third had not been run


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
    some = events(original=[500, 520, 540], symmetric=[None, None, None])
    row = survival.compared(some, ["milestone"], 0.95).iloc[0]
    assert row["never"] == 3 and row["p"] == pytest.approx(2 / 20) and isnan(row["low"])
    assert row["p_log_rank"] == pytest.approx(0.1)  # 2 of the 20 ways to divide six runs


def test_p_values_are_adjusted_over_all_arms():
    generator = np.random.default_rng(1)
    arms = {
        name: list(generator.normal(mean, 20, 4))
        for name, mean in zip(("original", "a", "b", "c"), (500, 450, 500, 500), strict=True)
    }
    frame = survival.compared(events(**arms), ["milestone"], 0.95)
    assert len(frame) == 3 and (frame["p_holm"] >= frame["p"]).all()
    assert frame["p_holm"].min() == pytest.approx(3 * frame["p"].min())


def test_log_rank_rejects_equal_arms_no_more_often_than_it_says():
    generator = np.random.default_rng(2)
    p_values = []
    for _ in range(300):
        steps = generator.exponential(600, size=(2, 4))
        arms = [events(x=[s if s < END else None for s in own]) for own in steps]
        p_values.append(survival.log_rank(*arms))
    assert np.nanmean(np.array(p_values) <= 0.05) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 300)


def test_events_at_one_step_order_no_arm_before_another():
    some = events(original=[500, 500], shared=[500, 500])
    assert survival.compared(some, ["milestone"], 0.95).iloc[0]["p_log_rank"] == 1


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


def test_runs_that_do_not_leave_the_plateau_are_events_that_never_came():
    falling = [6.8 - 0.3 * n for n in range(1, 10)]
    rows = losses("original", PLATEAU + falling, PLATEAU + [6.8] * 9)
    measured = measurements.measurements(rows)
    found = convergence.events(measured).set_index(["milestone", "seed"])
    assert found.loc[("plateau_end_step", 0), ["step", "reached"]].tolist() == [100, True]
    assert found.loc[("plateau_end_step", 1), ["step", "reached"]].tolist() == [220, False]
    table = milestones.reached(measured, convergence.curves(rows, measured), 0.95).set_index("milestone")
    assert table.loc["plateau_end_step", ["mean", "never", "runs"]].tolist() == [160, 1, 2]
    assert table.loc["loss=5", "never"] == 1 and "loss=2" not in table.index
