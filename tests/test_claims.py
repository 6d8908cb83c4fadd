"""The ledger of claims is complete, follows the rules, and never contradicts the contrasts."""

from dataclasses import replace
from itertools import chain

import pandas as pd
import pytest

from stages.analysis import claims
from stages.analysis.claims import ClaimSources, Finding
from stages.evidence import measurements, published
from stages.evidence.scores import METRICS
from stages.evidence.verdicts import TESTED, Difference, Statement
from stages.parameters import stage as parameters
from stages.schema.settings import load_settings
from tests.toy_evidence import (
    FAILS,
    HOLDS,
    NOTHING,
    ROOT,
    TRUNCATED,
    UNDECIDED,
    compare,
    make_row,
    read_audit,
    select_released,
)

ALL = published.read_claims()
RULES = claims.load_rules()


def make_claim_sources(run: pd.DataFrame, generated: bool = False) -> ClaimSources:
    """The evidence of a run with these measurements, without the contrasts of the released results."""
    return ClaimSources(read_audit(), compare(run), run, select_released(), generated)


def judge(name: str, judged_by: ClaimSources, ledger: str = claims.TRAINING) -> pd.Series:
    """The row of a claim in a ledger."""
    asked = [claim for claim in ALL if claim["id"] == name]
    return claims.build_ledger(asked, judged_by).set_index("ledger").loc[ledger]


def score(operator: str, *values: float, size: str = "base") -> list[dict]:
    """Fine-tuning runs by pre-training seed; every metric of every column is the value."""
    rows = []
    for seed, value in enumerate(values):
        for column, metrics in METRICS["courtois2024"].items():
            place = {"operator": operator, "size": size, "evaluated_on": column, "value": value}
            rows += [make_row(**place, metric=metric, pretraining_seed=seed, finetuning_seed=0) for metric in metrics]
    return rows


def measure(*rows: list[dict]) -> pd.DataFrame:
    """The measurements of these observations."""
    return measurements.compute_measurements(pd.DataFrame(list(chain(*rows))))


def count(metric: str, size: str = "base", **counts: int) -> pd.DataFrame:
    """The measurements of counted parameters, by operator."""
    place = {"stage": "parameters", "protocol": None, "metric": metric, "size": size}
    return measure([make_row(**place, operator=operator, value=float(n)) for operator, n in counts.items()])


@pytest.fixture(scope="module")
def without_run() -> ClaimSources:
    """The evidence where nothing was run, with the contrasts of the released results."""
    return replace(make_claim_sources(NOTHING), contrasts=compare(select_released(), source="released"))


def test_every_claim_stands_in_exactly_one_section_of_the_rules():
    named = [*RULES["counts"], *RULES["released"], *RULES["contrasts"], *RULES["read"]]
    for group in RULES["untested"]:
        named += group["claims"]
    assert sorted(named) == sorted(claim["id"] for claim in ALL)
    assert len(ALL) == 146


def test_every_claim_stands_in_a_ledger_and_each_ledger_has_its_own_words(without_run):
    ledger = claims.build_ledger(ALL, without_run)
    assert set(ledger["id"]) == {claim["id"] for claim in ALL}
    assert not ledger.duplicated(["ledger", "id"]).any()
    assert (ledger[["verdict", "because", "numbers"]] != "").all(axis=None)
    words = ledger.groupby("ledger")["verdict"].unique().map(set)
    assert words["training"] == {UNDECIDED}
    assert words["released"] == {HOLDS, FAILS, UNDECIDED}


def test_every_check_that_a_claim_names_is_in_the_audit():
    """A name such as `C.AVG` also stands for checks whose names begin with `C.AVG.`."""
    checks = read_audit()["check"]
    for claim in ALL:
        for name in claim["published_audit"]["checks"]:
            assert (checks == name).any() or checks.str.startswith((f"{name}.", f"{name}_")).any(), name


def test_one_checkpoint_per_arm_decides_no_claim_about_an_operator(without_run):
    """Courtois et al. released five fine-tuning seeds of a single pre-training run per operator."""
    gain = judge("C24-01", without_run, "released")
    assert gain["verdict"] == UNDECIDED
    assert "single pre-training run" in gain["because"]
    assert gain["estimate"] == "BERT-base pairwise − original, glue_score: 0.625 (−0.319 to 1.57)"


@pytest.mark.parametrize(
    ("size", "generated", "gain", "verdict"),
    [
        ("base", False, 0.1, HOLDS),
        ("base", False, -0.1, FAILS),
        ("base", True, 0.1, UNDECIDED),
        ("tiny", False, 0.1, UNDECIDED),
    ],
)
def test_several_pretraining_runs_at_the_papers_size_and_data_decide(size, generated, gain, verdict):
    original = score("original", 0.5, 0.51, 0.52, size=size)
    pairwise = score("pairwise", 0.5 + gain, 0.515 + gain, 0.52 + gain, size=size)
    assert judge("C24-01", make_claim_sources(measure(original, pairwise), generated))["verdict"] == verdict


