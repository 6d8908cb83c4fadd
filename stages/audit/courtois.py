"""The printed numbers of Courtois et al. 2024, checked: Tables 1 to 3 and the text."""

import itertools
from fractions import Fraction

from scipy import stats

from stages.evidence.arithmetic import (
    HOLDS,
    SIZES,
    Finding,
    bert,
    compare,
    judge,
    note,
    numbers,
    whether,
)
from stages.evidence.scores import COLUMNS

OPERATORS = ("original", "symmetric", "pairwise")
TABLE3 = "courtois2024_table3_glue"


def findings() -> list[Finding]:
    """Checks the tables and the text of Courtois et al., in the order of the paper."""
    parts = (changes(), shares(), bold(), statements(), training())
    return [finding for part in parts for finding in part]


def changes() -> list[Finding]:
    """What the operators change in a layer."""
    found = []
    for size, (layers, *_) in SIZES.items():
        whole, symmetric, pairwise = (bert(operator, size).projections for operator in OPERATORS)
        arithmetic = (
            f"symmetric drops {whole - symmetric:,} a layer (key matrix and bias), "
            f"pairwise adds {pairwise - symmetric:,} back; {layers} layers"
        )
        found.append(note(f"C.PARAM.{size}.delta", f"What changes a layer at size {size}", arithmetic))
    return found


def shares() -> list[Finding]:
    """What share is removed, by what is counted."""
    found = []
    for size, (_, h, _, _) in SIZES.items():
        whole, output = bert("original", size), h * h + h
        for operator in OPERATORS[1:]:
            own = bert(operator, size)
            pairs = {
                "projections": (own.projections, whole.projections),
                "attention block": (own.projections + output, whole.projections + output),
                "layer": (own.layer, whole.layer),
                "model": (own.masked_lm, whole.masked_lm),
            }
            arithmetic = ", ".join(f"{name} {100 * (1 - one / other):.2f} %" for name, (one, other) in pairs.items())
            found.append(note(f"C.THIRD.{size}.{operator}", f"Share removed by {size} {operator}", arithmetic))
    layer = 100 * (1 - bert("symmetric", "base").layer / bert("original", "base").layer)
    limit = [(2 + Fraction(1, n)) / 3 for n in (1, 8, 12, 64, 1024)]
    return [
        *found,
        whether(
            "C.THIRD.text",
            "Section 7: a third of a Transformer layer's parameters goes",
            judge("33", Fraction(layer)) == HOLDS,
            f"a third of the query, key and value projections; {layer:.2f} % of the layer (base symmetric)",
        ),
        whether(
            "C.LIMIT",
            "Pairwise tends to two thirds of the projections as heads grow",
            all(a > b > Fraction(2, 3) for a, b in itertools.pairwise(limit)),
            ", ".join(f"{float(x):.4f}" for x in limit) + " for 1, 8, 12, 64, 1,024 heads",
        ),
        compare(
            "C.SIX",
            "Abstract: 6 % fewer parameters",
            "6",
            100 * (1 - Fraction(bert("pairwise", "base").masked_lm, bert("original", "base").masked_lm)),
            "base; on small it is 3.19 %",
        ),
    ]


def bold() -> list[Finding]:
    """Checks that Table 3 prints the best score of every column, and no other, in bold."""
    table, marked, found = numbers(TABLE3), numbers(TABLE3, "bold").cells, []
    for size in SIZES:
        wrong = [
            f"{operator} {column}"
            for column in ("glue_score", *COLUMNS)
            for operator in OPERATORS
            if (marked[f"{size}.{operator}", column] == "yes")
            != (table.value(f"{size}.{operator}", column) == max(table.value(f"{size}.{o}", column) for o in OPERATORS))
        ]
        arithmetic = "30 cells compared" + (f"; not so: {', '.join(wrong)}" if wrong else "")
        found.append(whether(f"C.BOLD.{size}", f"Table 3: bold marks the best cell, {size}", not wrong, arithmetic))
    return found


