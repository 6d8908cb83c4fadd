"""The study of the plateau: compared at an equal start, by seeds, and silent where it cannot tell."""

import html
import re

import numpy as np
import pandas as pd
import pytest
import yaml

from stages.analysis import plateau, plateau_tests
from stages.plumbing import scales
from stages.report import plateau as told
from tests import toy_plateau

SPREADS = (0.3, 1.0, 3.0)


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield toy_plateau.make(tmp_path_factory.mktemp("run"), monkeypatch, {"pairwise": 0.7})


def runs(effects: dict[str, float], seeds: int = 6, spread: float = 40.0, last: float = 1000.0, seed: int = 0):
    """Runs of operators at three spreads; effects: steps that all runs of an operator take longer."""
    generator = np.random.default_rng(seed)
    rows = [
        ("tiny", f"{operator}_{start}", operator, plateau_tests.SCALED, start, run, 500 + effect + 50 * start + own)
        for operator, effect in effects.items()
        for run in range(seeds)
        for start, own in zip(SPREADS, generator.normal(0, spread) + generator.normal(0, spread, 3), strict=True)
    ]
    frame = pd.DataFrame(rows, columns=[*plateau.ARM, "seed", "step"])
    return frame.assign(reached=frame["step"] < last, step=frame["step"].clip(upper=last), loss=1.5)


def operators(frame: pd.DataFrame) -> pd.DataFrame:
    tests = plateau_tests.tests(frame, 0.95, 0.05).assign(size="tiny")
    return tests[(tests["question"] == "operator") & (tests["place"] == "")].set_index("term")


def said(frame: pd.DataFrame) -> str:
    means = plateau.survival.restricted_means(frame, ["size"], 0.95, "arm")
    return told.answer(plateau_tests.tests(frame, 0.95, 0.05).assign(size="tiny"), means, 0.95)


def test_a_run_of_pretraining_alone_has_a_report_that_answers(reports):
    page = (reports / "report.html").read_text()
    words = html.unescape(re.sub(r"<[^>]+>", " ", page))
    assert "At equal spread of the first scores, a run spends more (+) or fewer (−) of the first" in words
    undecided = r"no difference to original is shown for shared \(.* to .* steps\) and shared without diagonals"
    assert re.search(undecided, words) and re.search(r"on average over 3 spreads \(95% interval\): pairwise −", words)
    assert (
        "With only their own matrices started as in their sources" in words and "With a larger learning rate" in words
    )
    assert "it fine-tunes no model" in words and "fine-tuning seeds by the recipe" not in words
    for name in (
        "plateau_time",
        "plateau_waiting",
        "plateau_probes",
        "plateau_tests",
        "plateau_places",
        "plateau_arms",
    ):
        assert f'id="{name}"' in page
    tests = pd.read_csv(reports / "tables/plateau_tests.csv").set_index(["question", "term"])
    assert tests.loc[("operator", "pairwise"), ["verdict", "seeds", "places"]].tolist() == ["sooner", 5, 3]
    assert set(tests.index.get_level_values("question")) == {"operator", "spread", "source", "rate", "diagonals"}


def test_the_general_figures_draw_operators_as_their_sources_start_them(reports):
    drawn = pd.read_csv(reports / "figures/courtois2024_figure2.csv")
    assert set(drawn.loc[drawn["source"] == "reproduced", "operator"]) == set(toy_plateau.OPERATORS)


def test_without_a_level_or_without_spreads_there_is_no_study():
    rows = pd.DataFrame({"stage": ["pretraining"], "size": ["tiny"], "metric": ["x"], "operator": ["original"]})
    rows = rows.assign(value=1.0)
    for level in (None, 2.7):
        made = plateau.study(rows, ("original",), {}, level, 0.95, 0.05)
        assert all(frame.empty for frame in made.values())
    assert told.answer(made["plateau_tests"], made["plateau_arms"], 0.95) == ""


def test_the_scales_of_the_study_set_its_level_and_no_other_does():
    for name in scales.names():
        level = yaml.safe_load(scales.read(name))["analysis"]["plateau_loss"]
        assert (level is not None) == name.startswith("plateau")


def test_pairs_of_seeds_are_counted_and_not_runs():
    row = operators(runs({"original": 0, "pairwise": -200})).loc["pairwise"]
    assert (row["seeds"], row["runs"], row["places"]) == (6, 18, 3)
    assert row["low"] < -200 < row["high"] < 0 and row["verdict"] == plateau_tests.SOONER


