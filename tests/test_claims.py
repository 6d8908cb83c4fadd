"""The ledger of claims: complete, decided by its rules, and honest about what a run cannot test."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from stages.analysis import claim_scope, claims, contrasts
from stages.analysis.claim_estimates import estimate
from stages.analysis.claim_tests import Place, decide, evaluate
from stages.analysis.claim_words import fields, power, say
from stages.evidence import baselines, measurements, published
from stages.evidence import power as powers
from stages.evidence.arithmetic import FAILS, HOLDS
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.estimate import spreads, welch
from stages.evidence.scores import COLUMNS, METRICS
from stages.evidence.statistics import INCONCLUSIVE
from stages.parameters import stage as parameters
from stages.schema import scales
from stages.schema.settings import load_settings
from tests.toy_evidence import ROOT, audited, filled, row
from tests.toy_evidence import of_released as of_results

ALL = published.claims()
RULES = claims.rules()
SCOPE = claim_scope.Scope(("tiny",), False, 0.95, 0.05)
AT_BASE = claim_scope.Scope(("base",), True, 0.95, 0.05)
EMPTY = pd.DataFrame(columns=measurements.FIELDS).astype({"value": float})


@pytest.fixture(scope="module")
def checks() -> pd.DataFrame:
    return audited()


@pytest.fixture(scope="module")
def of_released() -> pd.DataFrame:
    """The whole ledger where nothing was run."""
    return claims.ledger(ALL, RULES, audited(), of_results(), EMPTY, SCOPE)


def one(name: str, checks, run: list[dict], scope: claim_scope.Scope = SCOPE, where: str = "training") -> pd.Series:
    """The line of one claim, judged by itself."""
    content = RULES | {"rules": {name: RULES["rules"][name]}, "untested": {}, "facts": {}}
    asked = [claim for claim in ALL if claim["id"] == name]
    frame = measurements.measurements(pd.DataFrame(run))
    return claims.ledger(asked, content, checks, EMPTY, frame, scope).set_index("ledger").loc[where]


def score(operator: str, *values: float, size: str = "base", finetuned: int = 1, spread: float = 0.0) -> list[dict]:
    """GLUE scores by pre-training seed: every column has the score, and fine-tuning seeds lie `spread` apart."""
    return [
        row(operator=operator, size=size, evaluated_on=column, metric=metric, value=value + spread * f)
        | {"pretraining_seed": p, "finetuning_seed": f}
        for p, value in enumerate(values)
        for f in range(finetuned)
        for column, metrics in METRICS["courtois2024"].items()
        for metric in metrics
    ]


def counted(metric: str = "masked_lm_parameters", size: str = "base", **counts: int) -> list[dict]:
    """Counts by operator."""
    return [
        row(stage="parameters", protocol=None, metric=metric, operator=o, size=size, value=float(n))
        for o, n in counts.items()
    ]


def test_every_claim_stands_in_a_ledger_and_each_ledger_has_words_of_its_own(of_released):
    assert set(of_released["id"]) == {claim["id"] for claim in ALL} and len(ALL) == 146
    assert not of_released.duplicated(["ledger", "id"]).any()
    assert set(of_released["ledger"]) == {"counts", "released", "training"}
    assert (of_released[["verdict", "because", "numbers"]] != "").all(axis=None)
    own = {name: set(rows["verdict"]) for name, rows in of_released.groupby("ledger")}
    assert own["training"] == {"not tested"} and own["released"] <= {"holds", "fails", "one checkpoint per arm"}
    assert set(of_released["verdict"]) <= set(claims.WORST_FIRST)


def test_every_estimate_of_a_claim_has_an_interval_of_its_own_or_none(of_released):
    places = of_released[["estimate", "interval"]].fillna("").apply(lambda texts: texts.str.count("; "))
    assert (places["estimate"] == places["interval"]).all()
    [row] = of_released.query("id == 'C24-35' and ledger == 'released'").itertuples()
    (loss, no_interval), (score, interval) = zip(row.estimate.split("; "), row.interval.split("; "), strict=True)
    assert "late loss" in loss and no_interval.endswith(": none")
    assert score.endswith("−3.92") and interval.endswith("−4.70 to −3.14 (95%)")


def test_every_check_that_a_claim_names_is_in_the_audit(checks):
    for claim in ALL:
        for name in claim["published_audit"]["checks"]:
            assert claims._named(checks["check"], [name]).any(), name


def test_one_checkpoint_an_arm_decides_no_claim_about_an_operator(of_released):
    """Courtois et al. released five fine-tuning seeds on one pre-training run of each operator."""
    made = of_released[of_released["ledger"] == "released"].set_index("id")
    about_operators = made.drop(["C24-49", "C24-50"])
    assert (about_operators["verdict"] == "one checkpoint per arm").all()
    assert (made.loc["C24-50", "verdict"], made.loc["C24-49", "verdict"]) == ("holds", "fails")
    assert made.loc["C24-01", "reading"] == "undecided" and made.loc["C24-03", "reading"] == "not as claimed"
    assert "K-01" not in made.index
    assert "by their values alone, which have no interval." in made.loc["C24-18", "because"]
    assert "no interval" not in made.loc["C24-23", "because"]
    assert made.loc["C24-28", "unit_of_inference"] == "one fine-tuning run on one checkpoint per arm"
    power_of_two = made.loc["C24-35", "power"]
    assert "1 more has none, as there are too few runs" in power_of_two and "least certain" not in power_of_two


@pytest.mark.parametrize("gain", [0.1, -0.1])
def test_a_single_pretraining_run_of_ours_decides_none_either(checks, gain):
    run = score("original", 0.5, finetuned=5, spread=0.001) + score("pairwise", 0.5 + gain, finetuned=5, spread=0.0011)
    own = one("C24-01", checks, run, AT_BASE)
    assert own["verdict"] == "one checkpoint per arm"
    assert own["reading"] == ("as claimed" if gain > 0 else "opposite direction")
    assert own["unit_of_inference"] == "5 fine-tuning seeds on one checkpoint per arm"


def test_another_size_is_a_reading_and_no_test(checks):
    run = score("original", 0.5, 0.51, 0.52, size="tiny") + score("pairwise", 0.6, 0.612, 0.62, size="tiny")
    own = one("C24-01", checks, run)
    assert own["verdict"] == "not tested" and own["reading"] == "as claimed"
    assert (
        "BERT-base was not run. Reading at BERT-tiny, generated data: the runs differ in the claimed direction."
        in own["because"]
    )


@pytest.mark.parametrize(("gain", "verdict"), [(0.1, "reproduced"), (-0.1, "contradicted"), (0.0, "inconclusive")])
def test_at_the_papers_size_and_data_several_pretraining_runs_decide(checks, gain, verdict):
    run = score("original", 0.5, 0.51, 0.52) + score("pairwise", *(v + gain for v in (0.5, 0.515, 0.52)))
    own = one("C24-01", checks, run, AT_BASE)
    assert own["verdict"] == verdict and own["unit_of_inference"] == "3 pre-training seeds per arm"
    assert own["power"].startswith(
        "With 3 pre-training seeds per arm and this spread a difference of 0.62 would be found"
    )
    assert one("C24-01", checks, run, replace(AT_BASE, comparable=False))["verdict"] == "not tested"


def test_an_interval_that_holds_zero_has_no_direction(checks):
    """Symmetric is said to lose 4 points: +1.00 (−2.29 to 4.29) is no such loss, and no gain either."""
    run = score("original", 0.40, 0.42, 0.41, size="tiny") + score("symmetric", 0.42, 0.415, 0.425, size="tiny")
    own = one("C24-23", checks, run)
    assert own["reading"] == "not as claimed" and "opposite" not in own["because"]
    run = score("original", 0.40, 0.42, 0.41, size="tiny") + score("symmetric", 0.52, 0.515, 0.525, size="tiny")
    assert one("C24-23", checks, run)["reading"] == "opposite direction"


def test_stability_is_the_spread_within_a_pretraining_run_and_printed_as_a_ratio(checks):
    """Pre-training means lie far apart, which is no matter of fine-tuning seeds."""
    run = score("original", 0.5, 0.6, 0.7, finetuned=3, spread=0.01)
    run += score("pairwise", 0.600, 0.601, 0.602, finetuned=3, spread=0.02)
    assert one("C24-24", checks, run, AT_BASE)["verdict"] == "not tested"  # symmetric was not run
    run += score("symmetric", 0.5, 0.5, 0.5, finetuned=3, spread=0.005)
    own = one("C24-24", checks, run, AT_BASE)
    assert own["estimate"] == "pairwise / original BERT-base: 2.00; symmetric / original BERT-base: 0.5"
    assert own["unit_of_inference"] == "9 fine-tuning runs within 3 pre-training seeds per arm"


def test_an_absolute_number_is_not_read_at_another_scale(checks):
    run = [
        row(stage="pretraining", protocol=None, operator="shared", metric="validation_loss", pretraining_seed=seed)
        | {"condition": "step=100", "value": 5.0 + seed / 10}
        for seed in (1, 2, 3)
    ]
    own = one("K-11", checks, run)
    assert own["verdict"] == "not tested" and "Reading" not in own["because"] and pd.isna(own["estimate"])


def test_counts_are_tested_at_any_scale_by_the_tolerance_of_printed_numbers(checks):
    run = counted(original=109514298, shared=95367738, pairwise=103017018)
    verdicts = {name: one(name, checks, run, where="counts")["verdict"] for name in ("K-03", "C24-02", "K-07")}
    assert verdicts == {"K-03": "fails", "C24-02": "holds", "K-07": "fails"}  # 12.92; 5.93 for "about 6"; 12.92
    run = counted("attention_weights", original=1769472, shared=592128)
    verdicts = {name: one(name, checks, run, where="counts")["verdict"] for name in ("K-02", "K-04")}
    assert verdicts == {"K-02": "truncated", "K-04": "fails"}  # 66.536
    run = counted("attention_block_parameters", "blog", original=1050624, hadamard=538113)
    assert one("H-09", checks, run, where="counts")["verdict"] == "partly"  # twofold, but not 50 %


def test_no_status_of_a_claim_contradicts_what_the_built_models_count(checks):
    settings = load_settings(ROOT / "stages/scales/laptop.yaml")
    tests = [test for tests in RULES["rules"].values() for test in tests]
    operators = {test["select"].get("operator") for test in tests}
    operators |= {name for test in tests for name in test.get("each", {}).get("operator", [])}
    found = parameters.small_sources() + [
        observation
        for size in ("small", "base")
        for name in sorted(operators & set(parameters.OPERATORS))
        for observation in parameters.count(
            name, settings.variant(name), size, settings.models[size].model_dump(), 0.02
        )
    ]
    run = measurements.measurements(pd.DataFrame([vars(observation) for observation in found]))
    made = claims.ledger(ALL, RULES, checks, EMPTY, run, SCOPE).set_index(["ledger", "id"]).loc["counts"]
    assert not made["because"].str.contains("too little").any()
    undecided = ("not-checkable", "unsupported")
    told = made[~made["numbers"].isin(undecided)]
    assert told["verdict"].to_dict() == told["numbers"].to_dict()


def test_facts_are_counted_and_not_the_claims_that_state_them(of_released):
    made = of_released
    for names in (("K-02", "K-04", "K25-14"), ("K-03", "K-06")):
        assert made.loc[made["id"].isin(names), "fact"].nunique() == 1
    tally = claims.tally(made)
    assert tally.groupby("ledger")["claims"].sum().to_dict() == made["ledger"].value_counts().to_dict()
    assert tally.groupby("ledger")["facts"].sum().to_dict() == made.groupby("ledger")["fact"].nunique().to_dict()
    two = made[made["id"].isin(("K-02", "K-04"))].assign(verdict=["truncated", "fails"])
    assert claims.tally(two).set_index("verdict")["facts"].to_dict() == {"fails": 1, "truncated": 0}


@pytest.mark.parametrize("place", [{"untested": {"C24-99": "x"}}, {"facts": {"x": ["C24-99"]}}])
def test_a_rule_of_no_claim_is_an_error(checks, place):
    with pytest.raises(ValueError, match="C24-99 is no claim"):
        claims.ledger(ALL, RULES | place, checks, EMPTY, EMPTY, SCOPE)


COUNT = {"test": "exact", "select": {"stage": "parameters", "size": "tiny"}, "printed": 1}


@pytest.mark.parametrize(
    ("operators", "verdict"), [("a", "holds"), ("b", "fails"), ("ab", "partly"), ("ac", "not tested")], ids=str
)
def test_all_counts_must_hold(operators, verdict):
    rows = pd.DataFrame(
        [row(stage="parameters", metric="count", operator=o, value=v) for o, v in (("a", 1.0), ("b", 2.0))]
    )
    assert evaluate([COUNT | {"each": {"operator": list(operators)}}], rows, 0.95, 0.05).verdict == verdict


def steps(operator: str, *reached: float | None) -> list[dict]:
    """A pre-training run for every number: the step at which its loss was below 3, or None if it never was."""
    return [
        row(stage="pretraining", protocol=None, operator=operator, condition="loss=3", pretraining_seed=seed)
        | {"metric": "steps_to_loss" + ("" if step else "_not_reached"), "value": step or 1000.0}
        for seed, step in enumerate(reached)
    ]


EARLIER = {
    "test": "difference",
    "select": {"stage": "pretraining", "metric": "steps_to_loss", "condition": "loss=3"},
    **{"of": "pairwise", "than": "original", "ratio": True, "below": 1, "sizes": ["tiny"]},
}
TIME = {"test": "value", "select": EARLIER["select"] | {"operator": "pairwise"}, "sizes": ["tiny"]}


def test_two_of_three_earlier_and_one_never_is_not_earlier():
    original = steps("original", 500, 520, 540)
    decided = evaluate([EARLIER], pd.DataFrame(original + steps("pairwise", 300, 310, 305)), 0.95, 0.05)
    one_never = evaluate([EARLIER], pd.DataFrame(original + steps("pairwise", 300, 310, None)), 0.95, 0.05)
    assert (decided.verdict, one_never.verdict) == (HOLDS, INCONCLUSIVE)
    said = fields(one_never, 0.95, 0.05)
    assert "1 of 6 runs never got there" in said["estimate"] and said["interval"].endswith("∞ (95%)")


def test_runs_of_the_original_that_never_get_there_do_not_hide_that_others_did():
    rows = pd.DataFrame(steps("original", 900, 950, None) + steps("pairwise", 300, 310, 305))
    assert evaluate([EARLIER], rows, 0.95, 0.05).verdict == HOLDS
    none = pd.DataFrame(steps("original", None, None, None) + steps("pairwise", None, None, None))
    found = evaluate([EARLIER], none, 0.95, 0.05)
    assert found.verdict == INCONCLUSIVE
    assert fields(found, 0.95, 0.05)["estimate"].endswith("none of 6 runs got there")


@pytest.mark.parametrize(("third", "below", "above"), [(505, HOLDS, FAILS), (None, INCONCLUSIVE, INCONCLUSIVE)])
def test_a_mean_time_is_longer_than_that_of_the_runs_that_get_there(third, below, above):
    rows = pd.DataFrame(steps("pairwise", 500, 502, third))
    assert evaluate([TIME | {"below": 900}], rows, 0.95, 0.05).verdict == below
    found = evaluate([TIME | {"above": 900}], rows, 0.95, 0.05)
    assert found.verdict == above
    assert ("at least 667.33 (1 of 3 runs never got there)" in fields(found, 0.95, 0.05)["estimate"]) == (third is None)


def test_late_runs_show_that_a_mean_time_lies_above_a_number_whatever_others_never_get_there():
    rows = pd.DataFrame(steps("pairwise", 900, 910, None))
    assert evaluate([TIME | {"above": 500}], rows, 0.95, 0.05).verdict == HOLDS


def test_a_single_run_that_never_gets_there_is_not_read_as_one_that_gets_there_at_its_end():
    rows = pd.DataFrame(steps("pairwise", None))
    readings = [
        evaluate([TIME | bound], rows, 0.95, 0.05, single=True).reading
        for bound in ({"below": 1500}, {"below": 500}, {"above": 500})
    ]
    assert readings == ["undecided", "not as claimed", "as claimed"]


def test_a_claim_about_scores_has_the_difference_interval_and_test_of_the_contrasts():
    """Claims also ask for ratios and other references, so both are made by one function, and not one of the other."""
    rows = of_results()
    select = {"stage": "finetuning", "metric": "score", "size": "base", "evaluated_on": "glue_score"}
    test = {"test": "difference", "of": "pairwise", "than": "original", "scale": 100}
    found = estimate(test, rows, select, 0.95)
    nothing = pd.DataFrame(columns=measurements.FIELDS)
    frame = contrasts.table({"released": contrasts.quantities(nothing, rows, {})}, 0.95, 0.05)
    [row] = frame[(frame["arm"] == "pairwise") & (frame["size"] == "base") & (frame["at"] == "glue_score")].itertuples()
    alone = (row.estimate, row.low_unadjusted, row.high_unadjusted, row.p)
    assert (found.value, found.low, found.high, found.p) == pytest.approx(alone)
    assert (found.unit, found.n, found.paired) == (row.unit_of_inference, (row.n, row.n_reference), row.paired)


def test_claims_contrasts_and_cells_count_the_same_runs_that_never_get_there():
    """Of the third run, one fine-tuning seed of two arrives, which leaves open when the run does."""
    select = {"stage": "convergence", "metric": "steps_to_95_percent"}
    ends = {"original": [(500, 510), (520, 530), (540, 550)], "pairwise": [(300, 310), (305, 315), (320, None)]}
    rows = pd.DataFrame(
        [
            row(**select | {"metric": select["metric"] + ("" if step else "_not_reached")}, operator=operator)
            | {"value": step or 1000.0, "size": "base", "pretraining_seed": p, "finetuning_seed": f}
            for operator, runs in ends.items()
            for p, steps in enumerate(runs)
            for f, step in enumerate(steps)
        ]
    )
    test = {"test": "difference", "of": "pairwise", "than": "original"}
    found = estimate(test, rows, select, 0.95)
    assert (found.never, found.n, found.at_least, found.high) == ((1, 0), (3, 3), True, np.inf)
    observed = pd.DataFrame(columns=measurements.FIELDS)
    compared = contrasts.table({"reproduced": contrasts.quantities(observed, rows, {})}, 0.95, 0.05).iloc[0]
    assert compared[["estimate", "never", "never_reference"]].tolist() == [found.value, 1, 0]
    cells = filled("courtois2024_text_and_figure_numbers", rows.to_dict("records")).set_index(["row_key", "column_key"])
    assert cells.loc[("base.pairwise", "steps_to_95pct"), "verdict"] == "1 of 3 runs never got there"
    assert cells.loc[("base.original", "steps_to_95pct"), "reproduced"] == 525


def test_scores_at_chance_decide_nothing():
    run = measurements.measurements(
        pd.DataFrame(score("original", 0.5, 0.51, 0.52) + score("pairwise", 0.6, 0.612, 0.62))
    )
    asked = {"test": "difference", "of": "pairwise", "than": "original", "above": 0, "scale": 100, "sizes": ["base"]}
    asked |= {"select": RULES["rules"]["C24-01"][0]["select"]}
    for high, verdict in ((0.55, HOLDS), (0.65, AT_CHANCE)):
        known = {("most_frequent", "courtois2024", column, "score"): (0.4, high) for column in (*COLUMNS, "glue_score")}
        found = evaluate([asked], baselines.add_baselines(run, known), 0.95, 0.05)
        assert found.verdict == verdict
        assert (fields(found, 0.95, 0.05)["power"] == "") == (verdict == AT_CHANCE)


def test_a_place_at_chance_hides_no_refutation_in_another_place_and_refutes_nothing_itself():
    values = {"mrpc": {"original": [0.5, 0.51, 0.52], "pairwise": [0.4, 0.412, 0.42]}, "rte": {"original": [0.5] * 3}}
    values["rte"]["pairwise"] = [0.6, 0.612, 0.62]
    run = [
        row(operator=operator, size="base", evaluated_on=task, metric="score", pretraining_seed=seed, value=value)
        for task, arms in values.items()
        for operator, runs in arms.items()
        for seed, value in enumerate(runs)
    ]
    asked = {"test": "difference", "of": "pairwise", "than": "original", "above": 0, "sizes": ["base"]}
    asked |= {"select": {"stage": "finetuning", "metric": "score"}}
    for at_chance, tasks, expected in (
        ("rte", ["mrpc", "rte"], (FAILS, "opposite direction")),
        ("mrpc", ["mrpc", "rte"], (AT_CHANCE, AT_CHANCE)),
        ("rte", ["rte"], (AT_CHANCE, AT_CHANCE)),
    ):
        chance = {("most_frequent", "courtois2024", at_chance, "score"): (0.4, 0.9)}
        rows = baselines.add_baselines(pd.DataFrame(run), chance)
        found = evaluate([asked | {"each": {"evaluated_on": tasks}}], rows, 0.95, 0.05)
        assert (found.verdict, found.reading) == expected


def test_a_scale_with_one_pretraining_seed_says_so_in_its_head():
    for name in scales.names():
        text = scales.read(name)
        single = len(yaml.safe_load(text)["pretraining"]["seeds"]) == 1
        assert ("one checkpoint per arm" in text.partition("\nscale:")[0]) == single, name


# How often the rules err, and how often they find what is there

RUNS, ALPHA, SEEDS, CELLS = 400, 0.05, 5, 3
RARE = ALPHA + 2 * np.sqrt(ALPHA * (1 - ALPHA) / RUNS)  # alpha, and twice the Monte Carlo error
KINDS = {  # the rule; means of the cells at the boundary, inside and outside of the claim, in units of the spread
    "better everywhere": ({"above": 0}, [0.0, 9.0, 9.0], [4.0] * CELLS, [4.0, 4.0, -4.0]),
    "worse everywhere": ({"below": 0}, [0.0, -9.0, -9.0], [-4.0] * CELLS, [-4.0, -4.0, 4.0]),
    "not worse than a margin": ({"above": -2}, [-2.0, 9.0, 9.0], [1.5] * CELLS, [0.0, 0.0, -6.0]),
    "in a range": ({"between": [0, 9]}, [9.0, 4.5, 4.5], [4.5] * CELLS, [4.5, 4.5, 14.0]),
    "equivalent": ({"within": 4}, [4.0, 0.0, 0.0], [0.0] * CELLS, [0.0, 0.0, 9.0]),
    "faster": ({"below": 1, "ratio": True}, [0.0, -0.9, -0.9], [-0.4] * CELLS, [-0.4, -0.4, 0.4]),
}


def verdicts(kind: str, means: list[float]) -> list[str]:
    """The rule's verdicts on simulated runs; means: of the difference in every cell (of its logarithm for a ratio)."""
    test, ratio = {"test": "difference"} | KINDS[kind][0], "ratio" in KINDS[kind][0]
    generator = np.random.default_rng([7, *kind.encode()])
    decided = []
    for _ in range(RUNS):
        own, other = generator.normal(size=(2, len(means), SEEDS)) * (0.1 if ratio else 1)
        own += np.array(means)[:, None]
        sides = (np.exp(own), np.exp(other)) if ratio else (own, other)
        made = [welch(*pair, 1 - ALPHA, ratio) for pair in zip(*sides, strict=True)]
        decided.append(decide([Place(test, found) for found in made], ALPHA))
    return decided


