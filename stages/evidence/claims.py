"""The ledger of claims: what each one's own numbers, the released raw results and this run say of it.

The claims are those of data/published/claims.yaml; the tests that decide them stand in claim_rules.yaml and are done by
claim_tests.py. A run at another size, or on generated data, tests no claim about scores, losses or times: it is shown
as a reading, beside the verdict `not tested`.
"""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import yaml

from stages.evidence.claim_tests import NO, NOTHING, OPEN, YES, Outcome, describe, evaluate

PATH = Path(__file__).with_name("claim_rules.yaml")
RELEASED = {YES: "follows", NO: "does not follow", OPEN: "inconclusive", NOTHING: "no raw results"}
NOT_TESTED = "not tested"
RUN = {YES: "reproduced", NO: "contradicted", OPEN: "inconclusive", NOTHING: NOT_TESTED}
SHOWN = 3  # lines of arithmetic a claim
COLUMNS = [
    "id",
    "paper",
    "where",
    "kind",
    "claim",
    "numbers",
    "numbers_because",
    "checks",
    "released",
    "released_because",
    "run",
    "run_because",
    "rule",
]


@dataclass(frozen=True)
class Scope:
    """What this run can speak of. comparable: its data are of the papers' kind."""

    sizes: tuple[str, ...]
    comparable: bool
    confidence: float
    alpha: float


def rules(path: Path = PATH) -> dict:
    """The content of claim_rules.yaml."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def ledger(
    claims: list[dict], content: dict, audit: pd.DataFrame, released: pd.DataFrame, run: pd.DataFrame, scope: Scope
) -> pd.DataFrame:
    """One row a claim. ValueError for a rule or reason of a claim that does not exist, or a claim without either."""
    known = {claim["id"] for claim in claims}
    for name in (*content["rules"], *content["untested"]):
        if name not in known:
            raise ValueError(f"{PATH.name}: {name} is no claim of claims.yaml")
    return pd.DataFrame([_row(claim, content, audit, released, run, scope) for claim in claims], columns=COLUMNS)


def _row(
    claim: dict, content: dict, audit: pd.DataFrame, released: pd.DataFrame, run: pd.DataFrame, scope: Scope
) -> dict:
    source, judged = claim["source"], claim["published_audit"]
    checks = audit[_named(audit["check"], judged["checks"])]
    tests = content["rules"].get(claim["id"], [])
    reason = content["untested"].get(claim["id"]) or content["reasons"][claim["test"]["procedure"]]
    of_run = _run(tests, run, scope, reason)
    of_released = _released(claim["id"], tests, released, scope)
    return {
        "id": claim["id"],
        "paper": source["paper"],
        "where": f"{source['version']}: {source['section']}" if source["paper"] == "kowsher" else source["section"],
        "kind": claim["kind"],
        "claim": claim["paraphrase"],
        "numbers": judged["status"],
        "numbers_because": " ".join([judged["note"], *_arithmetic(checks)]).strip(),
        "checks": ", ".join(checks["check"]),
        "released": of_released[0],
        "released_because": of_released[1],
        "run": of_run[0],
        "run_because": of_run[1],
        "rule": "; ".join(dict.fromkeys(describe(test) for test in tests)),
    }


def _named(checks: pd.Series, names: list[str]) -> pd.Series:
    """Checks of these names, and those below them: `C.AVG` stands for `C.AVG.base.original` too."""
    found = pd.Series(False, index=checks.index)
    for name in names:
        found |= (checks == name) | checks.str.startswith((f"{name}.", f"{name}_"))
    return found


def _arithmetic(checks: pd.DataFrame) -> list[str]:
    """The checks in words, those that fail first; as many as fit, and how many more there are."""
    order = checks.sort_values("verdict", key=lambda verdicts: verdicts != "fails", kind="stable")
    lines = [
        f"[{row.check}, {row.verdict}] {row.statement}: {row.arithmetic}." for row in order.head(SHOWN).itertuples()
    ]
    more = len(checks) - len(lines)
    return [*lines, f"And {more} more in the audit."] if more > 0 else lines


def _released(name: str, tests: list[dict], released: pd.DataFrame, scope: Scope) -> tuple[str, str]:
    asked = [
        test for test in tests if test.get("released", True) and "parameters" not in str(test["select"].get("stage"))
    ]
    if not name.startswith("C24") or not asked:
        return RELEASED[NOTHING], ""
    found = evaluate(asked, released, None, scope.confidence, scope.alpha, single=True)
    return RELEASED[found.verdict], found.effect


def _run(tests: list[dict], run: pd.DataFrame, scope: Scope, reason: str) -> tuple[str, str]:
    tests = [test for test in tests if test.get("run", True)]
    if not tests:
        return NOT_TESTED, reason
    obstacle = _obstacle(tests, run, scope)
    if obstacle is None:
        found = evaluate(tests, run, None, scope.confidence, scope.alpha)
        because = found.effect if found.verdict != NOTHING else "This run has not all of the measurements."
        return RUN[found.verdict], because
    readings = [
        f"Reading at BERT-{size}{'' if scope.comparable else ', generated data'}: {found.effect} ({_read(found)})."
        for size in scope.sizes
        if (found := evaluate(tests, run, size, scope.confidence, scope.alpha)).verdict != NOTHING
    ]
    return NOT_TESTED, " ".join([obstacle, *readings])


def _read(found: Outcome) -> str:
    return {YES: "same direction", NO: "opposite direction", OPEN: "undecided"}[found.verdict]


def _obstacle(tests: list[dict], run: pd.DataFrame, scope: Scope) -> str | None:
    """Why this run cannot test a claim; None if it can."""
    trained = [test for test in tests if test["select"].get("stage") != "parameters"]
    if not trained:
        return None
    missing = sorted({str(test["select"].get("stage")) for test in trained} - set(run["stage"]))
    if missing:
        return f"The stage {' and '.join(missing)} was not run."
    sizes = sorted({size for test in trained for size in test.get("sizes", ())} - set(scope.sizes))
    if sizes:
        return f"{' and '.join(f'BERT-{size}' for size in sizes)} {'was' if len(sizes) == 1 else 'were'} not run."
    return None if scope.comparable else "The data are generated."
