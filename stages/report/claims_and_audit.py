"""The ledgers: every claim and every check of the published numbers, and how many of each source hold.

A claim is a statement of a paper. A check of the audit, such as `C.AVG.base`, compares a printed number or sentence
with numbers from elsewhere; a fact is a group of checks that hold or fail for the same reason. A `ledger` argument is
data/analysis/claims.csv, and `checks` is data/audit/checks.csv; both have texts only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from stages.evidence import published
from stages.evidence.arithmetic import FAILS, HOLDS, NOT_DECIDED, TRUNCATED
from stages.evidence.baselines import AT_CHANCE
from stages.evidence.statistics import NO_INTERVAL, NOT_TESTED, ONE_CHECKPOINT, TOO_FEW
from stages.report import names
from stages.report.tables import Grid, Group, Heading, Line, Value
from stages.report.text_templates import read_content

# source of a check (a key of published.PAPERS) by the first part of the name
PAPER_OF = {
    "C": "courtois2024",
    "K": "kowsher",
    "K24": "kowsher",
    "K25": "kowsher",
    "H": "hadamard_blog",
    "AOP": "aop",
}
# A fact has the worst verdict of its checks.
WORST = (
    FAILS,
    NOT_DECIDED,
    TRUNCATED,
    HOLDS,
)
# The report's word for every verdict on a claim. Pages, totals and filters use these words only.
WORD_OF = {
    HOLDS: "holds",
    "reproduced": "holds",
    TRUNCATED: "truncated",
    "partly": "partly",
    "unsupported": "unsupported",
    FAILS: "fails",
    "contradicted": "fails",
    "not-checkable": "not checkable",
    NOT_DECIDED: "not decided",
    "undecided": "not decided",
    NO_INTERVAL: "not decided",
    AT_CHANCE: "not decided",
    ONE_CHECKPOINT: "not decided",
    TOO_FEW: "not decided",
    NOT_TESTED: "not tested",
}
# the words, in the order of the columns of `claim_totals` and of the segments of its bars
WORDS = tuple(dict.fromkeys(WORD_OF.values()))
# By column of the page: heading, and the question that the column answers. The column `numbers` has the verdict on the
# printed numbers, `released` the ledger `released` of stages/analysis/claims.py, and `run` the ledgers `counts` and
# `training`.
COLUMNS = {
    "numbers": ("Audit", "Does it follow from the printed numbers and the released results?"),
    "released": (
        "Released results",
        "Do their seeds show it? One checkpoint per operator decides no claim about the operator; the entry says how "
        "the runs read.",
    ),
    "run": ("This run", "Does it show it, by counting or by training?"),
}


@dataclass(frozen=True, kw_only=True)
class Ledger(Grid):
    """A table whose page unfolds each row to the reasons.

    The first value of a row is the statement, with its place as the reason; the other values are verdicts.
    """

    kind: ClassVar[str] = "ledger"


def build_claims(ledger: pd.DataFrame, checks: pd.DataFrame) -> Ledger:
    """Builds the list of claims: each with its verdicts, reasons, checks of the audit, and menus to filter by."""
    word_of = checks["verdict"].replace(WORD_OF).set_axis(checks["check"]).to_dict()
    headings = [Heading("What it says")]
    headings += [Heading(*texts) for texts in COLUMNS.values()]
    groups = []
    for row in _put_side_by_side(ledger).to_dict("records"):
        values = [Value(names.write_names(row["claim"]), because=row["where"], kind="text")]
        # the menus by which a reader filters the lines
        menus = [("Source", published.PAPERS[row["paper"]])]
        for column, (heading, _) in COLUMNS.items():
            because = names.write_names(row[f"{column}_because"]).replace("_", " ")
            ids = row["audit_ids"].split(", ") if column == "numbers" else []
            behind = tuple((name, word_of[name]) for name in ids if name in word_of)
            menus.append((heading, row[column]))
            values.append(Value(row[column], because=because, kind="verdict", checks=behind))
        groups.append(Group(row["id"], (Line("", tuple(values)),), anchor=row["id"], words=tuple(menus)))
    return Ledger(
        name="claims",
        title="Claims of the four sources",
        stage="analysis",
        first="Claim",
        headings=tuple(headings),
        groups=tuple(groups),
        csv=ledger,
    )


def count_verdicts(ledger: pd.DataFrame) -> pd.DataFrame:
    """Counts the claims by verdict: a row per kind of evidence (`ledger`) and source; `claims` is the sum."""
    side_by_side = _put_side_by_side(ledger)
    totals = []
    for column, (heading, _) in COLUMNS.items():
        judged = side_by_side[side_by_side[column] != ""]
        for paper, rows in judged.groupby("paper", sort=False):
            place = {
                "source": published.PAPERS[paper],
                "ledger": heading,
                "claims": len(rows),
            }
            counts = rows[column].value_counts().reindex(WORDS, fill_value=0)
            totals.append(place | counts.rename(name_column).to_dict())
    return pd.DataFrame(totals)


def name_column(word: str) -> str:
    """Names the column that counts a verdict: `not tested` is `not_tested`."""
    return word.replace(" ", "_")


def build_audit(checks: pd.DataFrame) -> Ledger:
    """Builds the list of all checks: failing checks first; among equal verdicts, the `findings` of sections.yaml."""
    ranks = pd.DataFrame(
        {
            "verdict": checks["verdict"].map(_number_values(WORST)),
            "finding": checks["check"].map(_number_values(read_content("sections")["findings"])),
        }
    )
    # A verdict or a check without a rank comes last.
    rows = checks.loc[ranks.sort_values(["verdict", "finding"], kind="stable").index]
    groups = []
    for row in rows.itertuples():
        values = (
            Value(names.write_names(row.statement), because=row.source, kind="text"),
            Value(row.verdict, because=names.write_names(row.arithmetic), kind="verdict"),
        )
        menus = (
            ("Source", row.source),
            ("Verdict", row.verdict),
            ("By", row.by),
        )
        groups.append(Group(row.check, (Line("", values),), anchor=row.check, words=menus))
    return Ledger(
        name="audit",
        title="All checks of the published numbers",
        stage="audit",
        first="Check",
        headings=(
            Heading("Statement"),
            Heading("Verdict", "Does the arithmetic agree?"),
        ),
        groups=tuple(groups),
        csv=rows,
    )


def count_facts(checks: pd.DataFrame) -> pd.DataFrame:
    """Counts the facts of every source by verdict; the worst verdict of its checks decides a fact.

    `facts` is the sum of holds, truncated and fails. `by_reading` counts checks that fail by reading, which are no
    facts.
    """
    totals = []
    sources = checks["check"].str.partition(".")[0].map(PAPER_OF)
    for paper, of_source in checks.groupby(sources, sort=False):
        failing = of_source["verdict"] == FAILS
        computed = of_source[(of_source["by"] == "arithmetic") & of_source["verdict"].isin(WORST)]
        ranks = computed["verdict"].map(_number_values(WORST))
        facts = ranks.groupby(computed["fact"]).min().map(dict(enumerate(WORST))).value_counts()
        counts = facts.reindex(WORST, fill_value=0)
        totals.append(
            {
                "source": published.PAPERS[paper],
                "facts": counts.sum() - counts[NOT_DECIDED],
                "holds": counts[HOLDS],
                "truncated": counts[TRUNCATED],
                "fails": counts[FAILS],
                "failing_checks": (failing & (of_source["by"] == "arithmetic")).sum(),
                "not_decided": counts[NOT_DECIDED],
                "by_reading": (failing & (of_source["by"] == "reading")).sum(),
            }
        )
    return pd.DataFrame(totals)


def _put_side_by_side(ledger: pd.DataFrame) -> pd.DataFrame:
    """Puts the verdicts on a claim into one row: columns such as `run` and `run_because`, empty if not judged."""
    # the audit alone decides a claim of the ledger `counts` without a counted number
    judged = ledger[(ledger["ledger"] != "counts") | (ledger["estimate"] != "")]
    words = judged["verdict"].map(WORD_OF.__getitem__)
    # the verdict in full where the word says less
    in_full = (judged["verdict"].str.capitalize() + ". ").where(judged["verdict"] != words, "")
    single = judged["verdict"] == ONE_CHECKPOINT
    read = "One checkpoint per operator; the runs read: " + judged["reading"] + "."
    found = " Found: " + judged["estimate"] + "."
    because = (in_full + judged["because"]).mask(single, read) + found.where(judged["estimate"] != "", "")
    judged = judged.assign(word=words, because=because.str.strip())
    claims = ledger.drop_duplicates("id").set_index("id")
    claims["numbers"] = claims["numbers"].map(WORD_OF.__getitem__)
    released = judged["ledger"] == "released"
    for name, rows in (("released", judged[released]), ("run", judged[~released])):
        rows = rows.set_index("id")
        claims[name] = rows["word"]
        claims[f"{name}_because"] = rows["because"]
    return claims.fillna("").reset_index()


def _number_values(values: Sequence[str]) -> dict[str, int]:
    """Numbers values from 0: `["holds", "fails"]` gives `{"holds": 0, "fails": 1}`."""
    return {value: place for place, value in enumerate(values)}
