"""The ledgers: every claim and every check of the published numbers, and how many of each source hold.

A claim is a statement of a paper. A check of the audit, such as `C.AVG.base`, compares a printed number or sentence
with numbers from elsewhere; a fact is a group of checks that hold or fail for the same reason.
"""

from collections.abc import Sequence

import pandas as pd

from stages.evidence import published
from stages.evidence.arithmetic import FAILS, HOLDS, NOT_DECIDED, TRUNCATED
from stages.evidence.statistics import ONE_CHECKPOINT
from stages.report import names
from stages.report.tables import Grid, Group, Heading, Line, Value
from stages.report.text_templates import content

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
# Columns of `claim_totals` that count decided claims, and their verdicts. Any other verdict leaves a claim open.
DECIDED = {
    "holds": (HOLDS, "reproduced"),
    "found_false": (FAILS, "contradicted"),
    "partly": ("partly",),
    "unsupported": ("unsupported",),
    "truncated": (TRUNCATED,),
}
# By column of the page: heading, and the question that the column answers. The column `numbers` has the verdict on the
# printed numbers, `released` the ledger `released` of stages/analysis/claims.py, and `run` the ledgers `counts` and
# `training`.
COLUMNS = {
    "numbers": ("Audit", "Does it follow from the printed numbers and the released results?"),
    "released": (
        "Released results",
        "Do their seeds show it? Unless a cell says otherwise, there is one checkpoint per operator, which speaks for "
        "itself and not for its operator, and the cell says how the runs read.",
    ),
    "run": ("This run", "Does it show it, by counting or by training?"),
}


def claims(ledger: pd.DataFrame, checks: pd.DataFrame) -> Grid:
    """Builds the table of claims with the verdicts, and with the checks of the audit behind each verdict.

    Args:
        ledger: the claims as the stage analysis judged them, texts only; see `claims.build_ledger` there.
        checks: of `read_results.audited`.
    """
    verdict_of = checks.set_index("check")["verdict"].to_dict()
    headings = [Heading("What it says", "and where")]
    headings += [Heading(*texts) for texts in COLUMNS.values()]
    groups = []
    for row in _put_side_by_side(ledger).to_dict("records"):
        values = [Value(names.prose(row["claim"]), because=row["where"], kind="text")]
        # the menus by which a reader filters the table
        words = [("Paper", published.PAPERS[row["paper"]])]
        for column, (heading, _) in COLUMNS.items():
            because = names.prose(row[f"{column}_because"]).replace("_", " ")
            ids = row["audit_ids"].split(", ") if column == "numbers" else []
            behind = tuple((name, verdict_of[name]) for name in ids if name in verdict_of)
            words.append((heading, row[column]))
            values.append(Value(row[f"{column}_shown"], because=because, kind="verdict", checks=behind))
        groups.append(Group(row["id"], (Line("", tuple(values)),), anchor=row["id"], words=tuple(words)))
    return Grid(
        name="claims",
        title="Claims of the four sources",
        stage="analysis",
        first="Claim",
        headings=tuple(headings),
        groups=tuple(groups),
        notes=("The CSV has a line for each claim and ledger, with the checks behind it in a column of their own.",),
        csv=ledger,
    )


def claim_totals(ledger: pd.DataFrame) -> pd.DataFrame:
    """Counts, by source and by ledger, the claims of each verdict.

    Args:
        ledger: as for `claims`.

    Returns:
        A row for every source and every ledger (COLUMNS) that judges a claim of the source. Columns: source, ledger,
        claims (all that the ledger judges), the columns of DECIDED, and open. claims is the sum of the later columns.
    """
    totals = []
    for paper, rows in _put_side_by_side(ledger).groupby("paper", sort=False):
        for column, (heading, _) in COLUMNS.items():
            verdicts = rows.loc[rows[column] != "", column]
            # Claims that hold in part, lack support or are cut off are not false, so they have their own columns.
            counts = {name: int(verdicts.isin(kinds).sum()) for name, kinds in DECIDED.items()}
            counts["open"] = len(verdicts) - sum(counts.values())
            if len(verdicts):
                place = {
                    "source": published.PAPERS[paper],
                    "ledger": heading,
                    "claims": len(verdicts),
                }
                totals.append(place | counts)
    return pd.DataFrame(totals)


