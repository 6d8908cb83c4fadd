"""Table 1 of Kowsher et al. (K24: arXiv 2024; K25: NAACL 2025; K: both), checked: averages, gains, origins, changes."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product

from stages.audit.described import content, mean
from stages.audit.findings import BEST, Finding, compared, finding, note, possible, whether
from stages.audit.printed import COURTOIS, EDITIONS, KOWSHER, TABLE3, numbers, table
from stages.evidence.arithmetic import FAILS, HOLDS, NOT_DECIDED, judge
from stages.evidence.scores import COLUMNS

# Gains of shared in section 2.6, by task: the other operator, its name in data/published, the word before the gain.
TASK_GAINS = {
    "mrpc": ("original", "standard", "approximately"),
    "stsb": ("pairwise", "pairwise", "approximately"),
    "cola": ("symmetric", "symmetric", "about"),
}


def findings() -> list[Finding]:
    """Makes all checks of this file, in the order of its functions."""
    return [*averages(), *gains(), *swapped(), *origins(), *editions(), *stale(), *under_noise()]


def means(edition: str, operator: str, cola: Fraction | None = None) -> dict[str, Fraction]:
    """Computes the averages of an operator's row of Table 1 that a printed gain may rest on.

    Args:
        edition: a key of EDITIONS.
        operator: one of KOWSHER.
        cola: a value that takes the place of the printed CoLA cell.

    Returns:
        The averages by two definitions of checks.yaml: `all nine columns` and `without MNLI-mm` (MNLI mismatched).
    """
    cells = {column: table(edition, "table1_glue").value(f"base.{operator}", column) for column in COLUMNS}
    cells |= {"cola": cola} if cola is not None else {}
    return {definition: mean(cells, definition) for definition in ("all nine columns", "without MNLI-mm")}


def averages() -> Iterator[Finding]:
    """Notes for symmetric and pairwise what the arXiv average is with the CoLA cell that Courtois et al. print."""
    for operator in ("symmetric", "pairwise"):
        cola = numbers(TABLE3)[f"base.{operator}", "cola"]
        exact = means("K24", operator, Fraction(cola))["without MNLI-mm"]
        text = table("K24", "table1_glue")[f"base.{operator}", "average"]
        yield note("K24.AVG.{operator}.orig", operator=operator, compared=compared(text, exact), cola=cola)


def gains() -> Iterator[Finding]:
    """Checks the gains of shared that the text claims, in both editions.

    Each holds where the cells give it: three gains of the mean over another operator by a definition of `means`, three
    on one task (section 2.6) in points or in per cent of the other operator's score. The notes of `_best` follow.
    """
    for edition, (other, name) in product(EDITIONS, (("original", "standard"), ("symmetric",) * 2, ("pairwise",) * 2)):
        text = table(edition, "text_and_figure_numbers")["glue", f"gain_vs_{name}"]
        shared, reference = means(edition, "shared"), means(edition, other)
        exact = {key: shared[key] - reference[key] for key in shared}
        shown = ", ".join(f"{key} {float(gain):+.3f}" for key, gain in exact.items())
        verdict = min((judge(text, gain) for gain in exact.values()), key=BEST.index)
        values = {"edition": edition, "other": other, "claimed": Fraction(text), "gains": shown}
        yield finding("{edition}.GAIN.{other}", verdict, **values)
    for edition, (task, (other, name, word)) in product(EDITIONS, TASK_GAINS.items()):
        text = table(edition, "text_and_figure_numbers")[f"glue.{task}", f"gain_vs_{name}"]
        cells = table(edition, "table1_glue")
        shared, reference = cells.value("base.shared", task), cells.value(f"base.{other}", task)
        points, relative = shared - reference, 100 * (shared / reference - 1)
        source = numbers(TABLE3).value("base.symmetric", "cola")
        of_source = f"; {float(shared)} less the {float(source)} of Courtois et al. is {float(shared - source):.2f}"
        values = {"edition": edition, "task": task, "other": other, "word": word, "text": text}
        values |= {"points": points, "relative": relative, "source": of_source if task == "cola" else ""}
        holds = HOLDS in (judge(text, points, word), judge(text, relative, word))
        yield whether("{edition}.TEXT.{task}", holds, **values)
    for edition in EDITIONS:
        yield from _best(edition)


def swapped() -> Iterator[Finding]:
    """Checks the gains in section 2.6 of K25: one is misplaced if another column gives it and its own does not."""
    cells, misplaced = table("K25", "table1_glue"), []
    for task, (other, name, _) in TASK_GAINS.items():
        text = table("K25", "text_and_figure_numbers")[f"glue.{task}", f"gain_vs_{name}"]
        pairs = {c: (cells["base.shared", c], cells[f"base.{other}", c]) for c in COLUMNS}
        moves = {column: Fraction(shared) - Fraction(reference) for column, (shared, reference) in pairs.items()}
        others = [column for column, move in moves.items() if move == Fraction(text) and moves[task] != move]
        misplaced += [f"{text} for {task} over {other} is {column}: {' - '.join(pairs[column])}" for column in others]
    yield whether("K25.SWAP", not misplaced, misplaced="; ".join(misplaced) or "all do")


def _best(edition: str) -> Iterator[Finding]:
    """Notes the best cells, the best mean, and how far shared leads the best other operator, in points and examples."""
    cells = table(edition, "table1_glue")
    # c=c binds the column of this turn; of a tie, the first operator counts
    best = {c: max(KOWSHER, key=lambda o, c=c: cells.value(f"base.{o}", c)) for c in COLUMNS}
    shown = ", ".join(f"{column} {operator}" for column, operator in best.items())
    yield note("{edition}.BEST", edition=edition, shared=list(best.values()).count("shared"), best=shown)
    nine = {operator: means(edition, operator)["all nine columns"] for operator in KOWSHER}
    shown = ", ".join(f"{operator} {float(value):.3f}" for operator, value in nine.items())
    yield note("{edition}.BESTAVG", edition=edition, best=max(nine, key=nine.__getitem__), means=shown)
    for column in ("mrpc", "rte", "sst2", "qnli", "mnli_m"):  # accuracies, by the paper: a lead is so many examples
        other = max(COURTOIS, key=lambda o, c=column: cells.value(f"base.{o}", c))
        shared, n = cells.value("base.shared", column), content()["grim"]["examples"][column]
        lead, share = shared - cells.value(f"base.{other}", column), float(shared) / 100
        place = {"edition": edition, "column": column, "other": other, "n": n}
        error = 100 * math.sqrt(share * (1 - share) / n)  # standard error of one accuracy on the development set
        yield note("{edition}.MARGIN.{column}", points=lead, examples=lead * n / 100, error=error, **place)


def origins() -> Iterator[Finding]:
    """Notes which baseline cells equal those of Courtois et al., and checks that no cell of the row `standard` does."""
    source = numbers(TABLE3)
    for edition in EDITIONS:  # in 27 cells: three operators in nine columns
        cells = table(edition, "table1_glue")
        pairs = {(o, c): (source[f"base.{o}", c], cells[f"base.{o}", c]) for o in COURTOIS for c in COLUMNS}
        changed = [f"{o} {c} {a} to {b}" for (o, c), (a, b) in pairs.items() if a != b]
        yield note("{edition}.SOURCE", edition=edition, equal=27 - len(changed), changed="; ".join(changed))
    same = sum(source["base.original", c] == table("K25", "table1_glue")["base.original", c] for c in COLUMNS)
    yield whether("K.SOURCE.standard", not same, same=same)  # by section 2.4, this row is that of Devlin et al.


def editions() -> Iterator[Finding]:
    """Notes by table which cells changed from arXiv to NAACL, and how many, averages left aside, by whole points."""
    moves = []
    for name in ("table1_glue", "table2_squad", "table4_model_parameters", "table5_noise", "table6_cross_domain"):
        one, other = (table(edition, name) for edition in EDITIONS)
        changed = {key: Fraction(other[key]) - Fraction(text) for key, text in one.items() if other[key] != text}
        shown = "; ".join(f"{row} {column} {float(move):+.2f}" for (row, column), move in changed.items())
        number = name.removeprefix("table")[0]  # the digit
        yield note("K.DIFF.T{number}", number=number, cells=len(changed), moves=shown or "none")
        moves += [move for (_, column), move in changed.items() if not column.startswith("av")]  # average, avg_em
    yield note("K.DIFF.whole", whole=sum(move.denominator == 1 for move in moves), moves=len(moves))


def stale() -> Iterator[Finding]:
    """Checks that five numbers of the NAACL edition agree with cells that changed since the arXiv edition.

    They are: pairwise's average in Table 1, the gain over it in the text, QNLI of shared in Table 6, SST-2 of shared
    under 10 % of noise in Table 5 (which should not raise a score), and the averages of `original` in Table 2.
    """
    nine = means("K25", "pairwise")["all nine columns"]
    gain = means("K25", "shared")["all nine columns"] - nine
    cells, text = table("K25", "table1_glue"), table("K25", "text_and_figure_numbers")
    average = cells["base.pairwise", "average"]
    yield whether("K25.STALE.t1avg", judge(average, nine) == HOLDS, average=average, exact=nine)
    yield whether("K25.STALE.gain089", judge(text["glue", "gain_vs_pairwise"], gain) == HOLDS, gain=gain)
    diagonal = table("K25", "table6_cross_domain")["row_qnli", "col_qnli.shared"]
    table1 = cells["base.shared", "qnli"]
    yield whether("K25.STALE.t6qnli", diagonal == table1, diagonal=diagonal, table1=table1)
    noise = table("K25", "table5_noise")
    clean, noisy = (noise[f"noise_{level}", "sst2.shared"] for level in (0, 10))
    standard = [noise.value(f"noise_{level}", "sst2.original") for level in range(0, 45, 5)]
    rises = any(more > less for less, more in pairwise(standard))  # then a rise alone tells nothing of a stale cell
    verdict = HOLDS if Fraction(noisy) <= Fraction(clean) else NOT_DECIDED if rises else FAILS
    more = "; the standard column rises under noise, too, so a rise decides nothing" if rises else ""
    yield finding("K25.STALE.t5sst2", verdict, clean=clean, noisy=noisy, more=more)
    answers, row = table("K25", "table2_squad"), "base.original.single"
    printed = [answers[row, f"avg_{metric}"] for metric in ("em", "f1")]
    exact = [(answers.value(row, f"squad1_{m}") + answers.value(row, f"squad2_{m}")) / 2 for m in ("em", "f1")]
    holds = all(judge(a, b) == HOLDS for a, b in zip(printed, exact, strict=True))
    shown = " and ".join(f"{float(value):.2f}" for value in exact)
    yield whether("K25.STALE.t2avg", holds, printed=" and ".join(printed), exact=shown)


def under_noise() -> Iterator[Finding]:
    """Notes by GRIM how many noisy SST-2 cells of Table 5 one run, or the mean of five, on 872 examples can give."""
    for edition in EDITIONS:
        cells = table(edition, "table5_noise")
        texts = [cells[f"noise_{level}", f"sst2.{o}"] for level in range(5, 45, 5) for o in ("original", "shared")]
        single, five = (sum(possible(text, 872, runs) == HOLDS for text in texts) for runs in (1, 5))
        yield note("{edition}.GRIM.noise.sst2", edition=edition, single=single, five=five)
