"""The ledger of claims, in three parts that are never summed: counts, released data, training.

`counts` holds what arithmetic decides: printed numbers against each other and against counted parameters. `released`
holds what the raw results that Courtois et al. released say of their own claims. `training` holds what this run says.
The claims are those of data/published/claims.yaml; the tests that decide them stand in claim_rules.yaml and are done by
claim_tests.py. A run at another size, by another protocol of translation than the source's, or on generated data, tests
no claim about scores, losses or times: what it found is told beside the verdict `not tested`.
"""

from pathlib import Path

import pandas as pd
import yaml

from stages.analysis import claim_scope, claim_words
from stages.analysis.claim_scope import Scope
from stages.analysis.claim_tests import (
    AS_CLAIMED,
    CHANCE,
    FEW,
    NO,
    NOTHING,
    ONE,
    OPEN,
    YES,
    describe,
    evaluate,
)  # fmt: skip
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.statistics import NOT_TESTED, ONE_CHECKPOINT, TOO_FEW

PATH = Path(__file__).with_name("claim_rules.yaml")
COUNTS, RELEASED, TRAINING = "counts", "released", "training"

OF_RELEASED = {YES: "holds", NO: "fails", OPEN: "inconclusive", ONE: ONE_CHECKPOINT}
OF_RUN = {
    YES: "reproduced",
    NO: "contradicted",
    OPEN: "inconclusive",
    ONE: ONE_CHECKPOINT,
    FEW: TOO_FEW,
    CHANCE: AT_CHANCE,
    NOTHING: NOT_TESTED,
}
DECIDED_BY_READING = ("ARITH", "PARAM", "LIT")  # procedures that train nothing
WORST_FIRST = (
    *(
        "contradicted",
        "fails",
        "partly",
        "truncated",
        "unsupported",
        "not-checkable",
        NOT_TESTED,
        AT_CHANCE,
        ONE_CHECKPOINT,
        TOO_FEW,
    ),
    *("inconclusive", "holds", "reproduced"),
)
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
        claims: the entries of claims.yaml.
        content: what `rules` gives, the content of claim_rules.yaml.
        audit: the checks of the published numbers, as the stage `audit` writes them.
        released: measurements of the results that Courtois et al. released.
        run: measurements of this run.
        scope: what this run can speak of.

    Returns:
        A frame of COLUMNS, one row for every claim and ledger; `verdict` is what that ledger says of the claim.

    Raises:
        ValueError: for a rule, reason or fact of a claim that does not exist.
    """
    known = {claim["id"] for claim in claims}
    named = [name for names in content["facts"].values() for name in names]
    for name in (*content["rules"], *content["untested"], *named):
        if name not in known:
            raise ValueError(f"{PATH.name}: {name} is no claim of claims.yaml")
    facts = {name: fact for fact, names in content["facts"].items() for name in names}
    rows = [row for claim in claims for row in _rows(claim, content, audit, released, run, scope)]
    return pd.DataFrame([{"fact": facts.get(row["id"], row["id"])} | row for row in rows], columns=COLUMNS)


def tally(entries: pd.DataFrame) -> pd.DataFrame:
    """How many facts, and how many claims that state them, got each verdict. Columns: ledger, verdict, facts, claims.

    A fact that several claims state counts once, with the worst verdict of its claims: a number printed rightly in one
    place and wrongly in another is printed wrongly.
    """
    order = entries.assign(rank=entries["verdict"].map(WORST_FIRST.index))
    worst = order.sort_values("rank", kind="stable").drop_duplicates(["ledger", "fact"])
    facts = worst.groupby(["ledger", "verdict"]).size().rename("facts")
    claims = entries.groupby(["ledger", "verdict"]).size().rename("claims")
    counted = pd.concat([facts, claims], axis=1).fillna(0).astype(int).reset_index()
    place = [
        (COUNTS, RELEASED, TRAINING).index(row.ledger) * 100 + WORST_FIRST.index(row.verdict)
        for row in counted.itertuples()
    ]
    return counted.assign(place=place).sort_values("place").drop(columns="place").reset_index(drop=True)


def _rows(
    claim: dict, content: dict, audit: pd.DataFrame, released: pd.DataFrame, run: pd.DataFrame, scope: Scope
) -> list[dict]:
    source, judged, name = claim["source"], claim["published_audit"], claim["id"]
    checks = audit[_named(audit["check"], judged["checks"])]
    tests = content["rules"].get(name, [])
    own = {
        "id": name,
        "paper": source["paper"],
        "where": f"{source['version']}: {source['section']}" if source["paper"] == "kowsher" else source["section"],
        "kind": claim["kind"],
        "claim": claim["paraphrase"],
        "rule": "; ".join(dict.fromkeys(describe(test) for test in tests)),
        "numbers": judged["status"],
        "numbers_because": " ".join([judged["note"], *claim_words.arithmetic(checks)]).strip(),
        "audit_ids": ", ".join(checks["check"]),
    }
    reason = content["untested"].get(name) or content["reasons"][claim["test"]["procedure"]]
    asked = [test for test in tests if test.get("released", True) and not claim_scope.is_count(test)]
    found = []
    if tests and all(map(claim_scope.is_count, tests)):
        found.append(_counted(tests, run, judged["status"]))
    elif not tests and claim["test"]["procedure"] in DECIDED_BY_READING:
        found.append({"ledger": COUNTS, "verdict": judged["status"], "because": "By its own numbers."})
    elif any(test.get("run", True) for test in tests) or not tests:
        found.append(_trained([test for test in tests if test.get("run", True)], run, scope, reason))
    if name.startswith("C24") and asked:
        found += _released(asked, released, scope)
    return [own | entry for entry in found]


def _counted(tests: list[dict], run: pd.DataFrame, status: str) -> dict:
    found = evaluate(tests, run, None, 0.95, 0.05)  # counts have no error; the level is of no effect
    if found.verdict == NOTHING:
        return {"ledger": COUNTS, "verdict": status, "because": "By its own numbers; this run counted too little."}
    return {"ledger": COUNTS, "verdict": found.verdict, "because": "Counted on the built models."} | claim_words.fields(
        found
    )


def _named(checks: pd.Series, names: list[str]) -> pd.Series:
    """Checks of these names, and those below them: `C.AVG` stands for `C.AVG.base.original` too."""
    found = pd.Series(False, index=checks.index)
    for name in names:
        found |= (checks == name) | checks.str.startswith((f"{name}.", f"{name}_"))
    return found


def _released(tests: list[dict], released: pd.DataFrame, scope: Scope) -> list[dict]:
    """What the released results say; nothing where they have no such measurement.

    A claim about the printed numbers themselves, which no new run can test, is decided by them; one about an operator
    is not, as every operator has one pre-training run there.
    """
    found = evaluate(tests, released, None, scope.confidence, scope.alpha, single=True)
    if found.verdict == NOTHING:
        return []
    words = claim_words.fields(found)
    if not any(test.get("run", True) for test in tests):
        verdict = "holds" if found.reading == AS_CLAIMED else "fails"
        words |= {"because": "The claim is about these results, whose values decide it.", "power": ""}
        return [{"ledger": RELEASED, "verdict": verdict} | words]
    return [{"ledger": RELEASED, "verdict": OF_RELEASED[found.verdict], "because": claim_words.because(found)} | words]


def _trained(tests: list[dict], run: pd.DataFrame, scope: Scope, reason: str) -> dict:
    own = {"ledger": TRAINING, "verdict": NOT_TESTED}
    if not tests:
        return own | {"because": reason}
    obstacle = claim_scope.obstacle(tests, run, scope)
    if obstacle is None:
        found = evaluate(tests, run, None, scope.confidence, scope.alpha)
        return (
            own | {"verdict": OF_RUN[found.verdict], "because": claim_words.because(found)} | claim_words.fields(found)
        )
    sizes = scope.sizes if any("sizes" in test for test in tests) else (None,)
    relative = all(test["test"] != "value" for test in tests)  # an absolute number says nothing elsewhere
    told = [(size, evaluate(tests, run, size, scope.confidence, scope.alpha)) for size in sizes if relative]
    told = [(size, found) for size, found in told if found.verdict != NOTHING]
    data = [] if scope.comparable else ["generated data"]
    readings = [
        f"Reading{claim_words.listed([*([f'at BERT-{size}'] if size else []), *data])}: {claim_words.read(found)}."
        for size, found in told
    ]
    words = claim_words.fields(told[0][1]) if len(told) == 1 else {}
    return own | {"because": " ".join([obstacle, *readings])} | words
