"""The raw results that Courtois et al. released, against what they print: Table 3, Figures 2 and 3, the text.

Input: measurements of data/released/ (see evidence/derived.py): one pre-training run for each size and operator,
with five fine-tuning seeds. Scores are fractions, `evaluated_on` is a column of Table 3.
"""

from collections.abc import Iterator
from fractions import Fraction

import pandas as pd

from stages.audit.closed_formulas import SIZES
from stages.audit.findings import Finding, finding, note, whether
from stages.audit.printed import COURTOIS, TABLE3, TEXT, numbers
from stages.evidence import estimate
from stages.evidence.arithmetic import HOLDS, judge
from stages.evidence.convergence import scores_by_step
from stages.evidence.derived import matching
from stages.evidence.scores import COLUMNS, GLUE_SCORE

LEVELS = ("5", "3", "2.5", "2", "1.8", "1.7")  # validation losses in nats, as conditions (`loss=2.5`) write them


def findings(released: pd.DataFrame) -> list[Finding]:
    """Makes all checks of this file. released: measurements of the raw results; the functions below call them `raw`."""
    return [*scores(released), *copied(released), *curves(released)]


def _values(raw: pd.DataFrame, row: str, column: str, metric: str = "score") -> pd.Series:
    """Returns 100 times a metric, indexed by fine-tuning seed, for a row of Table 3 (`base.original`) and a column."""
    size, operator = row.split(".")
    select = {"stage": "finetuning", "metric": metric, "evaluated_on": column, "size": size, "operator": operator}
    return 100 * matching(raw, select).set_index("finetuning_seed")["value"]


def _gives(text: str, value: float) -> bool:
    """Returns whether the exact number, `value`, rounds to the printed digits, `text`."""
    return judge(text, Fraction(value)) == HOLDS


def scores(raw: pd.DataFrame) -> Iterator[Finding]:
    """Checks whether the released fine-tuning runs give Table 3, and which metric is that of QQP.

    Notes follow, by size: tests of pairwise against original, what each column adds to the gain, the deviation of RTE.
    """
    table, spread = numbers(TABLE3), numbers(TABLE3, "std")
    rows = [f"{size}.{operator}" for size in SIZES for operator in COURTOIS]
    values = {(row, column): _values(raw, row, column) for row in rows for column in (*COLUMNS, GLUE_SCORE)}
    equal = {place: _gives(table[place], runs.mean()) for place, runs in values.items()}
    tasks = sum(equal[row, column] for row in rows for column in COLUMNS)
    yield whether("C.REL.T3", tasks == 54, equal=tasks)  # six rows of nine columns
    whole = [(row, GLUE_SCORE) for row in rows]
    both = [equal[place] and _gives(spread[place], values[place].std()) for place in whole]
    yield whether("C.REL.GLUE", all(both), equal=sum(both))
    accuracy = {row: _values(raw, row, "qqp", "raw_accuracy").mean() for row in rows}
    shown = "; ".join(f"{row} {accuracy[row]:.2f} (printed {table[row, 'qqp']})" for row in rows)
    yield whether("C.REL.QQP", all(_gives(table[row, "qqp"], accuracy[row]) for row in rows), accuracies=shown)
    for size in SIZES:
        one, other = (values[f"{size}.{operator}", GLUE_SCORE].to_numpy() for operator in ("pairwise", "original"))
        effect = estimate.welch(one, other, 0.95)  # its interval is not used
        yield note("C.REL.TTEST.{size}", size=size, difference=effect.value, welch=effect.p)
        gains = {c: values[f"{size}.pairwise", c].mean() - values[f"{size}.original", c].mean() for c in COLUMNS}
        shown = ", ".join(f"{column} {gain / 9:+.3f}" for column, gain in gains.items())
        yield note("C.REL.WHERE.{size}", size=size, gains=shown)
        shown = ", ".join(f"{operator} {values[f'{size}.{operator}', 'rte'].std():.2f}" for operator in COURTOIS)
        yield note("C.REL.RTE.{size}", size=size, deviations=shown)


