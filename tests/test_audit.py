"""The audit: judgement by rounding, GRIM, and findings that anybody can do again by hand."""

import ast
from fractions import Fraction

import pandas as pd
import pytest

from stages.audit import described
from stages.audit import stage as audit
from stages.audit.closed_formulas import bert
from stages.audit.findings import NOTE, excludes, possible
from stages.evidence.arithmetic import FAILS, HOLDS, NOT_DECIDED, TRUNCATED, judge
from stages.report.verdicts import audit_totals
from tests.toy_evidence import ROOT, audited, of_released


@pytest.fixture(scope="module")
def checks() -> pd.DataFrame:
    return audited().set_index("check")


@pytest.mark.parametrize(
    ("text", "exact", "verdict"),
    [("12.94", "12.9454", TRUNCATED), ("12.95", "12.9454", HOLDS), ("12.93", "12.9454", FAILS), ("0.5", "0.45", HOLDS),
     ("-0.05", "-0.056", TRUNCATED), ("6", "5.93", HOLDS), ("0.6", "0.66", TRUNCATED), ("50", "48.78", FAILS),
     ("2", "1.95", HOLDS), ("30000", "30400", HOLDS), ("200000", "236742", FAILS)],
)  # fmt: skip
def test_judgement_by_rounding(text, exact, verdict):
    assert judge(text, Fraction(exact)) == verdict


@pytest.mark.parametrize(
    ("word", "text", "exact", "verdict"),
    [("approximately", "2.0", "1.90", HOLDS), ("", "2.0", "1.90", FAILS), ("about", "9.78", "9.53", FAILS),
     ("around", "10", "17.2", FAILS), ("up to", "35", "33.3", HOLDS), ("up to", "35", "35.6", TRUNCATED)],
)  # fmt: skip
def test_a_word_before_a_number_widens_it_by_its_last_digit(word, text, exact, verdict):
    assert judge(text, Fraction(exact), word) == verdict


def test_a_word_without_a_tolerance_is_an_error():
    with pytest.raises(ValueError, match="no tolerance for 'nearly'"):
        judge("2.0", Fraction(2), "nearly")


def test_grim_by_hand():
    assert possible("59.57", 277) == HOLDS  # 165 of 277
    assert possible("59.58", 277) == FAILS
    assert possible("60.58", 277, 5) == HOLDS  # 839 of 1,385
    assert possible("60.60", 277, 5) == FAILS


def test_counts_are_those_of_the_papers():
    assert bert("original", "base").masked_lm == 109_514_298
    assert bert("pairwise", "small").masked_lm == 27_875_642
    assert (bert("shared", "base").masked_lm, bert("shared", "base").classifier) == (95_367_738, 95_337_218)


@pytest.mark.parametrize(
    ("check", "verdict", "part"),
    [
        ("C.AVG.base.pairwise", HOLDS, "79.363"),
        ("C.GAIN.small", TRUNCATED, "+0.66"),
        ("C.GRIM.rte", HOLDS, "14 % of arbitrary values"),
        ("K.PARAM.pct", TRUNCATED, "12.945"),
        ("K24.AVG.symmetric", FAILS, "76.3722"),
        ("K24.GAIN.symmetric", FAILS, "claimed +5.81"),
        ("K25.TEXT.stsb", HOLDS, "claimed approximately 2.0; +1.90 points"),
        ("K25.SWAP", FAILS, "9.78 for cola over symmetric is mrpc: 88.14 - 78.36"),
        ("K25.SWAP", FAILS, "2.0 for stsb over pairwise is cola: 53.91 - 51.91"),
        ("K25.SQUAD.original.single.f1", FAILS, "86.83"),
        ("K24.DIAG.qqp.shared", FAILS, "88.89 and 88.24"),
        ("K.GRIM.rte.59.58", FAILS, "none"),
        ("K.GRIM.rte.59.60", NOT_DECIDED, "the number of runs is not stated"),
        ("K25.TIME.15_20", NOT_DECIDED, "mean 17.2 %"),
        ("K25.STALE.t5sst2", NOT_DECIDED, "the standard column rises under noise, too"),
        ("K24.TIME.tenth", NOTE, "less than stated"),
        ("K.METRIC.mrpc", FAILS, "accuracy alone 74.26"),
        ("C.REL.QQP", FAILS, "base.pairwise 90.54"),
        ("H.2X", HOLDS, "computed 1.9524"),
        ("AOP.2.text", FAILS, "1,048,576"),
        ("C.REL.T3", HOLDS, "54 of 54"),
    ],
)
def test_findings(checks, check, verdict, part):
    assert checks.loc[check, "verdict"] == verdict
    assert part in checks.loc[check, "arithmetic"]


