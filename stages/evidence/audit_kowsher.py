"""Table 1 of Kowsher et al., checked: averages, gains, where cells come from, what changed, GRIM.

K24: the arXiv edition of 2024; K25: the NAACL edition of 2025; K: both.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from stages.evidence.arithmetic import (
    EXAMPLES,
    FAILS,
    HOLDS,
    TRUNCATED,
    Finding,
    compare,
    judge,
    note,
    numbers,
    possible,
    whether,
)
from stages.evidence.editions import EDITIONS, OPERATORS, table
from stages.evidence.scores import COLUMNS

COURTOIS = "courtois2024_table3_glue"


def findings() -> list[Finding]:
    parts = (averages(), gains(), origins(), editions(), accuracies())
    return [finding for part in parts for finding in part]


def means(edition: str, operator: str, cola: Fraction | None = None) -> dict[str, Fraction]:
    """The three averages that a reader may think of; cola: in place of the printed cell."""
    cells = {column: table(edition, "table1_glue").value(f"base.{operator}", column) for column in COLUMNS}
    cells |= {"cola": cola} if cola is not None else {}
    whole = sum(cells.values())
    both = cells["mnli_m"] + cells["mnli_mm"]
    return {
        "nine numbers": whole / 9,
        "eight tasks": (whole - both / 2) / 8,
        "matched only": (whole - cells["mnli_mm"]) / 8,
    }


def averages() -> Iterator[Finding]:
    for edition, operator in product(EDITIONS, OPERATORS):
        text = table(edition, "table1_glue").text(f"base.{operator}", "average")
        made = means(edition, operator)
        verdicts = {name: judge(text, exact) for name, exact in made.items()}
        best = min(verdicts.values(), key=(HOLDS, TRUNCATED, FAILS).index)
        arithmetic = f"printed {text}; " + ", ".join(
            f"{name} {float(exact):.4f} ({verdicts[name]})" for name, exact in made.items()
        )
        yield Finding(
            f"{edition}.AVG.{operator}",
            f"Table 1: average of {operator}, by any of three definitions",
            best,
            arithmetic,
        )
    for operator in ("symmetric", "pairwise"):
        cola = numbers(COURTOIS).text(f"base.{operator}", "cola")
        text = table("K24", "table1_glue").text(f"base.{operator}", "average")
        exact = means("K24", operator, Fraction(cola))["matched only"]
        yield compare(
            f"K24.AVG.{operator}.orig",
            f"The arXiv average of {operator} with the CoLA cell of Courtois et al.",
            text,
            exact,
            f"CoLA {cola}, matched MNLI only",
        )


def gains() -> Iterator[Finding]:
    for edition, (other, name) in product(EDITIONS, (("original", "standard"), ("symmetric",) * 2, ("pairwise",) * 2)):
        claimed = table(edition, "text_and_figure_numbers").value("glue", f"gain_vs_{name}")
        own, reference = means(edition, "shared"), means(edition, other)
        made = {key: own[key] - reference[key] for key in ("nine numbers", "matched only")}
        holds = min(abs(gain - claimed) for gain in made.values()) <= Fraction(6, 1000)
        arithmetic = f"claimed {float(claimed):+.2f}; " + ", ".join(
            f"{key} {float(gain):+.3f}" for key, gain in made.items()
        )
        yield whether(
            f"{edition}.GAIN.{other}", f"Mean gain of shared over {other} follows from the cells", holds, arithmetic
        )
    yield whether(
        "K.GAIN.unit",
        "The gains are per cent of accuracy",
        False,
        "they are points of a mean of accuracies, F1 means and correlations",
    )
    for edition, (task, other, name) in product(
        EDITIONS,
        (("mrpc", "original", "standard"), ("stsb", "pairwise", "pairwise"), ("cola", "symmetric", "symmetric")),
    ):
        text = table(edition, "text_and_figure_numbers").text(f"glue.{task}", f"gain_vs_{name}")
        cells = table(edition, "table1_glue")
        own, reference = cells.value("base.shared", task), cells.value(f"base.{other}", task)
        points, relative = own - reference, 100 * (own / reference - 1)
        arithmetic = f"claimed {text}; {float(points):+.2f} points, {float(relative):+.2f} % relative"
        if task == "cola":
            source = numbers(COURTOIS).value("base.symmetric", "cola")
            arithmetic += f"; {float(own)} less the {float(source)} of Courtois et al. is {float(own - source):.2f}"
        holds = HOLDS in (judge(text, points), judge(text, relative))
        yield whether(f"{edition}.TEXT.{task}", f"Section 2.6: shared over {other} on {task}", holds, arithmetic)
    for edition in EDITIONS:
        yield from _best(edition)


def _best(edition: str) -> Iterator[Finding]:
    cells = table(edition, "table1_glue")
    best = {c: max(OPERATORS, key=lambda o, c=c: cells.value(f"base.{o}", c)) for c in COLUMNS}
    arithmetic = ", ".join(f"{column} {operator}" for column, operator in best.items())
    yield note(
        f"{edition}.BEST", f"Best cell of each column; shared in {list(best.values()).count('shared')} of 9", arithmetic
    )
    nine = {operator: means(edition, operator)["nine numbers"] for operator in OPERATORS}
    arithmetic = ", ".join(f"{operator} {float(value):.3f}" for operator, value in nine.items())
    yield whether(
        f"{edition}.BESTAVG", "Shared has the best mean of nine", max(nine, key=nine.get) == "shared", arithmetic
    )
    for column in ("mrpc", "rte", "sst2", "qnli", "mnli_m"):
        other = max(OPERATORS[:3], key=lambda o, c=column: cells.value(f"base.{o}", c))
        own, reference = cells.value("base.shared", column), cells.value(f"base.{other}", column)
        share, n = float(own) / 100, EXAMPLES[column]
        error = 100 * math.sqrt(share * (1 - share) / n)
        arithmetic = (
            f"{float(own - reference):+.2f} points, {float((own - reference) * n / 100):+.2f} of {n:,} examples;"
            f" standard error of one accuracy {error:.2f}"
        )
        yield note(f"{edition}.MARGIN.{column}", f"Lead of shared over the next best ({other}) on {column}", arithmetic)


def origins() -> Iterator[Finding]:
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
        False,
        f"{same} of its 9 numbers are base original of Courtois et al.",
    )
    yield note(
        "K.CONFOUND",
        "The rows were trained differently",
        "baselines: OSCAR, 26.2 billion tokens, 5 epochs at 1e-5; shared: BooksCorpus and Wikipedia, 54 to 64 billion"
        " tokens, 10 epochs from 1e-4",
    )


def editions() -> Iterator[Finding]:
    """What changed from arXiv to NAACL, and what stayed although its basis changed."""
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
    nine = means("K25", "pairwise")["nine numbers"]
    gain = means("K25", "shared")["nine numbers"] - nine
    noise = table("K25", "table5_noise")
    for key, statement, arithmetic in (
        (
            "t1avg",
            "NAACL Table 1: the average of pairwise follows its changed cells",
            f"79.03 stays; its cells give {float(nine):.2f}",
        ),
        ("gain089", "NAACL abstract: +0.89 over pairwise follows the cells", f"they give {float(gain):+.2f}"),
        (
            "t6qnli",
            "NAACL Table 6: the QNLI diagonal of shared follows Table 1",
            (
                f"{table('K25', 'table6_cross_domain').text('row_qnli', 'col_qnli.shared')} against"
                f" {table('K25', 'table1_glue').text('base.shared', 'qnli')}"
            ),
        ),
        (
            "t5sst2",
            "NAACL Table 5: SST-2 of shared under noise follows its changed value without noise",
            f"{noise.text('noise_0', 'sst2.shared')} without, {noise.text('noise_10', 'sst2.shared')} with 10 % noise",
        ),
        (
            "t2avg",
            "NAACL Table 2: the new average of standard (single) is the mean of its cells",
            "80.10 and 81.47 for 80.77 and 86.83",
        ),
    ):
        yield whether(f"K25.STALE.{key}", statement, False, arithmetic)


def accuracies() -> Iterator[Finding]:
    """GRIM on Table 1 and on the SST-2 columns of Table 5."""
    for column in ("rte", "sst2", "qnli", "mrpc", "mnli_m", "mnli_mm"):
        n, seen = EXAMPLES[column], {}
        for edition, operator in product(EDITIONS, OPERATORS):
            seen.setdefault(table(edition, "table1_glue").text(f"base.{operator}", column), []).append(
                f"{edition} {operator}"
            )
        for text, who in seen.items():
            one, five = possible(text, n), possible(text, n, 5)
            fitting = [str(runs) for runs in range(1, 11) if possible(text, n, runs) == HOLDS]
            verdict = min((one, five), key=(HOLDS, TRUNCATED, FAILS).index)
            arithmetic = (
                f"one run {one}, mean of five {five}; numbers of runs up to 10 that fit: {', '.join(fitting) or 'none'}"
            )
            yield Finding(
                f"K.GRIM.{column}.{text}",
                f"GRIM: {column} {text} ({', '.join(who)}) on {n:,} examples",
                verdict,
                arithmetic,
            )
    for edition in EDITIONS:
        noise = table(edition, "table5_noise")
        texts = [noise.text(f"noise_{level}", f"sst2.{o}") for level in range(5, 45, 5) for o in ("original", "shared")]
        passed = {runs: sum(possible(text, 872, runs) == HOLDS for text in texts) for runs in (1, 5)}
        yield note(
            f"{edition}.GRIM.noise.sst2",
            "GRIM: SST-2 cells under noise",
            f"of 16: single runs {passed[1]}, means of five {passed[5]}",
        )
