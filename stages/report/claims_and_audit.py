"""The ledgers: every claim and every check of the published numbers, and how many of each source hold.

A claim is a statement of a paper. A check of the audit, such as `C.AVG.base`, compares a printed number or sentence
with numbers from elsewhere; a fact is a group of checks with the same reason. An argument `ledger` is
data/analysis/claims.csv, and `checks` is data/audit/checks.csv; both have texts only. tables.yaml describes the tables.
"""

import pandas as pd

from stages.evidence.fields import select_rows
from stages.evidence.published import PAPERS
from stages.evidence.verdicts import AUDITED, SYMBOLS, TONES, Statement
from stages.report.names import write_names
from stages.report.text_templates import read_content

BY_THIS_RUN = "This run"
BY_RELEASED = "Released results"
AUDIT = "Audit"
CONSISTENT, INCONSISTENT, NO_EVIDENCE = AUDITED.values()
# A paper that agrees with itself is no replication, so the audit has no check mark, and a tone only for disagreement.
SYMBOL_OF = {**SYMBOLS, CONSISTENT: "=", INCONSISTENT: "≠", NO_EVIDENCE: "∅"}
BY_READING = f"{INCONSISTENT} by reading"
TONE_OF = {**TONES, INCONSISTENT: "bad", BY_READING: "bad", NO_EVIDENCE: "open"}
# In the order of the bars; the words of the audit follow those that they replace.
WORDS = []
for _statement in Statement:
    WORDS += dict.fromkeys([_statement, AUDITED.get(_statement, _statement)])
WORDS.append(BY_READING)


def list_claims(ledger: pd.DataFrame, checks: pd.DataFrame) -> pd.DataFrame:
    """Lists the rows of the ledger of claims: a row per claim and verdict, with the symbols of the named checks."""
    symbols = checks.set_index("check")["verdict"].map(SYMBOL_OF).to_dict()
    # undecided claims follow the other claims
    decided = ledger.sort_values("verdict", key=lambda found: found == Statement.UNDECIDED, kind="stable")
    rows = list_verdicts(decided)
    named = [_find_symbols(ids, symbols) for ids in rows["audit_ids"]]
    return _describe_verdicts(rows.assign(checks=named))


def list_checks(checks: pd.DataFrame) -> pd.DataFrame:
    """Lists the rows of the ledger of checks, in the columns of the ledger of claims."""
    names = {"check": "id", "statement": "claim", "arithmetic": "because"}
    return _describe_verdicts(checks.rename(columns=names).assign(where=checks["source"], checks=[()] * len(checks)))


def _describe_verdicts(rows: pd.DataFrame) -> pd.DataFrame:
    """Adds symbol and tone to verdicts, and writes texts for readers."""
    return rows.assign(
        claim=rows["claim"].map(write_names),
        because=rows["because"].map(write_names).str.replace("_", " ").str.strip(),
        symbol=rows["verdict"].map(SYMBOL_OF),
        tone=rows["verdict"].map(TONE_OF).fillna(""),
    )


def _find_symbols(ids: str, symbols: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Finds the symbols of known checks: `K.HALF` gives `(("K.HALF", "≠"),)`."""
    known = filter(symbols.get, ids.split(", "))
    return tuple((check, symbols[check]) for check in known)


def list_verdicts(ledger: pd.DataFrame) -> pd.DataFrame:
    """Lists a row per claim and judge: first the audit, then this run and the released results.

    The column `ledger` changes from a key of claims.csv, such as `training`, to the judge, such as `This run`.
    """
    ledger = ledger.assign(source=ledger["paper"].map(PAPERS))
    claims = ledger.drop_duplicates("id")
    audited = claims.assign(ledger=AUDIT, verdict=claims["numbers"], because=claims["numbers_because"])
    has_number = ledger["estimate"] != ""
    estimates = (" Found: " + ledger["estimate"] + ".").where(has_number, "")
    judged = ledger.assign(
        ledger=ledger["ledger"].map({"counts": BY_THIS_RUN, "training": BY_THIS_RUN, "released": BY_RELEASED}),
        because=ledger["because"] + estimates,
        audit_ids="",
    )
    # without a counted number, only the audit decides a claim of the ledger `counts`
    return pd.concat([audited, judged[has_number | (ledger["ledger"] != "counts")]])


def count_facts(checks: pd.DataFrame) -> pd.DataFrame:
    """Counts the facts of every source by verdict; the worst verdict of its checks decides a fact.

    Inconsistencies that were found by reading are no facts, and are counted apart.
    """
    # the name of a check begins with a letter for the source
    keys = {"C": "courtois2024", "K": "kowsher", "H": "hadamard_blog", "A": "aop"}
    papers = checks["check"].str[0].map(keys).map(PAPERS)
    rows = sort_worst(checks.assign(ledger=AUDIT, source=papers))
    # the first check of a fact has the worst verdict
    facts = select_rows(rows, by="arithmetic").drop_duplicates(["source", "fact"])
    facts = facts[facts["verdict"] != Statement.NOT_CHECKABLE]
    readings = select_rows(rows, by="reading", verdict=INCONSISTENT)
    return count_verdicts(pd.concat([facts, readings.assign(verdict=BY_READING)]))


def sort_worst(checks: pd.DataFrame) -> pd.DataFrame:
    """Sorts checks from the worst verdict, and names verdicts by the words of the audit, such as `inconsistent`.

    Among checks with the same verdict, the `findings` of sections.yaml come first.
    """
    words = checks["verdict"].replace(AUDITED)
    worst = [INCONSISTENT, Statement.UNDECIDED, Statement.TRUNCATED, CONSISTENT, Statement.NOT_CHECKABLE]
    findings = read_content("sections")["findings"]
    rows = checks.assign(verdict=words, rank=words.map(worst.index), further=~checks["check"].isin(findings))
    return rows.sort_values(["rank", "further"], kind="stable").drop(columns=["rank", "further"])


def count_verdicts(rows: pd.DataFrame) -> pd.DataFrame:
    """Counts the verdicts (`estimate`) by kind of evidence (`ledger`), source (`paper`) and verdict (`word`).

    `number` numbers the verdicts of a `tone` from 0, which figures show by opacity.
    """
    # a categorical column is sorted in the given order
    keys = {
        "ledger": pd.Categorical(rows["ledger"], [BY_THIS_RUN, BY_RELEASED, AUDIT]),
        "paper": pd.Categorical(rows["source"], list(PAPERS.values())),
        "word": pd.Categorical(rows["verdict"], WORDS),
    }
    groups = pd.DataFrame(keys).groupby(list(keys), observed=True)
    counts = groups.size().reset_index(name="estimate")
    positions = counts["word"].cat.codes
    counts = counts.astype(dict.fromkeys(keys, "object"))
    tones = counts["word"].map(TONE_OF).fillna("")
    ranks = positions.groupby(tones).rank("dense")
    return counts.assign(tone=tones, number=ranks.astype(int) - 1)
