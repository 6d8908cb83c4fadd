"""The blog post on Hadamard attention and the draft section on attention over parameters, checked."""

import math
from collections.abc import Iterator
from fractions import Fraction

from stages.audit.findings import Finding, compare, note, whether
from stages.audit.printed import numbers

# Losses at the last of 20 epochs in public logs of two versions of the TensorFlow tutorial "Transformer model for
# language understanding", which the post follows. The training is the same (the accuracies are 0.3440 and 0.3441); one
# version divides the loss by all positions, padding included, the other by the real tokens. So the ratio of the losses
# is the share of real tokens, and the highest accuracy that the tutorial can report, as it counts padding as errors.
LOSS_A_POSITION, LOSS_A_TOKEN = 0.5507, 1.1786


def findings() -> list[Finding]:
    """Returns the checks of the post, then those of the draft."""
    return [*blog(), *draft()]


def blog() -> Iterator[Finding]:
    """Checks the counts, accuracies and losses that the blog post on Hadamard attention prints."""
    cells, linear = numbers("hadamard_blog_results"), 512 * 512 + 512  # a linear map with bias, of width 512
    dot, hadamard = int(cells.value("original", "params")), int(cells.value("hadamard", "params"))
    counted = 2 * linear + 8 * 40 * 40 + 1  # value and output projection, W [40, 40] for 8 heads, one divisor
    yield whether("H.PARAM.dot", dot == 4 * linear, counted=4 * linear)
    yield whether("H.PARAM.had", hadamard == counted, counted=counted)
    yield compare("H.2X", "2", Fraction(dot, hadamard))
    yield note("H.PCT", saved=100 * (1 - Fraction(hadamard, dot)))
    one, other = cells.value("original", "peak_accuracy"), cells.value("hadamard", "peak_accuracy")
    yield note("H.ACC", points=one - other, relative=100 * (1 - other / one))
    share = LOSS_A_POSITION / LOSS_A_TOKEN
    reached = " and ".join(f"{float(value):.2f} is {float(value) / share:.1f} %" for value in (one, other))
    losses = {"a_position": LOSS_A_POSITION, "a_token": LOSS_A_TOKEN, "share": 100 * share}
    yield note("H.CEILING", **losses, reached=reached, lost=one - other, of_real=float(one - other) / share)
    # the length n at which a Hadamard layer, 2 (h^2 + h) + heads n^2 + 1, has as many parameters as a dot-product one
    even = {(h, heads): math.sqrt((2 * (h * h + h) - 1) / heads) for h, heads in ((512, 8), (768, 12))}
    lengths = "; ".join(f"width {h}, {heads} heads: {length:.0f}" for (h, heads), length in even.items())
    yield note("H.BREAKEVEN", lengths=lengths)


def draft() -> Iterator[Finding]:
    """Checks what the draft section on attention over parameters says of weights, training time and results."""
    cells = numbers("aop_table_parameter_attention")
    plain = 2 * 512 * 2048
    yield whether("AOP.FFN", plain == 2_097_152, counted=plain)
    for check, heads, pairs in (("AOP.1", 8, 1536), ("AOP.2.table", 16, 512), ("AOP.2.text", 8, 512)):
        weights = 2 * heads * 64 * (512 + pairs)  # two projections 512 <-> heads x 64, and keys and values of the pairs
        yield whether(check, weights == plain, counted=weights)
    short, long = (float(cells.value(row, "training_time")) for row in ("base", "aop1"))
    low, high = (long - 0.5) / (short + 0.5) - 1, (long + 0.5) / (short - 0.5) - 1  # printed in whole hours
    yield whether("AOP.TIME", low <= 0.30 <= high, short=short, long=long, low=100 * low, high=100 * high)
    (worse_ppl, worse_bleu), (better_ppl, better_bleu) = moves = [  # the text says slightly worse, slightly better
        [cells.value(row, metric) - cells.value("base", metric) for metric in ("ppl_dev", "bleu_dev")]
        for row in ("aop1", "aop2")
    ]
    shown = "; ".join(f"perplexity {float(ppl):+.2f}, BLEU {float(bleu):+.1f}" for ppl, bleu in moves)
    yield whether("AOP.RESULT", worse_ppl >= 0 > worse_bleu and better_ppl < 0 < better_bleu, moves=shown)
