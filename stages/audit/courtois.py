"""The printed numbers of Courtois et al. 2024, checked against each other: Tables 2 and 3, and the text."""

from fractions import Fraction
from itertools import product

import pandas as pd

from stages.audit.closed_formulas import SIZES, compute_saved_percent, count_parameters
from stages.audit.findings import Findings, check_equal, check_statement, judge_printed, note_numbers
from stages.audit.printed import COURTOIS, TABLE3, TEXT, average_columns, read_numbers
from stages.evidence.scores import GLUE_SCORE
from stages.evidence.verdicts import Statement, judge_printed_number


def check_counts() -> Findings:
    """Check Table 2: the parameters of every model, and the per cent saved."""
    table = read_numbers("courtois2024_table2_model_parameters")
    for size, operator in product(SIZES, COURTOIS):
        row = f"{size}.{operator}"
        # a key of statements.yaml, whose braces `check_equal` fills
        yield check_equal(
            "C.PARAM.{size}.{operator}",
            int(table[row, "params"]),
            count_parameters(operator, size)["masked_lm"],
            size=size,
            operator=operator,
        )
        if operator != "original":
            yield judge_printed(
                "C.PARAM.{size}.{operator}.pct",
                table[row, "saved_percent"],
                compute_saved_percent(operator, size)["masked_lm"],
                size=size,
                operator=operator,
            )


def check_averages() -> Findings:
    """Check the GLUE scores of Table 3 against the mean of all nine columns."""
    table = read_numbers(TABLE3)
    for size, operator in product(SIZES, COURTOIS):
        row = f"{size}.{operator}"
        exact = average_columns(table.read_row(row))
        yield judge_printed(
            "C.AVG.{size}.{operator}",
            table[row, GLUE_SCORE],
            exact["all nine columns"],
            eight=exact["eight tasks"],
            size=size,
            operator=operator,
        )


def check_shares() -> Findings:
    """Check the shares of parameters that the text states as saved."""
    symmetric = compute_saved_percent("symmetric", "base")
    yield note_numbers("C.THIRD.base.symmetric", **symmetric)
    layer = symmetric["layer"]
    # The text says that a third of the layer goes.
    yield check_statement("C.THIRD.text", judge_printed_number("33", layer) == Statement.HOLDS, layer=layer)
    # Pairwise keeps 2 h^2 + h^2 / heads of the 3 h^2 parameters of Q, K and V, which falls to 2/3 with more heads.
    kept = [(2 + Fraction(1, heads)) / 3 for heads in (1, 8, 12, 64, 1024)]
    falls = kept == sorted(kept, reverse=True)
    shown = ", ".join(f"{float(share):.4f}" for share in kept)
    yield check_statement("C.LIMIT", falls and kept[-1] > Fraction(2, 3), shares=shown)
    exact = compute_saved_percent("pairwise", "base")["masked_lm"]
    yield judge_printed("C.SIX", read_numbers(TEXT)["abstract", "param_reduction"], exact)


def check_bold() -> Findings:
    """Check that Table 3 prints in bold the best scores of every column and size, and no other score."""
    scores = pd.Series(read_numbers(TABLE3), dtype=float).unstack()
    bold = pd.Series(read_numbers(TABLE3, "bold")).unstack()
    for size in SIZES:
        rows = [f"{size}.{operator}" for operator in COURTOIS]
        best = scores.loc[rows] == scores.loc[rows].max()
        agreements = best == (bold.loc[rows] == "yes")
        yield check_statement("C.BOLD.{size}", agreements.all(axis=None), size=size, cells=agreements.size)


def check_differences() -> Findings:
    """Check the text on GLUE scores: the gain of `pairwise`, the drop of `symmetric` and standard deviations."""
    table = read_numbers(TABLE3)
    brackets = read_numbers(TABLE3, "std")
    text = read_numbers(TEXT)
    for size in SIZES:
        original, symmetric, pairwise = [table.read_value(f"{size}.{operator}", GLUE_SCORE) for operator in COURTOIS]
        yield judge_printed("C.GAIN.{size}", text["both_sizes", "glue_gain"], pairwise - original, size=size)
        yield judge_printed("C.DROP.{size}", text["both_sizes", "glue_drop"], original - symmetric, size=size)
        deviations = {operator: brackets.read_value(f"{size}.{operator}", GLUE_SCORE) for operator in COURTOIS}
        # The text says of base that `original` varies most. Small, which the text leaves out, speaks against the text.
        if size == "base":
            yield check_statement("C.STD.base", deviations["original"] == max(deviations.values()), **deviations)
        else:
            yield note_numbers("C.STD.small", **deviations)
    # Section 5.2 repeats a score of Table 3.
    yield check_equal("C.TEXT.7939", table["base.pairwise", GLUE_SCORE], text["base.pairwise", "glue_score_sect52"])


def check_training() -> Findings:
    """Check the amounts of data, steps and scores that the text states."""
    text = read_numbers(TEXT)
    # A run reads 200,000 batches of 256 sequences of 512 tokens.
    sequences_read = 256 * 200_000
    billion = 10**9
    sequences = text.read_value("corpus", "train_samples")
    tokens_read = text.read_value("run", "tokens_seen")
    tokens = text.read_value("corpus", "train_tokens")
    yield judge_printed("C.TOKENS.seen", str(tokens_read / billion), Fraction(sequences_read * 512, billion))
    yield judge_printed("C.TOKENS.corpus", str(tokens / billion), sequences * 512 / billion)
    # The text says that the corpus is large enough for one epoch.
    yield check_statement("C.EPOCH", sequences >= sequences_read, epochs=sequences_read / sequences)
    # How many times shorter the plateau of the loss is.
    original, symmetric, pairwise = [text.read_value(f"base.{operator}", "plateau_end_step") for operator in COURTOIS]
    yield note_numbers("C.STEPS.plateau", symmetric=original / symmetric, pairwise=original / pairwise)
    final = text.read_value("base.pairwise_and_original", "final_glue_approx")
    yield judge_printed("C.95", text["base.all", "glue_95pct_threshold"], 95 * final / 100)
