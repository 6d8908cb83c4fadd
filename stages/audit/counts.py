"""Parameters as Kowsher et al. count them, checked. K24: the arXiv edition of 2024; K25: NAACL, 2025; K: both."""

from collections.abc import Iterator
from fractions import Fraction

from stages.audit.closed_formulas import VOCABULARY, bert
from stages.audit.findings import Finding, compare, note, whether

H = 768  # width of BERT-base
PRINTED = 95_337_218  # parameters of shared in Table 4 of both editions


def findings() -> list[Finding]:
    """Checks savings of parameters that Kowsher et al. print, and shared's count; checks.yaml has Table 4's counts."""
    return [*parameters(), *projections()]


def parameters() -> Iterator[Finding]:
    """Checks the counts of whole models, and finds out which model the printed count of shared belongs to."""
    original, shared = bert("original", "base"), bert("shared", "base")
    yield note("K.PARAM.seqcls", counted=shared.classifier)
    counts = {}  # of shared with every likely head, with and without bias, by name in words
    for bias in (True, False):
        model = bert("shared", "base", bias)
        pooler, masked = H * H + H, model.masked_lm - model.encoder
        heads = {
            "encoder": 0,
            "pooler": pooler,
            "masked language model": masked,
            "masked language model without decoder bias": masked - VOCABULARY,
            "masked language model with a decoder of its own": masked + VOCABULARY * H,
            "both pre-training objectives": masked + pooler + 2 * H + 2,  # a linear map to two: next sentence or not
            "question answering": 2 * H + 2,  # a linear map to two: first and last word of an answer
        } | {f"classifier of {labels} label(s)": pooler + labels * (H + 1) for labels in range(1, 11)}
        kind = f"shared projection {'with' if bias else 'without'} bias"
        counts |= {f"{name}, {kind}": model.encoder + n for name, n in heads.items()}
    hits = [name for name, count in counts.items() if count == PRINTED]
    yield note("K.PARAM.search", combinations=len(counts), hits="; ".join(hits))
    printed = "12.94"  # per cent saved against original in Table 4
    yield compare("K.PARAM.pct", printed, 100 * (1 - Fraction(PRINTED, original.masked_lm)))
    models = 100 * (1 - shared.masked_lm / original.masked_lm)  # as of classifiers: with the same head on both sides
    yield note("K.PARAM.pct_like", models=models, classifiers=100 * (1 - shared.classifier / original.classifier))


def projections() -> Iterator[Finding]:
    """Checks the shares that are said to be saved, in per cent, mostly of the projections of an attention block."""
    plain = 100 * (1 - Fraction(H * H + 3 * H, 3 * H * H))  # no biases: one matrix, three diagonals for Q, K and V
    original, shared, output = bert("original", "base"), bert("shared", "base"), H * H + H
    yield compare("K.BLOCK", "66.53", plain)
    yield compare("K.BLOCK.bias", "66.53", 100 * (1 - Fraction(shared.projections, original.projections)))
    block = 100 * (1 - (shared.projections + output) / (original.projections + output))
    yield note("K.BLOCK.out", block=block, layer=100 * (1 - shared.layer / original.layer))
    yield compare("K.BLOCK.6667", "66.67", plain)
    model = 100 * (1 - shared.masked_lm / original.masked_lm)
    yield whether("K.HALF", model > 50, projections=plain, block=block, model=model)
    for operator, saved, text in (  # saved: without biases; partial_qk keeps two matrices and a diagonal
        ("symmetric", Fraction(1, 3), "33"),
        ("partial_qk", 1 - Fraction(2 * H * H + H, 3 * H * H), "33"),
        ("shared", plain / 100, "66.67"),
    ):
        yield compare("K25.T7.{operator}", text, 100 * saved, operator=operator)
    shares = {heads: 100 * (1 - (2 + 1 / heads) / 3) for heads in (8, 12, 1024)}  # 2 H^2 + H^2 / heads are kept
    shown = ", ".join(f"{heads} heads {share:.2f} %" for heads, share in shares.items())
    yield whether("K25.T7.pairwise", max(shares.values()) >= 35, shares=shown)
