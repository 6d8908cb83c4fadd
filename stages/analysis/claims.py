"""The ledger of claims, in three parts that are never summed: counts, released data, training.

`counts` holds what arithmetic decides: printed numbers against each other and against counted parameters. `released`
holds what the raw results that Courtois et al. released say of their own claims. `training` holds what this run says.
The claims are those of data/published/claims.yaml; the tests that decide them stand in claim_rules.yaml and are done by
claim_tests.py. A run at another size, by another protocol of translation than the source's, or on generated data, tests
no claim about scores, losses or times: what it found stands next to the verdict `not tested`.
"""

from pathlib import Path

import pandas as pd
import yaml

from stages.analysis import claim_scope, claim_words
from stages.analysis.claim_scope import Scope
from stages.analysis.claim_tests import AS_CLAIMED, Outcome, evaluate
from stages.evidence.arithmetic import FAILS, HOLDS
from stages.evidence.statistics import NOT_TESTED

PATH = Path(__file__).with_name("claim_rules.yaml")
COUNTS, RELEASED, TRAINING = "counts", "released", "training"

OF_RUN = {HOLDS: "reproduced", FAILS: "contradicted"}  # what the verdicts of this run are called
DECIDED_BY_READING = ("ARITH", "PARAM", "LIT")  # procedures without training: arithmetic, counts, reading
WORST_FIRST = (  # verdicts of this run, of the released results, and of claims.yaml on the printed numbers
    *("contradicted", "fails", "partly", "truncated", "unsupported", "not-checkable", "not tested", "at chance"),
    *("one checkpoint per arm", "too few seeds", "inconclusive", "holds", "reproduced"),
)
# id to claim: from claims.yaml. fact: what several claims state, or the id. verdict to power: as `claim_words.fields`
# says them. rule: the tests in words. numbers: the verdict on the printed numbers; audit_ids: the audit's checks.
COLUMNS = [
    *("id", "paper", "where", "kind", "claim", "fact", "ledger", "verdict", "reading", "because"),
    *("unit_of_inference", "estimate", "interval", "power", "rule", "numbers", "numbers_because", "audit_ids"),
]


def rules() -> dict:
    """The content of claim_rules.yaml."""
    return yaml.safe_load(PATH.read_text(encoding="utf-8"))


def ledger(
    claims: list[dict],
    content: dict,
    audit: pd.DataFrame,
    released: pd.DataFrame,
    run: pd.DataFrame,
    scope: Scope,
) -> pd.DataFrame:
    """Judges every claim, in each of the three ledgers (COUNTS, RELEASED, TRAINING) that it belongs to.

    Args:
        claims: the entries of claims.yaml; `published_audit` is what the printed numbers alone say.
        content: of claim_rules.yaml, which explains it.
        audit: the checks of the published numbers, as the stage `audit` writes them.
        released, run: measurements of the results that Courtois et al. released, and of this run.
        scope: what this run can speak of.

    Returns:
        A frame of COLUMNS, one row for every claim and ledger, with its `verdict`. What a row lacks is NaN.

    Raises:
        ValueError: claim_rules.yaml names, in `rules`, `untested` or `facts`, a claim that does not exist.
    """
    names_of_claims = {claim["id"] for claim in claims}
    named = [name for names in content["facts"].values() for name in names]
    for name in (*content["rules"], *content["untested"], *named):
        if name not in names_of_claims:
            raise ValueError(f"{PATH.name}: {name} is no claim of claims.yaml")
    facts = {name: fact for fact, names in content["facts"].items() for name in names}
    rows = [row for claim in claims for row in _rows(claim, content, audit, released, run, scope)]
    return pd.DataFrame([{"fact": facts.get(row["id"], row["id"])} | row for row in rows], columns=COLUMNS)


def tally(entries: pd.DataFrame) -> pd.DataFrame:
    """How many facts, and how many claims that state them, got each verdict. Columns: ledger, verdict, facts, claims.

    A fact counts once in a ledger, with the worst verdict of its claims: a number printed wrongly once is wrong.
    So `facts` is 0 where other claims give each of these facts a worse one. Rows are sorted by ledger and WORST_FIRST.
    """
    places = {"ledger": (COUNTS, RELEASED, TRAINING), "verdict": WORST_FIRST}
    order = entries.assign(**{name: pd.Categorical(entries[name], values) for name, values in places.items()})
    worst = order.sort_values("verdict", kind="stable").drop_duplicates(["ledger", "fact"])
    facts, claims = (rows.groupby([*places], observed=True).size() for rows in (worst, order))
    counts = pd.DataFrame({"facts": facts.reindex(claims.index, fill_value=0), "claims": claims})
    return counts.reset_index().astype(dict.fromkeys(places, "str"))