def test_two_seeds_decide_nothing():
    run = measure(score("original", 0.5, 0.51), score("pairwise", 0.6, 0.612))
    assert judge("C24-01", make_claim_sources(run))["verdict"] == UNDECIDED


def test_a_claim_about_the_sign_of_a_difference_has_the_verdict_of_the_contrast(without_run):
    """Single checkpoints have an interval, but no verdict on the operator."""
    rows = without_run.contrasts
    for contrast in rows[rows["p"].notna()].to_dict("records"):
        entry = {name: contrast[name] for name in ("quantity", "protocol", "size", "at", "arm")}
        verdicts = [claims.judge_contrast(entry | {side: 0}, rows).verdict for side in ("above", "below")]
        expected = {Difference.HIGHER: [HOLDS, FAILS], Difference.LOWER: [FAILS, HOLDS]}
        assert verdicts == expected.get(contrast["verdict"], [UNDECIDED, UNDECIDED])
        assert contrast["unit_of_inference"] != "fine-tuning seeds" or contrast["verdict"] not in TESTED


@pytest.mark.parametrize(
    ("bounds", "verdict"),
    [
        ({"above": 1.5}, HOLDS),
        ({"above": 2.5}, UNDECIDED),
        ({"above": 3.0}, FAILS),
    ],
)
def test_a_claim_about_a_size_is_decided_by_the_simultaneous_interval(without_run, bounds, verdict):
    rows = without_run.contrasts.iloc[:1].assign(estimate=2.5, low=2.0, high=3.0, verdict=Difference.HIGHER)
    entry = {name: rows.iloc[0][name] for name in ("quantity", "protocol", "size", "at", "arm")}
    assert claims.judge_contrast(entry | bounds, rows).verdict == verdict


@pytest.mark.parametrize(
    ("verdicts", "in_part", "verdict"),
    [
        ([HOLDS, HOLDS], False, HOLDS),
        ([HOLDS, TRUNCATED], False, TRUNCATED),
        ([HOLDS, FAILS, UNDECIDED], False, FAILS),
        ([HOLDS, UNDECIDED], False, UNDECIDED),
        ([HOLDS, FAILS], True, Statement.PARTLY),
    ],
)
def test_a_claim_holds_if_all_of_its_rows_do_and_fails_if_one_does(verdicts, in_part, verdict):
    assert claims.decide_claim([Finding(one) for one in verdicts], in_part) == verdict


MODELS = count("masked_lm_parameters", original=109514298, shared=95367738, pairwise=103017018)
WEIGHTS = count("attention_weights", original=1769472, shared=592128)
CUT_OFF = count("attention_weights", original=100_000, pairwise=69_431)
ONE_CUT_OFF = pd.concat([count("attention_weights", "small", original=10_000, pairwise=7_083), CUT_OFF])
BLOCKS = count("attention_block_parameters", "blog", original=1050624, hadamard=538113)


@pytest.mark.parametrize(
    ("name", "run", "verdict"),
    [
        ("C24-02", MODELS, HOLDS),  # 5.93 for "about 6"
        ("K-07", MODELS, FAILS),
        ("K-02", WEIGHTS, TRUNCATED),  # 66.536
        ("C24-07", ONE_CUT_OFF, TRUNCATED),  # 29.17, and 30.569 for 30.56
        ("H-09", BLOCKS, Statement.PARTLY),  # twofold, but not 50 %
    ],
)
def test_counts_are_judged_at_any_scale_by_the_tolerance_of_printed_numbers(without_run, name, run, verdict):
    assert judge(name, replace(without_run, run=run, generated=True), "counts")["verdict"] == verdict


def test_no_status_of_a_claim_contradicts_the_counts_of_the_built_models(without_run):
    settings = load_settings(ROOT / "stages/scales/laptop.yaml")
    found = list(parameters.count_small_sources())
    for size in ("small", "base"):
        for name in ("original", "symmetric", "pairwise", "shared", "partial_qk", "hadamard"):
            model = settings.models[size].model_dump()
            found += parameters.count_operator(name, settings.collect_operator_settings(name), size, model, 0.02)
    run = measurements.compute_measurements(pd.DataFrame([vars(observation) for observation in found]))
    ledger = claims.build_ledger(ALL, replace(without_run, run=run))
    counted = ledger[ledger["id"].isin(RULES["counts"])]
    assert (counted["because"] == "Counted on the built models.").all()
    stated = counted[~counted["numbers"].isin((Statement.NOT_CHECKABLE, Statement.UNSUPPORTED))]
    assert stated["verdict"].tolist() == stated["numbers"].tolist()
