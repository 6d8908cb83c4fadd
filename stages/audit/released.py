"""The raw results that Courtois et al. released, against the printed Table 3, Figures 2 and 3, and the text.

`raw` is measurements of data/released/: a pre-training run per size and operator, with five fine-tuning seeds. Scores
are fractions; `evaluated_on` is a column of Table 3.
"""

from fractions import Fraction
from itertools import product

import pandas as pd

from stages.audit.closed_formulas import SIZES
from stages.audit.findings import Findings, check_statement, judge_printed, note_numbers
from stages.audit.printed import COURTOIS, ROWS, TABLE3, TEXT, Numbers, read_numbers, read_table
from stages.evidence.convergence import select_scores_by_step
from stages.evidence.fields import select_rows
from stages.evidence.scores import COLUMNS, GLUE_SCORE
from stages.evidence.verdicts import Statement, judge_printed_number


def summarise_runs(raw: pd.DataFrame, metric: str) -> tuple[pd.Series, pd.Series]:
    """Compute mean and standard deviation of a metric over fine-tuning seeds, per cent, as in Table 3."""
    runs = select_rows(raw, stage="finetuning", metric=metric)
    rows = runs["size"] + "." + runs["operator"]
    groups = (100 * runs["value"]).groupby([rows, runs["evaluated_on"]])
    return groups.mean(), groups.std()


def select_values(raw: pd.DataFrame, metric: str, size: str, condition: str | None = None) -> pd.Series:
    """Return a metric by operator for a size; `condition` is the level, such as `loss=2.5`, for `steps_to_loss`."""
    found = select_rows(raw, metric=metric, size=size, condition=condition)
    return found.set_index("operator")["value"]


def rounds_to(printed: str, value: float) -> bool:
    """Return whether a value rounds to the printed digits: 5.934 rounds to `5.93`."""
    return judge_printed_number(printed, Fraction(value)) == Statement.HOLDS


def count_equal(printed: Numbers, exact: pd.Series, *columns: str) -> int:
    """Count the cells in some columns of Table 3 whose exact values round to the printed digits."""
    return sum(rounds_to(printed[place], exact[place]) for place in product(ROWS, columns))


def check_scores(raw: pd.DataFrame) -> Findings:
    """Check whether the released runs give Table 3, and whether the column QQP is an accuracy."""
    table = read_numbers(TABLE3)
    means, deviations = summarise_runs(raw, "score")
    equal = count_equal(table, means, *COLUMNS)
    yield check_statement("C.REL.T3", equal == 54, equal=equal)
    # Both the means and the deviations must be equal.
    equal = min(
        count_equal(table, means, GLUE_SCORE),
        count_equal(read_numbers(TABLE3, "std"), deviations, GLUE_SCORE),
    )
    yield check_statement("C.REL.GLUE", equal == 6, equal=equal)
    accuracies, _ = summarise_runs(raw, "raw_accuracy")
    shown = [f"{row} {accuracies[row, 'qqp']:.2f} (printed {table[row, 'qqp']})" for row in ROWS]
    equal = count_equal(table, accuracies, "qqp")
    yield check_statement("C.REL.QQP", equal == 6, accuracies="; ".join(shown))


def check_copied_cells(raw: pd.DataFrame) -> Findings:
    """Check whether cells that Kowsher et al. copied, and call accuracy, are released accuracies."""
    table = read_numbers(TABLE3)
    copy = read_table("K24", "table1_glue")
    accuracies, _ = summarise_runs(raw, "raw_accuracy")
    # GLUE scores these two tasks by accuracy and F1.
    for task in ("mrpc", "qqp"):
        shown = []
        agreements = []
        for operator in COURTOIS:
            row = f"base.{operator}"
            place = row, task
            if table[place] == copy[place]:
                agreements.append(rounds_to(table[place], accuracies[place]))
                shown.append(f"{row} {table[place]}, accuracy alone {accuracies[place]:.2f}")
        yield check_statement(
            "K.METRIC.{task}",
            all(agreements),
            task=task,
            name=task.upper(),
            cells="; ".join(shown),
        )


def check_losses(raw: pd.DataFrame) -> Findings:
    """Check Figure 2 and the text against the released losses."""
    reached = select_values(raw, "steps_to_loss", "small", "loss=2.5")
    yield check_statement("C.REL.FIG2.small", reached["symmetric"] < reached["original"], **reached)
    base = select_values(raw, "late_loss", "base")
    small = select_values(raw, "late_loss", "small")
    gap = read_numbers(TEXT)["base.symmetric", "final_eval_loss_gap"]
    # The text says that symmetric ends above original by the gap, and pairwise level with original.
    above = rounds_to(gap, base["symmetric"] - base["original"])
    level_with = rounds_to("0.0", base["pairwise"] - base["original"])
    yield check_statement("C.REL.FINAL.base", above and level_with, **base)
    yield check_statement("C.REL.FINAL.small", small["pairwise"] < small["original"], **small)
    # Validation losses in nats.
    levels = ["loss=5", "loss=3", "loss=2.5", "loss=2", "loss=1.8", "loss=1.7"]
    for size, operator in product(SIZES, COURTOIS):
        # Some models never reach the lowest losses.
        steps = select_rows(raw, metric="steps_to_loss", size=size, operator=operator, condition=levels)
        shown = [f"{row.condition.removeprefix('loss=')} at {row.value:,.0f}" for row in steps.itertuples()]
        yield note_numbers("C.REL.LOSS.{size}.{operator}", size=size, operator=operator, steps="; ".join(shown))


def check_checkpoints(raw: pd.DataFrame) -> Findings:
    """Check Figure 3: GLUE scores, with a single seed, from 18 checkpoints of base models."""
    scores = 100 * select_scores_by_step(raw).pivot(index="step", columns="operator", values="value").sort_index()
    checkpoints = scores.index
    text = read_numbers(TEXT)
    # The exact steps are interpolated between two checkpoints.
    steps = select_values(raw, "steps_to_95_percent", "base")
    for operator in ("pairwise", "original"):
        printed = text[f"base.{operator}", "steps_to_95pct"]
        exact = steps[operator]
        yield judge_printed(
            "C.REL.95.{operator}",
            printed,
            Fraction(exact),
            operator=operator,
            said=int(printed),
            after=checkpoints[checkpoints < exact].max(),
            before=checkpoints[checkpoints >= exact].min(),
        )
    behind = checkpoints[scores["pairwise"] < scores.max(axis=1)]
    shown = ", ".join(f"{step:,}" for step in behind)
    yield check_statement("C.REL.CONSISTENT", behind.empty, steps=shown)
    drops = 100 * select_values(raw, "summed_drops", "base")
    yield check_statement("C.REL.SMOOTH", drops["pairwise"] < drops["original"], **drops)
    # The last checkpoint is the model of the main study, where seed 1 is the seed of all checkpoints. So one model was
    # fine-tuned twice with one seed.
    finetuned = select_rows(raw, stage="finetuning", metric="score", evaluated_on=GLUE_SCORE, size="base")
    again = 100 * select_rows(finetuned, finetuning_seed=1).set_index("operator")["value"]
    once = scores.iloc[-1]
    for operator in COURTOIS:
        yield note_numbers(
            "C.REL.SEEDNOISE.{operator}",
            operator=operator,
            once=once[operator],
            again=again[operator],
        )
