"""Judges the papers' claims by three kinds of evidence (ledgers), never summed: counts, released data, training.

`counts` has claims that counted parameters or printed numbers decide. `released` judges claims by the raw results that
Courtois et al. released, and `training` by this run. claims.yaml states for each claim which rows decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf
from pathlib import Path

import pandas as pd

from stages.analysis import contrasts
from stages.evidence.fields import RELEASED, THIS_RUN, select_rows
from stages.evidence.translation import name_model
from stages.evidence.verdicts import TESTED, Statement, judge_claim, judge_printed_number
from stages.files.yaml_files import read_yaml
from stages.schema.settings import REFERENCE

COUNTS = "counts"
TRAINING = "training"


@dataclass(frozen=True)
class ClaimSources:
    """The data by which claims are judged.

    Attributes:
        checks: data/audit/checks.csv.
        contrasts: comparisons of operators, as contrasts.yaml describes.
        run: measurements of this run, a row per number.
        released: measurements of the results that Courtois et al. released.
        generated: whether text or tasks are generated, so that the run tests no claim about scores or losses.
    """

    checks: pd.DataFrame
    contrasts: pd.DataFrame
    run: pd.DataFrame
    released: pd.DataFrame
    generated: bool


@dataclass(frozen=True)
class Finding:
    """The judgement of a single number or comparison behind a claim.

    Attributes:
        verdict: HOLDS, TRUNCATED, FAILS or UNDECIDED.
        estimate: the number with a label and the interval, in words; empty if the number is missing.
        reason: where the number comes from, or why the number is missing or decides nothing, as a sentence.
    """

    verdict: Statement
    estimate: str = ""
    reason: str = ""


def load_rules() -> dict:
    """Reads claims.yaml of this folder: for each claim, the numbers or comparisons that decide."""
    return read_yaml(Path(__file__).with_name("claims.yaml"))


def build_ledger(claims: list[dict], sources: ClaimSources) -> pd.DataFrame:
    """Judges every claim of the papers by each kind of evidence: counts, released results and training.

    Args:
        claims: the entries of data/published/claims.yaml.
        sources: all data that claims are judged by.

    Returns:
        A row of texts per claim and kind of evidence (`ledger`). `numbers` is the verdict on the printed numbers;
        `estimate` is empty if the ledger has no number or comparison.
    """
    rules = load_rules()
    rows = []
    for claim in claims:
        described = _describe_claim(claim, sources.checks)
        for ledger, findings in _find_evidence(claim, rules, sources).items():
            estimates = [finding.estimate for finding in findings]
            # Each reason once, in order.
            reasons = dict.fromkeys(finding.reason for finding in findings)
            judged = {
                "ledger": ledger,
                # Only counts can hold partly; other claims fail as soon as one comparison refutes the claim.
                "verdict": decide_claim(findings, in_part=ledger == COUNTS),
                "because": " ".join(filter(None, reasons)),
                "estimate": "; ".join(filter(None, estimates)),
            }
            rows.append(described | judged)
    return pd.DataFrame(rows)


def decide_claim(findings: Sequence[Finding], in_part: bool = False) -> Statement:
    """Decides a claim by all findings: the first of FAILS, UNDECIDED and TRUNCATED that any finding has, or HOLDS.

    With `in_part`, a claim is PARTLY if some findings fail and others do not.
    """
    verdicts = {finding.verdict for finding in findings}
    if in_part and Statement.FAILS in verdicts and len(verdicts) > 1:
        return Statement.PARTLY
    for verdict in (Statement.FAILS, Statement.UNDECIDED, Statement.TRUNCATED):
        if verdict in verdicts:
            return verdict
    # All findings hold, or the only finding is a verdict of the audit.
    return findings[0].verdict


def judge_entry(entry: dict, low: float, high: float) -> Statement:
    """Judges an interval, or a number (`low` equals `high`), by an entry of claims.yaml.

    An entry has the printed digits, such as `{printed: 6, word: about}`, or bounds, such as `{above: 50}`.
    """
    if "printed" not in entry:
        return judge_claim(low, high, entry.get("above", -inf), entry.get("below", inf))
    # Turns the float 33.33... back into 100/3.
    exact = Fraction(low).limit_denominator(10**9)
    return judge_printed_number(str(entry["printed"]), exact, entry.get("word", ""))


def judge_number(entry: dict, rows: pd.DataFrame, reason: str) -> Finding:
    """Judges the mean of the `rows` that an entry selects, such as a count; `reason` says where the number is from."""
    runs = _select_matching(rows, {"condition": None} | entry)
    if runs.empty:
        return Finding(Statement.UNDECIDED)
    value = entry.get("scale", 1) * runs["value"].mean()
    operator = entry["operator"].replace("_", " ")
    estimate = f"{name_model(entry['size'])} {operator}: {_format_number(value)}"
    return Finding(judge_entry(entry, value, value), estimate, reason)


def judge_contrast(entry: dict, rows: pd.DataFrame) -> Finding:
    """Judges a claim by all differences that the interval of a comparison leaves possible.

    `rows` are all comparisons; `entry`, without lists, selects at most one. A comparison without a verdict, such as of
    single checkpoints, decides nothing.
    """
    rows = _select_matching(rows, {"reference": REFERENCE} | entry)
    if rows.empty:
        reason = f"This run has no such comparison of {name_model(entry['size'])} models."
        return Finding(Statement.UNDECIDED, reason=reason)
    [row] = rows.itertuples()
    value = "no mean"
    if pd.notna(row.estimate):
        value = _format_number(row.estimate)
        if row.quantity in contrasts.RATIOS:
            value += " %"
    estimate = f"{name_model(row.size)} {row.arm} − {row.reference}, {row.at}: {value}"
    if pd.notna(row.low):
        estimate += f" ({_format_number(row.low)} to {_format_number(row.high)})"
    if row.verdict in TESTED:
        return Finding(judge_entry(entry, row.low, row.high), estimate)
    return Finding(Statement.UNDECIDED, estimate, f"{row.reason.capitalize()}.")


def _find_evidence(claim: dict, rules: dict, sources: ClaimSources) -> dict[str, list[Finding]]:
    """Finds the evidence on a claim by ledger; the default is the verdict of the audit on the printed numbers.

    `rules` are the sections of claims.yaml.
    """
    name = claim["id"]
    for group in rules["untested"]:
        if name in group["claims"]:
            return {TRAINING: [Finding(Statement.UNDECIDED, reason=group["reason"])]}
    if name in rules["contrasts"]:
        return _judge_contrasts(_expand_entries(rules["contrasts"][name]), sources)
    for ledger, rows, reason in (
        (COUNTS, sources.run, "Counted on the built models."),
        (RELEASED, sources.released, "The claim is about these results, whose values decide it."),
    ):
        entries = _expand_entries(rules[ledger].get(name, []))
        findings = [judge_number(entry, rows, reason) for entry in entries]
        # A run that counted too little leaves the verdict on the printed numbers.
        if findings and all(finding.estimate for finding in findings):
            return {ledger: findings}
    return {COUNTS: [Finding(claim["published_audit"]["status"], reason="By its own numbers.")]}


def _judge_contrasts(entries: list[dict], sources: ClaimSources) -> dict[str, list[Finding]]:
    """Judges a claim about operators by this run and, if all comparisons exist, by the released results."""
    findings = {}
    for ledger, source in ((TRAINING, THIS_RUN), (RELEASED, RELEASED)):
        findings[ledger] = [judge_contrast(entry | {"source": source}, sources.contrasts) for entry in entries]
    if sources.generated:
        # The papers' claims are about natural language.
        findings[TRAINING] = [Finding(Statement.UNDECIDED, reason="The text or the tasks are generated.")]
    if not all(finding.estimate for finding in findings[RELEASED]):
        del findings[RELEASED]
    return findings


def _describe_claim(claim: dict, checks: pd.DataFrame) -> dict:
    """Makes the columns that are the same for every kind of evidence."""
    source = claim["source"]
    audit = claim["published_audit"]
    where = source["section"]
    # Kowsher et al. have two editions.
    if source["paper"] == "kowsher":
        where = f"{source['version']}: {where}"
    # A check `C.AVG` of a claim also stands for longer names, such as `C.AVG.base.original`, but not for `C.AVGS`.
    beginnings = tuple(name + separator for name in audit["checks"] for separator in "._")
    # With a point at the end, `C.AVG` itself begins with `C.AVG.`, too.
    of_claim = (checks["check"] + ".").str.startswith(beginnings)
    return {
        "id": claim["id"],
        "paper": source["paper"],
        "where": where,
        "kind": claim["kind"],
        "claim": claim["paraphrase"],
        "numbers": audit["status"],
        "numbers_because": audit["note"],
        "audit_ids": ", ".join(checks.loc[of_claim, "check"]),
    }


def _expand_entries(entries: list[dict]) -> list[dict]:
    """Expands lists of values: `{size: [small, base]}` gives `{size: small}` and `{size: base}`."""
    expanded = []
    for entry in entries:
        choices = [values if isinstance(values, list) else [values] for values in entry.values()]
        for combination in product(*choices):
            expanded.append(dict(zip(entry, combination, strict=True)))
    return expanded


def _select_matching(rows: pd.DataFrame, entry: dict) -> pd.DataFrame:
    """Selects the rows with the fields of an entry of claims.yaml, such as `metric` and `size`."""
    # The keys that are no fields, but say how the number is judged.
    judging = (
        "printed",
        "word",
        "scale",
        "above",
        "below",
    )
    fields = {key: value for key, value in entry.items() if key not in judging}
    return select_rows(rows, **fields)


def _format_number(value: float) -> str:
    """Formats a number for a text, such as `1,769,472`, `−13.04` or `0.625`."""
    digits = ".2f"
    if abs(value) >= 1000:
        digits = ",.0f"
    elif abs(value) < 1:
        digits = ".3g"
    return f"{value:{digits}}".replace("-", "−")
