"""Statistics of noise and transfer, on made-up observations whose answers are known."""

import numpy as np
import pandas as pd
import pytest

from stages.analysis import robustness
from stages.evidence import baselines, derived, measurements, published
from stages.evidence.verdicts import Difference
from stages.report import figure_rows, figures, own_tables, read_results, table_rows
from stages.report.names import keep_percent_together
from stages.report.text_templates import read_content
from tests.toy_evidence import compare, fill_table, list_texts, make_baselines

TABLES = [
    "kowsher2024_arxiv_table5_noise",
    "kowsher2024_arxiv_table6_cross_domain",
    "kowsher2025_naacl_table5_noise",
    "kowsher2025_naacl_table6_cross_domain",
]
NOISE = {
    "stage": "noise",
    "protocol": "p",
    "size": "tiny",
    "task": None,
    "evaluated_on": "sst2",
    "metric": "accuracy",
}
LINE = {"noise=0": 0.9, "noise=0.2": 0.8, "noise=0.4": 0.7}
# of a constant answer: the score and the end of the interval
CONSTANT = make_baselines((baselines.MOST_FREQUENT, None, "sst2", "accuracy", 0.5, 0.55))
TWICE_TWO = ((1, 1), (1, 2), (2, 1), (2, 2))


def observe(curves: dict[str, dict[str, float]], seeds=TWICE_TWO, spread=0.0) -> pd.DataFrame:
    """Makes rows of noise from accuracies by operator and condition; run k adds k * spread."""
    rows = []
    for operator, conditions in curves.items():
        for condition, value in conditions.items():
            for k, run in enumerate(seeds):
                rows.append((operator, condition, *run, value + k * spread))
    columns = ["operator", "condition", "pretraining_seed", "finetuning_seed", "value"]
    return pd.DataFrame(rows, columns=columns).assign(**NOISE)


def make_table(name: str, **read: pd.DataFrame):
    """Builds a table of the report from frames by name."""
    return own_tables.build_table(name, read.__getitem__, fewest=3, strongest=0.4)


def make_contrasts(rows: pd.DataFrame) -> pd.DataFrame:
    """Compares the losses to noise with the original."""
    found = compare(rows=rows, constants=CONSTANT).rename(columns={"arm": "operator", "at": "evaluated_on"})
    return found.assign(kind=found["quantity"].str.removeprefix("lost_"))


def make_noise_tables(rows: pd.DataFrame):
    """Builds the table of noise and the table of losses to noise."""
    read = robustness.make_tables(rows, CONSTANT, 0.95)
    read["noise_tests"] = make_contrasts(rows)
    read["noise_measures"] = table_rows.mark_chance(read["noise_measures"], read["noise_curves"])
    return make_table("noise", **read), make_table("noise_lost", **read)


def make_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """Computes loss, area and slope of the curve of every run."""
    return derived.measure_curves(derived.select_noise_levels(rows), [*robustness.CURVE, *robustness.RUN_KEYS])


def test_a_straight_line_has_its_loss_area_and_slope():
    made = make_measures(observe({"original": LINE}))
    assert len(made) == 3 * len(TWICE_TWO)
    values = made.groupby("measure")["value"].mean().to_dict()
    assert values == pytest.approx({"lost": 0.2, "area": 0.8, "slope": -0.5})


def test_the_area_is_the_mean_score_over_any_range_of_levels_in_any_order():
    curve = pd.DataFrame({"run": 1, "level": [0.4, 0.2], "value": [0.7, 0.8]})
    made = derived.measure_curves(curve, ["run"]).set_index("measure")["value"]
    assert made.to_dict() == pytest.approx({"lost": 0.1, "area": 0.75, "slope": -0.5})


def test_tables_and_claims_summarise_noise_by_one_definition():
    bent = {"noise=0": 0.9, "noise=0.1": 0.5, "noise=0.4": 0.4}
    rows = observe({"original": bent}).assign(protocol="kowsher2025", task="sst2")
    shown = make_measures(rows).groupby("measure")["value"].first()
    claimed = measurements.compute_measurements(rows).groupby("metric")["value"].agg(["min", "max"])
    assert claimed.loc["accuracy_lost"].tolist() == pytest.approx([shown["lost"]] * 2)
    assert claimed.loc["accuracy_under_noise"].tolist() == pytest.approx([shown["area"]] * 2)
    assert shown["area"] == pytest.approx((0.07 + 0.135) / 0.4)