def test_every_check_has_arithmetic_and_a_source(checks):
    assert len(checks) > 250
    assert (checks["arithmetic"] != "").all() and checks["source"].notna().all()


@pytest.mark.parametrize(
    "check", ["C.FILTER", "K25.BESTAVG", "K.TIME.limit", "C.REL.HALF", "K24.NOISE.win.sst2", "K25.NOISE.win.mnli"]
)
def test_what_no_source_says_is_a_note_and_no_check(checks, check):
    assert checks.loc[check, "verdict"] == NOTE


def test_grim_that_cannot_fail_is_no_pass(checks):
    passed = checks[checks.index.str.contains("GRIM") & (checks["verdict"] == HOLDS)].index
    assert len(passed) and not passed.str.contains("qnli|mnli").any()
    assert all(possible(f"{value / 100:.2f}", 5463, 5) == HOLDS for value in range(8000, 8200))
    assert not excludes(5463, 5) and excludes(872, 5)


def test_checks_that_fail_for_one_reason_are_one_fact(checks):
    stale = ["K25.AVG.pairwise", "K25.GAIN.pairwise", "K25.STALE.t1avg", "K25.STALE.gain089"]
    assert set(checks.loc[stale, "fact"]) == {"K25.AVG.pairwise"} and set(checks.loc[stale, "verdict"]) == {FAILS}
    assert checks.loc["K25.DIAG.mrpc.original", "fact"] == "K24.DIAG.mrpc.original"  # the same cells in both editions
    assert checks.loc["K25.AVG.symmetric", "fact"] == "K25.AVG.symmetric"


def test_the_totals_of_the_report_count_facts_by_source_and_keep_readings_apart(checks):
    rows = checks.loc[["K25.AVG.pairwise", "K25.STALE.t1avg", "H.SCOPE", "C.AVG.base.original", "C.GAIN.small"]]
    totals = audit_totals(rows.reset_index()).set_index("source")
    counted = ["facts", "holds", "truncated", "fails", "failing_checks", "by_reading"]
    assert totals.loc["Kowsher et al., both editions", counted].tolist() == [1, 0, 0, 1, 2, 0]
    assert totals.loc["Courtois et al. 2024", counted].tolist() == [2, 1, 1, 0, 0, 0]
    assert totals.loc["Hadamard blog post", counted].tolist() == [0, 0, 0, 0, 0, 1]


def test_a_verdict_is_computed_or_stands_in_the_data_with_the_place_that_was_read(checks):
    """No check in Python hands over a verdict that was typed."""
    for path in (ROOT / "stages/audit").glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("whether", "finding", "Finding"):
                assert not any(
                    isinstance(part, ast.Constant) and part.value in (True, False, HOLDS, FAILS, TRUNCATED)
                    for part in call.args
                ), f"{path.name}, line {call.lineno}"
    read = checks[checks["by"] == "reading"]
    assert set(read.index) == {entry["check"] for entry in described.content()["readings"]}
    assert read["arithmetic"].str.contains(r"\(read: .+\)$").all()


def test_a_fact_of_no_check_is_an_error(monkeypatch):
    wrong = described.content() | {"facts": [{"because": "x", "checks": ["K.NOTHING"]}]}
    monkeypatch.setattr(described, "content", lambda: wrong)
    with pytest.raises(ValueError, match=r"facts: K\.NOTHING is no check"):
        audit.checks(of_released())
