"""The study of the plateau: compared at an equal start, by seeds, and silent where it cannot tell."""

import html
import re
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from stages.plumbing import observations, scales
from stages.plumbing.observations import Observation
from stages.studies.plateau import comparisons, study
from tests.toy_report import ROOT

SPREADS = (0.3, 1.0, 3.0)
OPERATORS = {"original": 0.24, "pairwise": 1.2, "shared": 0.2, "tied_qkv": 0.2}  # spread as the source starts it
END, LAST, SEEDS = 1000.0, 1000, range(11, 19)


def arms() -> dict[str, tuple[str, float, float]]:
    """Name: operator, spread, and the step at which a run of it leaves the plateau, sooner by 30 % for pairwise."""
    made = {"pairwise_fast": ("pairwise", OPERATORS["pairwise"], 450.0)}
    for operator, own in OPERATORS.items():
        sooner = 0.7 if operator == "pairwise" else 1.0
        named = {operator: own} | {f"{operator}_{spread:g}".replace(".", "p"): spread for spread in SPREADS}
        made |= {name: (operator, start, sooner * (500 + 500 * abs(np.log10(start)))) for name, start in named.items()}
    return made


def observed() -> dict[str, list[Observation]]:
    """By file: losses and probes of every arm and seed, and what is counted of the arms."""
    generator = np.random.default_rng(0)
    made = {"parameters": []}
    for name, (_, spread, mean) in arms().items():
        own = {"operator": name, "size": "tiny"}
        made["parameters"] += [Observation(stage="parameters", metric="first_score_spread", value=spread, **own)]
        rows = made[f"pretraining-{name}-tiny"] = []
        for seed in SEEDS:
            leaves = mean + generator.normal(0, 40)
            for step in range(25, LAST + 1, 25):
                loss = 1.5 + 2.5 / (1 + np.exp((step - leaves) / 20))
                values = {"validation_loss": loss, "score_spread": spread + step / LAST, "movement_query": step / LAST}
                place = own | {"condition": f"step={step}", "pretraining_seed": seed}
                rows += [
                    Observation(stage="pretraining", metric=metric, value=float(value), **place)
                    for metric, value in values.items()
                ]
    return made


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("data/released", "reports/templates"):
        shutil.copytree(ROOT / name, name)
    params = yaml.safe_load(scales.read("plateau")) | {"operators": [*arms()]}
    (tmp_path / "study").mkdir()
    (tmp_path / "study/params.yaml").write_text(yaml.safe_dump(params))
    for name, rows in observed().items():
        observations.write(tmp_path / "study/observations" / f"{name}.csv", rows)
    return tmp_path / "study"


