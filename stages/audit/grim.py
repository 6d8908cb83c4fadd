"""GRIM (Brown and Heathers 2017): can whole numbers of right answers give a printed mean accuracy?

Only RTE, SST-2 and MRPC are small enough that five runs leave gaps between the possible means.
"""

import math
from fractions import Fraction
from itertools import product

from stages.audit.findings import Findings, check_statement, make_finding, pick_best, read_content
from stages.audit.printed import EDITIONS, KOWSHER, ROWS, TABLE3, read_numbers, read_table
from stages.evidence.verdicts import Statement, judge_printed_number


def judge_mean(printed: str, examples: int, runs: int) -> Statement:
    """Judge whether a printed percentage can be the mean accuracy of runs on so many examples each (the GRIM test).

    HOLDS if some number of right answers rounds to `printed`, TRUNCATED if digits have to be cut off, or else FAILS.
    """
    total = examples * runs
    # Only the numbers of right answers next to the quotient can round to the printed digits.
    below = math.floor(Fraction(printed) * total / 100)
    candidates = range(max(0, below - 1), below + 3)
    return pick_best(judge_printed_number(printed, Fraction(100 * right, total)) for right in candidates)


def measure_chance(examples: int, runs: int) -> float:
    """Measure how weak the GRIM test is: the per cent of the numbers 50.00, 50.01, ... 100.00 that pass."""
    verdicts = [judge_mean(f"{hundredths / 100:.2f}", examples, runs) for hundredths in range(5000, 10001)]
    return 100 * verdicts.count(Statement.HOLDS) / len(verdicts)


def count_examples(task: str) -> int:
    """Return the number of examples in the public development set of a task."""
    return read_content("checks")["releases"][task]["validation"]


def check_courtois() -> Findings:
    """Check whether all scores in a column of Table 3 can be means of five runs."""
    table = read_numbers(TABLE3)
    for column in ("rte", "sst2"):
        examples = count_examples(column)
        scores = [table[row, column] for row in ROWS]
        passed = [score for score in scores if judge_mean(score, examples, 5) == Statement.HOLDS]
        yield check_statement(
            "C.GRIM.{column}",
            passed == scores,
            column=column,
            examples=examples,
            passed=len(passed),
            chance=measure_chance(examples, 5),
        )


def check_kowsher() -> Findings:
    """Check whether each score in Table 1 can be a single run, or the mean of five runs; equal scores are one check."""
    for column in ("rte", "sst2", "mrpc"):
        examples = count_examples(column)
        # The models with the score, by the printed score.
        models = {}
        for edition, operator in product(EDITIONS, KOWSHER):
            score = read_table(edition, "table1_glue")[f"base.{operator}", column]
            models.setdefault(score, []).append(f"{edition} {operator}")
        for score, who in models.items():
            verdicts = {runs: judge_mean(score, examples, runs) for runs in range(1, 11)}
            fitting = [str(runs) for runs, verdict in verdicts.items() if verdict == Statement.HOLDS]
            verdict = pick_best((verdicts[1], verdicts[5]))
            remark = ""
            # Kowsher et al. do not state a number of runs, so a score that fits another number of runs stays open.
            if verdict == Statement.FAILS and fitting:
                verdict = Statement.UNDECIDED
                remark = "; the number of runs is not stated"
            yield make_finding(
                "K.GRIM.{column}.{text}",
                verdict,
                column=column,
                text=score,
                who=", ".join(who),
                examples=examples,
                one=verdicts[1],
                five=verdicts[5],
                fitting=", ".join(fitting) or "none",
                remark=remark,
            )
