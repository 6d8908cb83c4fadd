"""The experiments of Kowsher et al. on questions, noise and transfer (Tables 2, 5 and 6), checked.

K24: arXiv edition of 2024; K25: NAACL, 2025; K: both editions.
"""

from fractions import Fraction
from itertools import product

import numpy as np
from scipy import stats

from stages.audit.findings import Findings, agree, compare, finding, note, whether
from stages.audit.printed import EDITIONS, Numbers, read_table
from stages.benchmarks.glue import COLUMN_OF
from stages.evidence.arithmetic import FAILS, HOLDS, NOT_DECIDED, judge

# The operators of these tables, and their names in the text.
ARMS = {"original": "standard", "shared": "shared"}
# Models fine-tuned on SQuAD only, and after TriviaQA.
TRAININGS = ("single", "triviaqa")
METRICS = ("em", "f1")
# The levels of noise in Table 5, per cent.
LEVELS = range(0, 45, 5)
# The tasks of Table 6.
DOMAINS = ("mnli", "qnli", "qqp", "mrpc")


def average_answers(table: Numbers, row: str, metric: str) -> Fraction:
    """Average a metric of a row of Table 2 over SQuAD 1.1 and 2.0, as the columns `avg_em` and `avg_f1` should."""
    return (table.value(row, f"squad1_{metric}") + table.value(row, f"squad2_{metric}")) / 2


def check_answer_averages() -> Findings:
    """Check the averages of Table 2."""
    for edition, metric, operator, training in product(EDITIONS, METRICS, ARMS, TRAININGS):
        table, row = read_table(edition, "table2_squad"), f"{operator}.{training}"
        yield compare(
            "{edition}.SQUAD.{row}.{metric}",
            table[f"base.{row}", f"avg_{metric}"],
            average_answers(table, f"base.{row}", metric),
            edition=edition,
            row=row,
            metric=metric,
        )
    # The averages of `original` changed in the NAACL edition.
    table, row = read_table("K25", "table2_squad"), "base.original.single"
    verdicts, values = [], {}
    for metric in METRICS:
        printed, exact = table[row, f"avg_{metric}"], average_answers(table, row, metric)
        verdicts.append(judge(printed, exact))
        values |= {metric: printed, f"exact_{metric}": exact}
    yield whether("K25.STALE.t2avg", verdicts == [HOLDS, HOLDS], **values)


def check_answer_ranks() -> Findings:
    """Check whether the averages of Table 2 rank shared and standard as the cells do."""
    for edition, training, metric in product(EDITIONS, TRAININGS, METRICS):
        table = read_table(edition, "table2_squad")
        shared, original = f"base.shared.{training}", f"base.original.{training}"
        printed = table.value(shared, f"avg_{metric}") - table.value(original, f"avg_{metric}")
        exact = average_answers(table, shared, metric) - average_answers(table, original, metric)
        yield whether(
            "{edition}.SQUAD.sign.{training}.{metric}",
            (printed > 0) == (exact > 0),
            edition=edition,
            training=training,
            metric=metric,
            printed=printed,
            exact=exact,
        )


def check_answer_gains() -> Findings:
    """Check the gains of shared on SQuAD in section 2.7; the NAACL edition states drops."""
    for edition, name, training, metric in product(EDITIONS, ("squad1", "squad2"), TRAININGS, METRICS):
        table, text = read_table(edition, "table2_squad"), read_table(edition, "text_and_figure_numbers")
        word, sign = ("gain", 1) if edition == "K24" else ("drop", -1)
        place = name if training == "single" else f"{name}_trivia", f"{metric}_{word}"
        # The arXiv edition does not mention the losses in F1 on SQuAD 2.0.
        if place not in text:
            continue
        shared, original = [table.value(f"base.{arm}.{training}", f"{name}_{metric}") for arm in ("shared", "original")]
        gain = shared - original
        yield finding(
            "{edition}.SQUADTEXT.{training}.{name}_{metric}",
            judge(text[place], sign * gain),
            edition=edition,
            training=training,
            name=name,
            metric=metric,
            claimed=sign * text.value(*place),
            gain=gain,
        )


def read_curve(edition: str, task: str, operator: str) -> np.ndarray:
    """Read a column of Table 5: accuracy at all LEVELS of noise."""
    table = read_table(edition, "table5_noise")
    return np.array([float(table[f"noise_{level}", f"{task}.{operator}"]) for level in LEVELS])


