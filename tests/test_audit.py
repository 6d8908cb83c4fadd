"""The audit: judgement by rounding, GRIM, and findings that anybody can do again by hand."""

import re
from fractions import Fraction

import pandas as pd
import pytest

from stages.audit.findings import read_content
from stages.audit.grim import judge_mean
from stages.evidence import published
from stages.evidence.verdicts import AUDITED, Statement, judge_printed_number
from stages.report.claims_and_audit import count_facts
from tests.toy_evidence import FAILS, HOLDS, ROOT, TRUNCATED, UNDECIDED, read_audit

NOTE = Statement.NOT_CHECKABLE


@pytest.fixture(scope="module")
def checks() -> pd.DataFrame:
    return read_audit().set_index("check")


@pytest.mark.parametrize(
    ("word", "text", "exact", "verdict"),
    [
        ("", "12.94", "12.9454", TRUNCATED),
        ("", "12.95", "12.9454", HOLDS),
        ("", "12.93", "12.9454", FAILS),
        ("", "-0.05", "-0.056", TRUNCATED),
        ("", "30000", "30400", HOLDS),
        ("", "200000", "236742", FAILS),
        # A word before a number widens the number by its last digit.
        ("approximately", "2.0", "1.90", HOLDS),
        ("", "2.0", "1.90", FAILS),
        ("up to", "35", "33.3", HOLDS),
        ("up to", "35", "35.6", TRUNCATED),
    ],
)
def test_judgement_by_rounding_and_by_the_word_before_a_number(word, text, exact, verdict):
    assert judge_printed_number(text, Fraction(exact), word) == verdict


def test_a_word_without_a_tolerance_is_an_error():
    with pytest.raises(ValueError, match="no tolerance for 'nearly'"):
        judge_printed_number("2.0", Fraction(2), "nearly")


def test_grim_by_hand():
    # 165 of 277 answers, or 839 of 1,385 answers, are right.
    assert judge_mean("59.57", 277, 1) == judge_mean("60.58", 277, 5) == HOLDS
    assert judge_mean("59.58", 277, 1) == judge_mean("60.60", 277, 5) == FAILS


def test_grim_is_no_check_where_it_cannot_fail(checks):
    assert all(judge_mean(f"{value / 100:.2f}", 5463, 5) == HOLDS for value in range(8000, 8200))
    assert not checks.index.str.contains(r"GRIM\.(?:qnli|mnli|qqp)").any()


@pytest.mark.parametrize(
    ("check", "verdict", "part"),
    [
        ("C.SIX", HOLDS, "computed 5.9328"),
        ("C.AVG.base.pairwise", HOLDS, "79.363"),
        ("C.GAIN.small", TRUNCATED, "+0.66"),
        ("C.GRIM.rte", HOLDS, "14 % of arbitrary values"),
        ("K24.AVG.symmetric", FAILS, "76.3722"),
        ("K25.TEXT.stsb", HOLDS, "claimed approximately 2.0; +1.90 points"),
        ("K25.SWAP", FAILS, "51.91; 9.78 for cola over symmetric is mrpc: 88.14 - 78.36"),
        ("K25.SQUAD.original.single.f1", FAILS, "86.83"),
        ("K.GRIM.rte.59.60", UNDECIDED, "the number of runs is not stated"),
        ("K25.TIME.15_20", UNDECIDED, "mean 17.2 %"),
        ("K25.STALE.t5sst2", UNDECIDED, "the standard column rises under noise, too"),
        ("K.TIME.limit", NOTE, "16.2 % at 128 tokens"),
        ("K.CROSS.mean", NOTE, "mean -0.10, median +0.94; sign test p = 0.39"),
        ("K.METRIC.mrpc", FAILS, "accuracy alone 74.26"),
        ("C.REL.QQP", FAILS, "base.pairwise 90.54"),
        ("AOP.2.text", FAILS, "1,048,576"),
        ("C.REL.T3", HOLDS, "54 of 54"),
        ("C.REL.SMOOTH", HOLDS, "original 4.52, symmetric 1.13, pairwise 0.13"),
    ],
)
def test_findings(checks, check, verdict, part):
    assert checks.loc[check, "verdict"] == verdict
    assert part in checks.loc[check, "arithmetic"]


def test_every_check_has_a_name_arithmetic_and_a_source(checks):
    assert checks.index.is_unique
    assert (checks[["arithmetic", "source"]] > "").all(axis=None)


def test_a_check_that_judges_nothing_is_there_only_for_a_claim_that_names_it(checks):
    named = []
    for claim in published.read_claims():
        named += [f"{name}." for name in claim["published_audit"]["checks"]]
    for check in checks.index[checks["verdict"] == NOTE]:
        assert f"{check}.".startswith(tuple(named))


def test_checks_that_fail_for_one_reason_are_one_fact(checks):
    facts = checks["fact"]
    assert facts["K25.GAIN.pairwise"] == "K25.AVG.pairwise"
    # Both editions have the same cells.
    assert facts["K25.DIAG.mrpc.original"] == "K24.DIAG.mrpc.original"
    assert facts["K25.AVG.symmetric"] == "K25.AVG.symmetric"
    for check, fact in read_content("checks")["facts"].items():
        assert facts[check] == facts[fact] == fact


def test_the_totals_of_the_report_count_facts_by_source_and_keep_readings_apart(checks):
    rows = checks.loc[["K25.AVG.pairwise", "K25.STALE.t1avg", "H.SCOPE", "C.AVG.base.original", "C.GAIN.small"]]
    totals = count_facts(rows.reset_index()).set_index(["paper", "word"])["estimate"].to_dict()
    assert totals == {
        ("Kowsher et al., both editions", AUDITED[FAILS]): 1,
        ("Courtois et al. 2024", AUDITED[HOLDS]): 1,
        ("Courtois et al. 2024", TRUNCATED): 1,
        ("Hadamard blog post", f"{AUDITED[FAILS]} by reading"): 1,
    }


@pytest.mark.parametrize("verdicts", [(FAILS, HOLDS), (HOLDS, FAILS)])
def test_a_fact_has_the_worst_verdict_of_its_checks(checks, verdicts):
    rows = checks.loc[["K25.AVG.pairwise", "K25.STALE.t1avg"]].assign(verdict=verdicts)
    [totals] = count_facts(rows.reset_index()).to_dict("records")
    assert (totals["word"], totals["estimate"]) == (AUDITED[FAILS], 1)


def test_no_check_in_python_hands_over_a_verdict_that_was_typed():
    typed = re.compile(
        r"\b(check_statement|make_finding)\([^,()]+,\s*(True|False|Statement\.(HOLDS|FAILS|TRUNCATED))\s*[,)]"
    )
    for path in (ROOT / "stages/audit").glob("*.py"):
        assert not typed.search(path.read_text()), path.name


def test_a_reading_names_the_place_that_was_read(checks):
    readings = checks.loc[checks["by"] == "reading", "arithmetic"]
    assert readings.str.contains(r"\(read: .+\)$").all()
