"""Published and released numbers, and the quantities and comparisons that follow from the numbers."""

import shutil
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from itertools import product
from math import nan
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from stages.analysis import contrasts
from stages.evidence import (
    cell_verdicts,
    convergence,
    derived,
    measurements,
    power,
    published,
    released,
    scores,
    specifications,
)
from stages.evidence.fields import select_rows
from stages.evidence.statistics import summarise_cell
from stages.evidence.verdicts import Difference, Statement, judge_difference
from tests.places import ROOT
from tests.toy_evidence import compare, fill_table, make_baselines, make_row

TABLES = specifications.load()
TABLE3 = published.read_table("courtois2024_table3_glue")
CELLS = pd.read_csv(published.FOLDER / "INDEX.csv").set_index("file")["cells"]
CELLS.index = CELLS.index.str.removesuffix(".csv")
SEEDS = {"pretraining_seed": 1, "finetuning_seed": 1}


def edit_line(number: int, old: str, new: str) -> Callable[[str], str]:
    """An edit of the line of this number, from 0."""

    def edit(text: str) -> str:
        lines = text.splitlines(keepends=True)
        assert old in lines[number]
        lines[number] = lines[number].replace(old, new)
        return "".join(lines)

    return edit


BY_HAND = {
    "a column has another name": ("published/courtois2024_table3_glue.csv", edit_line(0, "value", "number")),
    "a word for a number": ("published/courtois2024_table3_glue.csv", edit_line(2, "81.04", "high")),
    "a cell that comes twice": ("published/courtois2024_table3_glue.csv", edit_line(2, "mrpc", "glue_score")),
    "a row that is missing": (
        "released/courtois2024_glue_by_seed.csv",
        lambda text: "".join(text.splitlines(keepends=True)[:-1]),
    ),
    "a file that is cut": ("released/courtois2024_pretraining_loss.csv", lambda text: text[: len(text) // 2]),
    "an operator that nobody released": ("released/courtois2024_glue_by_seed.csv", edit_line(1, "original", "mine")),
    "a claim without an identifier": ("published/claims.yaml", lambda text: text.replace("- id:", "- name:", 1)),
    "points that nobody left open": ("published/protocol.yaml", lambda text: text.replace("unspecified:", "open:")),
    "a number that no table has": ("published/claimed.yaml", lambda text: text.replace("base.pairwise", "base.mine")),
}


@pytest.mark.parametrize(("name", "edit"), BY_HAND.values(), ids=BY_HAND)
def test_a_mistake_in_published_or_released_data_is_one_error_that_names_the_file(name, edit, tmp_path, monkeypatch):
    for folder in ("published", "released"):
        shutil.copytree(ROOT / "data" / folder, tmp_path / "data" / folder)
    path = tmp_path / "data" / name
    path.write_text(edit(path.read_text()))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=rf"^data/{name}[:,] .*correct|^data/{name}: .*restore"):
        published.read_table("courtois2024_table3_glue")
        released.read_observations()
        published.read_claims()
        published.read_protocol()
        published.read_claimed()


@pytest.fixture(scope="module")
def raw() -> pd.DataFrame:
    return measurements.compute_measurements(released.read_glue())


def format_printed(value: float) -> str:
    """Rounds as the paper does: 79.355 gives 79.36."""
    return str(Decimal(repr(value)).quantize(Decimal("0.01"), ROUND_HALF_UP))


def test_table_3_follows_from_the_released_results_to_the_last_digit(raw):
    assert len(TABLE3) == 60
    assert TABLE3["std"].notna().sum() == 6
    groups = raw[raw["metric"] == "score"].groupby(["size", "operator", "evaluated_on"])
    for cell in TABLE3.itertuples():
        size, operator = cell.row_key.split(".")
        runs = groups.get_group((size, operator, cell.column_key))
        summary = summarise_cell(runs.assign(value=100 * runs["value"]), 0.95)
        expected = format_printed(summary.mean)
        if cell.column_key == scores.GLUE_SCORE:
            expected += f" ({format_printed(summary.sd)})"
        assert summary.n == 5
        assert cell.printed == expected


@pytest.mark.parametrize("name", CELLS.index)
def test_every_published_cell_has_its_place_in_a_table(name):
    paper = published.read_table(name)
    assert len(paper) == CELLS[name]
    assert not paper.duplicated(["row_key", "column_key"]).any()
    table = fill_table(name, [])
    assert table["printed"].notna().sum() == len(paper)
    # an empty verdict is no missing verdict
    assert table["verdict"].notna().all()
    entries = TABLES[name].cells or {}
    assert set(entries) <= set(paper["row_key"] + " / " + paper["column_key"])


def test_every_published_table_is_specified_and_no_other():
    assert set(TABLES) == set(CELLS.index)


def test_released_losses_have_one_value_every_250_steps_and_end_as_section_4_1_says():
    losses = convergence.select_validation_loss(released.read_validation_loss())
    for _, run in losses.groupby(["size", "operator"]):
        assert list(run["step"]) == list(range(250, 200_001, 250))
    last = losses[(losses["step"] == 200_000) & (losses["size"] == "base")].set_index("operator")["value"]
    # of two evaluations at the last step, the first
    assert last["original"] == pytest.approx(1.683324, abs=1e-6)
    assert last["symmetric"] - last["original"] == pytest.approx(0.1, abs=0.02)
    assert abs(last["pairwise"] - last["original"]) < 0.02


def test_the_released_checkpoints_reach_95_percent_between_the_checkpoints_that_are_interpolated():
    rows = released.read_checkpoints()
    measured = measurements.compute_measurements(rows)
    reached = convergence.estimate_milestones(measured, convergence.summarise_curves(rows, measured), 0.95)
    reached = reached[reached["milestone"] == "steps_to_95_percent"].set_index("operator")
    for operator, step, after, before in (
        ("original", 65_507, 50_000, 75_000),
        ("pairwise", 32_793, 30_000, 35_000),
    ):
        assert reached.loc[operator, "mean"] == pytest.approx(step, abs=20)
        assert tuple(reached.loc[operator, ["after", "before"]]) == (after, before)


@pytest.mark.parametrize(
    ("steps", "bracket"),
    [([150, 260], (100, 300)), ([200], (100, 200)), ([100], (0, 100))],
)
def test_a_milestone_lies_between_the_evaluations_around_all_its_runs(steps, bracket):
    assert convergence.find_bracket(np.array([100, 200, 300, 400]), np.array(steps, float)) == bracket


@pytest.mark.parametrize(("evaluations", "late"), [(17, []), (18, [13.5])])
def test_the_late_loss_is_the_mean_of_ten_evaluations_that_all_lie_in_the_second_half(evaluations, late):
    rows = []
    for step in range(1, evaluations + 1):
        rows.append(make_row(stage="pretraining", metric="validation_loss", condition=f"step={step}", value=step))
    measured = convergence.measure_losses(pd.DataFrame(rows).assign(pretraining_seed=1))
    assert measured.loc[measured["metric"] == "late_loss", "value"].to_list() == late


# Comparisons of two arms


def score_runs(
    value: Callable,
    operators: str,
    seeds: int,
    columns: tuple[str, ...] = (scores.GLUE_SCORE,),
) -> pd.DataFrame:
    """Makes scores of the original and of other operators; `value` takes column, operator and seed."""
    rows = []
    for column, operator, seed in product(columns, ("original", *operators), range(seeds)):
        run = make_row(
            operator=operator,
            evaluated_on=column,
            metric="score",
            pretraining_seed=seed,
            finetuning_seed=1,
        )
        rows.append(run | {"value": value(column, operator, seed)})
    return pd.DataFrame(rows)


def test_the_verdict_is_the_interval():
    draw = np.random.default_rng(1).normal
    effects = {"a": 0, "b": 0.005, "c": 0.01, "d": 0.02, "e": -0.02}
    frame = compare(score_runs(lambda _, arm, seed: draw(effects.get(arm, 0), 0.005), "abcde", 5))
    words = [judge_difference(*ends) for ends in frame[["low", "high"]].to_numpy()]
    assert frame["verdict"].tolist() == words
    assert {Difference.HIGHER, Difference.LOWER, Difference.NOT_SIGNIFICANT} <= set(words)
    assert (frame["low"] < frame["low_unadjusted"]).all()
    assert frame["p_flips"].isna().all()


def test_from_six_seeds_on_sign_flips_check_the_interval_and_a_disagreement_is_said():
    # One far seed widens the t interval beyond zero, but all six differences have the same sign.
    shift = {"original": [0.0] * 6, "a": [0.01, 0.011, 0.012, 0.01, 0.011, 0.2]}
    rows = score_runs(lambda _, arm, seed: 0.5 + 0.01 * seed + shift[arm][seed], "a", 6)
    [row] = compare(rows).to_dict("records")
    assert row["verdict"] == Difference.NOT_SIGNIFICANT
    assert row["p_flips"] == pytest.approx(2 / 64)
    assert "joint sign flips disagree (p = 0.031)" in row["reason"]


def test_a_further_pair_is_compared_by_seed_and_counts_in_the_family():
    slopes = {"original": 1, "a": 2, "b": 3.5}
    rows = score_runs(lambda _, arm, seed: 0.6 + 0.01 * seed**2 * slopes[arm], "ab", 4)
    frame = compare(rows, pairs=(("b", "a"), (("b", "a"), ("a", "original"))))
    values = 100 * rows.pivot(index="pretraining_seed", columns="operator", values="value")
    [plain] = frame[frame["reference"] == "a"].to_dict("records")
    assert plain["paired"]
    assert plain["estimate"] == pytest.approx((values["b"] - values["a"]).mean())
    assert plain["p"] == pytest.approx(stats.ttest_rel(values["b"], values["a"]).pvalue)
    [interaction] = frame[frame["arm"] == "b - a"].to_dict("records")
    assert interaction["reference"] == "a - original"
    assert interaction["n"] == 4
    assert interaction["estimate"] == pytest.approx((values["b"] - 2 * values["a"] + values["original"]).mean())
    assert frame["tests"].tolist() == [4, 4, 4, 4]


def test_differences_of_single_checkpoints_are_not_compared():
    rows = score_runs(lambda _, arm, seed: 0.6 + 0.01 * seed ** len(arm), "ab", 4)
    rows = rows.assign(finetuning_seed=rows["pretraining_seed"], pretraining_seed=1)
    assert compare(rows, pairs=((("b", "a"), ("a", "original")),))["arm"].tolist() == ["a", "b"]


def test_a_pair_without_runs_is_left_out():
    rows = score_runs(lambda _, arm, seed: 0.6 + 0.01 * seed, "a", 3)
    assert len(compare(rows, pairs=(("a", "symmetric"), (("a", "original"), ("b", "original"))))) == 1


def test_every_column_of_the_contrasts_is_described(raw):
    columns = list(contrasts.describe_columns()["column"])
    assert list(compare(raw.iloc[:0])) == columns == list(compare(raw, source="released"))


def test_a_family_counts_all_columns_and_their_spread_gives_the_detectable_effect():
    draw = np.random.default_rng(0).normal
    rows = score_runs(
        lambda column, *_: 0.6 + (column != "cola") * draw(0, 0.01),
        "a",
        4,
        ("cola", "mrpc", "rte"),
    )
    frame = compare(rows).set_index("at")
    assert (frame["tests"] == 3).all()
    assert list(frame.index[frame["p"].isna()]) == ["cola"]
    values = rows.pivot(index=["evaluated_on", "pretraining_seed"], columns="operator", values="value")
    error = 100 * (values["a"] - values["original"])["mrpc"].std() / np.sqrt(4)
    assert frame.loc["mrpc", "detectable"] == pytest.approx(power.compute_smallest_effect(error, 3, 0.05 / 3))


# Quantities, and the cells that they fill


def test_combined_columns_are_means_of_their_metrics():
    metrics = {
        ("mrpc", "accuracy"): 0.6,
        ("mrpc", "f1"): 0.8,
        ("stsb", "pearson"): 0.1,
        ("stsb", "spearmanr"): 0.3,
        ("rte", "accuracy"): 0.5,
        ("rte", "f1"): 0.9,
    }
    rows = [make_row(evaluated_on=task, metric=metric, value=v, **SEEDS) for (task, metric), v in metrics.items()]
    made = scores.compute_column_scores(pd.DataFrame(rows))
    assert made.set_index("evaluated_on")["value"].to_dict() == pytest.approx({"mrpc": 0.7, "stsb": 0.2, "rte": 0.5})
    assert scores.compute_mean_scores(made).empty


def test_mrpc_and_qqp_are_accuracies_by_the_recipe_of_kowsher():
    metrics = {"accuracy": 0.6, "f1": 0.8}
    rows = [
        make_row(protocol="kowsher2025", evaluated_on=task, metric=metric, value=value, **SEEDS)
        for task, (metric, value) in product(("mrpc", "qqp"), metrics.items())
    ]
    assert scores.compute_column_scores(pd.DataFrame(rows))["value"].tolist() == [0.6, 0.6]


@pytest.mark.parametrize(
    ("fields", "chosen"),
    [
        ({}, [0, 1, 2]),
        ({"task": "rte"}, [0]),
        ({"task": ["rte", "cola"], "reached": True}, [0, 1]),
        ({"task": None}, [2]),
        ({"value": 0.5, "task": None}, []),
    ],
)
def test_rows_are_selected_by_a_value_a_list_or_a_missing_field(fields, chosen):
    rows = pd.DataFrame({"task": ["rte", "cola", None], "reached": [True, True, False], "value": [0.5, 1.0, 2.0]})
    assert select_rows(rows, **fields).index.tolist() == chosen
    assert select_rows(pd.DataFrame(), **fields).empty


def test_the_mixed_saving_compares_the_classifier_of_shared_with_the_masked_lm_model_of_original():
    """Kowsher et al. print this saving."""
    place = {"stage": "parameters", "protocol": None, "size": "base"}
    model = make_row(**place, metric="masked_lm_parameters", value=109514298)
    classifier = make_row(**place, metric="classifier_parameters", operator="shared", value=95337218)
    mixed = select_rows(derived.compute_savings(pd.DataFrame([model, classifier])), metric="mixed_saved_percent")
    assert mixed["value"].round(3).tolist() == [12.945]


def test_questions_of_one_set_have_no_mean_of_both():
    run = make_row(stage="question_answering", task="squad1", metric="f1", value=0.5, **SEEDS)
    assert derived.select_question_answering(pd.DataFrame([run]))["evaluated_on"].tolist() == ["squad1"]


def test_rows_outside_the_paper_follow_the_papers_rows():
    run = [
        make_row(metric="score", evaluated_on="rte", operator=name, value=0.5, **SEEDS)
        for name in ("shared", "original")
    ]
    table = fill_table("courtois2024_table3_glue", run).set_index(["row_key", "column_key"])
    assert list(table.index.unique("row_key"))[6:] == ["tiny.shared", "tiny.original"]
    own = table.loc["tiny.shared"]
    assert own.loc["rte", "reproduced"] == 50.0
    assert own.loc["qqp", "status"] == Difference.NOT_RUN
    assert own["printed"].isna().all()


@pytest.mark.parametrize(
    ("pattern", "key", "fields"),
    [
        ("{size}.{operator}", "base.shared", {"size": "base", "operator": "shared"}),
        ("noise_{level}", "noise_15", {"level": "15"}),
        ("{size}.{operator}", "base", None),
    ],
)
def test_keys_and_patterns_agree(pattern, key, fields):
    assert specifications.match_fields(pattern, key) == fields


def test_question_answering_fills_table_2_of_kowsher_and_the_gains_of_its_text():
    tasks = {"squad1": 0.8, "squad2": 0.6, "squad1_triviaqa": 0.82, "squad2_triviaqa": 0.62}
    place = {"stage": "question_answering", "protocol": "kowsher2025", "size": "base", "finetuning_seed": 1}
    gains, metrics = {"original": 0.0, "shared": 0.01}, {"exact_match": 0.0, "f1": 0.1}
    rows = []
    for task, seed, operator, metric in product(tasks, (1, 2), gains, metrics):
        value = tasks[task] + gains[operator] + metrics[metric] + seed / 1000
        run = {"operator": operator, "task": task, "pretraining_seed": seed}
        rows.append(make_row(**place, **run, metric=metric, value=value))
    run = measurements.compute_measurements(pd.DataFrame(rows)).to_dict("records")
    table = fill_table("kowsher2024_arxiv_table2_squad", run)
    cell = table.set_index(["row_key", "column_key"])["reproduced"]
    assert cell["base.original.single", "squad1_em"] == pytest.approx(80.15)
    assert cell["base.shared.triviaqa", "squad2_f1"] == pytest.approx(73.15)
    assert cell["base.original.triviaqa", "avg_em"] == pytest.approx(72.15)
    table = fill_table("kowsher2024_arxiv_text_and_figure_numbers", run)
    found = table[table["row_key"].str.startswith("squad") & (table["status"] == "measured")]
    assert found["reproduced"].tolist() == pytest.approx([1.0] * 6)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, Difference.LOWER),
        ({"comparable": False}, ""),
        (
            {"baselines": make_baselines(("most_frequent", "courtois2024", "rte", "score", 0.9, 0.95))},
            Difference.AT_CHANCE,
        ),
    ],
)
def test_a_published_score_is_compared_with_three_pretraining_runs_if_they_are_comparable(change, verdict):
    place = {"metric": "score", "evaluated_on": "rte", "size": "base", "finetuning_seed": 1}
    runs = [make_row(**place, value=0.5 + seed / 100, pretraining_seed=seed) for seed in range(3)]
    key = ("base.original", "rte")
    table = fill_table("courtois2024_table3_glue", runs, **change).set_index(["row_key", "column_key"])
    assert table.loc[key, "verdict"] == verdict
    table = fill_table("courtois2024_table3_glue", runs[:1]).set_index(["row_key", "column_key"])
    assert table.loc[key, "verdict"] == Difference.TOO_FEW


