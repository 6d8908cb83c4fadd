"""Kowsher et al. (K24: arXiv 2024; K25: NAACL 2025; K: both) on questions, noise, transfer, time and data, checked."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product
from statistics import mean, median

from scipy import stats

from stages.audit.described import content
from stages.audit.findings import NOTE, Finding, compare, finding, note, whether
from stages.audit.printed import EDITIONS, numbers, table
from stages.benchmarks.glue import COLUMN_OF
from stages.evidence.arithmetic import FAILS, HOLDS, NOT_DECIDED, judge

DOMAINS = ("mnli", "qnli", "qqp", "mrpc")  # the tasks of Table 6
LEVELS = range(0, 45, 5)  # of noise in Table 5, per cent
ARMS = ("original", "shared")  # the order of all pairs here; original is what the paper calls standard


def findings() -> list[Finding]:
    """Checks the experiments of Kowsher et al. other than GLUE, in the order of the paper."""
    return [*answers(), *noise(), *transfer(), *times(), *descriptions()]


def answers() -> Iterator[Finding]:
    """Checks if averages of Table 2 (SQuAD, %) rank shared and standard as its cells do, and the gains in the text."""
    for edition in EDITIONS:
        cells, text = table(edition, "table2_squad"), table(edition, "text_and_figure_numbers")
        for kind, metric in product(("single", "triviaqa"), ("em", "f1")):  # SQuAD alone, or after TriviaQA
            names = [f"{name}_{metric}" for name in ("squad1", "squad2", "avg")]
            one, two, printed = (
                cells.value(f"base.shared.{kind}", name) - cells.value(f"base.original.{kind}", name) for name in names
            )
            place = {"edition": edition, "kind": kind, "metric": metric}
            same = (printed > 0) == (one + two > 0)
            yield whether("{edition}.SQUAD.sign.{kind}.{metric}", same, printed=printed, cells=(one + two) / 2, **place)
        for name, kind, metric in product(("squad1", "squad2"), ("single", "triviaqa"), ("em", "f1")):
            column, sign = (f"{metric}_gain", 1) if edition == "K24" else (f"{metric}_drop", -1)  # K25 states drops
            key = f"{name}_trivia" if kind == "triviaqa" else name, column
            gain = cells.value(f"base.shared.{kind}", f"{name}_{metric}")
            gain -= cells.value(f"base.original.{kind}", f"{name}_{metric}")
            verdict, mentioned, claimed = NOTE, " (not mentioned there)", ""  # where the text states no gain
            if key in text:
                verdict, mentioned = judge(text[key], sign * gain), ""
                claimed = f"claimed {float(sign * text.value(*key)):+.2f}, cells "
            place = {"edition": edition, "kind": kind, "name": name, "metric": metric}
            check = "{edition}.SQUADTEXT.{kind}.{name}_{metric}"
            yield finding(check, verdict, mentioned=mentioned, claimed=claimed, gain=gain, **place)


def noise() -> Iterator[Finding]:
    """Notes how accuracy falls under noise (Table 5); checks clean scores against Table 1, and what the text quotes."""
    for edition, task in product(EDITIONS, ("mnli", "qqp", "sst2")):
        cells, glue = table(edition, "table5_noise"), table(edition, "table1_glue")
        curve = {o: [cells.value(f"noise_{level}", f"{task}.{o}") for level in LEVELS] for o in ARMS}
        lost = {operator: values[0] - values[-1] for operator, values in curve.items()}
        rises = sum(b > a for values in curve.values() for a, b in pairwise(values))
        yield note("{edition}.NOISE.{task}", edition=edition, task=task, rises=rises, **lost)
        behind = [level for level, a, b in zip(LEVELS, *curve.values(), strict=True) if level and b <= a]
        levels = f"behind at {', '.join(map(str, behind))} %" if behind else "8 of 8 levels"
        yield note("{edition}.NOISE.win.{task}", edition=edition, task=task, levels=levels)
        pairs = {o: (curve[o][0], glue.value(f"base.{o}", COLUMN_OF[task])) for o in curve}
        shown = ", ".join(f"{o} {float(a)} and {float(b)}" for o, (a, b) in pairs.items())
        same = all(a == b for a, b in pairs.values())
        yield whether("{edition}.NOISE.zero.{task}", same, edition=edition, task=task, pairs=shown)
    cells, text = table("K24", "table5_noise"), table("K24", "text_and_figure_numbers")
    for (name, operator), level in product((("standard", "original"), ("shared", "shared")), (0, 40)):
        quoted, printed = text["noise", f"{name}_{level}"], cells[f"noise_{level}", f"mnli.{operator}"]
        place = {"operator": operator, "level": level}
        yield whether("K.NOISE.text.{quoted}", quoted == printed, quoted=quoted, printed=printed, **place)
    yield note("K.NOISE.definition", norm=math.sqrt(768))  # about that of normal noise of deviation 1 in 768 dimensions


def transfer() -> Iterator[Finding]:
    """Checks Table 6 (trained on one task, tested on another), equal in both editions, and its diagonal by Table 1."""
    for edition in EDITIONS:
        cells, glue = table(edition, "table6_cross_domain"), table(edition, "table1_glue")
        for domain, operator in product(DOMAINS, ARMS):
            diagonal = cells[f"row_{domain}", f"col_{domain}.{operator}"]
            table1 = glue[f"base.{operator}", COLUMN_OF[domain]]
            place = {"edition": edition, "domain": domain, "operator": operator}
            place |= {"diagonal": diagonal, "table1": table1}
            yield whether("{edition}.DIAG.{domain}.{operator}", diagonal == table1, **place)
    cells = table("K24", "table6_cross_domain")
    value = {
        (row, column, operator): cells.value(f"row_{row}", f"col_{column}.{operator}")
        for row, column, operator in product(DOMAINS, DOMAINS, ARMS)
    }
    gain = {(r, c): value[r, c, "shared"] - value[r, c, "original"] for r, c in product(DOMAINS, DOMAINS) if r != c}
    better = sum(move > 0 for move in gain.values())  # of the 4 x 3 cells off the diagonal, for a sign test
    moves = {"mean": mean(gain.values()), "median": median(gain.values()), "p": stats.binomtest(better, 12).pvalue}
    yield note("K.CROSS.mean", better=better, **moves)
    shown = ", ".join(f"{row}/{column} {float(move):+.2f}" for (row, column), move in gain.items())
    yield note("K.CROSS.delta", gains=shown)
    best = all(
        value[d, d, o] == max(value[d, c, o] for c in DOMAINS) == max(value[r, d, o] for r in DOMAINS)
        for d, o in product(DOMAINS, ARMS)
    )
    yield whether("K.CROSS.diagbest", best)
    others = [domain for domain in DOMAINS if domain != "mnli"]
    # what gains when trained on MNLI, if rows are the training sets, and if columns are: the paper leaves it open
    rows, columns = ([d for d in others if gain[("mnli", d)[::way]] > 0] for way in (1, -1))
    yield note("K.CROSS.axis", rows=", ".join(rows), columns=", ".join(columns))
    frequent = {task: Fraction(share) for task, share in content()["most_frequent"].items()}
    for name, place in (("column", 1), ("row", 0)):  # which of (row, column) is the task tested on, if it is this one
        low = sum(value[*pair, o] < 100 * frequent[pair[place]] for pair in gain for o in ARMS)
        yield note("K.CROSS.majority.{name}", name=name, low=low)


def times() -> Iterator[Finding]:
    """Checks the savings of time that text and Figure 3 state, and what the text says of steps, words and tokens."""
    text = table("K24", "text_and_figure_numbers")
    slow, fast = text.value("time.cola", "standard_seconds"), text.value("time.cola", "shared_seconds")
    yield compare("K.TIME.cola", text["time.cola", "time_reduction"], 100 * (1 - fast / slow))
    yield compare("K.TIME.cola.speed", text["time.cola", "speedup"], 100 * (slow / fast - 1), "approximately")
    tasks = ("cola", "mnli", "mrpc", "qnli", "rte", "qqp")
    saved = {task: int(text.value(f"time.{task}", "time_reduction")) for task in tasks}
    centre = {"mean": mean(saved.values()), "median": median(saved.values())}
    yield note("K.TIME.mean", **centre)
    # a note and no failure: more is saved than stated, so the error is not in the authors' favour
    yield note("K24.TIME.tenth", least=min(saved.values()), most=max(saved.values()), **centre)
    faster = {task: 100 * (1 / (1 - share / 100) - 1) for task, share in saved.items()}
    # NAACL's 15 to 20 % hold if all six fit, as time saved or speed gained; undecided if only the mean saving does
    inside = [[task for task, value in kind.items() if 15 <= value <= 20] for kind in (saved, faster)]
    fits = any(len(tasks) == len(saved) for tasks in inside)
    verdict = HOLDS if fits else NOT_DECIDED if 15 <= centre["mean"] <= 20 else FAILS
    shown = {"saved": ", ".join(inside[0]), "faster": ", ".join(inside[1]) or "none"}
    yield finding("K25.TIME.15_20", verdict, mean=centre["mean"], **shown)
    yield _limit(saved)
    tokens = text.value("pretrain", "tokens")  # of the corpus; a step takes 4 (GPUs) x 132 sequences of 512
    steps, stated = tokens * text.value("pretrain", "epochs") / (4 * 132 * 512), int(text.value("pretrain", "steps"))
    holds = judge(str(stated), steps) == HOLDS
    yield whether("K.STEPS", holds, billions=tokens / 10**9, steps=steps, stated=stated)
    words = text.value("pretrain", "bookscorpus_words") + text.value("pretrain", "wikipedia_words")
    yield whether("K.WORDS", tokens >= words, words=words / 10**9, tokens=tokens / 10**9)
    yield note("K.LOSS0", loss=math.log(30522))  # of a uniform guess among BERT's sub-words


def _limit(saved: dict[str, int]) -> Finding:
    """Notes the per cent of a layer's multiplications that shared saves, and at which tasks `saved` (time) is more."""
    h, inner, length = 768, 3072, 128  # BERT-base; the length, which is not stated, is the usual limit on GLUE
    # per token: Q, K and V (two are dropped), output; scores and means of values; feed-forward network
    most = 100 * 2 * h * h / (4 * h * h + 2 * h * length + 2 * h * inner)
    over = [task for task, share in saved.items() if share > most]
    return note("K.TIME.limit", most=most, length=length, tasks=", ".join(over))


def descriptions() -> Iterator[Finding]:
    """Checks whether the printed sizes of the data sets, such as `87.6k`, are those of the public releases."""
    sizes, wrong = numbers("kowsher2024_arxiv_table7_dataset_statistics", "printed"), []
    pairs = {
        (name, column): n
        for name, released in content()["releases"].items()
        for column, n in zip(("train", "validation", "test"), released, strict=True)
        if n is not None
    }
    for place, n in pairs.items():
        text = sizes[place]
        exact = Fraction(n, 1000 if text.endswith("k") else 1)
        wrong += [" ".join(place)] if judge(text.rstrip("k"), exact) == FAILS else []
    yield whether("K.DATASTATS", not wrong, compared=len(pairs), wrong=", ".join(wrong) or "none")
