"""Published and released numbers, and what follows from them."""

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from stages.analysis import contrasts
from stages.evidence import (
    cells,
    convergence,
    derived,
    measurements,
    power,
    published,
    released,
    scores,
    specifications,
)
from stages.evidence.statistics import summarise
from tests.toy_evidence import evidence, filled, row

TABLES, _ = specifications.load()
TABLE3 = published.table("courtois2024_table3_glue")
CELLS = pd.read_csv(published.FOLDER / "INDEX.csv").set_index("file")["cells"]
NAMES = [name.removesuffix(".csv") for name in CELLS.index]


@pytest.fixture(scope="module")
def raw() -> pd.DataFrame:
    return measurements.measurements(released.glue())


def printed(value: float, decimals: int = 2) -> str:
    return str(Decimal(repr(value)).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP))


@pytest.mark.parametrize("cell", list(TABLE3.itertuples()), ids=lambda cell: f"{cell.row_key}.{cell.column_key}")
def test_table_3_follows_from_the_released_results_to_the_last_digit(cell, raw):
    place = specifications.fields("{size}.{operator}", cell.row_key) | {"evaluated_on": cell.column_key}
    runs = derived.matching(raw, {"metric": "score", "stage": "finetuning"} | place)
    summary = summarise(runs.assign(value=100 * runs["value"]), 0.95)
    expected = printed(summary.mean)
    if cell.column_key == scores.GLUE_SCORE:
        expected += f" ({printed(summary.sd)})"
    assert summary.n == 5
    assert cell.printed == expected


def test_table_3_has_54_task_cells_and_6_scores_with_deviations():
    whole = TABLE3[TABLE3["column_key"] == scores.GLUE_SCORE]
    assert (len(TABLE3) - len(whole), len(whole), int(whole["std"].notna().sum())) == (54, 6, 6)


@pytest.mark.parametrize("name", NAMES)
def test_every_published_table_is_readable_and_as_long_as_the_index_says(name):
    assert len(published.table(name)) == CELLS[f"{name}.csv"]


def test_a_missing_table_is_an_error_that_names_the_index():
    with pytest.raises(ValueError, match=r"nothing\.csv: no such table.*INDEX"):
        published.table("nothing")


def released_curves() -> pd.DataFrame:
    losses = released.validation_loss()
    return convergence.curves(losses, measurements.measurements(losses))


def test_released_losses_have_one_value_every_250_steps():
    losses = convergence.validation_loss(released.validation_loss())
    for _, run in losses.groupby(["size", "operator"]):
        assert list(run["step"]) == list(range(250, 200_001, 250))


def test_released_losses_end_as_the_paper_says():
    curves = released_curves()
    last = curves[(curves["step"] == 200_000) & (curves["size"] == "base")].set_index("operator")["mean"]
    assert last["symmetric"] - last["original"] == pytest.approx(0.1, abs=0.02)  # section 4.1
    assert abs(last["pairwise"] - last["original"]) < 0.02


def compared(measured: pd.DataFrame, source: str = "reproduced", pairs: tuple = ()) -> pd.DataFrame:
    """The contrasts of these measurements."""
    nothing = pd.DataFrame(columns=measurements.FIELDS)
    return contrasts.table({source: contrasts.quantities(nothing, measured, {})}, 0.95, 0.05, pairs)


def test_the_published_gain_is_small_and_speaks_for_checkpoints(raw):
    """By Welch's test p = 0.10 on base and 0.015 on small; fine-tuning seeds of two checkpoints are no pairs."""
    frame = compared(raw, "released")
    whole = frame[(frame["at"] == scores.GLUE_SCORE) & (frame["arm"] == "pairwise")].set_index("size")
    assert whole["estimate"].to_dict() == pytest.approx({"base": 0.625, "small": 0.664}, abs=0.001)
    assert whole["p"].to_dict() == pytest.approx({"base": 0.0995, "small": 0.0154}, abs=1e-4)
    assert not whole["paired"].any() and set(whole["unit_of_inference"]) == {"fine-tuning seeds"}
    assert set(whole["verdict"]) == {"one checkpoint per arm"}
    assert whole["direction"].to_dict() == {"base": "", "small": "higher"}
    columns = frame[(frame["size"] == "base") & (frame["arm"] == "pairwise") & (frame["at"] != scores.GLUE_SCORE)]
    assert len(columns) == 9
    assert (columns["direction"] == "").all()


def scored(
    value: Callable, operators: str, seeds: int, columns: tuple[str, ...] = (scores.GLUE_SCORE,)
) -> pd.DataFrame:
    """Scores of the original and of operators of one letter. value: of column, operator and seed, to the score."""
    rows = [
        row(operator=operator, evaluated_on=column, metric="score", pretraining_seed=seed, finetuning_seed=1)
        | {"value": value(column, operator, seed)}
        for column in columns
        for operator in ("original", *operators)
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows)


