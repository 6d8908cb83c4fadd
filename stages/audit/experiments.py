"""The further experiments of Kowsher et al., checked: questions, noise, transfer, time, data sets."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product
from statistics import mean, median

from scipy import stats

from stages.audit.described import content
from stages.evidence.arithmetic import FAILS, HOLDS, NOT_DECIDED, Finding, compare, judge, note, numbers, whether
from stages.evidence.editions import EDITIONS, table

DOMAINS = {"mnli": "mnli_m", "qnli": "qnli", "qqp": "qqp", "mrpc": "mrpc"}
LEVELS = range(0, 45, 5)


def findings() -> list[Finding]:
    """Checks the experiments of Kowsher et al. beside GLUE, in the order of the paper."""
    parts = (answers(), noise(), transfer(), times(), descriptions())
    return [finding for part in parts for finding in part]


def answers() -> Iterator[Finding]:
    """Checks the averages of Table 2 (SQuAD), and the gains that the text reads off it."""
    for edition in EDITIONS:
        cells, text = table(edition, "table2_squad"), table(edition, "text_and_figure_numbers")
        for kind, metric in product(("single", "triviaqa"), ("em", "f1")):
            pair = [f"base.{operator}.{kind}" for operator in ("shared", "original")]
            own, other = (cells.value(row, f"squad1_{metric}") + cells.value(row, f"squad2_{metric}") for row in pair)
            printed = cells.value(pair[0], f"avg_{metric}") - cells.value(pair[1], f"avg_{metric}")
            arithmetic = f"printed averages {float(printed):+.2f}, cells {float((own - other) / 2):+.3f}"
            statement = f"Table 2: averages rank shared and standard as the cells do, {kind} {metric}"
            yield whether(
                f"{edition}.SQUAD.sign.{kind}.{metric}", statement, (printed > 0) == (own > other), arithmetic
            )
        for name, kind, metric in product(("squad1", "squad2"), ("single", "triviaqa"), ("em", "f1")):
            yield from _text_gain(edition, cells, text, name, kind, metric)


def _text_gain(edition: str, cells, text, name: str, kind: str, metric: str) -> Iterator[Finding]:
    key = f"{name}_trivia" if kind == "triviaqa" else name, f"{metric}_{'gain' if edition == 'K24' else 'drop'}"
    gain = cells.value(f"base.shared.{kind}", f"{name}_{metric}") - cells.value(
        f"base.original.{kind}", f"{name}_{metric}"
    )
    check, statement = (
        f"{edition}.SQUADTEXT.{kind}.{name}_{metric}",
        f"Section 2.7: shared minus standard, {name} {kind} {metric}",
    )
    if key not in text.cells:
        yield note(check, statement + " (not mentioned there)", f"{float(gain):+.2f}")
        return
    sign = 1 if edition == "K24" else -1
    arithmetic = f"claimed {float(sign * text.value(*key)):+.2f}, cells {float(gain):+.2f}"
    yield Finding(check, statement, judge(text.text(*key), sign * gain), arithmetic)


def noise() -> Iterator[Finding]:
    """Checks what Table 5 says of accuracy under noise, and its clean scores against Table 1."""
    for edition, (task, column) in product(EDITIONS, (("mnli", "mnli_m"), ("qqp", "qqp"), ("sst2", "sst2"))):
        cells, glue = table(edition, "table5_noise"), table(edition, "table1_glue")
        curve = {o: [cells.value(f"noise_{level}", f"{task}.{o}") for level in LEVELS] for o in ("original", "shared")}
        lost = {operator: float(values[0] - values[-1]) for operator, values in curve.items()}
        rises = sum(b > a for values in curve.values() for a, b in pairwise(values))
        arithmetic = (
            f"original {lost['original']:.2f}, shared {lost['shared']:.2f}; accuracy rises with noise at {rises} steps"
        )
        yield note(f"{edition}.NOISE.{task}", f"Table 5: points lost from 0 to 40 % noise, {task}", arithmetic)
        behind = [level for level, a, b in zip(LEVELS, *curve.values(), strict=True) if level and b <= a]
        arithmetic = f"behind at {', '.join(map(str, behind))} %" if behind else "8 of 8 levels"
        yield note(f"{edition}.NOISE.win.{task}", f"Levels of noise at which shared is better, {task}", arithmetic)
        pairs = {o: (curve[o][0], glue.value(f"base.{o}", column)) for o in curve}
        arithmetic = ", ".join(f"{o} {float(a)} and {float(b)}" for o, (a, b) in pairs.items())
        yield whether(
            f"{edition}.NOISE.zero.{task}",
            f"Table 5 without noise is Table 1, {task}",
            all(a == b for a, b in pairs.values()),
            arithmetic,
        )
    cells, text = table("K24", "table5_noise"), table("K24", "text_and_figure_numbers")
    for (name, operator), level in product((("standard", "original"), ("shared", "shared")), (0, 40)):
        said, printed = text.text("noise", f"{name}_{level}"), cells.text(f"noise_{level}", f"mnli.{operator}")
        yield whether(
            f"K.NOISE.text.{said}",
            f"Section 3 quotes Table 5, {operator} at {level} %",
            said == printed,
            f"{said} and {printed}",
        )
    yield note(
        "K.NOISE.definition",
        "The description of the noise",
        f"a standard deviation of 1 is one strength; in 768 dimensions its norm is {math.sqrt(768):.1f}",
    )


def transfer() -> Iterator[Finding]:
    """Checks Table 6 (trained on one task, tested on another), and its diagonal against Table 1."""
    for edition in EDITIONS:
        cells, glue = table(edition, "table6_cross_domain"), table(edition, "table1_glue")
        for domain, operator in product(DOMAINS, ("original", "shared")):
            own, other = (
                cells.text(f"row_{domain}", f"col_{domain}.{operator}"),
                glue.text(f"base.{operator}", DOMAINS[domain]),
            )
            statement = f"Table 6: the diagonal is Table 1, {domain} {operator}"
            yield whether(f"{edition}.DIAG.{domain}.{operator}", statement, own == other, f"{own} and {other}")
    cells = table("K24", "table6_cross_domain")
    value = lambda row, column, operator: cells.value(f"row_{row}", f"col_{column}.{operator}")  # noqa: E731
    gain = {(r, c): value(r, c, "shared") - value(r, c, "original") for r, c in product(DOMAINS, DOMAINS) if r != c}
    better = sum(move > 0 for move in gain.values())
    arithmetic = (
        f"mean {float(mean(gain.values())):+.2f}, median {float(median(gain.values())):+.2f}; sign test p ="
        f" {stats.binomtest(better, 12).pvalue:.2f}"
    )
    yield note("K.CROSS.mean", f"Table 6 off the diagonal: shared is better in {better} of 12 cells", arithmetic)
    arithmetic = ", ".join(f"{row}/{column} {float(move):+.2f}" for (row, column), move in gain.items())
    yield note("K.CROSS.delta", "Table 6: shared minus standard by row and column", arithmetic)
    best = all(
        value(d, d, o) == max(value(d, c, o) for c in DOMAINS) == max(value(r, d, o) for r in DOMAINS)
        for d in DOMAINS
        for o in ("original", "shared")
    )
    yield whether("K.CROSS.diagbest", "Table 6: the diagonal is best in its row and column", best, "8 diagonal cells")
    rows, columns = (
        [d for d in DOMAINS if d != "mnli" and gain[("mnli", d) if flip else (d, "mnli")] > 0] for flip in (True, False)
    )
    yield note(
        "K.CROSS.axis",
        "What gains when trained on MNLI, by the axis that is training",
        f"rows: {', '.join(rows)}; columns: {', '.join(columns)}; the text names qnli and mrpc",
    )
    frequent = {task: Fraction(share) for task, share in content()["most_frequent"].items()}
    for name, place in (("column", 1), ("row", 0)):
        low = sum(value(*pair, o) < 100 * frequent[pair[place]] for pair in gain for o in ("original", "shared"))
        yield note(
            f"K.CROSS.majority.{name}",
            f"Table 6: cells below the most frequent label, if the {name} is tested",
            f"{low} of 24",
        )


def times() -> Iterator[Finding]:
    """Checks the savings of time that the text and Figure 3 state, and the operations that shared saves."""
    text = table("K24", "text_and_figure_numbers")
    slow, fast = text.value("time.cola", "standard_seconds"), text.value("time.cola", "shared_seconds")
    yield compare(
        "K.TIME.cola",
        "Epoch of CoLA: per cent of time saved",
        text.text("time.cola", "time_reduction"),
        100 * (1 - fast / slow),
    )
    yield compare(
        "K.TIME.cola.speed",
        "Epoch of CoLA: per cent faster",
        text.text("time.cola", "speedup"),
        100 * (slow / fast - 1),
        word="approximately",
    )
    saved = {
        task: int(text.value(f"time.{task}", "time_reduction"))
        for task in ("cola", "mnli", "mrpc", "qnli", "rte", "qqp")
    }
    arithmetic = f"mean {mean(saved.values()):.1f} %, median {median(saved.values()):.1f} %"
    yield note("K.TIME.mean", "The six savings of time", arithmetic)
    yield note(  # no error in the authors' favour
        "K24.TIME.tenth",
        "arXiv abstract: training time falls by around a tenth",
        f"less than stated: the six savings are {min(saved.values())} to {max(saved.values())} %, {arithmetic}",
    )
    faster = {task: 100 * (1 / (1 - share / 100) - 1) for task, share in saved.items()}
    inside = [[task for task, value in kind.items() if 15 <= value <= 20] for kind in (saved, faster)]
    arithmetic = (
        f"as time saved: {', '.join(inside[0])}, mean {mean(saved.values()):.1f} %; as speed gained: "
        f"{', '.join(inside[1]) or 'none'}; whether it speaks of each task or of their mean is not said"
    )
    fits = any(len(tasks) == len(saved) for tasks in inside)
    between = 15 <= mean(saved.values()) <= 20
    verdict = HOLDS if fits else NOT_DECIDED if between else FAILS
    yield Finding("K25.TIME.15_20", "NAACL Table 7: 15 to 20 % faster fits the six tasks", verdict, arithmetic)
    yield _limit(saved)
    tokens = text.value("pretrain", "tokens")
    steps, said = tokens * text.value("pretrain", "epochs") / (4 * 132 * 512), text.value("pretrain", "steps")
    arithmetic = (
        f"20 epochs of {float(tokens / 10**9):.1f} billion tokens at 4 x 132 x 512 are {float(steps):,.0f} steps; the"
        f" figure shows {int(said):,}"
    )
    yield whether(
        "K.STEPS", "Epochs, batch and steps of pre-training agree", judge(str(said), steps) == HOLDS, arithmetic
    )
    words = text.value("pretrain", "bookscorpus_words") + text.value("pretrain", "wikipedia_words")
    arithmetic = (
        f"{float(words / 10**9):.1f} billion words, {float(tokens / 10**9):.1f} billion tokens; a word is at least one"
        " token"
    )
    yield whether("K.WORDS", "Words and tokens of the corpus agree", tokens >= words, arithmetic)
    yield note(
        "K.LOSS0", "Loss of a uniform prediction", f"ln 30,522 = {math.log(30522):.2f}; the stated beginning is 7.0"
    )


def _limit(saved: dict[str, int]) -> Finding:
    """Multiplications of one layer a token, with and without the two projections that shared drops."""
    h, inner, length = 768, 3072, 128  # of BERT-base
    layer = 4 * h * h + 2 * h * length + 2 * h * inner
    most = 100 * 2 * h * h / layer
    over = [task for task, share in saved.items() if share > most]
    arithmetic = (
        f"2 h^2 of 4 h^2 + 2 h n + 2 h m multiplications a token: {most:.1f} % at {length} tokens; above it:"
        f" {', '.join(over)}"
    )
    return note("K.TIME.limit", "The share of a layer's work that is saved, beside the savings of time", arithmetic)


def descriptions() -> Iterator[Finding]:
    """The sizes of the data sets."""
    sizes, wrong = numbers("kowsher2024_arxiv_table7_dataset_statistics", "printed"), []
    pairs = {
        (name, column): n
        for name, released in content()["releases"].items()
        for column, n in zip(("train", "validation", "test"), released, strict=True)
        if n is not None
    }
    for place, n in pairs.items():
        text = sizes.text(*place)
        exact = Fraction(n, 1000 if text.endswith("k") else 1)
        wrong += [" ".join(place)] if judge(text.rstrip("k"), exact) == FAILS else []
    yield whether(
        "K.DATASTATS",
        "Sizes of the data sets are those of the public releases",
        not wrong,
        f"{len(pairs)} compared; off: {', '.join(wrong) or 'none'}",
    )
