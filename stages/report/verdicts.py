"""The ledgers: every claim and every check of the published numbers, and how many of each source hold.

A claim is a statement of a paper. A check of the audit, such as `C.AVG.base`, sets one printed number or sentence
against what follows from others; a fact is what checks that hold or fail for one reason have in common.
"""

import re
from collections import Counter

import pandas as pd

from stages.evidence import published
from stages.evidence.arithmetic import FAILS, HOLDS, NOT_DECIDED, TRUNCATED
from stages.evidence.statistics import ONE_CHECKPOINT
from stages.report import names
from stages.report.tables import Grid, Group, Heading, Line, Value
from stages.report.text_templates import content

# by the first part of a check's name: a key of published.PAPERS
PAPER_OF = {"C": "courtois2024", "K": "kowsher", "K24": "kowsher", "K25": "kowsher", "H": "hadamard_blog", "AOP": "aop"}
WORST = (FAILS, NOT_DECIDED, TRUNCATED, HOLDS)  # from the worst on; a fact has the worst verdict of its checks
# Columns of `claim_totals` that count decided claims, and their verdicts. Any other verdict leaves a claim open.
DECIDED = {
    "holds": (HOLDS, "reproduced"),
    "found_false": (FAILS, "contradicted"),
    "partly": ("partly",),
    "unsupported": ("unsupported",),
    "truncated": (TRUNCATED,),
}
LEDGERS = {  # column of `side_by_side`: heading, question that it answers
    "numbers": ("Audit", "Does it follow from the printed numbers and the released results?"),
    "released": (
        "Released results",
        "Do their seeds show it? Unless a cell says otherwise, they come from one checkpoint per operator, and the "
        "cell says how these read.",
    ),
    "run": ("This run", "Does it show it, by counting or by training?"),
}
COMMON = ("released", ONE_CHECKPOINT)  # nearly every verdict of that column: its head says so, a cell has its `reading`
CITED = re.compile(r"\s*\[[\w.\-]+, [\w\- ]+\]")  # ` [C.SIX, holds]`: what follows quotes checks, and is linked instead
LEVEL = re.compile(r" \((\d+)%\)$")  # the confidence level, ` (95%)`, behind an interval
MARKS = "¹²³"  # of sentences that many cells of a column share, which then stand once in its head
END = re.compile(r"(?<=\.)\s+(?=[A-Z])")  # between two sentences


def claims(ledger: pd.DataFrame, checks: pd.DataFrame) -> Grid:
    """Builds the table of claims with their judgements, each with the checks of the audit that it rests on.

    ledger: as for `side_by_side`, with `claim`, its words, `where` it stands, and `audit_ids`, the names of checks with
    ", " between. checks: those of `inputs.audited`.
    """
    verdict_of = dict(zip(checks["check"], checks["verdict"], strict=True))
    rows = side_by_side(ledger)
    shared = {column: _shared([row[f"{column}_because"] for row in rows]) for column in LEDGERS}
    groups = []
    for row in rows:
        rests = tuple((name, verdict_of[name]) for name in str(row["audit_ids"]).split(", ") if name in verdict_of)
        values = [Value(names.prose(row["claim"]), because=row["where"], kind="text")]
        for column in LEDGERS:  # marks stand in place of the sentences that cells share
            marked = [shared[column].get(sentence, sentence) for sentence in END.split(row[f"{column}_because"])]
            because = names.prose(" ".join(marked))
            verdict = row["reading"] if (column, row[column]) == COMMON else row[column]
            values.append(Value(verdict, because=because, kind="verdict", checks=rests if column == "numbers" else ()))
        words = [("Paper", published.PAPERS[row["paper"]])]
        words += [(heading, row[column]) for column, (heading, _) in LEDGERS.items()]
        groups.append(Group(row["id"], (Line("", tuple(values)),), anchor=row["id"], words=tuple(words)))
    heads = [
        Heading(label, " ".join([meaning, *(f"{mark} {names.prose(text)}" for text, mark in shared[column].items())]))
        for column, (label, meaning) in LEDGERS.items()
    ]
    return Grid(
        name="claims",
        title="Claims of the four sources",
        stage="analysis",
        first="Claim",
        headings=(Heading("What it says", "and where"), *heads),
        groups=tuple(groups),
        notes=(
            "The CSV has a line for each claim and ledger, with the rule that decides, the reading, the unit of "
            "inference, the estimate, its interval and the power in columns of their own, and all checks in words.",
        ),
        csv=ledger,
    )


def side_by_side(ledger: pd.DataFrame) -> list[dict]:
    """Puts the rows of every claim into one entry: its verdict in each of LEDGERS under NAME, why under NAME_because.

    ledger: the claims as analysis judged them, texts only, a row for each part of the judgement: `id` and `paper` of
    the claim; `ledger`, the part (counts, released or training), and its `verdict`; `reading`, what the numbers suggest
    where they decide nothing; `numbers` and `numbers_because`, the audit's verdict and why; and what `_because` reads.
    Other fields are those of the first row, but `reading` is that of the released results where they judge the claim.
    """
    entries = []
    for _, rows in ledger.groupby("id", sort=False):
        entry = rows.iloc[0].to_dict() | {"released": "", "released_because": "", "run": "", "run_because": ""}
        entry["numbers_because"] = CITED.split(entry["numbers_because"], maxsplit=1)[0]
        for row in rows.itertuples():
            column = "released" if row.ledger == "released" else "run"
            if row.ledger == "released":
                entry["reading"] = row.reading
            if row.ledger != "counts" or row.unit_of_inference:  # otherwise the audit alone decides the claim
                entry |= {column: row.verdict, f"{column}_because": CITED.split(_because(row), maxsplit=1)[0]}
        entries.append(entry)
    return entries


