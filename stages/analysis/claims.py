"""The ledger of claims, in three parts that are never summed: counts, released data, training.

`counts` has claims that counted parameters or printed numbers decide. `released` has claims about the raw results that
Courtois et al. released, judged by these. `training` has claims that only a run can decide. claims.yaml states what
decides each claim, and claim_verdicts.py judges the selected rows.
"""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import yaml

from stages.analysis import contrasts
from stages.analysis.claim_verdicts import Finding, decide, expand, judge_contrast, judge_number, read
from stages.evidence.arithmetic import FAILS, HOLDS
from stages.evidence.statistics import NOT_TESTED
from stages.evidence.translation import model

PATH = Path(__file__).with_name("claims.yaml")
COUNTS, RELEASED, TRAINING = "counts", "released", "training"
OF_RUN = {HOLDS: "reproduced", FAILS: "contradicted"}  # names of these verdicts in the ledger TRAINING
# verdicts of this run, of the released results, and of data/published/claims.yaml on the printed numbers
WORST_FIRST = (
    "contradicted",
    "fails",
    "partly",
    "truncated",
    "unsupported",
    "not-checkable",
    "not tested",
    "at chance",
    "one checkpoint per arm",
    "too few seeds",
    "inconclusive",
    "holds",
    "reproduced",
)
COLUMNS = [
    "id",
    "paper",
    "where",
    "kind",
    "claim",
    "ledger",
    "verdict",
    "reading",
    "because",
    "unit_of_inference",
    "estimate",
    "rule",
    "numbers",
    "numbers_because",
    "audit_ids",
]


@dataclass(frozen=True)
class Evidence:
    """The data by which claims are judged.

    Attributes:
        checks: of the published numbers, as the stage `audit` writes them.
        contrasts: as `contrasts.table` returns them.
        run: measurements of this run (see evidence/derived.py).
        released: measurements of the results that Courtois et al. released.
        generated: whether this run's data are generated, so that they test no claim about scores or losses.
    """

    checks: pd.DataFrame
    contrasts: pd.DataFrame
    run: pd.DataFrame
    released: pd.DataFrame
    generated: bool


def load_rules() -> dict:
    """Reads claims.yaml."""
    return yaml.safe_load(PATH.read_text(encoding="utf-8"))


def build_ledger(claims: list[dict], rules: dict, evidence: Evidence) -> pd.DataFrame:
    """Judges every claim, in each of the ledgers COUNTS, RELEASED and TRAINING that it belongs to.

    Args:
        claims: the entries of data/published/claims.yaml; `published_audit` holds the verdict on the printed numbers.
        rules: the content of claims.yaml of this folder.
        evidence: the data of this run and of the sources.

    Returns:
        A frame of COLUMNS, one row for each claim and ledger. `numbers` is the verdict on the printed numbers, and
        `audit_ids` names the checks of the audit behind that verdict. An empty text stands for a missing value.

    Raises:
        ValueError: the rules lack a claim, or name a claim twice or a claim that does not exist.
    """
    _require_each_once([claim["id"] for claim in claims], rules)
    reasons = {}
    for group in rules["untested"]:
        for name in group["claims"]:
            reasons[name] = group["reason"]
    rows = []
    for claim in claims:
        name, status = claim["id"], claim["published_audit"]["status"]
        entries = []
        if name in rules["counts"]:
            entries = rules["counts"][name]
            judged = [_judge_counts(entries, status, evidence.run)]
        elif name in rules["released"]:
            entries = rules["released"][name]
            judged = [_judge_released_number(entries, evidence.released)]
        elif name in rules["contrasts"]:
            entries = rules["contrasts"][name]
            judged = _judge_contrasts(entries, evidence)
        elif name in reasons:
            judged = [{"ledger": TRAINING, "verdict": NOT_TESTED, "because": reasons[name]}]
        else:
            judged = [_read_numbers(status)]
        described = _describe_claim(claim, entries, evidence.checks)
        rows += [described | row for row in judged]
    return pd.DataFrame(rows, columns=COLUMNS).fillna("")


def count_verdicts(entries: pd.DataFrame) -> pd.DataFrame:
    """Counts the claims of each verdict. Columns: ledger, verdict, claims; sorted by ledger and WORST_FIRST."""
    entries = entries.assign(
        ledger=pd.Categorical(entries["ledger"], (COUNTS, RELEASED, TRAINING)),
        verdict=pd.Categorical(entries["verdict"], WORST_FIRST),
    )
    counts = entries.groupby(["ledger", "verdict"], observed=True).size()
    return counts.reset_index(name="claims").astype({"ledger": "str", "verdict": "str"})