@pytest.mark.parametrize("kind", KINDS)
def test_a_rule_errs_at_its_boundary_no_more_often_than_alpha_and_finds_a_clear_truth(kind):
    _, boundary, inside, outside = KINDS[kind]
    assert verdicts(kind, boundary).count(HOLDS) / RUNS <= RARE
    assert verdicts(kind, [boundary[0]] * CELLS).count(FAILS) / RUNS <= RARE  # true, and at the boundary everywhere
    assert verdicts(kind, inside).count(HOLDS) / RUNS > 0.7
    assert verdicts(kind, outside).count(FAILS) / RUNS > 0.7


def test_the_spread_of_finetuning_seeds_is_compared_with_the_same_care():
    generator = np.random.default_rng(8)
    freedom, cells = (8, 8), {}
    for name, ratio in (("equal", 1.0), ("less", 0.2), ("more", 5.0)):
        own, other = (generator.chisquare(8, size=(RUNS, 2)) / 8) ** 0.5, (generator.chisquare(8, (RUNS, 2)) / 8) ** 0.5
        cells[name] = [
            decide(
                [Place({"test": "spread", "below": 1}, spreads(ratio * a, b, freedom, 0.95)) for a, b in pairs],
                ALPHA,
            )
            for pairs in (zip(*sides, strict=True) for sides in zip(own, other, strict=True))
        ]
    assert cells["equal"].count(HOLDS) / RUNS <= RARE and cells["equal"].count(FAILS) / RUNS <= RARE
    assert cells["less"].count(HOLDS) / RUNS > 0.7 and cells["more"].count(FAILS) / RUNS > 0.7


