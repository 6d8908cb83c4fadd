"""The printed numbers of Courtois et al. 2024, checked: Tables 1 to 3 and the text."""

import itertools
from fractions import Fraction

from scipy import stats

from stages.evidence.arithmetic import (
    EXAMPLES,
    HOLDS,
    SIZES,
    Finding,
    bert,
    chance,
    compare,
    judge,
    note,
    numbers,
    possible,
    whether,
)
from stages.evidence.scores import COLUMNS

OPERATORS = ("original", "symmetric", "pairwise")
TABLE2, TABLE3 = "courtois2024_table2_model_parameters", "courtois2024_table3_glue"


def findings() -> list[Finding]:
    parts = (parameters(), shares(), averages(), statements(), training(), grim())
    return [finding for part in parts for finding in part]


def parameters() -> list[Finding]:
    table, found = numbers(TABLE2), []
    for size, (layers, *_) in SIZES.items():
        whole = bert("original", size)
        for operator in OPERATORS:
            row, own = f"{size}.{operator}", bert(operator, size)
            text = table.text(row, "params")
            arithmetic = f"printed {int(text):,}, counted {own.masked_lm:,} (vocabulary 30,522, tied decoder with bias)"
            statement = f"Table 2: parameters of {size} {operator}"
            found.append(whether(f"C.PARAM.{row}", statement, own.masked_lm == int(text), arithmetic))
            if operator != "original":
                saved = Fraction(100 * (whole.masked_lm - own.masked_lm), whole.masked_lm)
                statement = f"Table 2: per cent saved by {size} {operator}"
                found.append(compare(f"C.PARAM.{row}.pct", statement, table.text(row, "saved_percent"), saved))
        fewer = whole.projections - bert("symmetric", size).projections
        more = bert("pairwise", size).projections - bert("symmetric", size).projections
        arithmetic = (
            f"symmetric drops {fewer:,} a layer (key matrix and bias), pairwise adds {more:,} back; {layers} layers"
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
            False,
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


def averages() -> list[Finding]:
    table, bold, found = numbers(TABLE3), numbers(TABLE3, "bold").cells, []
    for size in SIZES:
        for operator in OPERATORS:
            row = f"{size}.{operator}"
            cells = [table.value(row, column) for column in COLUMNS]
            tasks = (sum(cells) - (cells[2] + cells[3]) / 2) / 8
            found.append(
                compare(
                    f"C.AVG.{row}",
                    f"Table 3: GLUE score of {size} {operator} is the mean of nine numbers",
                    table.text(row, "glue_score"),
                    sum(cells) / 9,
                    f"of eight tasks {float(tasks):.3f}",
                )
            )
        wrong = [
            f"{operator} {column}"
            for column in ("glue_score", *COLUMNS)
            for operator in OPERATORS
            if (bold[f"{size}.{operator}", column] == "yes")
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
        gain, drop = score["pairwise"] - score["original"], score["original"] - score["symmetric"]
        holds = abs(gain - text.value("both_sizes", "glue_gain")) <= Fraction(1, 10)
        found.append(
            whether(f"C.GAIN.{size}", f"Section 4.2: pairwise gains 0.6 points, {size}", holds, f"{float(gain):+.2f}")
        )
        holds = judge(text.text("both_sizes", "glue_drop"), drop) == HOLDS
        found.append(
            whether(f"C.DROP.{size}", f"Section 4.2: symmetric loses 4 points, {size}", holds, f"{float(-drop):+.2f}")
        )
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
    statement = "The caption of Table 3 names two models"
    found.append(
        whether(
            "C.CAPTION3", statement, False, "one name for both; the second pair of numbers is that of base original"
        )
    )
    return found


def training() -> list[Finding]:
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
        whether(
            "C.FILTER",
            "Appendix A: excluded are scores below 5 and above 100,000",
            False,
            "no score is both; kept are those between (released code: strictly)",
        ),
    ]


def grim() -> list[Finding]:
    table, found = numbers(TABLE3), []
    for column in ("rte", "sst2", "qnli", "mnli_m", "mnli_mm"):
        passed = sum(
            possible(table.text(f"{size}.{operator}", column), EXAMPLES[column], 5) == HOLDS
            for size in SIZES
            for operator in OPERATORS
        )
        arithmetic = f"{passed} of 6; {100 * chance(EXAMPLES[column], 5):.0f} % of arbitrary values would pass"
        statement = f"GRIM: {column} cells are means of five runs on {EXAMPLES[column]:,} examples"
        found.append(whether(f"C.GRIM.{column}", statement, passed == 6, arithmetic))
    return found