def test_the_confirmatory_test_is_adjusted_over_the_operators():
    draw = np.random.default_rng(0).normal
    frame = compared(scored(lambda _, operator, seed: 0.6 + draw(0, 0.01) + 0.02 * (operator == "a"), "abc", 5))
    assert frame["p_holm"].min() == pytest.approx(3 * frame["p"].min())
    assert ((frame["direction"] != "") == (frame["p_holm"] < 0.05)).all()


def test_intervals_cover_all_true_differences_together_as_often_as_they_say():
    """Families of three tests whose true differences are 0, and ten standard deviations twice: the hard case."""
    draw, truth, rounds, covered = np.random.default_rng(0).normal, {"a": 0.0, "b": 0.1, "c": 0.1}, 300, 0
    for _ in range(rounds):
        frame = compared(scored(lambda _, arm, seed: 0.6 + draw(0, 0.01) + truth.get(arm, 0), "abc", 6))
        true = 100 * frame["arm"].map(truth)
        covered += bool(((frame["low"] <= true) & (true <= frame["high"])).all())
    assert covered / rounds > 0.95 - 2 * (0.05 * 0.95 / rounds) ** 0.5


def test_an_interval_that_excludes_zero_is_significant_after_holm_s_correction():
    draw = np.random.default_rng(1).normal
    effects = dict(zip("abcd", (0, 0.005, 0.01, 0.02), strict=True))
    for _ in range(40):
        frame = compared(scored(lambda _, arm, seed: 0.6 + draw(0, 0.01) + effects.get(arm, 0), "abcd", 5))
        excluded = (frame["low"] > 0) | (frame["high"] < 0)
        assert (frame.loc[excluded, "p_holm"] < 0.05).all()
        assert (frame["low"] < frame["low_unadjusted"]).all()


def test_a_further_pair_is_compared_by_seed_and_counts_in_the_family():
    slopes = {"original": 1, "a": 2, "b": 3}
    rows = scored(lambda _, arm, seed: 0.6 + 0.01 * seed * slopes[arm] + 0.1 * (arm == "b"), "ab", 4)
    frame = compared(rows, pairs=(("b", "a"), (("b", "a"), ("a", "original"))))
    plain, interaction = frame[frame["reference"] == "a"].iloc[0], frame[frame["arm"] == "b - a"].iloc[0]
    b, a, original = (100 * (0.6 + 0.01 * np.arange(4) * k + shift) for k, shift in ((3, 0.1), (2, 0), (1, 0)))
    assert plain["estimate"] == pytest.approx((b - a).mean()) and plain["paired"]
    assert plain["p"] == pytest.approx(stats.ttest_rel(b, a).pvalue)
    assert interaction["reference"] == "a - original" and interaction["n"] == 4
    assert interaction["estimate"] == pytest.approx(((b - a) - (a - original)).mean())
    assert set(frame["tests"]) == {int(frame["p"].notna().sum())} and len(frame) == 4


def test_a_pair_without_runs_is_left_out_and_released_results_have_no_further_pairs(raw):
    rows = scored(lambda _, arm, seed: 0.6 + 0.01 * seed, "a", 3)
    assert len(compared(rows, pairs=(("a", "symmetric"), (("a", "original"), ("b", "original"))))) == 1
    assert set(compared(raw, "released", pairs=(("pairwise", "symmetric"),))["reference"]) == {"original"}


@pytest.mark.parametrize(("seeds", "verdict", "direction"), [(2, "too few seeds", ""), (3, "different", "lower")])
def test_two_seeds_a_side_give_a_difference_alone(seeds, verdict, direction):
    rows = scored(lambda _, arm, seed: 0.6 + 0.001 * seed - (0.2 + 0.001 * (seed % 2)) * (arm == "a"), "a", seeds)
    [made] = compared(rows).to_dict("records")
    assert (made["verdict"], made["direction"], made["tests"]) == (verdict, direction, int(seeds == 3))
    assert -21 < made["estimate"] < -19 and np.isnan(made["low"]) == np.isnan(made["p_holm"]) == (seeds == 2)


def test_every_column_of_the_contrasts_is_described(raw):
    columns = list(contrasts.column_meanings()["column"])
    assert list(compared(raw.iloc[:0])) == columns == list(compared(raw, "released"))