@pytest.mark.parametrize("levels", [(0, 0.2), (0.2, 0.4)])
def test_claims_of_noise_need_the_papers_range_of_levels(levels):
    rows = observe({"original": {f"noise={level}": 0.9 for level in levels}}).assign(
        protocol="kowsher2025", task="sst2"
    )
    assert not measurements.compute_measurements(rows)["metric"].str.startswith("accuracy_").any()


def test_losses_are_compared_and_not_the_scores_under_noise():
    higher = {key: value + 0.01 for key, value in LINE.items()}
    steeper = {**LINE, "noise=0.4": 0.68}
    noisy = {"original": LINE, "shared": higher, "pairwise": steeper}
    rows = observe(noisy, seeds=((0, 1), (1, 1), (2, 1)), spread=0.02)
    tests = make_contrasts(rows).set_index("operator")
    np.testing.assert_allclose(tests.loc[["shared", "pairwise"], "estimate"], [0.0, 2.0], atol=1e-10)
    # all runs of an operator lose the same, so there is no spread for an interval
    assert tests["low"].isna().all()
    assert tests["p"].isna().all()
    assert set(tests["verdict"]) == {Difference.TOO_FEW}
    assert set(tests["n"]) == {3}


def test_transfer_is_shown_with_the_scores_of_answers_without_a_model():
    parts = []
    for metric, value in (("accuracy", 0.8), ("balanced_accuracy", 0.6), ("majority_accuracy", 0.5)):
        part = observe({"original": {None: value}})
        parts.append(part.assign(stage="cross_domain", task="mnli", metric=metric))
    # scores of other stages are no transfer
    parts.append(parts[0].assign(stage="finetuning", value=0.1))
    cells = robustness.make_tables(pd.concat(parts), make_baselines(), 0.95)["transfer"]
    grid = make_table("transfer", transfer=table_rows.complete_transfer(cells))
    labels = [group.label for group in grid.groups]
    assert labels == ["BERT-tiny original", "the more frequent answer"]
    assert list_texts(grid) == [["MNLI", "80.0", "60.0"], ["–", "50.0", "–"]]


def test_accuracies_at_chance_are_marked_and_so_are_the_losses_of_a_model_at_chance():
    falling = {**LINE, "noise=0.4": 0.54}
    low = {"noise=0": 0.52, "noise=0.2": 0.51, "noise=0.4": 0.5}
    rows = observe({"original": falling, "shared": low})
    # a model at chance has little to lose
    assert make_contrasts(rows)["verdict"].tolist() == [Difference.AT_CHANCE]
    grid, lost = make_noise_tables(rows)
    headings = [heading.label for heading in grid.headings]
    assert headings[1:5] == [
        keep_percent_together("0 %"),
        keep_percent_together("20 %"),
        keep_percent_together("40 %"),
        "Lost",
    ]
    shown = [texts[1:5] for texts in list_texts(grid)]
    assert shown == [["90.0", "80.0", "54.0°", "36.0"], ["52.0°", "51.0°", "50.0°", "2.0°"]]
    assert list_texts(grid)[1][-1].startswith(Difference.AT_CHANCE)
    assert [texts[0] for texts in list_texts(lost)] == ["36.0", "2.0°"]


def test_without_rows_there_are_tables_without_rows():
    nothing = observe({"original": LINE}).iloc[:0]
    summarised = robustness.make_tables(nothing, make_baselines(), 0.95)
    assert summarised["transfer"].empty
    assert "mean" in summarised["transfer"].columns
    for grid in make_noise_tables(nothing):
        [group] = grid.groups
        assert group.lines[0].note == Difference.NOT_RUN


def cross(**values) -> pd.DataFrame:
    """Makes a row of every combination of values, by column."""
    return pd.MultiIndex.from_product(values.values(), names=values.keys()).to_frame(index=False)


