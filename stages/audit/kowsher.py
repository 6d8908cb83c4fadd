"""Table 1 of Kowsher et al., checked: averages, gains, where cells come from, what changed.

K24: the arXiv edition of 2024; K25: the NAACL edition of 2025; K: both.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product

from stages.audit.described import BEST, content, mean
from stages.evidence.arithmetic import (
    FAILS,
    HOLDS,
    NOT_DECIDED,
    Finding,
    judge,
    note,
    numbers,
    possible,
    whether,
)
from stages.evidence.editions import EDITIONS, OPERATORS, table
from stages.evidence.scores import COLUMNS

COURTOIS = "courtois2024_table3_glue"
QNLI = ("base.shared", "qnli")
SAID = {  # section 2.6, by task: the operator that shared is set beside, what the cells call it, the word of the text
    "mrpc": ("original", "standard", "approximately"),
    "stsb": ("pairwise", "pairwise", "approximately"),
    "cola": ("symmetric", "symmetric", "about"),
}


def findings() -> list[Finding]:
    """Makes all checks of this file."""
    parts = (averages(), gains(), swapped(), origins(), editions(), stale(), under_noise())
    return [finding for part in parts for finding in part]


def means(edition: str, operator: str, cola: Fraction | None = None) -> dict[str, Fraction]:
    """Computes the averages of an operator's row of Table 1 that a printed gain may rest on.

    Args:
        edition: a key of EDITIONS.
        operator: one of OPERATORS.
        cola: a value that takes the place of the printed CoLA cell.

    Returns:
        The average by each of two definitions of checks.yaml: `all nine columns`, and `without MNLI-mm`, which leaves
        MNLI mismatched out.
    """
    cells = {column: table(edition, "table1_glue").value(f"base.{operator}", column) for column in COLUMNS}
    cells |= {"cola": cola} if cola is not None else {}
    return {definition: mean(cells, definition) for definition in ("all nine columns", "without MNLI-mm")}


def averages() -> Iterator[Finding]:
    """Notes for symmetric and pairwise what the arXiv average is with the CoLA cell that Courtois et al. print."""
    for operator in ("symmetric", "pairwise"):
        cola = numbers(COURTOIS).text(f"base.{operator}", "cola")
        text = table("K24", "table1_glue").text(f"base.{operator}", "average")
        exact = means("K24", operator, Fraction(cola))["without MNLI-mm"]
        statement = f"The arXiv average of {operator} with the CoLA cell of Courtois et al."
        arithmetic = f"printed {text}, computed {float(exact):.5g}; CoLA {cola}, matched MNLI only"
        yield note(f"K24.AVG.{operator}.orig", statement, arithmetic)


def gains() -> Iterator[Finding]:
    """Checks the gains of shared that the text claims, in both editions.

    Three are gains of the mean over another operator: each holds where the cells give it by one of the definitions of
    `means`. Three, in section 2.6, are gains on one task: each holds where the cells give it in points or in per cent
    of the other operator's score. Then follow notes on the best cells, the best mean, and how far shared leads.
    """
    for edition, (other, name) in product(EDITIONS, (("original", "standard"), ("symmetric",) * 2, ("pairwise",) * 2)):
        text = table(edition, "text_and_figure_numbers").text("glue", f"gain_vs_{name}")
        own, reference = means(edition, "shared"), means(edition, other)
        made = {key: own[key] - reference[key] for key in own}
        shown = ", ".join(f"{key} {float(gain):+.3f}" for key, gain in made.items())
        yield Finding(
            f"{edition}.GAIN.{other}",
            f"Mean gain of shared over {other} follows from the cells",
            min((judge(text, gain) for gain in made.values()), key=BEST.index),
            f"claimed {float(text):+.2f}; {shown}",
        )
    for edition, (task, (other, name, word)) in product(EDITIONS, SAID.items()):
        text = table(edition, "text_and_figure_numbers").text(f"glue.{task}", f"gain_vs_{name}")
        cells = table(edition, "table1_glue")
        own, reference = cells.value("base.shared", task), cells.value(f"base.{other}", task)
        points, relative = own - reference, 100 * (own / reference - 1)
        arithmetic = f"claimed {word} {text}; {float(points):+.2f} points, {float(relative):+.2f} % relative"
        if task == "cola":
            source = numbers(COURTOIS).value("base.symmetric", "cola")
            arithmetic += f"; {float(own)} less the {float(source)} of Courtois et al. is {float(own - source):.2f}"
        holds = HOLDS in (judge(text, points, word), judge(text, relative, word))
        yield whether(f"{edition}.TEXT.{task}", f"Section 2.6: shared over {other} on {task}", holds, arithmetic)
    for edition in EDITIONS:
        yield from _best(edition)


def swapped() -> Iterator[Finding]:
    """Checks whether each gain in section 2.6 of the NAACL edition stands beside its own task.

    It does not where the cells of the task do not give it to the digit, and those of another column do.
    """
    cells, found = table("K25", "table1_glue"), []
    for task, (other, name, _) in SAID.items():
        text = table("K25", "text_and_figure_numbers").text(f"glue.{task}", f"gain_vs_{name}")
        pairs = {c: (cells.text("base.shared", c), cells.text(f"base.{other}", c)) for c in COLUMNS}
        moves = {column: Fraction(own) - Fraction(reference) for column, (own, reference) in pairs.items()}
        others = [column for column, move in moves.items() if move == Fraction(text) and moves[task] != move]
        found += [
            f"{text} for {task} over {other} is {column}: {pairs[column][0]} - {pairs[column][1]}" for column in others
        ]
    statement = "NAACL section 2.6: every gain stands beside the task whose gain it is"
    yield whether("K25.SWAP", statement, not found, "; ".join(found) or "all do")


def _best(edition: str) -> Iterator[Finding]:
    cells = table(edition, "table1_glue")
    best = {c: max(OPERATORS, key=lambda o, c=c: cells.value(f"base.{o}", c)) for c in COLUMNS}
    arithmetic = ", ".join(f"{column} {operator}" for column, operator in best.items())
    yield note(
        f"{edition}.BEST", f"Best cell of each column; shared in {list(best.values()).count('shared')} of 9", arithmetic
    )
    nine = {operator: means(edition, operator)["all nine columns"] for operator in OPERATORS}
    arithmetic = ", ".join(f"{operator} {float(value):.3f}" for operator, value in nine.items())
    yield note(f"{edition}.BESTAVG", f"Best mean of nine: {max(nine, key=nine.get)}", arithmetic)
    examples = content()["grim"]["examples"]
    for column in ("mrpc", "rte", "sst2", "qnli", "mnli_m"):
        other = max(OPERATORS[:3], key=lambda o, c=column: cells.value(f"base.{o}", c))
        own, reference = cells.value("base.shared", column), cells.value(f"base.{other}", column)
        share, n = float(own) / 100, examples[column]
        error = 100 * math.sqrt(share * (1 - share) / n)
        arithmetic = (
            f"{float(own - reference):+.2f} points, {float((own - reference) * n / 100):+.2f} of {n:,} examples;"
            f" standard error of one accuracy {error:.2f}"
        )
        yield note(f"{edition}.MARGIN.{column}", f"Lead of shared over the next best ({other}) on {column}", arithmetic)


def origins() -> Iterator[Finding]:
    """Notes how many baseline cells equal those of Courtois et al., and which were changed.

    The last check is whether the row `standard` is that of Devlin et al., as section 2.4 says: it fails where any cell
    of that row is one of Courtois et al.
    """
    source = numbers(COURTOIS)
    for edition in EDITIONS:
        cells = table(edition, "table1_glue")
        pairs = {
            (o, c): (source.text(f"base.{o}", c), cells.text(f"base.{o}", c)) for o in OPERATORS[:3] for c in COLUMNS
        }
        changed = [f"{o} {c} {a} to {b}" for (o, c), (a, b) in pairs.items() if a != b]
        arithmetic = f"changed: {'; '.join(changed)}"
        yield note(
            f"{edition}.SOURCE",
            f"Baseline cells equal to Courtois et al., Table 3: {27 - len(changed)} of 27",
            arithmetic,
        )
    same = sum(source.text("base.original", c) == table("K25", "table1_glue").text("base.original", c) for c in COLUMNS)
    yield whether(
        "K.SOURCE.standard",
        "Section 2.4: the standard row is that of Devlin et al.",
        not same,
        f"{same} of its 9 numbers are those of base original in Courtois et al.",
    )


def editions() -> Iterator[Finding]:
    """Notes, table by table, which cells changed from the arXiv to the NAACL edition, and by how much.

    The last note counts the changes by a whole number of points, averages left aside.
    """
    moves = []
    for name in ("table1_glue", "table2_squad", "table4_model_parameters", "table5_noise", "table6_cross_domain"):
        one, other = (table(edition, name) for edition in EDITIONS)
        changed = {
            key: Fraction(other.cells[key]) - Fraction(text)
            for key, text in one.cells.items()
            if other.cells[key] != text
        }
        shown = "; ".join(f"{row} {column} {float(move):+.2f}" for (row, column), move in changed.items())
        number = name.removeprefix("table")[0]
        yield note(
            f"K.DIFF.T{number}",
            f"Cells of Table {number} that changed between the editions: {len(changed)}",
            shown or "none",
        )
        moves += [move for (_, column), move in changed.items() if not column.startswith("av")]
    whole = sum(move.denominator == 1 for move in moves)
    arithmetic = f"{whole} of {len(moves)}; a new measurement does so about once in a hundred"
    yield note("K.DIFF.whole", "Changes of measured cells by a whole number of points", arithmetic)


def stale() -> Iterator[Finding]:
    """Checks five numbers of the NAACL edition against the cells that they follow from.

    A check fails where the two do not agree any more, as one changed and the other did not.
    """
    nine = means("K25", "pairwise")["all nine columns"]
    gain = means("K25", "shared")["all nine columns"] - nine
    cells, text = table("K25", "table1_glue"), table("K25", "text_and_figure_numbers")
    average = cells.text("base.pairwise", "average")
    yield whether(
        "K25.STALE.t1avg",
        "NAACL Table 1: the average of pairwise follows its changed cells",
        judge(average, nine) == HOLDS,
        f"{average} stays; its cells give {float(nine):.2f}",
    )
    yield whether(
        "K25.STALE.gain089",
        "NAACL abstract: +0.89 over pairwise follows the cells",
        judge(text.text("glue", "gain_vs_pairwise"), gain) == HOLDS,
        f"they give {float(gain):+.2f}",
    )
    diagonal, own = table("K25", "table6_cross_domain").text("row_qnli", "col_qnli.shared"), cells.text(*QNLI)
    yield whether(
        "K25.STALE.t6qnli",
        "NAACL Table 6: the QNLI diagonal of shared follows Table 1",
        diagonal == own,
        f"{diagonal} against {own}",
    )
    noise = table("K25", "table5_noise")
    clean, noisy = (noise.text(f"noise_{level}", "sst2.shared") for level in (0, 10))
    standard = [noise.value(f"noise_{level}", "sst2.original") for level in range(0, 45, 5)]
    rises = any(more > less for less, more in pairwise(standard))  # then a rise alone tells nothing of a stale cell
    yield Finding(
        "K25.STALE.t5sst2",
        "NAACL Table 5: SST-2 of shared under noise follows its changed value without noise",
        HOLDS if Fraction(noisy) <= Fraction(clean) else NOT_DECIDED if rises else FAILS,
        f"{clean} without, {noisy} with 10 % noise"
        + ("; the standard column rises under noise, too, so a rise decides nothing" if rises else ""),
    )
    answers, row = table("K25", "table2_squad"), "base.original.single"
    printed = [answers.text(row, f"avg_{metric}") for metric in ("em", "f1")]
    exact = [(answers.value(row, f"squad1_{m}") + answers.value(row, f"squad2_{m}")) / 2 for m in ("em", "f1")]
    yield whether(
        "K25.STALE.t2avg",
        "NAACL Table 2: the new average of standard (single) is the mean of its cells",
        all(judge(a, b) == HOLDS for a, b in zip(printed, exact, strict=True)),
        f"{' and '.join(printed)} for {' and '.join(f'{float(value):.2f}' for value in exact)}",
    )


def under_noise() -> Iterator[Finding]:
    """Notes how many SST-2 cells of Table 5 can be an accuracy on the 872 examples (GRIM), of one run or of five."""
    for edition in EDITIONS:
        noise = table(edition, "table5_noise")
        texts = [noise.text(f"noise_{level}", f"sst2.{o}") for level in range(5, 45, 5) for o in ("original", "shared")]
        passed = {runs: sum(possible(text, 872, runs) == HOLDS for text in texts) for runs in (1, 5)}
        yield note(
            f"{edition}.GRIM.noise.sst2",
            "GRIM: SST-2 cells under noise",
            f"of 16: single runs {passed[1]}, means of five {passed[5]}",
        )