def audit(checks: pd.DataFrame) -> Grid:
    """Builds the table of all checks of the published numbers, in the order of WORST; any other verdict comes last.

    Among checks of equal verdict, the `findings` of sections.yaml come first, in the order there.

    Args:
        checks: of `read_results.audited`.
    """
    ranks = pd.DataFrame(
        {
            "verdict": checks["verdict"].map(_rank(WORST)),
            "finding": checks["check"].map(_rank(content("sections")["findings"])),
        }
    )
    # A verdict or a check without a rank comes last.
    rows = checks.loc[ranks.sort_values(["verdict", "finding"], kind="stable").index]
    groups = []
    for row in rows.itertuples():
        values = (
            Value(row.verdict, kind="verdict"),
            Value(names.prose(row.statement), kind="text"),
            Value(names.prose(row.arithmetic), kind="text"),
        )
        words = (
            ("Paper", row.source),
            ("Verdict", row.verdict),
            ("By", row.by),
        )
        groups.append(Group(row.check, (Line("", values),), anchor=row.check, words=words))
    return Grid(
        name="audit",
        title="All checks of the published numbers",
        stage="audit",
        first="Check",
        headings=(
            Heading("Verdict"),
            Heading("Statement"),
            Heading("Arithmetic"),
        ),
        groups=tuple(groups),
        csv=rows,
    )


def audit_totals(checks: pd.DataFrame) -> pd.DataFrame:
    """Counts the facts of every source by verdict: checks that hold or fail for the same reason are a fact.

    Returns:
        A row for each source: facts (that arithmetic decides: holds + truncated + fails), failing_checks (the checks
        that fail), not_decided (further facts), by_reading (checks that fail by reading, which are no facts here).
    """
    totals = []
    sources = checks["check"].str.partition(".")[0].map(PAPER_OF)
    for paper, of_source in checks.groupby(sources, sort=False):
        failing = of_source["verdict"] == FAILS
        computed = of_source[(of_source["by"] == "arithmetic") & of_source["verdict"].isin(WORST)]
        ranks = computed["verdict"].map(_rank(WORST))
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
    """Puts the rows of every claim into a single row.

    Returns:
        A row for each claim: id, paper, where, claim, audit_ids, and for each NAME of COLUMNS the verdict under NAME,
        the text of the cell under NAME_shown and why under NAME_because; empty where the ledger does not judge.
    """
    # the audit alone decides a claim of the ledger `counts` without a counted number
    judged = ledger[(ledger["ledger"] != "counts") | (ledger["estimate"] != "")]
    found = " Found: " + judged["estimate"] + "."
    # The head of the column says that nearly all released results have one checkpoint per operator.
    single = judged["verdict"] == ONE_CHECKPOINT
    because = judged["because"].mask(single, "") + found.where(judged["estimate"] != "", "")
    judged = judged.assign(
        shown=judged["verdict"].mask(single, judged["reading"]),
        because=because.str.strip(),
    )
    claims = ledger.drop_duplicates("id").set_index("id")
    claims["numbers_shown"] = claims["numbers"]
    released = judged["ledger"] == "released"
    for name, rows in (("released", judged[released]), ("run", judged[~released])):
        rows = rows.set_index("id")
        claims[name] = rows["verdict"]
        claims[f"{name}_shown"] = rows["shown"]
        claims[f"{name}_because"] = rows["because"]
    return claims.fillna("").reset_index()


def _rank(values: Sequence[str]) -> dict[str, int]:
    """Numbers the values in order, from 0."""
    return {value: place for place, value in enumerate(values)}
