"""Statistics of noise and transfer, on made-up observations whose answers are known."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from stages.analysis import contrasts, robustness
from stages.evidence import baselines, derived, measurements, published
from stages.report import own_tables, table_rows
from stages.report import robustness_figures as figures
from stages.report.names import unbroken
from tests.toy_evidence import filled

TABLES = [
    f"kowsher{edition}_{table}"
    for edition in ("2024_arxiv", "2025_naacl")
    for table in ("table5_noise", "table6_cross_domain")
]


def observed(curves: dict[str, dict[str, float]], seeds=((1, 1), (1, 2), (2, 1), (2, 2)), spread=0.0) -> pd.DataFrame:
    """Noise rows: operator -> condition -> accuracy; run k adds k * spread."""
    of_all = {"stage": "noise", "protocol": "p", "size": "tiny", "task": None, "evaluated_on": "sst2"}
    return pd.DataFrame(
        of_all
        | {"metric": "accuracy"}
        | {"operator": operator, "condition": condition, "pretraining_seed": p, "finetuning_seed": f}
        | {"value": value + k * spread}
        for operator, conditions in curves.items()
        for condition, value in conditions.items()
        for k, (p, f) in enumerate(seeds)
    )


LINE = {"noise=0": 0.9, "noise=0.2": 0.8, "noise=0.4": 0.7}
CONSTANT = {
    (baselines.MOST_FREQUENT, "", "sst2", "accuracy"): (0.5, 0.55)
}  # of that answer: value, end of the interval


def table(name: str, **read: pd.DataFrame):
    """A table of the report from the frames that it selects from, by their names."""
    return own_tables.build_table(name, read.__getitem__, fewest=3, strongest=0.4)


def contrasted(rows: pd.DataFrame) -> pd.DataFrame:
    """What noise takes more than from original, with the fields of its curves. rows: observations."""
    compared = contrasts.quantities(rows, pd.DataFrame(columns=measurements.FIELDS), CONSTANT)
    found = contrasts.table({"reproduced": compared}, 0.95, 0.05, {}).rename(
        columns={"arm": "operator", "at": "evaluated_on"}
    )
    return found.assign(kind=found["quantity"].str.removeprefix("lost_"))


def noise_tables(rows: pd.DataFrame):
    """The tables of noise and of what it takes. rows: observations."""
    read = robustness.tables(rows, CONSTANT, 0.95) | {"noise_tests": contrasted(rows)}
    read["noise_measures"] = table_rows.mark_chance(read["noise_measures"], read["noise_curves"])
    return table("noise", **read), table("noise_lost", **read)


def measures(rows: pd.DataFrame) -> pd.DataFrame:
    """What every run loses to noise, and the area and slope of its curve. rows: observations."""
    return derived.curve_measures(robustness.levels(rows), [*robustness.CURVE, *robustness.RUN])


def test_the_clean_score_is_level_zero_of_every_kind_of_noise():
    rows = robustness.levels(observed({"original": LINE | {"typos=0.4": 0.6}}))
    typos = rows[rows["kind"] == "typos"]
    assert sorted(set(zip(typos["level"], typos["value"], strict=True))) == [(0.0, 0.9), (0.4, 0.6)]


def test_a_straight_line_has_its_loss_area_and_slope():
    made = measures(observed({"original": LINE}))
    values = made.groupby("measure")["value"].mean()
    assert values["lost"] == pytest.approx(0.2)
    assert values["area"] == pytest.approx(0.8)
    assert values["slope"] == pytest.approx(-0.5)
    assert len(made) == 3 * 4  # three measures a run


def test_tables_and_claims_summarise_noise_by_one_definition():
    bent = {"noise=0": 0.9, "noise=0.1": 0.5, "noise=0.4": 0.4}
    rows = observed({"original": bent}).assign(protocol="kowsher2025", task="sst2")
    table = measures(rows).groupby("measure")["value"].first()
    claimed = measurements.measurements(rows).set_index("metric")["value"]
    assert claimed["accuracy_lost"].tolist() == pytest.approx([table["lost"]] * 4)
    assert claimed["accuracy_under_noise"].tolist() == pytest.approx([table["area"]] * 4)
    assert table["area"] == pytest.approx((0.07 + 0.135) / 0.4)


def test_claims_of_noise_need_the_papers_range_of_levels():
    rows = observed({"original": {"noise=0": 0.9, "noise=0.2": 0.8}}).assign(protocol="kowsher2025", task="sst2")
    assert not measurements.measurements(rows)["metric"].str.startswith("accuracy_").any()


def test_what_is_lost_is_compared_and_not_what_the_clean_score_tells_already():
    higher = {key: value + 0.01 for key, value in LINE.items()}
    steeper = LINE | {"noise=0.4": LINE["noise=0.4"] - 0.02}
    noisy = {"original": LINE, "shared": higher, "pairwise": steeper}
    rows = observed(noisy, seeds=[(p, 1) for p in range(3)], spread=0.02)
    tests = contrasted(rows).set_index("operator")
    np.testing.assert_allclose(tests.loc[["shared", "pairwise"], "estimate"], [0.0, 2.0], atol=1e-10)
    assert tests["low"].isna().all()  # all runs of an operator lose the same: no spread to test with
    assert np.isnan(tests.loc["shared", "p"]) and tests.loc["pairwise", "p"] == pytest.approx(2 / 20)
    assert set(tests["n"]) == {3} and set(tests["unit_of_inference"]) == {"pre-training seeds"}


def test_holm_adjusts_over_operators_and_splits():
    generator = np.random.default_rng(0)
    rows = observed({"original": LINE, "shared": LINE, "pairwise": LINE}, seeds=[(p, 1) for p in range(6)])
    rows["value"] += generator.normal(0, 0.01, len(rows)) + 0.02 * (rows["operator"] == "shared")
    tests = contrasted(rows)
    assert set(tests["unit_of_inference"]) == {"pre-training seeds"}
    assert (tests["p_holm"] >= tests["p"]).all()
    assert tests["p_holm"].min() == pytest.approx(2 * tests["p"].min())


def test_fine_tuning_seeds_of_one_checkpoint_test_no_operator():
    rows = observed({"original": LINE, "shared": {key: value + 0.1 for key, value in LINE.items()}})
    rows = rows[rows["pretraining_seed"] == 1]
    rows["value"] += np.random.default_rng(0).normal(0, 0.001, len(rows))
    tests = contrasted(rows)
    assert set(tests["verdict"]) == {"one checkpoint per arm"} and tests["p"].isna().all()
    grid, _ = noise_tables(rows)
    assert {group.label: group.lines[0].values[-1].text for group in grid.groups}["BERT-tiny shared"] == (
        "one checkpoint per arm"
    )


def test_transfer_and_probes_are_summarised_by_their_own_keys():
    rows = observed({"original": LINE})
    transfer = rows.assign(stage="cross_domain", task="mnli", evaluated_on="qqp", condition=None)
    probed = rows.assign(condition="layer=1", metric="self_weight")
    [cell] = robustness.tables(transfer, {}, 0.95)["transfer"].to_dict("records")
    assert (cell["task"], cell["evaluated_on"], cell["runs"]) == ("mnli", "qqp", 12)
    [probe] = robustness.tables(pd.concat([rows, probed]), {}, 0.95)["probes"].to_dict("records")
    assert (probe["condition"], probe["metric"]) == ("layer=1", "self_weight")


def test_the_tables_of_the_report_show_every_level_split_and_probe():
    rows = observed({"original": LINE, "shared": LINE | {"typos=0.4": 0.6}}, spread=0.01)
    grid, _ = noise_tables(rows)
    headings = [heading.label.replace("\N{NO-BREAK SPACE}", " ") for heading in grid.headings]
    assert headings[2:6] == ["0 %", "20 %", "40 %", "Lost"]
    first = [value.text for value in grid.groups[0].lines[0].values]
    assert first[:6] == ["SST-2", "embeddings", "91.5", "81.5", "71.5", "20.0"]
    transfer = observed({"original": {None: 0.8}}).assign(stage="cross_domain", task="mnli")
    more = [
        transfer.assign(metric=name, value=v) for name, v in (("balanced_accuracy", 0.6), ("majority_accuracy", 0.5))
    ]
    cells = robustness.tables(pd.concat([transfer, *more]), {}, 0.95)["transfer"]
    grid = table("transfer", transfer=table_rows.transfer(cells))
    assert [(group.label, *(value.text for value in group.lines[0].values)) for group in grid.groups] == [
        ("BERT-tiny original", "MNLI", "80.0", "60.0"),
        ("the more frequent answer", "–", "50.0", "50.0"),
        ("chance", "–", "50.0", "50.0"),
    ]
    probed = observed({"shared": {"layer=1": 0.25}}).assign(metric="self_weight")
    [group] = table("probes", probes=robustness.tables(probed, {}, 0.95)["probes"]).groups
    assert [value.text for value in group.lines[0].values] == ["SST-2", "layer 1", "0.250"]


def test_accuracies_at_chance_are_marked_and_so_is_what_a_model_at_chance_loses():
    falls, low = LINE | {"noise=0.4": 0.54}, {"noise=0": 0.52, "noise=0.2": 0.51, "noise=0.4": 0.5}
    rows = observed({"original": falls, "shared": low})
    assert contrasted(rows)["verdict"].tolist() == [baselines.AT_CHANCE]  # of which one has little to lose
    grid, lost = noise_tables(rows)
    shown = [[value.text for value in group.lines[0].values][2:6] for group in grid.groups]
    assert shown == [["90.0", "80.0", "54.0°", "36.0"], ["52.0°", "51.0°", "50.0°", "2.0°"]]
    assert [group.lines[0].values[0].text for group in lost.groups] == ["36.0", "2.0°"]


def test_without_rows_there_are_tables_without_rows():
    nothing = observed({"original": LINE}).assign(task="sst2").iloc[:0]
    summarised = robustness.tables(nothing, {}, 0.95)
    for frame in (summarised["transfer"], summarised["probes"]):
        assert frame.empty and "mean" in frame.columns
    for grid in noise_tables(nothing):
        assert [line.note for group in grid.groups for line in group.lines] == ["not run at this scale"]


# the papers' tables


def of_kowsher() -> pd.DataFrame:
    """What noise and cross_domain write for BERT-base by the protocol of Kowsher et al., two seeds each."""
    own = {"protocol": "kowsher2025", "size": "base", "value": 0.5, "n": 100, "pretraining_seed": 1}
    task_of = {"mnli_m": "mnli", "mnli_mm": "mnli", "qqp": "qqp", "sst2": "sst2"}
    levels = [(f"noise={level / 20:g}", 0.9 - level / 100) for level in range(9)]
    tested = ("mnli_m", "mnli_mm", "qnli", "qqp", "mrpc")
    trained = ("mnli", "qnli", "qqp", "mrpc")
    rows = []
    for operator, seed in product(("original", "shared"), (1, 2)):
        run = {**own, "operator": operator, "finetuning_seed": seed}
        for split, metric, (condition, value) in product(task_of, ("accuracy", "f1"), levels):
            noise = {"stage": "noise", "task": task_of[split], "condition": condition, "value": value}
            rows.append({**run, **noise, "evaluated_on": split, "metric": metric})
        for task, split, metric in product(trained, tested, ("accuracy", "balanced_accuracy", "majority_accuracy")):
            cell = {"stage": "cross_domain", "task": task, "evaluated_on": split, "condition": None}
            rows.append({**run, **cell, "metric": metric})
    return pd.DataFrame(rows)


def of_run(name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The cells of a published table after a run of two operators at BERT-base."""
    return filled(
        name, measurements.measurements(rows).to_dict("records"), operators=("original", "shared"), sizes=("base",)
    )