def test_a_family_counts_the_columns_with_a_test_and_what_they_can_detect_follows_from_their_spread():
    draw = np.random.default_rng(0).normal
    rows = scored(lambda column, *_: 0.6 + (column != "cola") * draw(0, 0.01), "a", 4, ("cola", "mrpc", "rte"))
    frame = compared(rows).set_index("at")
    assert (frame["tests"] == 2).all() and list(frame.index[frame["p"].isna()]) == ["cola"]
    values = rows.pivot(index=["evaluated_on", "pretraining_seed"], columns="operator", values="value")
    error = 100 * (values["a"] - values["original"])["mrpc"].std() / np.sqrt(4)
    assert frame.loc["mrpc", "detectable"] == pytest.approx(power.smallest_effect(error, 3, 0.05 / 2))


def test_combined_columns_are_means_of_their_metrics():
    rows = pd.DataFrame(
        [
            row(evaluated_on=task, metric=metric, value=value, pretraining_seed=1, finetuning_seed=1)
            for task, metric, value in [
                ("mrpc", "accuracy", 0.6),
                ("mrpc", "f1", 0.8),
                ("stsb", "pearson", 0.1),
                ("stsb", "spearmanr", 0.3),
                ("rte", "accuracy", 0.5),
                ("rte", "f1", 0.9),
            ]
        ]
    )
    result = scores.column_scores(rows).set_index("evaluated_on")["value"]
    assert result.to_dict() == pytest.approx({"mrpc": 0.7, "stsb": 0.2, "rte": 0.5})
    assert scores.mean_scores(scores.column_scores(rows)).empty


def test_a_missing_metric_is_an_error_that_names_the_run():
    rows = pd.DataFrame([row(evaluated_on="qqp", metric="accuracy", value=0.6, pretraining_seed=3, finetuning_seed=2)])
    with pytest.raises(ValueError, match=r"qqp of original at tiny, seeds 3 and 2.*f1"):
        scores.column_scores(rows)


def test_savings_equal_those_of_table_2():
    counts = {"original": 109514298, "symmetric": 102427194, "pairwise": 103017018}
    rows = [row(stage="parameters", metric="masked_lm_parameters", operator=o, value=v) for o, v in counts.items()]
    saved = derived.savings(pd.DataFrame(rows))
    saved = saved[saved["metric"] == "saved_percent"].set_index("operator")["value"]
    assert saved.round(2).to_dict() == {"original": 0.0, "symmetric": 6.47, "pairwise": 5.93}


def test_a_table_without_a_run_says_not_run_in_every_measurable_cell():
    table = filled("courtois2024_table3_glue", [])
    assert len(table) == 60
    assert (table["status"] == cells.NOT_RUN).all()


def test_rows_outside_the_paper_follow_the_papers_rows():
    run = [
        row(metric="score", evaluated_on="rte", operator=operator, value=0.5, pretraining_seed=1, finetuning_seed=1)
        for operator in ("shared", "original")
    ]
    table = filled("courtois2024_table3_glue", run)
    keys = list(dict.fromkeys(table["row_key"]))
    assert keys[6:] == ["tiny.shared", "tiny.original"]
    own = table[table["row_key"] == "tiny.shared"].set_index("column_key")
    assert own.loc["rte", "reproduced"] == 50.0
    assert own.loc["qqp", "status"] == cells.NOT_RUN
    assert own["printed"].isna().all()


def test_operators_that_are_only_counted_have_no_row_of_their_own():
    run = [
        row(stage="parameters", metric="masked_lm_parameters", protocol=None, operator=operator, size="base", value=1)
        for operator in ("hadamard", "shared", "symmetric")
    ]
    table = filled("courtois2024_table2_model_parameters", run)
    assert list(dict.fromkeys(table["row_key"]))[6:] == ["base.shared"]
    assert table.set_index("row_key").loc["base.symmetric", "status"].tolist()[0] == "reproduced"


def test_a_column_of_counts_is_made_for_every_size():
    run = [
        row(stage="parameters", metric="attention_parameters", protocol=None, size=size, value=1)
        for size in ("tiny", "base")
    ]
    table = filled("courtois2024_table1_attention_param_formulas", run)
    assert {"counted.tiny", "counted.base"} < set(table["column_key"])


def test_noise_of_another_size_and_operator_stands_below_and_beside_the_papers():
    run = [
        row(
            stage="noise", task="mnli", evaluated_on="mnli_m", metric="accuracy", operator=operator, condition=condition
        )
        | {"value": 0.5, "pretraining_seed": 1, "finetuning_seed": 1}
        for operator in ("original", "pairwise")
        for condition in ("noise=0", "noise=0.05")
    ]
    table = filled("kowsher2024_arxiv_table5_noise", run)
    own = table[table["row_key"] == "tiny.courtois2024.noise=0.05"].set_index("column_key")
    assert own.loc["mnli.pairwise", "reproduced"] == own.loc["mnli.original", "reproduced"] == 50.0
    assert own.loc["mnli.shared", "status"] == cells.NOT_RUN
    assert len(table["row_key"].unique()) == 9 + 2


