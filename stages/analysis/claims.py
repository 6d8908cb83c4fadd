"""Judges the papers' claims by three kinds of evidence (ledgers), never summed: counts, released data, training.

`counts` has claims that counted parameters or printed numbers decide. `released` judges claims by the raw results that
Courtois et al. released, and `training` by this run. claims.yaml states for each claim which rows decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import inf, isnan
from pathlib import Path

import pandas as pd
import yaml

from stages.analysis import contrasts
from stages.evidence.arithmetic import FAILS, HOLDS, TRUNCATED, judge_printed_number
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.fields import select_rows
from stages.evidence.statistics import NO_INTERVAL, NOT_TESTED, ONE_CHECKPOINT, TOO_FEW
from stages.evidence.translation import name_model
from stages.schema.settings import REFERENCE

PATH = Path(__file__).with_name("claims.yaml")
COUNTS, RELEASED, TRAINING = "counts", "released", "training"
PARTLY, REPRODUCED, CONTRADICTED, UNDECIDED = "partly", "reproduced", "contradicted", "undecided"
# Reasons why a contrast allows no verdict on an operator.
OBSTACLES = (
    AT_CHANCE,
    ONE_CHECKPOINT,
    TOO_FEW,
    NO_INTERVAL,
)
# Names of verdicts in the ledger TRAINING.
NAMES_OF_RUN = {
    HOLDS: REPRODUCED,
    FAILS: CONTRADICTED,
}
READINGS = {
    HOLDS: "as claimed",
    FAILS: "not as claimed",
    UNDECIDED: "undecided",
}
BECAUSE = {
    COUNTS: "Counted on the built models.",
    RELEASED: "The claim is about these results, whose values decide it.",
}
# Keys of an entry of claims.yaml that select nothing.
REQUIREMENTS = (
    "printed",
    "word",
    "scale",
    "above",
    "below",
)


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
        verdict: holds, truncated (the digits result only if cut off), fails, undecided, or not tested (no number).
        estimate: the number with a label and the interval, in words.
        obstacle: why the number allows no verdict, such as too few seeds.
        reason: why the number is missing, or the obstacle, as a sentence.
    """

    verdict: str
    estimate: str = ""
    obstacle: str = ""
    reason: str = ""


def load_rules() -> dict:
    """Reads claims.yaml of this folder: for each claim, the numbers or comparisons that decide."""
    return yaml.safe_load(PATH.read_text(encoding="utf-8"))


def build_ledger(claims: list[dict], rules: dict, sources: ClaimSources) -> pd.DataFrame:
    """Judges every claim of the papers by each kind of evidence: counts, released results and training.

    Args:
        claims: the entries of data/published/claims.yaml.
        rules: the content of claims.yaml in this folder.
        sources: the data of this run and of the papers.

    Returns:
        A row of texts per claim and kind of evidence (`ledger`). `numbers` is the verdict on the printed numbers;
        `reading` is, for released results only, the verdict by the numbers of the single checkpoints.
    """
    reasons = {name: group["reason"] for group in rules["untested"] for name in group["claims"]}
    rows = []
    for claim in claims:
        name = claim["id"]
        # The default: the verdict of the audit on the printed numbers.
        judged = [{"ledger": COUNTS, "verdict": claim["published_audit"]["status"], "because": "By its own numbers."}]
        if name in reasons:
            judged = [{"ledger": TRAINING, "verdict": NOT_TESTED, "because": reasons[name]}]
        elif name in rules["contrasts"]:
            judged = _judge_contrasts(rules["contrasts"][name], sources)
        elif name in rules["released"]:
            judged = [_judge_numbers(rules["released"][name], sources.released, RELEASED)]
        elif name in rules["counts"]:
            counted = _judge_numbers(rules["counts"][name], sources.run, COUNTS)
            # A run that counted too little leaves the verdict on the printed numbers.
            if counted["verdict"] != NOT_TESTED:
                judged = [counted]
        described = _describe_claim(claim, sources.checks)
        rows += [described | row for row in judged]
    return pd.DataFrame(rows).fillna("")


def decide_claim(findings: Sequence[Finding]) -> str:
    """Decides a claim from the judgements of all its numbers: fails, not tested, obstacle, undecided, truncated, holds.

    The first of these that any finding has decides. An obstacle replaces the verdict of a finding.
    """
    verdicts = {finding.obstacle or finding.verdict for finding in findings}
    for verdict in (FAILS, NOT_TESTED, *OBSTACLES, UNDECIDED, TRUNCATED):
        if verdict in verdicts:
            return verdict
    return HOLDS


def judge_number(entry: dict, rows: pd.DataFrame) -> Finding:
    """Judges the mean of a number without error, such as a count, by the printed digits or bounds of `entry`."""
    runs = select_rows(rows, **({"condition": None} | _select_keys(entry)))
    if runs.empty:
        return Finding(NOT_TESTED)
    value = entry.get("scale", 1) * runs["value"].mean()
    if "printed" in entry:
        # Turns the float 33.33... back into 100/3.
        exact = Fraction(value).limit_denominator(10**9)
        verdict = judge_printed_number(str(entry["printed"]), exact, entry.get("word", ""))
    else:
        verdict = _judge_range(entry, value, value)
    label = f"{name_model(entry['size'])} {entry['operator']}".replace("_", " ")
    return Finding(verdict, f"{label}: {_format_number(value)}")