def check_noise() -> Findings:
    """Note where shared is better under noise (Table 5), and check the scores without noise against Table 1."""
    for edition, task in product(EDITIONS, ("mnli", "qqp", "sst2")):
        original, shared = [read_curve(edition, task, operator) for operator in ARMS]
        behind = [str(level) for level in LEVELS[1:] if shared[level // 5] <= original[level // 5]]
        levels = f"behind at {', '.join(behind)} %" if behind else "8 of 8 levels"
        yield note("{edition}.NOISE.win.{task}", edition=edition, task=task, levels=levels)
        glue = read_table(edition, "table1_glue")
        clean = [float(glue[f"base.{operator}", COLUMN_OF[task]]) for operator in ARMS]
        yield agree(
            "{edition}.NOISE.zero.{task}",
            [original[0], shared[0]],
            clean,
            edition=edition,
            task=task,
        )


def check_noise_in_text() -> Findings:
    """Check the four accuracies on MNLI that section 3 quotes from Table 5."""
    table, text = read_table("K24", "table5_noise"), read_table("K24", "text_and_figure_numbers")
    for operator, level in product(ARMS, (0, 40)):
        yield agree(
            "K.NOISE.text.{printed}",
            text["noise", f"{ARMS[operator]}_{level}"],
            table[f"noise_{level}", f"mnli.{operator}"],
            operator=operator,
            level=level,
        )


def check_stale_noise() -> Findings:
    """Check whether SST-2 of shared, changed in the NAACL edition without noise, still falls under 10 % noise."""
    clean, _, noisy, *_ = read_curve("K25", "sst2", "shared")
    # If the standard column rises under noise, too, a rise says nothing about a stale cell.
    standard = read_curve("K25", "sst2", "original")
    verdict = FAILS
    if noisy <= clean:
        verdict = HOLDS
    elif (np.diff(standard) > 0).any():
        verdict = NOT_DECIDED
    yield finding("K25.STALE.t5sst2", verdict, clean=clean, noisy=noisy)


def check_diagonal() -> Findings:
    """Check the diagonal of Table 6, the score on the task of the training, against Table 1."""
    for edition, domain, operator in product(EDITIONS, DOMAINS, ARMS):
        yield agree(
            "{edition}.DIAG.{domain}.{operator}",
            read_table(edition, "table6_cross_domain")[f"row_{domain}", f"col_{domain}.{operator}"],
            read_table(edition, "table1_glue")[f"base.{operator}", COLUMN_OF[domain]],
            edition=edition,
            domain=domain,
            operator=operator,
        )


def read_transfer(operator: str) -> np.ndarray:
    """Read the scores of an operator in Table 6, [row, column] by DOMAINS, which are equal in both editions."""
    table = read_table("K24", "table6_cross_domain")
    scores = [float(table[f"row_{row}", f"col_{column}.{operator}"]) for row, column in product(DOMAINS, DOMAINS)]
    return np.reshape(scores, (4, 4))


def check_transfer() -> Findings:
    """Check Table 6: models that were trained on one task and tested on another task."""
    original, shared = read_transfer("original"), read_transfer("shared")
    gains = np.round(shared - original, 2)
    # A score on the task of the training is no transfer.
    np.fill_diagonal(gains, np.nan)
    better = (gains > 0).sum()
    p = stats.binomtest(better, 12).pvalue
    yield note("K.CROSS.mean", better=better, mean=np.nanmean(gains), median=np.nanmedian(gains), p=p)
    best = []
    for scores in (original, shared):
        diagonal = scores.diagonal()
        best += [diagonal == scores.max(axis=0), diagonal == scores.max(axis=1)]
    yield whether("K.CROSS.diagbest", np.all(best))
    # The paper does not say whether rows or columns are the training sets; MNLI is the first of DOMAINS.
    rows, columns = [np.array(DOMAINS)[axis > 0] for axis in (gains[0], gains[:, 0])]
    yield note("K.CROSS.axis", rows=", ".join(rows), columns=", ".join(columns))


CHECKS = (
    check_answer_averages,
    check_answer_ranks,
    check_answer_gains,
    check_noise,
    check_noise_in_text,
    check_stale_noise,
    check_diagonal,
    check_transfer,
)