def test_a_folder_of_observations_becomes_tables_figures_and_a_page_that_answers(folder):
    study.main(folder)
    page = (folder / "report.html").read_text()
    words = " ".join(html.unescape(re.sub(r"<svg.*?</svg>|<[^>]+>", " ", page, flags=re.DOTALL)).split())
    assert "Runs with pairwise leave sooner than runs with original: −" in words and "mean over 3 spreads" in words
    assert "Undecided between shared and original" in words
    assert "With eight seeds the sign-flip test has no p below 0.008" in words
    assert "cannot decide a question of more than six comparisons" in words
    assert "No comparison at a single spread or a single operator can be decided" in words
    assert "pairwise leaves its plateau at step 11,500 and original at 26,000" in words
    for kind, name in (("figures", "time"), ("figures", "waiting"), ("figures", "probes"), ("tables", "arms")):
        assert (folder / kind / f"plateau_{name}.csv").exists() and f'id="plateau_{name}"' in page
    tests = pd.read_csv(folder / "tables/plateau_tests.csv").set_index(["question", "term"])
    assert tests.loc[("operator", "pairwise"), ["verdict", "seeds", "places"]].tolist() == ["sooner", 8, 3]
    assert set(tests.index.get_level_values("question")) == set(study.OPENINGS)
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    study.main(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before


@pytest.mark.parametrize(
    ("change", "message"),
    [({"operators": ["original"]}, "none is a variant with"), ({"sizes": ["tiny", "deep"]}, "has one")],
)
def test_settings_without_a_study_are_one_clear_error(folder, change, message):
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        study.main(folder)


@pytest.mark.parametrize("example", ["plateau", "plateau_deep"])
def test_the_tables_of_the_examples_follow_from_their_observations(example, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(study.figures, "drawings", lambda *frames: [])
    for name in ("params.yaml", "observations"):
        (tmp_path / name).symlink_to(ROOT / "reports/examples" / example / name)
    study.main(tmp_path)
    for name in ("tests", "places", "arms"):
        own, there = (base / f"tables/plateau_{name}.csv" for base in (tmp_path, ROOT / "reports/examples" / example))
        assert own.read_bytes() == there.read_bytes()


@pytest.mark.parametrize("example", ["plateau", "plateau_deep"])
def test_the_remark_of_an_example_is_that_of_its_scale(example):
    params = yaml.safe_load((ROOT / "reports/examples" / example / "params.yaml").read_text())
    assert params["report"]["remark"] == yaml.safe_load(scales.read(example))["report"]["remark"]


def runs(effects: dict[str, float], seeds: int = 8, spread: float = 40.0, last: float = END, seed: int = 0):
    """Runs of operators at three spreads; effects: steps that all runs of an operator take longer."""
    generator = np.random.default_rng(seed)
    rows = [
        ("tiny", f"{operator}_{start}", operator, comparisons.SCALED, start, run, 500 + effect + 50 * start + own)
        for operator, effect in effects.items()
        for run in range(seeds)
        for start, own in zip(SPREADS, generator.normal(0, spread) + generator.normal(0, spread, 3), strict=True)
    ]
    frame = pd.DataFrame(rows, columns=[*study.ARM, "seed", "step"])
    return frame.assign(reached=frame["step"] < last, step=frame["step"].clip(upper=last), loss=1.5)


def operators(frame: pd.DataFrame) -> pd.DataFrame:
    tests = comparisons.tests(frame, 0.95, 0.05).assign(size="tiny")
    return tests[(tests["question"] == "operator") & (tests["place"] == "")].set_index("term")


def test_pairs_of_seeds_are_counted_and_not_runs():
    row = operators(runs({"original": 0, "pairwise": -200})).loc["pairwise"]
    assert (row["seeds"], row["runs"], row["places"]) == (8, 24, 3)
    assert row["low"] < -200 < row["high"] < 0 and row["verdict"] == comparisons.SOONER


def test_a_comparison_is_made_at_the_spreads_that_both_have():
    frame = runs({"original": 0, "shared": 0})
    frame = frame[(frame["operator"] == "original") | (frame["spread"] == 1.0)]
    assert operators(frame).loc["shared", ["places", "runs", "runs_reference"]].tolist() == [1, 8, 8]


def test_equal_operators_are_told_apart_no_more_often_than_alpha():
    found = []
    for seed in range(30):
        frame = runs({"original": 0, "a": 0, "b": 0}, seed=seed)
        tests = comparisons.compared("operator", frame, "operator", "original", "spread", 0.95)
        found.append((comparisons.judged(tests, 0.05)["verdict"] != comparisons.UNDECIDED).any())
    assert np.mean(found) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 30)


def test_a_run_that_never_leaves_counts_with_the_whole_of_its_length():
    frame = runs({"original": 0, "shared": 0})
    frame.loc[(frame["operator"] == "shared") & (frame["seed"] == 0), ["step", "reached"]] = [1000.0, False]
    row = operators(frame).loc["shared"]
    assert row["never"] == 3 and row["difference"] > 0 and row["verdict"] == comparisons.UNDECIDED


def test_a_verdict_needs_the_t_test_and_the_sign_flip_test():
    row = operators(runs({"original": 0, "shared": 150})).loc["shared"]
    assert row["verdict"] == comparisons.LATER
    for p in ("p_holm", "flip_p_holm"):
        for no_evidence in (0.05, np.nan):
            against = row.copy()
            against[p] = no_evidence
            assert comparisons.verdict(against, 0.05) == comparisons.UNDECIDED


@pytest.mark.parametrize(
    ("seeds", "members", "decided"), [(5, 1, False), (6, 1, True), (6, 2, False), (8, 6, True), (8, 7, False)]
)
def test_few_seeds_decide_only_small_families_however_large_the_differences(seeds, members, decided):
    frame = runs({"original": 0} | {f"operator_{number}": -300 for number in range(members)}, seeds=seeds)
    rows = operators(frame)
    assert len(rows) == members and (rows["p_holm"] < 0.05).all()
    assert rows["flip_p_holm"].tolist() == pytest.approx([members * 2 / 2**seeds] * members)
    assert (rows["verdict"] == (comparisons.SOONER if decided else comparisons.UNDECIDED)).all()
    assert rows["detectable"].notna().all() == decided


@pytest.mark.parametrize("seeds", [2, 3, 6, 8])
def test_the_sign_flip_test_is_the_exact_one_of_scipy(seeds):
    generator = np.random.default_rng(seeds)
    for shift in (0.0, 0.5, 3.0):
        # Evaluations lie 25 steps apart, so that differences may be zero or equal.
        differences = 25 * np.round(generator.normal(shift, 1, seeds) * 2)
        samples = (differences, np.zeros(seeds))
        exact = stats.permutation_test(
            samples,
            lambda first, second, axis: np.mean(first - second, axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=np.inf,
        )
        assert comparisons.sign_flip_p(differences) == pytest.approx(exact.pvalue)


def test_the_sign_flip_test_counts_assignments_that_are_equal_but_for_rounding():
    differences = np.array([0.1, 0.2, 0.3, -0.3])
    # In tenths, the data sum to 3. The 16 sums are ±9, ±7, ±5, ±3, and twice each ±3 and ±1: 12 are 3 or more from 0.
    assert comparisons.sign_flip_p(differences) == 12 / 16
    assert comparisons.sign_flip_p(np.array([0.1, 0.2, -0.3])) == 1


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
    means = study.survival.restricted_means(frame, ["size"], 0.95, "arm")
    assert reason in study.why_undecided(means, comparisons.tests(frame, 0.95, 0.05))


def never(frame: pd.DataFrame, operator: str, spreads: tuple[float, ...] = SPREADS) -> pd.DataFrame:
    """The same runs, but no run of an operator leaves at these spreads."""
    stays = (frame["operator"] == operator) & frame["spread"].isin(spreads)
    return frame.assign(reached=frame["reached"] & ~stays, step=frame["step"].mask(stays, 1000.0))


def test_where_no_run_leaves_runs_are_told_and_no_steps():
    frame = never(runs({"original": 0, "shared": 0}), "shared")
    row = operators(frame).loc["shared"]
    assert row["verdict"] == comparisons.LATER and np.isnan(row["detectable"])
    [answer] = study.answers(comparisons.tests(frame, 0.95, 0.05))["operator"]
    assert answer["singly"] == {"later": ["0.3", "1", "3"]}


def test_where_neither_side_leaves_nothing_is_estimated():
    frame = never(never(runs({"original": 0, "a": 0, "b": -100}), "original"), "a")
    row = operators(frame).loc["a"]
    assert row["verdict"] == comparisons.NEITHER and row[["difference", "p", "detectable"]].isna().all()


def test_an_average_is_over_the_spreads_at_which_a_tenth_of_all_runs_leaves():
    frame = never(never(runs({"original": 0, "shared": 200}), "original", (0.3, 3.0)), "shared", (0.3, 3.0))
    frame = frame.assign(loss=np.random.default_rng(1).normal(1.5, 0.2, len(frame)))
    row = operators(frame).loc["shared"]
    assert (row["informative"], row["places"]) == (1, 3)
    tests = comparisons.tests(frame, 0.95, 0.05)
    [single] = tests[(tests["question"] == "operator") & (tests["place"] == "1")].to_dict("records")
    for number in ("difference", "low", "high", "p", "flip_p", "loss_difference", "loss_low", "loss_p"):
        assert row[number] == pytest.approx(single[number])


def test_where_less_than_a_tenth_of_all_runs_leaves_nothing_is_compared():
    frame = never(runs({"original": 0, "shared": 200}), "original")
    frame = never(frame, "shared", (0.3, 3.0))
    few = (frame["operator"] == "shared") & (frame["spread"] == 1.0) & (frame["seed"] > 0)
    frame = frame.assign(reached=frame["reached"] & ~few, step=frame["step"].mask(few, 1000.0))
    row = operators(frame).loc["shared"]  # 1 of 16 runs leaves
    assert (row["informative"], row["places"], row["verdict"]) == (0, 3, comparisons.UNDECIDED)
    assert row[["difference", "low", "p", "flip_p", "detectable", "loss_difference"]].isna().all()


def test_opposite_effects_at_two_spreads_are_not_averaged_away_in_words():
    frame = runs({"original": 0, "shared": 0}, spread=10.0)
    shift = np.select([frame["spread"] == 0.3, frame["spread"] == 1.0], [-400, 100], 0) * (
        frame["operator"] == "shared"
    )
    frame = frame.assign(step=frame["step"] + shift)
    [answer] = study.answers(comparisons.tests(frame, 0.95, 0.05))["operator"]
    assert answer["singly"] == {"later": ["1"], "sooner": ["0.3"]}