@pytest.mark.parametrize("name", TABLES)
def test_a_run_of_bert_base_fills_every_cell_of_tables_5_and_6_in_per_cent(name):
    frame = of_run(name, of_kowsher())
    printed = frame[frame["printed"].notna()]
    assert len(printed) == len(published.table(name))
    assert set(printed["status"]) == {"reproduced"} and set(printed["reproduced_n"]) == {2}
    if "table5" in name:
        levels = printed["row_key"].str.removeprefix("noise_").astype(float)
        np.testing.assert_allclose(printed["reproduced"], 90 - levels / 5)
    else:
        np.testing.assert_allclose(printed["reproduced"], 50)


# figures


def draw(rows: pd.DataFrame):
    """The figures of noise and of transfer."""
    printed = pd.concat(of_run(name, rows) for name in TABLES)
    summarised = robustness.tables(rows, {}, 0.95)
    noisy = figures.draw_noise(summarised["noise_curves"], printed, {"mnli_m": 35.0})
    return noisy, figures.draw_transfer(summarised["transfer"], printed)


def test_noise_is_drawn_by_task_and_kind_with_the_published_numbers_beside():
    rows = of_kowsher().assign(size="tiny")
    rows = pd.concat([rows, rows[rows["condition"] == "noise=0.4"].assign(condition="typos=0.4", value=0.6)])
    [figure], _ = draw(rows)
    assert (figure.name, figure.place) == ("noise_curves-kowsher2025-tiny", "Kowsher et al. 2025, NAACL, Table 5")
    panels = [part.split(":")[0] for part in figure.alternative.split(". ")]
    embeddings = [f"{task}, embeddings, BERT-tiny" for task in ("MNLI", "QQP", "SST-2")]
    assert panels[0] == "MNLI, embeddings, published, BERT-base" and panels[3:6] == embeddings
    assert panels[6:] == [f"{task}, typos, BERT-tiny" for task in ("MNLI", "QQP", "SST-2")]
    assert unbroken("original, published, from 81.7 at 0 % to 68.2 at 40 %") in figure.alternative
    assert unbroken("shared from 90.0 at 0 % to 60.0 at 40 %") in figure.alternative
    assert {"published", "reproduced"} == set(figure.csv["source"]) and "mnli_mm" not in set(figure.csv["evaluated_on"])


