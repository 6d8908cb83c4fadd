"""The ledgers: every claim and every check of the published numbers, and how many of each source hold.

A claim is a statement of a paper. A check of the audit, such as `C.AVG.base`, compares a printed number or sentence
with numbers from elsewhere; a fact is a group of checks with the same reason. An argument `ledger` is
data/analysis/claims.csv, and `checks` is data/audit/checks.csv; both have texts only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from stages.evidence.published import PAPERS
from stages.evidence.verdicts import AUDITED, SYMBOLS, TONES, Statement
from stages.report.names import write_names
from stages.report.tables import Grid, Group, Heading, Line, Value
from stages.report.text_templates import read_content

# source of a check (a key of PAPERS) by the first part of the name
PAPER_OF = {
    "C": "courtois2024",
    "K": "kowsher",
    "K24": "kowsher",
    "K25": "kowsher",
    "H": "hadamard_blog",
    "AOP": "aop",
}
THIS_RUN, RELEASED, AUDIT = "This run", "Released results", "Audit"
# kind of evidence by the `ledger` of claims.csv
EVIDENCE = {"counts": THIS_RUN, "training": THIS_RUN, "released": RELEASED}
# the columns of verdicts on a claim, with the question that a column answers
QUESTIONS = (
    Heading(THIS_RUN, "Does it show the claim, by counting or by training?"),
    Heading(RELEASED, "Do the seeds show the claim? One checkpoint per operator decides no claim about the operator."),
    Heading(AUDIT, "Are the papers' numbers consistent with their claims?"),
)
# the question of the audit about a check
QUESTION = Heading("Verdict", "Does the arithmetic agree?")
CONSISTENT, INCONSISTENT, NO_EVIDENCE = AUDITED.values()
# A paper that agrees with itself is no replication, so the audit has no check mark, and a tone only for disagreement.
SYMBOL_OF = {**SYMBOLS, CONSISTENT: "=", INCONSISTENT: "≠", NO_EVIDENCE: "∅"}
AUDIT_TONES = {INCONSISTENT: "bad", f"{INCONSISTENT} by reading": "bad", NO_EVIDENCE: "open"}
TONE_OF = {THIS_RUN: TONES, RELEASED: TONES, AUDIT: AUDIT_TONES, QUESTION.label: AUDIT_TONES}
# In the order of the bars; the words of the audit follow those that they replace.
WORDS = [word for statement in Statement for word in dict.fromkeys([statement, AUDITED.get(statement, statement)])]
WORDS.append(f"{INCONSISTENT} by reading")
# A fact has the first of these verdicts that a check of the fact has.
WORST = [INCONSISTENT, Statement.UNDECIDED, Statement.TRUNCATED, CONSISTENT, Statement.NOT_CHECKABLE]


@dataclass(frozen=True, kw_only=True)
class Verdict(Value):
    """The cell of a verdict, with the label of the column; `checks` are (name, symbol)."""

    heading: str
    symbol: str = ""
    tone: str = ""
    kind: str = "verdict"


@dataclass(frozen=True, kw_only=True)
class Ledger(Grid):
    """A table whose page unfolds each row to the reasons.

    The first value of a row is the statement, with its place as the reason; the other values are verdicts.
    """

    kind: ClassVar[str] = "ledger"


def build_claims(ledger: pd.DataFrame, checks: pd.DataFrame) -> Ledger:
    """Builds the list of claims: each with its verdicts, reasons and checks of the audit."""
    symbols = _name_audited(checks.set_index("check")["verdict"]).map(SYMBOL_OF)
    rows = list_verdicts(ledger)
    rows["checks"] = rows["audit_ids"].str.findall("[^, ]+").map(lambda names: [n for n in names if n in symbols])
    return Ledger(
        name="claims",
        title="Claims of the four sources",
        stage="analysis",
        first="Claim",
        headings=(Heading("What it says"), *QUESTIONS),
        groups=_make_entries(rows, QUESTIONS, symbols),
        csv=ledger.assign(numbers=_name_audited(ledger["numbers"])),
    )


def build_audit(checks: pd.DataFrame) -> Ledger:
    """Builds the list of all checks: the worst first; among equal verdicts, the `findings` of sections.yaml."""
    words = _name_audited(checks["verdict"])
    further = ~checks["check"].isin(read_content("sections")["findings"])
    ranks = pd.DataFrame({"verdict": words.map(WORST.index), "further": further})
    order = ranks.sort_values(["verdict", "further"]).index
    rows = checks.assign(verdict=words).loc[order]
    entries = rows.assign(id=rows["check"], claim=rows["statement"], where=rows["source"], because=rows["arithmetic"])
    return Ledger(
        name="audit",
        title="All checks of the published numbers",
        stage="audit",
        first="Check",
        headings=(Heading("Statement"), QUESTION),
        groups=_make_entries(entries.assign(ledger=QUESTION.label, checks=""), [QUESTION], {}),
        csv=rows,
    )


def list_verdicts(ledger: pd.DataFrame) -> pd.DataFrame:
    """Lists the verdicts on the claims: `ledger` is the column of the page; first the rows of the audit."""
    claims = ledger.drop_duplicates("id")
    audited = claims.assign(
        ledger=AUDIT,
        verdict=_name_audited(claims["numbers"]),
        because=claims["numbers_because"],
    )
    # without a counted number, only the audit decides a claim of the ledger `counts`
    judged = ledger[(ledger["ledger"] != "counts") | (ledger["estimate"] != "")]
    found = (" Found: " + judged["estimate"] + ".").where(judged["estimate"] != "", "")
    judged = judged.assign(ledger=judged["ledger"].map(EVIDENCE), because=judged["because"] + found, audit_ids="")
    verdicts = pd.concat([audited, judged])
    verdicts["source"] = verdicts["paper"].map(PAPERS)
    return verdicts


def count_verdicts(ledger: pd.DataFrame) -> pd.DataFrame:
    """Counts the claims by kind of evidence (`ledger`), source (`paper`) and verdict (`word`)."""
    verdicts = list_verdicts(ledger)
    verdicts = verdicts.assign(paper=verdicts["source"], word=verdicts["verdict"])
    return _count_words(verdicts, [heading.label for heading in QUESTIONS])


def count_facts(checks: pd.DataFrame) -> pd.DataFrame:
    """Counts the facts of every source by verdict; the worst verdict of its checks decides a fact.

    Inconsistent readings, which are no facts, are counted apart.
    """
    papers = checks["check"].str.partition(".")[0].map(PAPER_OF).map(PAPERS)
    rows = checks.assign(ledger=AUDIT, paper=papers, word=_name_audited(checks["verdict"]))
    worst = rows.iloc[rows["word"].map(WORST.index).argsort(kind="stable")]
    facts = worst[worst["by"] == "arithmetic"].drop_duplicates(["paper", "fact"])
    facts = facts[facts["word"] != Statement.NOT_CHECKABLE]
    readings = rows[(rows["by"] == "reading") & (rows["word"] == INCONSISTENT)]
    return _count_words(pd.concat([facts, readings.assign(word=f"{INCONSISTENT} by reading")]), [AUDIT])


def _count_words(rows: pd.DataFrame, ledgers: list[str]) -> pd.DataFrame:
    """Counts the rows by ledger, paper and word, in the order of the page, with tone and number within the tone."""
    counts = rows.groupby(["ledger", "paper", "word"], sort=False).size().rename("estimate").reset_index()
    for name, order in (("word", WORDS), ("paper", list(PAPERS.values())), ("ledger", ledgers)):
        places = counts[name].map({value: place for place, value in enumerate(order)})
        counts = counts.iloc[places.argsort(kind="stable")]
    tones = [TONE_OF[row.ledger].get(row.word, "") for row in counts.itertuples()]
    places = counts["word"].map({word: place for place, word in enumerate(WORDS)})
    # words of one tone differ in opacity
    ranks = places.groupby(tones).rank("dense").astype(int)
    return counts.assign(tone=tones, number=ranks - 1)


def _name_audited(verdicts: pd.Series) -> pd.Series:
    """Replaces words of statements by the words of the audit."""
    return verdicts.replace(AUDITED)


def _make_entries(rows: pd.DataFrame, headings: Sequence[Heading], symbols: Mapping[str, str]) -> tuple[Group, ...]:
    """Makes an entry of each `id`, with menus to filter by; `symbols` are by check."""
    entries = []
    for name, found in rows.groupby("id", sort=False):
        verdicts = {heading.label: Verdict(text="", heading=heading.label) for heading in headings}
        for row in found.itertuples():
            verdicts[row.ledger] = Verdict(
                text=row.verdict,
                because=write_names(row.because).replace("_", " ").strip(),
                checks=tuple((check, symbols[check]) for check in row.checks),
                heading=row.ledger,
                symbol=SYMBOL_OF[row.verdict],
                tone=TONE_OF[row.ledger].get(row.verdict, ""),
            )
        statement = Value(write_names(row.claim), because=row.where, kind="text")
        menus = [(verdict.heading, verdict.text) for verdict in verdicts.values()]
        line = Line("", (statement, *verdicts.values()))
        entries.append(Group(name, (line,), anchor=name, words=(("Source", row.source), *menus)))
    return tuple(entries)
