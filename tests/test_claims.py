"""The ledger of claims: complete, decided by its rules, and honest about what a run cannot test."""

from pathlib import Path

import pandas as pd
import pytest

from stages.evidence import audit, claims, measurements, published, released
from stages.evidence.claim_tests import NO, NOTHING, OPEN, YES, evaluate
from tests.test_evidence import row

ROOT = Path(__file__).parents[1]
ALL = published.claims(ROOT / "data/published")
RULES = claims.rules()
SCOPE = claims.Scope(("tiny",), False, 0.95, 0.05)
EMPTY = pd.DataFrame(columns=measurements.FIELDS).astype({"value": float})


@pytest.fixture(scope="module")
def raw() -> pd.DataFrame:
    folder = ROOT / "data/released"
    return measurements.measurements(
        pd.concat([released.glue(folder), released.checkpoints(folder), released.validation_loss(folder)])
    )


@pytest.fixture(scope="module")
def checks(raw) -> pd.DataFrame:
    return audit.checks(raw)


def ledger(raw, checks, run: list[dict] = (), scope: claims.Scope = SCOPE) -> pd.DataFrame:
    frame = measurements.measurements(pd.DataFrame(run)) if run else EMPTY
    return claims.ledger(ALL, RULES, checks, raw, frame, scope).set_index("id")


def score(operator: str, *values: float, size: str = "base") -> list[dict]:
    """GLUE scores by pre-training seed: every column has the score."""
    from stages.evidence.scores import METRICS

    return [
        row(operator=operator, size=size, evaluated_on=column, metric=metric, value=value)
        | {"pretraining_seed": p, "finetuning_seed": 1}
        for p, value in enumerate(values)
        for column, metrics in METRICS["courtois2024"].items()
        for metric in metrics
    ]


def test_every_claim_has_three_judgements(raw, checks):
    made = ledger(raw, checks)
    assert len(made) == len(ALL) == 146
    assert set(made["released"]) <= set(claims.RELEASED.values()) and set(made["run"]) <= set(claims.RUN.values())
    assert (made["numbers"] != "").all() and (made.loc[made["run"] == "not tested", "run_because"] != "").all()


def test_every_check_that_a_claim_names_is_in_the_audit(checks):
    for claim in ALL:
        for name in claim["published_audit"]["checks"]:
            assert claims._named(checks["check"], [name]).any(), name


def test_the_released_gain_decides_nothing_and_half_the_steps_do_not_follow(raw, checks):
    made = ledger(raw, checks)["released"]
    assert made["C24-01"] == "inconclusive" and made["C24-03"] == "does not follow" and made["C24-18"] == "follows"
    assert made["K-01"] == "no raw results"


def test_another_size_is_a_reading_and_no_test(raw, checks):
    run = score("original", 0.5, 0.51, 0.52, size="tiny") + score("pairwise", 0.6, 0.61, 0.62, size="tiny")
    own = ledger(raw, checks, run).loc["C24-01"]
    assert own["run"] == "not tested"
    assert "BERT-base was not run. Reading at BERT-tiny, generated data:" in own["run_because"]
    assert "same direction" in own["run_because"]


@pytest.mark.parametrize(("gain", "verdict"), [(0.1, "reproduced"), (-0.1, "contradicted"), (0.0, "inconclusive")])
def test_at_the_papers_size_and_data_the_interval_decides(raw, checks, gain, verdict):
    run = score("original", 0.5, 0.51, 0.52) + score("pairwise", *(v + gain for v in (0.5, 0.515, 0.52)))
    scope = claims.Scope(("base",), True, 0.95, 0.05)
    assert ledger(raw, checks, run, scope).loc["C24-01", "run"] == verdict
    generated = claims.Scope(("base",), False, 0.95, 0.05)
    assert ledger(raw, checks, run, generated).loc["C24-01", "run"] == "not tested"


def test_counts_are_tested_at_any_scale(raw, checks):
    counts = {"original": 109514298, "shared": 95367738}
    run = [
        row(stage="parameters", protocol=None, metric="masked_lm_parameters", operator=o, size="base", value=v)
        for o, v in counts.items()
    ]
    made = ledger(raw, checks, run)
    assert made.loc["K-03", "run"] == "contradicted" and "12.92" in made.loc["K-03", "run_because"]


def test_a_rule_of_no_claim_is_an_error(raw, checks):
    with pytest.raises(ValueError, match="C24-99 is no claim"):
        claims.ledger(ALL, RULES | {"untested": {"C24-99": "x"}}, checks, raw, EMPTY, SCOPE)


def test_all_tests_must_hold():
    rows = pd.DataFrame(
        [row(stage="parameters", metric="count", operator=o, value=v) for o, v in (("a", 1.0), ("b", 2.0))]
    )
    test = {"test": "exact", "select": {"stage": "parameters", "size": "tiny"}, "equals": 1, "decimals": 0}
    both = test | {"each": {"operator": ["a", "b"]}}
    assert evaluate([test | {"each": {"operator": ["a"]}}], rows, None, 0.95, 0.05).verdict == YES
    assert evaluate([both], rows, None, 0.95, 0.05).verdict == NO
    assert evaluate([test | {"each": {"operator": ["a", "c"]}}], rows, None, 0.95, 0.05).verdict == NOTHING
    assert OPEN not in (YES, NO, NOTHING)
