"""The tables of judgements: claims, the audit of the published numbers, and the Multi-Bootstrap."""

import re
from dataclasses import replace
from functools import partial

import pandas as pd

from stages.common.evidence.arithmetic import FAILS, HOLDS, TRUNCATED
from stages.report import names
from stages.report.tables import Grid, Group, Heading, Line, Value, interval, number, plain, text

PAPERS = {
    "courtois2024": "Courtois et al. 2024",
    "kowsher": "Kowsher et al., both editions",
    "hadamard_blog": "Hadamard blog post",
    "aop": "Attention over parameters, draft section",
}
WORST = (FAILS, TRUNCATED, HOLDS)  # a fact has the worst verdict of its checks
LEDGERS = {  # column of the claims: heading, what it judges
    "numbers": ("Audit", "does it follow from the printed numbers and the released results?"),
    "released": ("Released results", "do their seeds show it?"),
    "run": ("This run", "does it find it, by counting or by training?"),
}
PLURAL = {FAILS: "fail", HOLDS: "hold"}  # of the verdicts that are verbs
APART = {"counts": "Arithmetic and counts", "released": "Released results", "training": "Training, this run"}
CITED = re.compile(r"\s*\[[\w.\-]+, [\w\- ]+\]")  # from here on a sentence quotes checks, which are linked instead


def claims(ledger: pd.DataFrame, checks: pd.DataFrame) -> Grid:
    """Every claim with its judgements, each with the checks of the audit that it rests on.

    Args:
        ledger: the claims as analysis judged them, a row for each ledger that a claim belongs to.
        checks: the audit, for the verdicts of the checks that are named.
    """
    rows = ledger.fillna("")
    found = dict(zip(checks["check"], checks["verdict"], strict=True))
    groups = []
    for row in _side_by_side(rows):
        named = [name for name in str(row["audit_ids"]).split(", ") if name in found]
        rests = tuple((name, found[name]) for name in named)
        values = [Value(names.prose(row["claim"]), because=row["where"], kind="text")]
        for column in LEDGERS:
            because = names.prose(CITED.split(row[f"{column}_because"], maxsplit=1)[0])
            values.append(Value(row[column], because=because, kind="verdict", checks=rests * (column == "numbers")))
        words = [("Paper", PAPERS[row["paper"]])]
        words += [(heading, row[column]) for column, (heading, _) in LEDGERS.items()]
        groups.append(Group(row["id"], (Line("", tuple(values)),), anchor=row["id"], words=tuple(words)))
    return Grid(
        name="claims",
        title="Claims of the four sources",
        stage="analysis",
        first="Claim",
        headings=(Heading("What it says", "and where"), *(Heading(*pair) for pair in LEDGERS.values())),
        groups=tuple(groups),
        notes=(
            "The CSV has a line for each claim and ledger, with the rule that decides, the reading, the unit of "
            "inference, the estimate, its interval and the power by themselves, and all checks in words.",
        ),
        csv=rows,
    )


def _side_by_side(rows: pd.DataFrame) -> list[dict]:
    """One entry per claim, with its verdicts and reasons under the names of LEDGERS.

    A claim that the audit alone decides says nothing of the run, whose column stays empty.
    """
    made = []
    for _, own in rows.groupby("id", sort=False):
        entry = own.iloc[0].to_dict() | {"released": "", "released_because": "", "run": "", "run_because": ""}
        for row in own.itertuples():
            column = "released" if row.ledger == "released" else "run"
            if row.ledger != "counts" or row.unit_of_inference:
                entry |= {column: row.verdict, f"{column}_because": _found(row)}
        made.append(entry)
    return made


def _found(row) -> str:
    """Why a verdict is what it is: the reason, the estimate with its interval and unit, and the power."""
    interval = f"; interval {row.interval}" if row.interval else ""
    unit = f"; from {row.unit_of_inference}" if row.unit_of_inference else ""
    estimate = f"Found: {row.estimate}{interval}{unit}." if row.estimate else ""
    return " ".join(part for part in (row.because, estimate, row.power) if part)


