"""Times, steps and sizes of data sets in Kowsher et al., checked."""

from fractions import Fraction

import pandas as pd

from stages.audit.closed_formulas import SIZES
from stages.audit.findings import Findings, check_statement, judge_printed, make_finding, note_numbers, read_content
from stages.audit.printed import read_numbers, read_table
from stages.evidence.verdicts import Statement, judge_printed_number


def check_cola() -> Findings:
    """Check how much time `shared` saves on CoLA, as per cent less time and as per cent faster."""
    cola = read_table("K24", "text_and_figure_numbers").read_row("time.cola")
    ratio = cola["standard_seconds"] / cola["shared_seconds"]
    yield judge_printed("K.TIME.cola", str(cola["time_reduction"]), 100 * (1 - 1 / ratio))
    yield judge_printed("K.TIME.cola.speed", str(cola["speedup"]), 100 * (ratio - 1), "approximately")


def check_savings() -> Findings:
    """Check the savings of time that both editions state against Figure 3 (per cent of an epoch, six tasks)."""
    text = read_table("K24", "text_and_figure_numbers")
    tasks = ("cola", "mnli", "mrpc", "qnli", "rte", "qqp")
    saved = pd.Series({task: int(text[f"time.{task}", "time_reduction"]) for task in tasks})
    average = saved.mean()
    # A note and not a failure: the abstract of the arXiv edition, a tenth, states less than was saved.
    yield note_numbers(
        "K24.TIME.tenth",
        least=saved.min(),
        most=saved.max(),
        mean=average,
        median=saved.median(),
    )
    # Table 7 of the NAACL edition, 15 to 20 % faster, holds if all six tasks fit, as time saved or as speed gained. If
    # only the mean fits, nothing is decided, as the paper does not say whether it speaks of each task or of the mean.
    fit_saved = saved.between(15, 20)
    fit_faster = (100 * saved / (100 - saved)).between(15, 20)
    verdict = Statement.FAILS
    if fit_saved.all() or fit_faster.all():
        verdict = Statement.HOLDS
    elif 15 <= average <= 20:
        verdict = Statement.UNDECIDED
    yield make_finding(
        "K25.TIME.15_20",
        verdict,
        mean=average,
        saved=", ".join(saved.index[fit_saved]),
        faster=", ".join(saved.index[fit_faster]) or "none",
    )
    # A layer of BERT-base has 2 h (2 h + n + m) multiplications per token, of which shared drops 2 h^2; m is the inner
    # width. The length n is not stated; 128 tokens are the usual limit on GLUE.
    _, h, inner, _ = SIZES["base"]
    limit = 100 * h / (2 * h + 128 + inner)
    yield note_numbers("K.TIME.limit", most=limit, tasks=", ".join(saved.index[saved > limit]))


def check_pretraining() -> Findings:
    """Check steps, epochs, tokens and words of pre-training."""
    text = read_table("K24", "text_and_figure_numbers").read_row("pretrain")
    # One step takes 4 (GPUs) x 132 sequences of 512 tokens.
    steps = text["tokens"] * text["epochs"] / (4 * 132 * 512)
    tokens_billion = text["tokens"] / 10**9
    words_billion = (text["bookscorpus_words"] + text["wikipedia_words"]) / 10**9
    stated = int(text["steps"])
    yield judge_printed("K.STEPS", str(stated), steps, tokens=tokens_billion, stated=stated)
    yield check_statement("K.WORDS", words_billion <= tokens_billion, words=words_billion, tokens=tokens_billion)


def check_dataset_sizes() -> Findings:
    """Check whether the printed sizes, such as `87.6k`, are the sizes of the public releases."""
    printed = read_numbers("kowsher2024_arxiv_table7_dataset_statistics", "printed")
    compared = 0
    off = []
    for name, sizes in read_content("checks")["releases"].items():
        for split, size in sizes.items():
            text = printed[name, split]
            unit = 1000 if text.endswith("k") else 1
            compared += 1
            if judge_printed_number(text.rstrip("k"), Fraction(size, unit)) == Statement.FAILS:
                off.append(f"{name} {split}")
    yield check_statement("K.DATASTATS", not off, compared=compared, off=", ".join(off) or "none")