def test_published_and_reproduced_numbers_of_one_size_share_a_panel():
    [figure], _ = draw(of_kowsher())
    assert figure.alternative.count("BERT-base:") == 3
    assert "MNLI, embeddings, BERT-base: original, published, from 81.7" in figure.alternative


def test_heat_maps_hold_their_numbers_and_the_score_of_an_answer_without_a_model():
    _, [figure] = draw(of_kowsher())
    assert figure.name == "transfer_matrices-kowsher2025-base"
    svg = figure.files["svg"].decode()
    # printed in the column MNLI are 81.66 and, QNLI, 77.99
    for number in ("81.7", "78.0", "50.0", "majority"):
        assert f">{number}</text>" in svg
    words = dict(part.split(": ", 1) for part in figure.alternative.split(". "))
    assert "trained on MNLI 81.7 on MNLI, 78.0 on QNLI" in words["BERT-base original, published"]
    own = words["BERT-base shared"]
    assert own.count("trained on") == 4 and "majority 50.0 on MNLI" in own


def test_a_run_without_noise_and_transfer_draws_the_published_numbers_only():
    for [figure] in draw(of_kowsher().iloc[:0]):
        assert figure.name in ("noise_curves", "transfer_matrices")
        assert set(figure.csv["source"]) == {"published"}