def summary(tally: pd.DataFrame) -> Grid:
    """How many facts got which verdict, each ledger apart; they are never added up."""
    rows = []
    for ledger, own in tally.groupby("ledger", sort=False):
        words = ", ".join(
            f"{row.facts} {PLURAL.get(row.verdict, row.verdict).replace('-', ' ')}"
            for row in own.itertuples()
            if row.facts
        )
        rows.append(
            {"ledger": APART[ledger], "facts": own["facts"].sum(), "claims": own["claims"].sum(), "counts": words}
        )
    count = partial(number, decimals=0)
    columns = {
        "ledger": (Heading("Ledger"), str),
        "facts": (Heading("Facts"), count),
        "claims": (Heading("Claims", "that state them"), count),
        "counts": (Heading("Verdicts", "of facts"), text),
    }
    notes = ("A fact that several claims state counts once, with the worst verdict that one of them has.",)
    title = "How the claims stand, each ledger by itself"
    return plain(pd.DataFrame(rows), columns, name="ledgers", title=title, stage="analysis", notes=notes)


def audit(checks: pd.DataFrame) -> Grid:
    """All checks of the published numbers; those that fail come first."""
    order = {FAILS: 0, TRUNCATED: 1}
    rows = checks.assign(rank=checks["verdict"].map(lambda verdict: order.get(verdict, 2)))
    rows = rows.sort_values("rank", kind="stable").drop(columns="rank")
    groups = [
        Group(
            row.check,
            (
                Line(
                    "",
                    (
                        Value(row.verdict, kind="verdict"),
                        Value(names.prose(row.statement), kind="text"),
                        Value(names.prose(row.arithmetic), kind="text"),
                    ),
                ),
            ),
            anchor=row.check,
            words=(("Paper", row.source), ("Verdict", row.verdict), ("By", row.by)),
        )
        for row in rows.itertuples()
    ]
    return Grid(
        name="audit",
        title="All checks of the published numbers",
        stage="audit",
        first="Check",
        headings=(Heading("Verdict"), Heading("Statement"), Heading("Arithmetic")),
        groups=tuple(groups),
        notes=(audited(checks),),
        csv=rows,
    )


def audited(checks: pd.DataFrame) -> str:
    """How the audit came out, in one sentence that counts facts: checks that one reason decides are one fact.

    Args:
        checks: those of data/audit/checks.csv, with their verdict, fact and whether they are a reading.
    """
    judged = checks[checks["verdict"].isin(WORST)]
    computed = judged[judged["by"] == "arithmetic"]
    facts = computed.groupby("fact")["verdict"].agg(lambda verdicts: min(verdicts, key=WORST.index))
    counts, failing = facts.value_counts(), int((computed["verdict"] == FAILS).sum())
    read = int(((judged["by"] == "reading") & (judged["verdict"] == FAILS)).sum())
    return (
        f"Of {len(facts)} facts that the published numbers decide, {counts.get(FAILS, 0)} fail (in {failing} checks),"
        f" {counts.get(TRUNCATED, 0)} hold only with digits cut off and {counts.get(HOLDS, 0)} hold. By reading alone,"
        f" {read} further statements fail. Informative lines judge nothing."
    )


def multibootstrap(frame: pd.DataFrame, confidence: float, resamples: int) -> Grid:
    """Differences to `original` with intervals over seeds and test examples together."""
    labels = [f"{names.model(row.size, row.operator)}, {names.task(row.column)}" for row in frame.itertuples()]
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
            f"The Multi-Bootstrap of Sellam et al. 2022: {confidence:.0%} percentile intervals from {resamples:,}"
            " resamples of pre-training seeds and of test examples (the same for both operators); fine-tuning seeds of"
            " one pre-training seed are averaged. Printed from five pre-training seeds per operator on: below, its"
            " intervals are far too narrow, and even at five those of 95 % cover some 88 %."
        ),
    )
    made = plain(
        shown,
        columns,
        name="multibootstrap",
        title="Multi-Bootstrap over seeds and examples",
        stage="analysis",
        notes=notes,
    )
    return replace(made, csv=frame)