def _require_each_once(names: list[str], rules: dict) -> None:
    """Raises ValueError unless the rules name every claim exactly once."""
    ruled = [*rules["counts"], *rules["released"], *rules["contrasts"], *rules["read"]]
    for group in rules["untested"]:
        ruled += group["claims"]
    for name in sorted({*names, *ruled}):
        if name not in names:
            raise ValueError(f"{PATH.name}: {name} is no claim of data/published/claims.yaml")
        if ruled.count(name) != 1:
            raise ValueError(f"{PATH.name}: {name} stands there {ruled.count(name)} times; expected once")


def _describe_claim(claim: dict, entries: list[dict], checks: pd.DataFrame) -> dict:
    """The columns of a claim that are the same in every ledger; entries: those of claims.yaml, which may be none."""
    rule = yaml.safe_dump(entries, default_flow_style=True, sort_keys=False, width=1000).strip()
    source, audit = claim["source"], claim["published_audit"]
    where = source["section"]
    if source["paper"] == "kowsher":
        where = f"{source['version']}: {where}"
    # A check `C.AVG` stands for the checks below it, such as `C.AVG.base.original`, too.
    below = tuple(name + separator for name in audit["checks"] for separator in "._")
    named = checks["check"].isin(audit["checks"]) | checks["check"].str.startswith(below)
    return {
        "id": claim["id"],
        "paper": source["paper"],
        "where": where,
        "kind": claim["kind"],
        "claim": claim["paraphrase"],
        "rule": rule if entries else "",
        "numbers": audit["status"],
        "numbers_because": audit["note"],
        "audit_ids": ", ".join(checks.loc[named, "check"]),
    }


def _read_numbers(status: str, because: str = "By its own numbers.") -> dict:
    """The row of a claim that the published numbers decide, with the verdict of data/published/claims.yaml."""
    return {"ledger": COUNTS, "verdict": status, "because": because}


def _judge_counts(entries: list[dict], status: str, run: pd.DataFrame) -> dict:
    """The row of a claim about counted parameters; status: the verdict if this run counted too little."""
    selections = [{"stage": "parameters"} | entry for entry in expand(entries)]
    findings = [judge_number(selection, run) for selection in selections]
    if None in findings:
        return _read_numbers(status, "By its own numbers; this run counted too little.")
    row = {"ledger": COUNTS, "verdict": decide(findings), "because": "Counted on the built models."}
    return row | _describe_findings(findings)


def _judge_released_number(entries: list[dict], released: pd.DataFrame) -> dict:
    """The row of a claim about the released results themselves."""
    findings = [judge_number(entry, released) for entry in expand(entries)]
    because = "The claim is about these results, whose values decide it."
    row = {"ledger": RELEASED, "verdict": decide(findings), "because": because}
    return row | _describe_findings(findings)


def _judge_contrasts(entries: list[dict], evidence: Evidence) -> list[dict]:
    """The rows of a claim about operators: by this run and, if these have the contrasts, by the released results."""
    selections = expand(entries)
    rows = []
    for ledger, source in ((TRAINING, contrasts.REPRODUCED), (RELEASED, contrasts.RELEASED)):
        of_source = evidence.contrasts[evidence.contrasts["source"] == source]
        findings = [judge_contrast(selection, of_source) for selection in selections]
        verdict = decide(findings)
        if ledger == TRAINING and (verdict == NOT_TESTED or evidence.generated):
            because = _say_why_not_tested(selections, findings)
            rows.append({"ledger": TRAINING, "verdict": NOT_TESTED, "because": because})
        elif verdict != NOT_TESTED:
            found = [finding for finding in findings if finding is not None]
            obstacles = dict.fromkeys(finding.because for finding in found if finding.because)
            row = {"ledger": ledger, "verdict": OF_RUN.get(verdict, verdict), "because": " ".join(obstacles)}
            rows.append(row | {"reading": read(found)} | _describe_findings(found))
    return rows


def _say_why_not_tested(selections: list[dict], findings: list[Finding | None]) -> str:
    """A sentence: either the sizes whose contrasts are missing, or that all contrasts are of generated data."""
    missing = set()
    for selection, finding in zip(selections, findings, strict=True):
        if finding is None:
            missing.add(model(selection["size"]))
    if missing:
        return f"This run has no such contrast of {' and '.join(sorted(missing))}."
    return "The data are generated."


def _describe_findings(findings: list[Finding]) -> dict:
    """The columns `unit_of_inference` and `estimate`, each distinct text once."""
    units = dict.fromkeys(finding.unit for finding in findings)
    estimates = [finding.estimate for finding in findings]
    return {"unit_of_inference": "; ".join(units), "estimate": "; ".join(estimates)}