def test_the_power_that_is_told_is_the_share_of_runs_in_which_an_effect_is_found():
    error, freedom = np.sqrt(2 / SEEDS), 2 * SEEDS - 2
    found = verdicts("better everywhere", [2.0]).count(HOLDS) / RUNS
    assert found == pytest.approx(powers.direction(2.0, error, freedom, ALPHA), abs=3 * np.sqrt(0.25 / RUNS))
    least = powers.smallest_effect(error, freedom, ALPHA)
    assert powers.direction(least, error, freedom, ALPHA) == pytest.approx(0.8)
    ratio = powers.smallest_spread((8, 8), ALPHA)
    assert stats.f.cdf(stats.f.ppf(ALPHA / 2, 8, 8) / ratio**2, 8, 8) == pytest.approx(0.8)
    inside = verdicts("equivalent", [0.0]).count(HOLDS) / RUNS
    assert inside == pytest.approx(powers.inside(4, 4, error, freedom, ALPHA), abs=0.08)


def test_models_of_translation_are_counted_by_their_training_seeds():
    select = {"stage": "translation", "size": "blog", "metric": "beam_bleu"}
    rows = [
        row(**select, operator=operator, pretraining_seed=seed, value=20.0 + seed)
        for operator in ("original", "hadamard")
        for seed in (1, 2)
    ]
    test = {"test": "difference", "of": "hadamard", "than": "original"}
    made = estimate(test, pd.DataFrame(rows, columns=measurements.FIELDS), select, 0.95)
    assert say("unit_of_inference", estimate=made) == "2 training seeds per arm"