def test_a_published_cell_without_a_place_is_an_error(monkeypatch):
    strange = TABLE3.assign(column_key="wnli").head(1)
    monkeypatch.setattr(published, "table", lambda name: strange)
    with pytest.raises(ValueError, match=r"tables\.yaml.*no row or column for the published cell"):
        cells.fill(TABLES["courtois2024_table3_glue"], evidence([]))


def test_every_published_table_is_specified_and_no_other():
    assert set(TABLES) == set(NAMES)


@pytest.mark.parametrize("name", TABLES)
def test_every_published_cell_of_a_table_has_its_place(name):
    table = filled(name, [])
    assert table["printed"].notna().sum() == len(published.table(name))
    assert not (table["verdict"] == "").any()


def test_keys_and_patterns_agree():
    assert specifications.fields("{size}.{operator}", "base.shared") == {"size": "base", "operator": "shared"}
    assert specifications.fields("noise_{level}", "noise_15") == {"level": "15"}
    assert specifications.fields("{size}.{operator}", "base") is None


def answered(operator: str, size: str, task: str, metric: str, value: float, seed: int) -> dict:
    fixed = {"stage": "question_answering", "protocol": "kowsher2025", "evaluated_on": task[:6], "finetuning_seed": 1}
    return row(operator=operator, size=size, task=task, metric=metric, value=value, pretraining_seed=seed) | fixed


def test_question_answering_fills_table_2_of_kowsher_and_the_gains_of_its_text():
    tasks = {"squad1": 0.8, "squad2": 0.6, "squad1_triviaqa": 0.82, "squad2_triviaqa": 0.62}
    rows = [
        answered(operator, size, task, metric, value + better + 0.1 * (metric == "f1") + seed / 1000, seed)
        for operator, better in (("original", 0.0), ("shared", 0.01))
        for size in ("tiny", "base")
        for task, value in tasks.items()
        for metric in ("exact_match", "f1")
        for seed in (1, 2)
    ]
    run = measurements.measurements(pd.DataFrame(rows))
    table = filled("kowsher2024_arxiv_table2_squad", run.to_dict("records"))
    assert set(table["status"]) == {"reproduced"} and len(table) == 2 * 2 * 2 * 6
    cell = table.set_index(["row_key", "column_key"])["reproduced"]
    assert cell["base.original.single", "squad1_em"] == pytest.approx(80.15)
    assert cell["base.shared.triviaqa", "squad2_f1"] == pytest.approx(73.15)
    assert cell["base.original.triviaqa", "avg_em"] == pytest.approx(72.15)
    assert cell["tiny.shared.single", "avg_f1"] == pytest.approx(81.15)
    table = filled("kowsher2024_arxiv_text_and_figure_numbers", run.to_dict("records"))
    gains = table[table["row_key"].str.startswith("squad") & (table["status"] == "reproduced")]
    assert len(gains) == 6 and gains["reproduced"].to_numpy() == pytest.approx(1.0)


def test_the_released_checkpoints_reach_95_percent_between_the_checkpoints_that_are_interpolated():
    rows = released.checkpoints()
    measured = measurements.measurements(rows)
    reached = convergence.milestones(measured, convergence.curves(rows, measured), 0.95)
    reached = reached[reached["milestone"] == "steps_to_95_percent"].set_index("operator")
    assert reached.loc["original", "mean"] == pytest.approx(65_507, abs=20)
    assert tuple(reached.loc["original", ["after", "before"]]) == (50_000, 75_000)
    assert reached.loc["pairwise", "mean"] == pytest.approx(32_793, abs=20)
    assert tuple(reached.loc["pairwise", ["after", "before"]]) == (30_000, 35_000)


@pytest.mark.parametrize(("evaluations", "late"), [(17, []), (18, [13.5])])
def test_the_late_loss_is_the_mean_of_ten_evaluations_that_all_lie_in_the_second_half(evaluations, late):
    losses = [
        row(stage="pretraining", metric="validation_loss", condition=f"step={step}", pretraining_seed=1, value=step)
        for step in range(1, evaluations + 1)
    ]
    measured = convergence.loss_measures(pd.DataFrame(losses, columns=derived.FIELDS))
    assert measured.loc[measured["metric"] == "late_loss", "value"].to_list() == late


def test_a_milestone_lies_between_the_evaluations_around_all_its_runs():
    evaluated = np.array([100, 200, 300, 400])
    assert convergence.bracket(evaluated, np.array([150.0, 260.0])) == (100, 300)
    assert convergence.bracket(evaluated, np.array([200.0])) == (100, 200)
    assert convergence.bracket(evaluated, np.array([100.0])) == (0, 100)
