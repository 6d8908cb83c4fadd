"""The printed numbers of Courtois et al. 2024, checked: Tables 1 to 3 and the text."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from stages.audit.closed_formulas import SIZES, bert
from stages.audit.findings import Finding, compare, finding, note, whether
from stages.audit.printed import COURTOIS, TABLE3, TEXT, numbers
from stages.evidence import estimate
from stages.evidence.arithmetic import HOLDS, judge
from stages.evidence.scores import COLUMNS, GLUE_SCORE

SEEDS = 5  # fine-tuning seeds behind every printed mean


def findings() -> list[Finding]:
    """Checks the tables and the text of Courtois et al., in the order of the paper."""
    return [*changes(), *shares(), *bold(), *statements(), *training()]


def changes() -> Iterator[Finding]:
    """Notes how many parameters of Q, K and V in a layer symmetric drops from original, and pairwise adds to these."""
    for size, (layers, *_) in SIZES.items():
        whole, symmetric, pairs = (bert(operator, size).projections for operator in COURTOIS)
        dropped, added = whole - symmetric, pairs - symmetric
        yield note("C.PARAM.{size}.delta", size=size, dropped=dropped, added=added, layers=layers)


def shares() -> Iterator[Finding]:
    """Notes the per cent that symmetric and pairwise save, by what is counted, and checks what the text says of it."""
    for size, (_, h, _, _) in SIZES.items():
        original, output = bert("original", size), h * h + h  # output: the output projection
        for operator in COURTOIS[1:]:
            reduced = bert(operator, size)
            counts = {
                "projections": (reduced.projections, original.projections),
                "attention block": (reduced.projections + output, original.projections + output),
                "layer": (reduced.layer, original.layer),
                "model": (reduced.masked_lm, original.masked_lm),
            }
            saved = ", ".join(f"{name} {100 * (1 - less / whole):.2f} %" for name, (less, whole) in counts.items())
            yield note("C.THIRD.{size}.{operator}", size=size, operator=operator, shares=saved)
    layer = 100 * (1 - bert("symmetric", "base").layer / bert("original", "base").layer)
    yield whether("C.THIRD.text", judge("33", Fraction(layer)) == HOLDS, layer=layer)
    limit = [(2 + Fraction(1, n)) / 3 for n in (1, 8, 12, 64, 1024)]  # of Q, K and V, kept by pairwise with n heads
    falls = all(a > b > Fraction(2, 3) for a, b in pairwise(limit))
    yield whether("C.LIMIT", falls, shares=", ".join(f"{float(x):.4f}" for x in limit))
    model = 100 * (1 - Fraction(bert("pairwise", "base").masked_lm, bert("original", "base").masked_lm))
    yield compare("C.SIX", "6", model)


def bold() -> Iterator[Finding]:
    """Checks that Table 3 prints the best score of every column and size (all that tie), and no other, in bold."""
    table, marked = numbers(TABLE3), numbers(TABLE3, "bold")
    for size in SIZES:
        wrong = []
        for column in (GLUE_SCORE, *COLUMNS):
            values = {operator: table.value(f"{size}.{operator}", column) for operator in COURTOIS}
            best = {operator: value == max(values.values()) for operator, value in values.items()}
            wrong += [f"{o} {column}" for o in COURTOIS if (marked[f"{size}.{o}", column] == "yes") != best[o]]
        yield whether("C.BOLD.{size}", not wrong, size=size, wrong=f"; not so: {', '.join(wrong)}" if wrong else "")


def statements() -> Iterator[Finding]:
    """Checks the gain of pairwise, the drop of symmetric and the deviations that the text states against Table 3."""
    table, spread, text = numbers(TABLE3), numbers(TABLE3, "std"), numbers(TEXT)
    for size in SIZES:
        score = {operator: table.value(f"{size}.{operator}", GLUE_SCORE) for operator in COURTOIS}
        sd = {operator: float(spread.value(f"{size}.{operator}", GLUE_SCORE)) for operator in COURTOIS}
        # no scores by seed are printed: the tests are made of means and variances over five seeds
        sides = ((float(score[name]), sd[name] ** 2, SEEDS) for name in ("pairwise", "original"))
        apart = estimate.of_means(*sides, 0.95)  # the level of intervals, which are not used
        ratio = estimate.spreads(sd["pairwise"], sd["original"], (SEEDS - 1,) * 2, 0.95)
        equal = 2 * min(ratio.p_above(1.0), ratio.p_below(1.0))  # two-sided p that the variances are equal
        gain, drop = score["pairwise"] - score["original"], score["original"] - score["symmetric"]
        yield finding("C.GAIN.{size}", judge(text["both_sizes", "glue_gain"], gain), size=size, gain=gain)
        yield finding("C.DROP.{size}", judge(text["both_sizes", "glue_drop"], drop), size=size, gain=-drop)
        yield note("C.TTEST.{size}", size=size, t=apart.value / apart.error, p=apart.p, equal=equal)
        if size == "base":  # the text says it of this size alone
            yield whether("C.STD.base", sd["symmetric"] < sd["original"] > sd["pairwise"], **sd)
        else:
            yield note("C.STD.small", **sd)
    printed, repeated = table["base.pairwise", GLUE_SCORE], text["base.pairwise", "glue_score_sect52"]
    yield whether("C.TEXT.7939", printed == repeated, repeated=repeated, printed=printed)


def training() -> Iterator[Finding]:
    """Checks the amounts of data and steps, and the ratios between them, that the text states."""
    text = numbers(TEXT)
    samples = text.value("corpus", "train_samples")  # sequences of 512 tokens; a run reads 200,000 batches of 256
    for check, place, tokens in (
        ("C.TOKENS.seen", ("run", "tokens_seen"), Fraction(256 * 512 * 200_000)),
        ("C.TOKENS.corpus", ("corpus", "train_tokens"), samples * 512),
    ):
        yield compare(check, str(int(text.value(*place) / 10**9)), tokens / 10**9)
    read = 256 * 200_000
    yield whether("C.EPOCH", samples >= read, epochs=read / samples)
    slow, *fast = (text.value(f"base.{o}", "plateau_end_step") for o in ("original", "pairwise", "symmetric"))
    yield note("C.STEPS.plateau", pairwise=slow / fast[0], symmetric=slow / fast[1])
    slow, fast = (text.value(f"base.{o}", "steps_to_95pct") for o in ("original", "pairwise"))
    yield note("C.STEPS.glue", ratio=slow / fast)
    yield compare("C.95", text["base.all", "glue_95pct_threshold"], Fraction(95 * 79, 100))  # 79: the stated score
