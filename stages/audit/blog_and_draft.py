"""The blog post on Hadamard attention and the draft section on attention over parameters, checked."""

import math
from collections.abc import Iterator
from fractions import Fraction

from stages.evidence.arithmetic import Finding, compare, note, numbers, whether

# The last of 20 epochs in public logs of two versions of the TensorFlow tutorial "Transformer model for language
# understanding", which the post follows: the same training, whose loss is divided once by all positions and once by the
# real tokens. The accuracies, 0.3440 and 0.3441, are equal.
LOSS_A_POSITION, LOSS_A_TOKEN = 0.5507, 1.1786


def findings() -> list[Finding]:
    """Checks both sources."""
    return [*blog(), *draft()]


def blog() -> Iterator[Finding]:
    """Checks the counts, accuracies and losses that the blog post on Hadamard attention prints."""
    cells, linear = numbers("hadamard_blog_results"), 512 * 512 + 512
    dot, own = int(cells.value("original", "params")), int(cells.value("hadamard", "params"))
    counted = 2 * linear + 8 * 40 * 40 + 1
    yield whether("H.PARAM.dot", "Dot-product layer: 4 (512^2 + 512)", dot == 4 * linear, f"{4 * linear:,}")
    yield whether(
        "H.PARAM.had",
        "Hadamard layer: 2 (512^2 + 512) + 8 x 40^2 + 1",
        own == counted,
        f"{counted:,}; 8 heads are implied",
    )
    saved = 100 * (1 - Fraction(own, dot))
    yield compare("H.2X", "50 %, or twofold: half the parameters go", "2", Fraction(dot, own))
    yield note("H.PCT", "The same saving in per cent", f"printed 50, computed {float(saved):.5g}")
    one, other = cells.value("original", "peak_accuracy"), cells.value("hadamard", "peak_accuracy")
    yield note(
        "H.ACC",
        "Peak accuracy lost",
        f"{float(one - other):.2f} points, {float(100 * (1 - other / one)):.2f} % relative; one run each",
    )
    share = LOSS_A_POSITION / LOSS_A_TOKEN
    reached = " and ".join(f"{float(value):.2f} is {float(value) / share:.1f} %" for value in (one, other))
    yield note(
        "H.CEILING",
        "The tutorial's accuracy counts padded positions as errors: its ceiling",
        f"{LOSS_A_POSITION} / {LOSS_A_TOKEN}, of its public logs, is {100 * share:.1f} % real tokens of all positions; "
        f"{reached} of that. The logs' batches are padded to their longest sentence, the post's to 40: its ceiling is "
        f"this or lower, and {float(one - other):.2f} points are at least {float(one - other) / share:.1f} "
        "points of real tokens",
    )
    even = {(h, heads): math.sqrt((2 * (h * h + h) - 1) / heads) for h, heads in ((512, 8), (768, 12))}
    arithmetic = "; ".join(f"width {h}, {heads} heads: {length:.0f}" for (h, heads), length in even.items())
    yield note("H.BREAKEVEN", "Sequence length up to which the layer is smaller", arithmetic)


def draft() -> Iterator[Finding]:
    """Checks the counts of weights that the draft section on attention over parameters prints."""
    cells = numbers("aop_table_parameter_attention")
    weights = lambda heads, pairs: 2 * heads * 64 * (512 + pairs)  # noqa: E731
    plain = 2 * 512 * 2048
    yield whether("AOP.FFN", "Feed-forward network: 2 x 512 x 2,048", plain == 2_097_152, f"{plain:,}")
    yield whether("AOP.1", "8 heads of 64, 1,536 pairs: as many", weights(8, 1536) == plain, f"{weights(8, 1536):,}")
    yield whether(
        "AOP.2.table", "16 heads, 512 pairs (its table): as many", weights(16, 512) == plain, f"{weights(16, 512):,}"
    )
    yield whether(
        "AOP.2.text", "8 heads, 512 pairs (its text): as many", weights(8, 512) == plain, f"{weights(8, 512):,}"
    )
    short, long = (float(cells.value(row, "training_time")) for row in ("base", "aop1"))
    low, high = (long - 0.5) / (short + 0.5) - 1, (long + 0.5) / (short - 0.5) - 1  # printed in whole hours
    yield whether(
        "AOP.TIME",
        "Steps take 30 % longer",
        low <= 0.30 <= high,
        f"{short:.0f} and {long:.0f} hours allow {100 * low:.0f} to {100 * high:.0f} %",
    )
    moves = {
        row: [cells.value(row, metric) - cells.value("base", metric) for metric in ("ppl_dev", "bleu_dev")]
        for row in ("aop1", "aop2")
    }
    (worse_ppl, worse_bleu), (better_ppl, better_bleu) = moves.values()
    yield whether(
        "AOP.RESULT",
        "The first variant is slightly worse, the second slightly better",
        worse_ppl >= 0 > worse_bleu and better_ppl < 0 < better_bleu,
        "; ".join(f"perplexity {float(ppl):+.2f}, BLEU {float(bleu):+.1f}" for ppl, bleu in moves.values())
        + "; one run each",
    )
