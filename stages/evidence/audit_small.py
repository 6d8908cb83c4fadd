"""The blog post on Hadamard attention and the draft section on attention over parameters, checked."""

import math
from collections.abc import Iterator
from fractions import Fraction

from stages.evidence.arithmetic import Finding, compare, note, numbers, whether


def findings() -> list[Finding]:
    return [*blog(), *draft()]


def blog() -> Iterator[Finding]:
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
    yield compare("H.PCT", "Half the parameters go, %", "50", 100 * (1 - Fraction(own, dot)))
    yield compare("H.2X", "Twofold saving", "2", Fraction(dot, own))
    yield whether("H.SCOPE", "The counts are those of the model", False, "they are those of one attention layer")
    one, other = cells.value("original", "peak_accuracy"), cells.value("hadamard", "peak_accuracy")
    yield note(
        "H.ACC",
        "Peak accuracy lost",
        f"{float(one - other):.2f} points, {float(100 * (1 - other / one)):.2f} % relative; one run each",
    )
    even = {(h, heads): math.sqrt((2 * (h * h + h) - 1) / heads) for h, heads in ((512, 8), (768, 12))}
    arithmetic = "; ".join(f"width {h}, {heads} heads: {length:.0f}" for (h, heads), length in even.items())
    yield note("H.BREAKEVEN", "Sequence length up to which the layer is smaller", arithmetic)
    yield note(
        "H.FORMULA",
        "Formula and code",
        "the code keeps value and output projections, takes raw inputs as queries and keys, and learns one divisor",
    )


def draft() -> Iterator[Finding]:
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
    low, high = 15.5 / 12.5 - 1, 16.5 / 11.5 - 1
    yield whether(
        "AOP.TIME",
        "Steps take 30 % longer",
        low <= 0.30 <= high,
        f"12 and 16 hours allow {100 * low:.0f} to {100 * high:.0f} %",
    )
    yield whether("AOP.FLOPS", "Equal work", True, "every weight is used once a position in all three")
    change = [
        f"perplexity {float(cells.value(r, 'ppl_dev') - cells.value('base', 'ppl_dev')):+.2f}, BLEU"
        f" {float(cells.value(r, 'bleu_dev') - cells.value('base', 'bleu_dev')):+.1f}"
        for r in ("aop1", "aop2")
    ]
    yield whether(
        "AOP.RESULT",
        "The first variant is slightly worse, the second slightly better",
        True,
        "; ".join(change) + "; one run each",
    )