def test_a_comparison_is_made_at_the_spreads_that_both_have():
    frame = runs({"original": 0, "shared": 0})
    frame = frame[(frame["operator"] == "original") | (frame["spread"] == 1.0)]
    assert operators(frame).loc["shared", ["places", "runs", "runs_reference"]].tolist() == [1, 6, 6]


def test_equal_operators_are_told_apart_no_more_often_than_alpha():
    found = []
    for seed in range(30):
        frame = runs({"original": 0, "a": 0, "b": 0}, seed=seed)
        tests = plateau_tests.compared("operator", frame, "operator", "original", "spread", 0.95)
        found.append((plateau_tests.judged(tests, 0.05)["verdict"] != plateau_tests.UNDECIDED).any())
    assert np.mean(found) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 30)


def test_a_run_that_never_leaves_counts_with_the_whole_of_its_length():
    frame = runs({"original": 0, "shared": 0})
    frame.loc[(frame["operator"] == "shared") & (frame["seed"] == 0), ["step", "reached"]] = [1000.0, False]
    row = operators(frame).loc["shared"]
    assert row["never"] == 3 and row["difference"] > 0 and row["verdict"] == plateau_tests.UNDECIDED
    assert re.search(r"no difference to original is shown for shared \([−\d ]+to [−\d]+ steps\), where", said(frame))


def test_the_hazard_ratio_must_agree_where_there_is_one():
    row = operators(runs({"original": 0, "shared": 150})).loc["shared"]
    assert row["verdict"] == plateau_tests.LATER
    against = row.copy()
    against["hazard_p"], against["hazard_p_holm"], against["hazard_ratio"] = 0.01, 0.01, 2.0
    assert plateau_tests.verdict(against, 0.05) == plateau_tests.UNDECIDED
    against["hazard_p"] = np.nan  # no finite answer
    assert plateau_tests.verdict(against, 0.05) == plateau_tests.LATER


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (runs({"original": 0, "shared": 0}, last=520.0), "even in its best arm only"),
        (runs({"original": 0, "shared": 0}, seeds=1), "have no interval"),
        (runs({"original": 0}), "have no interval"),
    ],
    ids=["too short", "one seed", "one operator"],
)
def test_a_study_that_cannot_tell_says_so(frame, reason):
    assert reason in said(frame)
    assert "plateau than" not in said(frame) and "leave within" not in said(frame)


def never(frame: pd.DataFrame, operator: str, spreads: tuple[float, ...] = SPREADS) -> pd.DataFrame:
    """The same runs, but no run of an operator leaves at these spreads."""
    stays = (frame["operator"] == operator) & frame["spread"].isin(spreads)
    return frame.assign(reached=frame["reached"] & ~stays, step=frame["step"].mask(stays, 1000.0))


def test_where_no_run_leaves_runs_are_told_and_no_steps():
    frame = never(runs({"original": 0, "shared": 0}), "shared")
    row = operators(frame).loc["shared"]
    assert row["verdict"] == plateau_tests.LATER and np.isnan(row["detectable"])
    assert "0 of 18 runs with shared leave within 1,000 steps, 18 of 18 with original" in said(frame)
    assert "shown singly at spreads of 0.3, 1 and 3" in said(frame)


def test_where_neither_side_leaves_nothing_is_estimated():
    frame = never(never(runs({"original": 0, "a": 0, "b": -100}), "original"), "a")
    row = operators(frame).loc["a"]
    assert row["verdict"] == plateau_tests.NEITHER and row[["difference", "p", "detectable"]].isna().all()
    assert "no run with a leaves, and none with original" in said(frame)


def test_an_average_says_at_how_many_spreads_any_run_leaves():
    frame = never(never(runs({"original": 0, "shared": 200}), "original", (0.3, 3.0)), "shared", (0.3, 3.0))
    row = operators(frame).loc["shared"]
    assert (row["informative"], row["places"]) == (1, 3)
    places = plateau_tests.tests(frame, 0.95, 0.05)
    [single] = places[(places["question"] == "operator") & (places["place"] == "1")].to_dict("records")
    assert single["difference"] == pytest.approx(3 * row["difference"])


def test_opposite_effects_at_two_spreads_are_not_averaged_away_in_words():
    frame = runs({"original": 0, "shared": 0}, spread=10.0)
    shift = np.select([frame["spread"] == 0.3, frame["spread"] == 1.0], [-400, 100], 0) * (
        frame["operator"] == "shared"
    )
    frame = frame.assign(step=frame["step"] + shift)
    assert "runs with shared leave later at a spread of 1 and sooner at a spread of 0.3 than with original" in said(
        frame
    )
