"""Parameters as Kowsher et al. count them, checked: Tables 3, 4 and 7, abstract and limitations.

K24: the arXiv edition of 2024; K25: the NAACL edition of 2025; K: both.
"""

from collections.abc import Iterator
from fractions import Fraction

from stages.evidence.arithmetic import VOCABULARY, Finding, bert, compare, note, whether

H = 768
PRINTED = 95_337_218


def findings() -> list[Finding]:
    """Checks every count of parameters that Kowsher et al. print."""
    return [*parameters(), *projections()]


def parameters() -> Iterator[Finding]:
    """Checks the counts of whole models, and which model the printed count of shared belongs to."""
    whole, own = bert("original", "base"), bert("shared", "base")
    yield note(
        "K.PARAM.seqcls",
        "The printed count of shared is that of a two-label classifier",
        f"counted with pooler and classifier {own.classifier:,}",
    )
    hits = [name for name, count in _heads().items() if count == PRINTED]
    yield note(
        "K.PARAM.search", f"Which of {len(_heads())} combinations of head and bias gives 95,337,218", "; ".join(hits)
    )
    mixed = 100 * (1 - Fraction(PRINTED, whole.masked_lm))
    yield compare("K.PARAM.pct", "Table 4: per cent saved by shared, from the printed counts", "12.94", mixed)
    like = {
        name: 100 * (1 - one / other)
        for name, one, other in (
            ("masked-language models", own.masked_lm, whole.masked_lm),
            ("classifiers", own.classifier, whole.classifier),
        )
    }
    arithmetic = "; ".join(f"both {name}: {value:.4f} %" for name, value in like.items())
    yield note("K.PARAM.pct_like", "The same with one head on both sides", arithmetic)


def _heads() -> dict[str, int]:
    made = {}
    for bias in (True, False):
        own = bert("shared", "base", bias)
        pooler, masked = H * H + H, own.masked_lm - own.encoder
        heads = {
            "encoder": 0,
            "pooler": pooler,
            "masked language model": masked,
            "masked language model without decoder bias": masked - VOCABULARY,
            "masked language model with a decoder of its own": masked + VOCABULARY * H,
            "both pre-training objectives": masked + pooler + 2 * H + 2,
            "question answering": 2 * H + 2,
        } | {f"classifier of {labels} label(s)": pooler + labels * (H + 1) for labels in range(1, 11)}
        made |= {
            f"{name}, shared projection {'with' if bias else 'without'} bias": own.encoder + n
            for name, n in heads.items()
        }
    return made


def projections() -> Iterator[Finding]:
    """Checks the shares of weights that are said to be saved in the projections of an attention block."""
    plain = 100 * (1 - Fraction(H * H + 3 * H, 3 * H * H))
    own, whole, output = bert("shared", "base"), bert("original", "base"), H * H + H
    yield compare("K.BLOCK", "Projections saved by shared, without biases, %", "66.53", plain)
    yield compare(
        "K.BLOCK.bias",
        "Projections saved by shared, with biases, %",
        "66.53",
        100 * (1 - Fraction(own.projections, whole.projections)),
    )
    block = 100 * (1 - (own.projections + output) / (whole.projections + output))
    layer = 100 * (1 - own.layer / whole.layer)
    yield note("K.BLOCK.out", "With the output projection, and in the whole layer", f"{block:.2f} % and {layer:.2f} %")
    yield compare(
        "K.BLOCK.6667",
        "Limitations: the same saving as 66.67 %",
        "66.67",
        plain,
        "two thirds is the limit of great width",
    )
    model = 100 * (1 - own.masked_lm / whole.masked_lm)
    yield whether(
        "K.HALF",
        "Abstract: parameters fall by more than half",
        model > 50,
        f"projections {float(plain):.1f} %, attention block {block:.1f} %, model {model:.1f} %",
    )
    for operator, saved, text in (
        ("symmetric", Fraction(1, 3), "33"),
        ("partial_qk", 1 - Fraction(2 * H * H + H, 3 * H * H), "33"),
        ("shared", plain / 100, "66.67"),
    ):
        yield compare(f"K25.T7.{operator}", f"NAACL Table 7: saved by {operator}, %", text, 100 * saved)
    shares = {heads: 100 * (1 - (2 + 1 / heads) / 3) for heads in (8, 12, 1024)}
    at = ", ".join(f"{heads} heads {share:.2f} %" for heads, share in shares.items())
    yield whether(
        "K25.T7.pairwise",
        "NAACL Table 7: pairwise can save 35 %",
        max(shares.values()) >= 35,
        f"{at}; never above 33.33 %",
    )
