"""The tables of judgements: claims, the audit of the published numbers, and the bootstrap over seeds and examples."""

from dataclasses import replace
from functools import partial

import pandas as pd

from stages.evidence.arithmetic import FAILS, TRUNCATED
from stages.evidence.claims import NOT_TESTED
from stages.presentation.tables import Grid, Heading, Value, interval, number, plain, text

PAPERS = {
    "courtois2024": "Courtois et al. 2024",
    "kowsher": "Kowsher et al., both editions",
    "hadamard_blog": "Hadamard blog post",
    "aop": "Attention over parameters, draft section",
}
LABELS = {"C24": "2024", "K": "both editions", "K24": "arXiv 2024", "K25": "NAACL 2025"}
JUDGEMENTS = ("reproduced", "contradicted", "inconclusive", NOT_TESTED)


def claims(ledger: pd.DataFrame, paper: str) -> Grid:
    """Every claim of a paper with its three judgements."""
    rows = ledger[ledger["paper"] == paper].fillna("")
    columns = {
        "id": (Heading("Claim"), str),
        "claim": (Heading("What it says"), text),
        "numbers": (Heading("Its own numbers"), text),
        "released": (Heading("Released raw results"), text),
        "run": (Heading("This run"), text),
        "rule": (Heading("Rule that decides"), text),
    }
    shown = rows.assign(
        claim=[f"{row.claim} ({row.where})" for row in rows.itertuples()],
        numbers=[_because(row.numbers, row.numbers_because) for row in rows.itertuples()],
        released=[_because(row.released, row.released_because) for row in rows.itertuples()],
        run=[_because(row.run, row.run_because) for row in rows.itertuples()],
        rule=rows["rule"].str.replace("_", " ").where(rows["rule"] != "", "–"),
    )
    made = plain(shown, columns, name=f"claims_{paper}", title=f"Claims of {PAPERS[paper]}", stage="analysis")
    return replace(made, csv=rows.drop(columns="paper"))


def _because(verdict: str, because: str) -> str:
    return f"{verdict}: {because}" if because else verdict


def summary(ledger: pd.DataFrame) -> Grid:
    """How many claims of each paper got which judgement, by their numbers and by this run."""
    statuses = ["holds", "truncated", "partly", "fails", "unsupported", "not-checkable"]
    rows = []
    for paper, label in PAPERS.items():
        own = ledger[ledger["paper"] == paper]
        counts = own["numbers"].value_counts(), own["run"].value_counts()
        rows.append(
            {"paper": label, "claims": len(own)}
            | {s: counts[0].get(s, 0) for s in statuses}
            | {j: counts[1].get(j, 0) for j in JUDGEMENTS}
        )
    frame = pd.DataFrame(rows)
    count = partial(number, decimals=0)
    columns = {"paper": (Heading("Paper"), str), "claims": (Heading("Claims"), count)}
    columns |= {name: (Heading(name.replace("-", " "), "its own numbers"), count) for name in statuses}
    columns |= {name: (Heading(name, "this run"), count) for name in JUDGEMENTS}
    return plain(frame, columns, name="claims", title="Judgements of all claims", stage="analysis")


def audit(checks: pd.DataFrame, everything: bool) -> Grid:
    """The checks; without `everything` those that fail, or hold with cut digits only."""
    rows = checks if everything else checks[checks["verdict"].isin((FAILS, TRUNCATED))]
    columns = {
        "check": (Heading("Check"), str),
        "statement": (Heading("Statement"), text),
        "verdict": (Heading("Verdict"), text),
        "arithmetic": (Heading("Arithmetic"), text),
    }
    title = (
        "All checks of the published numbers"
        if everything
        else "Published statements that their own numbers do not give"
    )
    counts = checks["verdict"].value_counts()
    note = ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + f" of {len(checks)} checks."
    return plain(
        rows, columns, name="audit_all" if everything else "audit", title=title, stage="analysis", notes=(note,)
    )


def errata(entries: list[dict]) -> Grid:
    """Mistakes of our own that earlier reports had."""
    frame = pd.DataFrame(entries, columns=["where", "was", "is"])
    columns = {
        "where": (Heading("Where"), str),
        "was": (Heading("It said"), text),
        "is": (Heading("It should say"), text),
    }
    return plain(frame, columns, name="errata", title="Our own errata", stage="report")


def bootstrap(frame: pd.DataFrame, confidence: float, resamples: int) -> Grid:
    """Differences to `original` with intervals over seeds and test examples together."""
    labels = [f"{row.operator}, BERT-{row.size}, {row.column.replace('_', ' ')}" for row in frame.itertuples()]
    shown = frame.assign(
        label=labels,
        effect=[Value(number(row.difference, 2), f"({interval(row.low, row.high, 2)})") for row in frame.itertuples()],
        share=[Value(number(100 * row.share_above, 1)) for row in frame.itertuples()],
        seeds=[f"{row.pretraining} x {row.runs // max(row.pretraining, 1)}" for row in frame.itertuples()],
    )
    columns = {
        "label": (Heading("Operator and column"), str),
        "effect": (Heading("Against original", "points, with interval"), lambda value: value),
        "share": (Heading("Resamples above zero, %"), lambda value: value),
        "seeds": (Heading("Seeds", "pre-training x fine-tuning"), str),
        "examples": (Heading("Examples"), partial(number, decimals=0)),
    }
    several = frame["protocol"].nunique() > 1
    if several:
        shown["label"] = shown["label"] + ", " + frame["protocol"]
    notes = (
        (
            f"{confidence:.0%} percentile intervals from {resamples:,} resamples of pre-training seeds, fine-tuning"
            " seeds within them, and test examples (the same for both operators)."
        ),
        (
            "With few seeds such intervals are too narrow; the t intervals above are the test, these show what the test"
            " examples add."
        ),
    )
    made = plain(
        shown, columns, name="bootstrap", title="Over seeds and examples together", stage="analysis", notes=notes
    )
    return replace(made, csv=frame)
