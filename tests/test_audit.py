"""The audit: judgement by rounding, GRIM, and findings that anybody can do again by hand."""

from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

from stages.evidence import audit, measurements, released
from stages.evidence.arithmetic import FAILS, HOLDS, TRUNCATED, bert, judge, possible

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def checks() -> pd.DataFrame:
    folder = ROOT / "data/released"
    rows = pd.concat([released.glue(folder), released.checkpoints(folder), released.validation_loss(folder)])
    return audit.checks(measurements.measurements(rows)).set_index("check")


@pytest.mark.parametrize(
    ("text", "exact", "verdict"),
    [("12.94", "12.9454", TRUNCATED), ("12.95", "12.9454", HOLDS), ("12.93", "12.9454", FAILS), ("0.5", "0.45", HOLDS),
     ("-0.05", "-0.056", TRUNCATED), ("6", "5.93", HOLDS)],
)  # fmt: skip
def test_judgement_by_rounding(text, exact, verdict):
    assert judge(text, Fraction(exact)) == verdict


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
        ("K.PARAM.pct", TRUNCATED, "12.945"),
        ("K24.AVG.symmetric", FAILS, "76.3722"),
        ("K24.GAIN.symmetric", FAILS, "claimed +5.81"),
        ("K25.SQUAD.original.single.f1", FAILS, "86.83"),
        ("K24.DIAG.qqp.shared", FAILS, "88.89 and 88.24"),
        ("K.GRIM.rte.59.58", FAILS, "none"),
        ("C.REL.QQP", FAILS, "base.pairwise 90.54"),
        ("K.TIME.limit", FAILS, "16.2 %"),
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