def _because(row) -> str:
    """Why a verdict is what it is: the reason, every estimate with its interval, their unit, and the power, if any."""
    estimates = []
    for estimate, interval in zip(row.estimate.split("; "), row.interval.split("; "), strict=True):  # `PLACE: VALUE`
        ends = LEVEL.sub(r", \1 %", interval.rpartition(": ")[2])  # brackets stand around it here
        estimates.append(estimate + (f" ({ends})" if ends not in ("", "none") else ""))
    unit = f", from {row.unit_of_inference}" if row.unit_of_inference else ""
    results = f"Found: {'; '.join(estimates)}{unit}." if row.estimate else ""
    return " ".join(part for part in (row.because, results, row.power) if part)


def _shared(reasons: list[str]) -> dict[str, str]:
    """Maps sentences, three at most, that over a quarter of a column's non-empty cells (two at least) have to marks."""
    cells = [END.split(reason) for reason in reasons if reason]
    counts = Counter(sentence for sentences in cells for sentence in set(sentences))
    often = [sentence for sentence, count in counts.most_common(len(MARKS)) if count > max(len(cells) / 4, 1)]
    return dict(zip(often, MARKS, strict=False))


def claim_totals(ledger: pd.DataFrame) -> pd.DataFrame:
    """Counts, by source and by ledger, the claims of each verdict.

    Args:
        ledger: as for `side_by_side`.

    Returns:
        A row for every source and every ledger (LEDGERS) that judges one of its claims. Columns: source, ledger, claims
        (all that the ledger judges), the columns of DECIDED, and open. claims is the sum of the columns after it.
    """
    rows = pd.DataFrame(side_by_side(ledger))
    totals = []
    for paper, of_paper in rows.groupby("paper", sort=False):
        for column, (heading, _) in LEDGERS.items():
            verdicts = of_paper.loc[of_paper[column] != "", column]
            if verdicts.empty:
                continue
            entry = {"source": published.PAPERS[paper], "ledger": heading, "claims": len(verdicts)}
            # A claim that holds in part, lacks support or is cut off is not false, so each has its own column.
            for name, kinds in DECIDED.items():
                entry[name] = int(verdicts.isin(kinds).sum())
            entry["open"] = entry["claims"] - sum(entry[name] for name in DECIDED)
            totals.append(entry)
    return pd.DataFrame(totals)


def audit(checks: pd.DataFrame) -> Grid:
    """Builds the table of all checks of the published numbers, in the order of WORST; any other verdict comes last.

    Of one verdict, the `findings` of sections.yaml come first, in the order there. checks: those of `inputs.audited`.
    """
    weights = {entry["check"]: place for place, entry in enumerate(content("sections")["findings"])}
    order = {verdict: place for place, verdict in enumerate(WORST)}  # below, 999 comes after all findings
    rank = checks["verdict"].map(order).fillna(len(order)) * 1000 + checks["check"].map(weights).fillna(999)
    rows = checks.iloc[rank.argsort(kind="stable")]
    groups = []
    for row in rows.itertuples():
        texts = [Value(names.prose(text), kind="text") for text in (row.statement, row.arithmetic)]
        line = Line("", (Value(row.verdict, kind="verdict"), *texts))
        words = (("Paper", row.source), ("Verdict", row.verdict), ("By", row.by))
        groups.append(Group(row.check, (line,), anchor=row.check, words=words))
    return Grid(
        name="audit",
        title="All checks of the published numbers",
        stage="audit",
        first="Check",
        headings=(Heading("Verdict"), Heading("Statement"), Heading("Arithmetic")),
        groups=tuple(groups),
        csv=rows,
    )


def audit_totals(checks: pd.DataFrame) -> pd.DataFrame:
    """Counts the facts of every source by verdict: checks that one reason decides are one, with the worst verdict.

    A row per source: facts (that arithmetic decides: holds + truncated + fails), failing_checks (the checks that fail),
    not_decided (further facts), by_reading (checks that fail by reading; they are no facts here).
    """
    totals = []
    for paper, of_source in checks.groupby(checks["check"].str.partition(".")[0].map(PAPER_OF), sort=False):
        computed = of_source[(of_source["by"] == "arithmetic") & of_source["verdict"].isin(WORST)]
        facts = computed.groupby("fact")["verdict"].agg(lambda verdicts: min(verdicts, key=WORST.index))
        counts = {verdict: int((facts == verdict).sum()) for verdict in WORST}
        entry = {"facts": len(facts) - counts[NOT_DECIDED], "holds": counts[HOLDS], "truncated": counts[TRUNCATED]}
        entry |= {"fails": counts[FAILS], "failing_checks": int((computed["verdict"] == FAILS).sum())}
        entry |= {"not_decided": counts[NOT_DECIDED]}
        entry |= {"by_reading": int(((of_source["by"] == "reading") & (of_source["verdict"] == FAILS)).sum())}
        totals.append({"source": published.PAPERS[paper]} | entry)
    return pd.DataFrame(totals)