APART = welch(np.array([1.0, 1.2, 1.1]), np.array([1.0, 0.9, 1.1]), 0.95)


def told(*rules: dict) -> str:
    """The power of tests of one difference; each rule: its metric, where it is not `score`, and what must hold."""
    tests = [{"test": "difference", "metric": "score"} | rule for rule in rules]
    return power([Place(test, APART, {"metric": test.pop("metric")}) for test in tests], 0.05)


def test_power_without_a_claimed_effect_is_told_against_the_bound():
    assert "be shown to lie above −2 with 80 % power" in told({"above": -2.0})
    assert "be found with 80 % power" in told({"above": 0.0})


def test_a_range_is_tested_two_sided_and_an_equivalence_one_sided():
    for rule, alpha in (({"between": [-0.3, 0.3]}, 0.025), ({"within": 0.3}, 0.05)):
        share = powers.inside(0.3, 0.3, APART.error, APART.freedom, alpha)
        assert f" with {100 * share:.0f} % power" in told(rule)


def test_powers_and_effects_in_several_units_are_not_ranked_against_each_other():
    metrics = (("error", 0.0), ("error", -2.0), ("beam_bleu", 0.0))
    said = told(*({"metric": metric, "above": bound} for metric, bound in metrics), {"metric": "error", "within": 0.05})
    assert said.count("With ") == 3 and said.count("Of 2 places of this kind, this is the least certain one.") == 1
    assert "equivalence of equal operators within 0.05" in said


def test_runs_that_are_all_equal_decide_a_claim_where_they_lie_apart():
    own, other = np.array([0.77, 0.78, 0.8, 0.81, 0.79]), np.zeros(5)
    made = welch(own, other, 0.95)
    assert not made.has_interval and made.tested
    assert made.p_above(0.0) == pytest.approx(1 / 252) and made.p_below(0.0) == 1.0
    assert made.p_above(0.785) == 1.0 == made.p_below(0.785)  # some of the runs lie on either side
    verdicts = [decide([Place({"test": "difference", side: 0.0}, made)], 0.05) for side in ("above", "below")]
    assert verdicts == [HOLDS, FAILS]
