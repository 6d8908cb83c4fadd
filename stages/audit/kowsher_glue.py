"""Table 1 of Kowsher et al. (GLUE), checked against averages, text, Courtois et al., and between editions."""

from fractions import Fraction
from itertools import product

import pandas as pd

from stages.audit.findings import (
    Findings,
    check_equal,
    check_statement,
    judge_printed,
    make_finding,
    note_numbers,
    pick_best,
)
from stages.audit.printed import COURTOIS, EDITIONS, KOWSHER, TABLE3, average_columns, read_numbers, read_table
from stages.evidence.scores import COLUMNS
from stages.evidence.verdicts import Statement, judge_printed_number

# The operators over which the paper states gains of shared, and the names of these gains in data/published.
GAINS = {"original": "gain_vs_standard", "symmetric": "gain_vs_symmetric", "pairwise": "gain_vs_pairwise"}
# The gains of shared in section 2.6, by task: the other operator, and the word before the gain.
TASK_GAINS = {
    "mrpc": ("original", "approximately"),
    "stsb": ("pairwise", "approximately"),
    "cola": ("symmetric", "about"),
}


def read_row(edition: str, operator: str) -> pd.Series:
    """Read the row of an operator in Table 1: exact scores, in per cent, by column, and `average`."""
    return read_table(edition, "table1_glue").read_row(f"base.{operator}")


def check_averages() -> Findings:
    """Check the column `average` of Table 1 against three definitions of an average, of which one must fit."""
    for edition, operator in product(EDITIONS, KOWSHER):
        printed = read_table(edition, "table1_glue")[f"base.{operator}", "average"]
        verdicts = []
        shown = []
        for definition, exact in average_columns(read_row(edition, operator)).items():
            verdict = judge_printed_number(printed, exact)
            verdicts.append(verdict)
            shown.append(f"{definition} {float(exact):.4f} ({verdict})")
        yield make_finding(
            "{edition}.AVG.{operator}",
            pick_best(verdicts),
            edition=edition,
            operator=operator,
            printed=printed,
            averages=", ".join(shown),
        )


def check_mean_gains() -> Findings:
    """Check the mean gains of `shared` in the abstract against two definitions of the mean, of which one must fit."""
    for edition, other in product(EDITIONS, GAINS):
        printed = read_table(edition, "text_and_figure_numbers")["glue", GAINS[other]]
        exact = average_columns(read_row(edition, "shared") - read_row(edition, other))
        nine = exact["all nine columns"]
        matched = exact["without MNLI-mm"]
        yield make_finding(
            "{edition}.GAIN.{other}",
            pick_best(judge_printed_number(printed, gain) for gain in (nine, matched)),
            edition=edition,
            other=other,
            claimed=Fraction(printed),
            nine=nine,
            matched=matched,
        )


def check_task_gains() -> Findings:
    """Check the gains of `shared` in section 2.6, in points or in per cent of the other score."""
    # The gain on CoLA in the arXiv edition is over the score of symmetric in Courtois et al.
    source = read_numbers(TABLE3).read_value("base.symmetric", "cola")
    for edition, task in product(EDITIONS, TASK_GAINS):
        other, word = TASK_GAINS[task]
        printed = read_table(edition, "text_and_figure_numbers")[f"glue.{task}", GAINS[other]]
        shared = read_row(edition, "shared")[task]
        reference = read_row(edition, other)[task]
        points = shared - reference
        relative = 100 * (shared / reference - 1)
        verdicts = [judge_printed_number(printed, gain, word) for gain in (points, relative)]
        yield check_statement(
            # statements.yaml has an entry for each task.
            "{edition}.TEXT." + task,
            Statement.HOLDS in verdicts,
            edition=edition,
            other=other,
            claimed=f"{word} {printed}",
            points=points,
            relative=relative,
            shared=shared,
            source=source,
            over_source=shared - source,
        )


def check_misplaced_gains() -> Findings:
    """Check whether a gain stated for a task in section 2.6 (NAACL) is exactly the gain on another task."""
    text = read_table("K25", "text_and_figure_numbers")
    shared = read_row("K25", "shared")
    misplaced = []
    for task, (other, _) in TASK_GAINS.items():
        printed = text[f"glue.{task}", GAINS[other]]
        reference = read_row("K25", other)
        gains = shared - reference
        columns = gains.index[gains == Fraction(printed)]
        if task not in columns:
            for column in columns:
                difference = f"{float(shared[column])} - {float(reference[column])}"
                misplaced.append(f"{printed} for {task} over {other} is {column}: {difference}")
    yield check_statement("K25.SWAP", not misplaced, misplaced="; ".join(misplaced))


def compare_best_cells() -> Findings:
    """Note the operator with the best score in every column of Table 1; in a tie, the first operator."""
    for edition in EDITIONS:
        rows = pd.DataFrame({operator: read_row(edition, operator) for operator in KOWSHER}, dtype=float)
        best = rows.drop("average").idxmax(axis="columns")
        shown = ", ".join(best.index + " " + best)
        yield note_numbers("{edition}.BEST", edition=edition, shared=list(best).count("shared"), best=shown)


def compare_sources() -> Findings:
    """Note the baseline scores of Table 1 that are not copied from Courtois et al.; row `original` should copy none."""
    source = read_numbers(TABLE3)
    for edition in EDITIONS:
        copy = read_table(edition, "table1_glue")
        changed = []
        for operator, column in product(COURTOIS, COLUMNS):
            place = f"base.{operator}", column
            if source[place] != copy[place]:
                changed.append(f"{operator} {column} {source[place]} to {copy[place]}")
        yield note_numbers("{edition}.SOURCE", edition=edition, equal=27 - len(changed), changed="; ".join(changed))
    # By section 2.4, row `original`, which is printed as standard, is from Devlin et al. and not from Courtois et al.
    same = source.read_row("base.original").eq(read_row("K25", "original")).sum()
    yield check_statement("K.SOURCE.standard", same == 0, same=same)


def check_stale_numbers() -> Findings:
    """Check three numbers of the NAACL edition that depend on cells of Table 1 which changed since arXiv."""
    table = read_table("K25", "table1_glue")
    text = read_table("K25", "text_and_figure_numbers")
    shared, pairwise = [average_columns(read_row("K25", name))["all nine columns"] for name in ("shared", "pairwise")]
    yield judge_printed("K25.STALE.t1avg", table["base.pairwise", "average"], pairwise)
    yield judge_printed("K25.STALE.gain089", text["glue", "gain_vs_pairwise"], shared - pairwise)
    diagonal = read_table("K25", "table6_cross_domain")["row_qnli", "col_qnli.shared"]
    yield check_equal("K25.STALE.t6qnli", diagonal, table["base.shared", "qnli"])