def make_cells_of_kowsher() -> pd.DataFrame:
    """Makes the observations of noise and transfer for BERT-base by the protocol of Kowsher et al., two seeds each."""
    runs = {"operator": ["original", "shared"], "finetuning_seed": [1, 2]}
    splits = ["mnli_m", "mnli_mm", "qqp", "sst2"]
    noise = cross(**runs, evaluated_on=splits, metric=["accuracy", "f1"], level=range(9))
    noise["task"] = noise["evaluated_on"].replace({"mnli_m": "mnli", "mnli_mm": "mnli"})
    noise["condition"] = [f"noise={level / 20:g}" for level in noise["level"]]
    transfer = cross(
        **runs,
        task=["mnli", "qnli", "qqp", "mrpc"],
        evaluated_on=["mnli_m", "mnli_mm", "qnli", "qqp", "mrpc"],
        metric=["accuracy", "balanced_accuracy", "majority_accuracy"],
    )
    rows = pd.concat(
        [
            noise.assign(stage="noise", value=0.9 - noise["level"] / 100),
            transfer.assign(stage="cross_domain", value=0.5, condition=None),
        ]
    )
    return rows.assign(protocol="kowsher2025", size="base", n=100, pretraining_seed=1)


def make_rows_of_run(name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Fills the cells of a published table after a run of two operators at BERT-base."""
    found = measurements.compute_measurements(rows).to_dict("records")
    return fill_table(name, found, operators=("original", "shared"), sizes=("base",))


@pytest.mark.parametrize("name", TABLES)
def test_a_run_of_bert_base_fills_every_cell_of_tables_5_and_6_in_per_cent(name):
    frame = make_rows_of_run(name, make_cells_of_kowsher())
    printed = frame[frame["printed"].notna()]
    assert len(printed) == len(published.read_table(name))
    assert set(printed["status"]) == {"measured"}
    assert set(printed["reproduced_n"]) == {2}
    expected = 50.0
    if "table5" in name:
        levels = printed["row_key"].str.removeprefix("noise_").astype(float)
        expected = 90 - levels / 5
    np.testing.assert_allclose(printed["reproduced"], expected)


def draw(name: str, rows: pd.DataFrame, monkeypatch) -> figures.Drawing:
    """Draws a figure of noise or of transfer from observations."""
    tables = robustness.make_tables(rows, make_baselines(), 0.95)
    printed = pd.concat([make_rows_of_run(table, rows) for table in TABLES])
    monkeypatch.setattr(read_results, "read_table", tables.__getitem__)
    monkeypatch.setattr(read_results, "read_cells", lambda: printed)
    makers = {"noise": figure_rows.build_noise, "transfer_matrices": figure_rows.build_transfer}
    entry = figures.Entry(**read_content("figures")[name])
    return figures.draw_figure(name, entry, lambda frame: makers[frame]())


def test_noise_is_drawn_by_task_with_the_published_numbers_beside(monkeypatch):
    figure = draw("noise_curves", make_cells_of_kowsher().assign(size="tiny"), monkeypatch)
    assert figure.place == "Kowsher et al. 2025, NAACL, Table 5"
    curves = {part.split(": ")[0] for part in figure.alternative.split("; ")}
    assert "MNLI-m, BERT-base, original, printed by its paper" in curves
    assert "MNLI-m, BERT-tiny, original, this run" in curves
    assert figure.csv.groupby("source")["estimate"].max().to_dict() == {"published": 91.03, "reproduced": 90.0}
    assert "mnli_mm" not in set(figure.csv["evaluated_on"])


def test_heat_maps_hold_their_numbers_and_the_score_of_an_answer_without_a_model(monkeypatch):
    figure = draw("transfer_matrices", make_cells_of_kowsher(), monkeypatch)
    svg = figure.files["svg"].decode()
    # the column MNLI prints 81.66 and, for QNLI, 77.99
    for number in ("81.7", "78.0", "50.0", "majority"):
        assert f">{number}</text>" in svg


@pytest.mark.parametrize("name", ["noise_curves", "transfer_matrices"])
def test_a_run_without_noise_and_transfer_draws_the_published_numbers_only(name, monkeypatch):
    figure = draw(name, make_cells_of_kowsher().iloc[:0], monkeypatch)
    assert not figure.measured
    assert set(figure.csv["source"]) == {"published"}
