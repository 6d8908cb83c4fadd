"""The blog post on Hadamard attention and the draft section on attention over parameters, checked."""

import math
from fractions import Fraction

from stages.audit.closed_formulas import SIZES
from stages.audit.findings import Findings, check_equal, check_statement, judge_printed, note_numbers
from stages.audit.printed import read_numbers

# Losses at the last of 20 epochs in public logs of two versions of the TensorFlow tutorial "Transformer model for
# language understanding", which the post follows. The training is the same (the accuracies are 0.3440 and 0.3441); one
# version divides the loss by all positions, padding included, the other by the real tokens.
LOSS_PER_POSITION = 0.5507
LOSS_PER_TOKEN = 1.1786


def check_layer() -> Findings:
    """Check the printed numbers of weights of the blog post's attention layers, and the saving."""
    table = read_numbers("hadamard_blog_results")
    dot = int(table["original", "params"])
    hadamard = int(table["hadamard", "params"])
    # A linear map of width 512 with bias. Dot-product attention has four such maps; a Hadamard layer has the value and
    # output projections, W [40, 40] for 8 heads, and one divisor.
    linear = 512 * 512 + 512
    yield check_equal("H.PARAM.dot", dot, 4 * linear)
    yield check_equal("H.PARAM.had", hadamard, 2 * linear + 8 * 40 * 40 + 1)
    yield judge_printed("H.2X", table["hadamard_vs_original", "param_saving_factor"], Fraction(dot, hadamard))
    yield note_numbers("H.PCT", saved=100 * (1 - hadamard / dot))


def note_ceiling() -> Findings:
    """Note the highest accuracy that the tutorial can report, as padding counts as errors, and the share reached."""
    table = read_numbers("hadamard_blog_results")
    original = float(table["original", "peak_accuracy"])
    hadamard = float(table["hadamard", "peak_accuracy"])
    # The share of real tokens in all positions, which is the highest accuracy.
    share = LOSS_PER_POSITION / LOSS_PER_TOKEN
    lost = original - hadamard
    yield note_numbers(
        "H.CEILING",
        a_position=LOSS_PER_POSITION,
        a_token=LOSS_PER_TOKEN,
        share=100 * share,
        high=original,
        low=hadamard,
        high_share=original / share,
        low_share=hadamard / share,
        lost=lost,
        of_real=lost / share,
    )


def note_equal_lengths() -> Findings:
    """Note the length at which a Hadamard layer has as many parameters as a dot-product layer."""
    lengths = []
    # h is the width.
    for _, h, _, heads in SIZES.values():
        # The length n solves 2 (h^2 + h) + heads n^2 + 1 = 4 (h^2 + h), the parameters of both layers.
        length = math.sqrt((2 * (h * h + h) - 1) / heads)
        lengths.append(f"width {h}, {heads} heads: {length:.0f}")
    yield note_numbers("H.BREAKEVEN", lengths="; ".join(lengths))


def check_weights() -> Findings:
    """Check whether attention over parameters has as many weights as the feed-forward network."""
    feed_forward = int(read_numbers("aop_text_numbers")["aop1", "sublayer_params"])
    yield check_equal("AOP.FFN", feed_forward, 2 * 512 * 2048)
    for check, heads, pairs in (("AOP.1", 8, 1536), ("AOP.2.table", 16, 512), ("AOP.2.text", 8, 512)):
        # Two projections between 512 and heads x 64, and a key and a value for each pair and head.
        yield check_equal(check, feed_forward, 2 * heads * 64 * (512 + pairs))


def check_training() -> Findings:
    """Check the times and the results of both variants of attention over parameters against the draft's text."""
    table = read_numbers("aop_table_parameter_attention")
    base, first, second = [table.read_row(row) for row in ("base", "aop1", "aop2")]
    # The text says that steps take 30 % longer. Times are printed in whole hours, so each may be half an hour off.
    short = float(base["training_time"])
    long = float(first["training_time"])
    low = (long - 0.5) / (short + 0.5) - 1
    high = (long + 0.5) / (short - 0.5) - 1
    yield check_statement(
        "AOP.TIME",
        low <= 0.30 <= high,
        short=short,
        long=long,
        low=100 * low,
        high=100 * high,
    )
    # The text says that the first variant is slightly worse and the second slightly better.
    worse = (first - base).astype(float)
    better = (second - base).astype(float)
    is_worse = worse["ppl_dev"] >= 0 > worse["bleu_dev"]
    is_better = better["ppl_dev"] < 0 < better["bleu_dev"]
    yield check_statement("AOP.RESULT", is_worse and is_better, worse=worse, better=better)