@pytest.mark.parametrize(
    ("printed", "value", "count", "verdict"),
    [
        ("66. 67%", 66.67, 200 / 3, Statement.HOLDS),
        ("66. 67%", 66.67, 66.5, Statement.FAILS),
        ("109,514,298", 109_514_298, 109_514_299, Statement.FAILS),
    ],
)
def test_a_count_is_judged_by_the_printed_decimals(printed, value, count, verdict):
    run = pd.DataFrame([make_row(stage="parameters", value=count)])
    cell = SimpleNamespace(printed=printed, value=value)
    assert cell_verdicts.judge_cell(cell, run, tested=False, comparable=False, at_chance=None) == verdict


def test_the_cells_of_a_list_are_one_family_and_those_of_a_matrix_are_a_family_a_row(monkeypatch):
    asked = []
    monkeypatch.setattr(cell_verdicts, "judge_families", lambda frame, one_family, _: asked.append(one_family) or frame)
    for name in ("kowsher2024_arxiv_text_and_figure_numbers", "courtois2024_table3_glue"):
        fill_table(name, [])
    assert asked == [True, False]


@pytest.mark.parametrize(("one_family", "tests"), [(False, [2, 2, 1, 1]), (True, [3, 3, 1, 3])])
def test_intervals_cover_a_row_or_a_list_together_and_a_mean_of_columns_has_its_own(one_family, tests):
    rows = [("a", "rte"), ("a", "cola"), ("a", "average"), ("b", "rte"), ("b", "cola")]
    table = pd.DataFrame(rows, columns=["row_key", "column_key"])
    table = table.assign(reproduced=[81.0, 90.0, 80.0, 70.0, nan], published=80.0, reproduced_n=4)
    table = table.assign(difference_error=[1.0, 1.0, 1.0, 1.0, nan])
    table["verdict"] = [None] * 4 + [Difference.NOT_RUN]
    made = cell_verdicts.judge_families(table, one_family, alpha=0.05)
    expected = [stats.t.isf(0.05 / number / 2, 3) for number in tests]
    half = (made["difference_high"] - made["difference_low"]) / 2
    assert half[:4].tolist() == pytest.approx(expected)
    assert made["verdict"].tolist() == [
        Difference.NOT_SIGNIFICANT,
        Difference.HIGHER,
        Difference.NOT_SIGNIFICANT,
        Difference.LOWER,
        Difference.NOT_RUN,
    ]


def test_a_cell_whose_runs_are_all_equal_has_no_interval():
    table = pd.DataFrame({"row_key": ["a"], "column_key": ["rte"], "reproduced": [81.0], "published": [80.0]})
    table = table.assign(reproduced_n=3, difference_error=nan, verdict=None)
    made = cell_verdicts.judge_families(table, False, alpha=0.05)
    assert made["verdict"].tolist() == [Difference.TOO_FEW]