def statements() -> list[Finding]:
    """The text against Table 3."""
    table, spread, text = numbers(TABLE3), numbers(TABLE3, "std"), numbers("courtois2024_text_and_figure_numbers")
    found = []
    for size in SIZES:
        score = {operator: table.value(f"{size}.{operator}", "glue_score") for operator in OPERATORS}
        sd = {operator: float(spread.value(f"{size}.{operator}", "glue_score")) for operator in OPERATORS}
        moves = {
            "GAIN": ("pairwise gains 0.6 points", "glue_gain", score["pairwise"] - score["original"], 1),
            "DROP": ("symmetric loses 4 points", "glue_drop", score["original"] - score["symmetric"], -1),
        }
        for name, (said, column, move, sign) in moves.items():
            verdict = judge(text.text("both_sizes", column), move)
            statement = f"Section 4.2: {said}, {size}"
            found.append(Finding(f"C.{name}.{size}", statement, verdict, f"{float(sign * move):+.2f}"))
        welch = stats.ttest_ind_from_stats(
            float(score["pairwise"]), sd["pairwise"], 5, float(score["original"]), sd["original"], 5, equal_var=False
        )
        ratio = stats.f.cdf((sd["pairwise"] / sd["original"]) ** 2, 4, 4)
        arithmetic = (
            f"Welch t = {welch.statistic:.2f}, p = {welch.pvalue:.3f}; equal variances p ="
            f" {2 * min(ratio, 1 - ratio):.3f}"
        )
        statement = f"Pairwise against original from the printed means and deviations, {size}"
        found.append(note(f"C.TTEST.{size}", statement, arithmetic))
        lower = sd["symmetric"] < sd["original"] > sd["pairwise"]
        arithmetic = f"{sd['symmetric']} and {sd['pairwise']} against {sd['original']}"
        if size == "base":
            found.append(
                whether("C.STD.base", "Both new operators vary less over fine-tuning seeds, base", lower, arithmetic)
            )
        else:
            found.append(note("C.STD.small", "On small, which the text leaves out, they vary more", arithmetic))
    printed, repeated = table.text("base.pairwise", "glue_score"), text.text("base.pairwise", "glue_score_sect52")
    found.append(
        whether(
            "C.TEXT.7939",
            "Section 5.2 repeats the score of Table 3",
            printed == repeated,
            f"{repeated} against {printed}",
        )
    )
    return found


def training() -> list[Finding]:
    """Checks the amounts of data and steps, and the ratios between them, that the text states."""
    text = numbers("courtois2024_text_and_figure_numbers")
    samples = text.value("corpus", "train_samples")
    plateau = {o: float(text.value(f"base.{o}", "plateau_end_step")) for o in OPERATORS}
    slow, fast = (text.value(f"base.{o}", "steps_to_95pct") for o in ("original", "pairwise"))
    billions = lambda name: str(int(text.value(*name) / 10**9))  # noqa: E731
    return [
        compare(
            "C.TOKENS.seen",
            "Tokens that 200,000 steps of 256 x 512 read, in billions",
            billions(("run", "tokens_seen")),
            Fraction(256 * 512 * 200_000, 10**9),
        ),
        compare(
            "C.TOKENS.corpus",
            "137 million sequences of 512 tokens, in billions",
            billions(("corpus", "train_tokens")),
            samples * 512 / 10**9,
        ),
        whether(
            "C.EPOCH",
            "The corpus suffices for less than one epoch",
            samples >= 256 * 200_000,
            f"{float(256 * 200_000 / samples):.3f} of an epoch",
        ),
        note(
            "C.STEPS.plateau",
            "How much shorter the plateau is, base",
            f"original to pairwise {plateau['original'] / plateau['pairwise']:.2f}, to symmetric"
            f" {plateau['original'] / plateau['symmetric']:.2f}",
        ),
        note("C.STEPS.glue", "Steps to 95 % of the score, original to pairwise", f"{float(slow / fast):.2f}"),
        compare(
            "C.95",
            "95 % of the final score of 79",
            text.text("base.all", "glue_95pct_threshold"),
            Fraction(95 * 79, 100),
        ),
    ]