def copied(raw: pd.DataFrame) -> Iterator[Finding]:
    """Checks whether cells of Table 3 that Kowsher et al. copied, and call accuracy, are released accuracies."""
    table, cells = numbers(TABLE3), numbers("kowsher2024_arxiv_table1_glue")
    for task in ("mrpc", "qqp"):  # which GLUE scores by accuracy and F1
        rows = [f"base.{operator}" for operator in COURTOIS]
        texts = {row: cells[row, task] for row in rows if table[row, task] == cells[row, task]}  # copied, by digits
        accuracy = {row: _values(raw, row, task, "raw_accuracy").mean() for row in texts}
        shown = "; ".join(f"{row} {text}, accuracy alone {accuracy[row]:.2f}" for row, text in texts.items())
        holds = all(_gives(text, accuracy[row]) for row, text in texts.items())
        yield whether("K.METRIC.{task}", holds, task=task, name=task.upper(), cells=shown)


def curves(raw: pd.DataFrame) -> Iterator[Finding]:
    """Checks what Figures 2 and 3 show, and what is said of them, by the released losses and checkpoint scores."""
    late = {(size, o): _measured(raw, "late_loss", size, o) for size in SIZES for o in COURTOIS}
    steps = {
        (size, o, level): _measured(raw, "steps_to_loss", size, o, f"loss={level}")
        for size in SIZES
        for o in COURTOIS
        for level in LEVELS
    }
    saved = {level: 1 - steps["base", "pairwise", level] / steps["base", "original", level] for level in LEVELS}
    shown = ", ".join(f"loss {level}: {100 * share:.0f} % fewer" for level, share in saved.items())
    yield note("C.REL.HALF", shares=shown)
    original, symmetric = (steps["small", operator, "2.5"] for operator in COURTOIS[:2])
    yield whether("C.REL.FIG2.small", symmetric < original, symmetric=symmetric, original=original)
    losses = {size: ", ".join(f"{operator} {late[size, operator]:.3f}" for operator in COURTOIS) for size in SIZES}
    gap = numbers(TEXT)["base.symmetric", "final_eval_loss_gap"]
    above = _gives(gap, late["base", "symmetric"] - late["base", "original"])
    level = _gives("0.0", late["base", "pairwise"] - late["base", "original"])
    yield whether("C.REL.FINAL.base", above and level, losses=losses["base"])
    yield whether("C.REL.FINAL.small", late["small", "pairwise"] < late["small", "original"], losses=losses["small"])
    yield from _checkpoints(raw)
    for size in SIZES:
        for operator in COURTOIS:
            reached = [f"{level} at {step:,.0f}" for level in LEVELS if (step := steps[size, operator, level])]
            yield note("C.REL.LOSS.{size}.{operator}", size=size, operator=operator, steps="; ".join(reached))


def _measured(raw: pd.DataFrame, metric: str, size: str, operator: str, condition: str | None = None) -> float | None:
    """Returns a measurement of one pre-training run, with this condition, None for none; None if there is none."""
    rows = matching(raw, {"metric": metric, "size": size, "operator": operator, "condition": condition})
    return float(rows["value"].iloc[0]) if len(rows) else None


def _checkpoints(raw: pd.DataFrame) -> Iterator[Finding]:
    """Checks Figure 3: GLUE scores of base models that were fine-tuned, from one seed, from 18 checkpoints."""
    table = 100 * scores_by_step(raw).pivot(index="step", columns="operator", values="value").sort_index()
    for operator in ("pairwise", "original"):
        text = numbers(TEXT)[f"base.{operator}", "steps_to_95pct"]
        step = _measured(raw, "steps_to_95_percent", "base", operator)  # interpolated between two checkpoints
        around = {"after": table.index[table.index < step].max(), "before": table.index[table.index >= step].min()}
        verdict = judge(text, Fraction(step))
        yield finding("C.REL.95.{operator}", verdict, operator=operator, step=step, printed=int(text), **around)
    behind = table[table["pairwise"] < table[["original", "symmetric"]].max(axis=1)]
    yield whether("C.REL.CONSISTENT", behind.empty, steps=", ".join(f"{step:,}" for step in behind.index))
    drops = {operator: 100 * _measured(raw, "summed_drops", "base", operator) for operator in COURTOIS}
    yield whether("C.REL.SMOOTH", drops["pairwise"] < drops["original"], **drops)
    for operator in COURTOIS:  # the last checkpoint is the model of the main study, whose seed 1 all checkpoints have
        once, again = table[operator].iloc[-1], _values(raw, f"base.{operator}", GLUE_SCORE).loc[1]
        yield note("C.REL.SEEDNOISE.{operator}", operator=operator, once=once, again=again)