def _rows(
    claim: dict, content: dict, audit: pd.DataFrame, released: pd.DataFrame, run: pd.DataFrame, scope: Scope
) -> list[dict]:
    """The rows of one claim, dicts of COLUMNS but for `fact` and for what a row lacks. Arguments as for `ledger`.

    One is of counts or printed numbers or, failing these, of this run; another, or the only one, of released results.
    """
    source, published_audit, name = claim["source"], claim["published_audit"], claim["id"]
    procedure = claim["test"]["procedure"]
    checks = audit[_named(audit["check"], published_audit["checks"])]
    arithmetic = claim_words.say("arithmetic", checks=checks.to_dict("records"))
    tests = content["rules"].get(name, [])
    common = {
        "id": name,
        "paper": source["paper"],
        "where": f"{source['version']}: {source['section']}" if source["paper"] == "kowsher" else source["section"],
        "kind": claim["kind"],
        "claim": claim["paraphrase"],
        "rule": "; ".join(dict.fromkeys(claim_words.say("rule", test=test) for test in tests)),
        "numbers": published_audit["status"],
        "numbers_because": f"{published_audit['note']} {arithmetic}".strip(),
        "audit_ids": ", ".join(checks["check"]),
    }
    of_run = [test for test in tests if test.get("run", True)]
    rows = []
    if tests and all(map(claim_scope.is_count, tests)):
        rows.append(_counted(tests, run, published_audit["status"], scope))
    elif not tests and procedure in DECIDED_BY_READING:
        rows.append({"ledger": COUNTS, "verdict": published_audit["status"], "because": claim_words.say("read")})
    elif of_run:
        rows.append(_trained(of_run, run, scope))
    elif not tests:
        reason = content["untested"].get(name) or content["reasons"][procedure]
        rows.append({"ledger": TRAINING, "verdict": NOT_TESTED, "because": reason})
    if name.startswith("C24"):  # of Courtois et al., who released their results
        asked = [test for test in tests if not claim_scope.is_count(test)]
        rows += _released(asked, released, scope)
    return [common | row for row in rows]


def _named(checks: pd.Series, names: list[str]) -> pd.Series:
    """Checks of these names, and those below them: `C.AVG` stands for `C.AVG.base.original` too."""
    below = tuple(name + separator for name in names for separator in "._")
    return checks.isin(names) | checks.str.startswith(below)


def _counted(tests: list[dict], run: pd.DataFrame, status: str, scope: Scope) -> dict:
    """The row of what the counted parameters say; if some were not counted, of `status`, what printed numbers say."""
    outcome = evaluate(tests, run, scope.confidence, scope.alpha)
    if outcome.verdict == NOT_TESTED:
        return {"ledger": COUNTS, "verdict": status, "because": claim_words.say("counted_too_little")}
    return _described(outcome, scope) | {"ledger": COUNTS, "because": claim_words.say("counted")}


def _described(outcome: Outcome, scope: Scope) -> dict:
    """Puts an outcome into the columns `verdict` to `power`, in words."""
    return claim_words.fields(outcome, scope.confidence, scope.alpha)


def _released(tests: list[dict], released: pd.DataFrame, scope: Scope) -> list[dict]:
    """The row of what the released results say; none where they have no such measurement.

    Their values decide a claim about the printed numbers themselves, which no new run can test (`run: false`), but none
    about an operator, as every operator has one pre-training run there.
    """
    outcome = evaluate(tests, released, scope.confidence, scope.alpha, single=True)
    if outcome.verdict == NOT_TESTED:
        return []
    row = _described(outcome, scope) | {"ledger": RELEASED}
    if not any(test.get("run", True) for test in tests):
        verdict = HOLDS if outcome.reading == AS_CLAIMED else FAILS
        row |= {"verdict": verdict, "because": claim_words.say("values"), "power": ""}
    return [row]


def _trained(tests: list[dict], run: pd.DataFrame, scope: Scope) -> dict:
    """The row of what this run says: a verdict or, after what keeps it from testing the claim, readings by size."""
    obstacle = claim_scope.obstacle(tests, run, scope)
    if not obstacle:
        outcome = evaluate(tests, run, scope.confidence, scope.alpha)
        verdict = OF_RUN.get(outcome.verdict, outcome.verdict)
        return _described(outcome, scope) | {"ledger": TRAINING, "verdict": verdict}
    sizes = scope.sizes if any("sizes" in test for test in tests) else (None,)
    relative = all(test["test"] != "value" for test in tests)  # elsewhere, an absolute number says nothing
    outcomes = {size: evaluate(tests, run, scope.confidence, scope.alpha, size) for size in sizes if relative}
    outcomes = {size: outcome for size, outcome in outcomes.items() if outcome.verdict != NOT_TESTED}
    readings = [
        claim_words.say("elsewhere", outcome=outcome, size=size, comparable=scope.comparable)
        for size, outcome in outcomes.items()
    ]
    row = _described(*outcomes.values(), scope) if len(outcomes) == 1 else {}  # columns have room for one
    return row | {"ledger": TRAINING, "verdict": NOT_TESTED, "because": " ".join([obstacle, *readings])}