def judge_contrast(entry: dict, rows: pd.DataFrame) -> Finding:
    """Judges a claim by all differences that the interval of a comparison leaves possible.

    `entry` is a rule without lists; at most one of `rows`, contrasts of one source, matches. An obstacle of the
    comparison, such as too few seeds, stands beside the verdict and counts in its place.
    """
    rows = select_rows(rows, **({"reference": REFERENCE} | _select_keys(entry)))
    if rows.empty:
        return Finding(NOT_TESTED, reason=f"This run has no such comparison of {name_model(entry['size'])} models.")
    [row] = rows.itertuples()
    estimate = f"{name_model(row.size)} {row.arm} − {row.reference}, {row.at}: "
    if isnan(row.estimate):
        estimate += "no mean"
    else:
        estimate += _format_number(row.estimate) + (" %" if row.quantity in contrasts.RATIOS else "")
    low, high = -inf, inf
    if not isnan(row.low):
        low, high = row.low, row.high
        estimate += f" ({_format_number(low)} to {_format_number(high)})"
    elif row.n == row.n_reference == 1:
        # Two single runs have no interval. Their values show how these two runs compare.
        low = high = row.estimate
    verdict = _judge_range(entry, low, high)
    if row.verdict in OBSTACLES:
        return Finding(verdict, estimate, row.verdict, f"{row.reason.capitalize()}.")
    return Finding(verdict, estimate)


def _judge_range(entry: dict, low: float, high: float) -> str:
    """Judges whether an interval is in the claimed range: `above: 0` with -1 to 1 is undecided."""
    above = entry.get("above", -inf)
    below = entry.get("below", inf)
    if above <= low and high <= below:
        return HOLDS
    if high <= above or low >= below:
        return FAILS
    return UNDECIDED


def _judge_numbers(entries: list[dict], rows: pd.DataFrame, ledger: str) -> dict:
    """Judges a claim about numbers without error, such as counts, which may hold in part."""
    findings = [judge_number(entry, rows) for entry in _expand_entries(entries)]
    verdict = decide_claim(findings)
    verdicts = {finding.verdict for finding in findings}
    # Too few counts say nothing, whereas a claim about operators fails at the first comparison that refutes the claim.
    if NOT_TESTED in verdicts:
        verdict = NOT_TESTED
    elif verdict == FAILS and len(verdicts) > 1:
        verdict = PARTLY
    return _describe_findings(ledger, verdict, findings) | {"because": BECAUSE[ledger]}


def _judge_contrasts(entries: list[dict], sources: ClaimSources) -> list[dict]:
    """Judges a claim about operators by this run and, if the comparisons exist, by the released results."""
    findings = {}
    for source in (contrasts.THIS_RUN, contrasts.RELEASED):
        rows = sources.contrasts[sources.contrasts["source"] == source]
        findings[source] = [judge_contrast(entry, rows) for entry in _expand_entries(entries)]
    by_run = findings[contrasts.THIS_RUN]
    verdict = decide_claim(by_run)
    judged = [_describe_findings(TRAINING, NAMES_OF_RUN.get(verdict, verdict), by_run)]
    if sources.generated:
        # The papers' claims are about natural language.
        judged = [{"ledger": TRAINING, "verdict": NOT_TESTED, "because": "The text or the tasks are generated."}]
    by_released = findings[contrasts.RELEASED]
    verdict = decide_claim(by_released)
    if verdict != NOT_TESTED:
        reading = decide_claim([replace(finding, obstacle="") for finding in by_released])
        row = _describe_findings(RELEASED, verdict, by_released)
        judged.append(row | {"reading": READINGS[reading]})
    return judged


def _describe_findings(ledger: str, verdict: str, findings: list[Finding]) -> dict:
    """Makes the columns of a verdict: reasons and estimates of the findings are joined."""
    reasons = dict.fromkeys(finding.reason for finding in findings if finding.reason)
    estimates = [finding.estimate for finding in findings if finding.estimate]
    return {
        "ledger": ledger,
        "verdict": verdict,
        "because": " ".join(reasons),
        "estimate": "; ".join(estimates),
    }


def _describe_claim(claim: dict, checks: pd.DataFrame) -> dict:
    """Makes the columns that are the same for every kind of evidence."""
    source = claim["source"]
    audit = claim["published_audit"]
    where = source["section"]
    # Kowsher et al. have two editions.
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
        "numbers": audit["status"],
        "numbers_because": audit["note"],
        "audit_ids": ", ".join(checks.loc[named, "check"]),
    }


def _expand_entries(entries: list[dict]) -> list[dict]:
    """Expands lists of values: `{size: [small, base]}` gives `{size: small}` and `{size: base}`."""
    expanded = []
    for entry in entries:
        choices = [values if isinstance(values, list) else [values] for values in entry.values()]
        for combination in product(*choices):
            expanded.append(dict(zip(entry, combination, strict=True)))
    return expanded


def _select_keys(entry: dict) -> dict:
    """Selects the fields of an entry that select rows, such as `size`."""
    return {key: value for key, value in entry.items() if key not in REQUIREMENTS}


def _format_number(value: float) -> str:
    """Formats a number for a text, such as `1,769,472`, `−13.04` or `0.625`."""
    digits = ".2f"
    if abs(value) >= 1000:
        digits = ",.0f"
    elif abs(value) < 1:
        digits = ".3g"
    return f"{value:{digits}}".replace("-", "−")
