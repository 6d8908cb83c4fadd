"""The raw results that Courtois et al. released, against what they print: Table 3, Figures 2 and 3, the text.

Input: measurements of data/released/.
"""

from collections.abc import Iterator
from fractions import Fraction

import pandas as pd

from stages.evidence import estimate
from stages.evidence.arithmetic import HOLDS, SIZES, Finding, judge, note, numbers, whether
from stages.evidence.scores import COLUMNS

OPERATORS = ("original", "symmetric", "pairwise")
TABLE3 = "courtois2024_table3_glue"


def findings(released: pd.DataFrame) -> list[Finding]:
    """All checks. released: measurements of the released raw results."""
    return [*scores(released), *copied(released), *curves(released)]


def _values(raw: pd.DataFrame, size: str, operator: str, column: str, metric: str = "score") -> pd.Series:
    rows = raw[(raw["stage"] == "finetuning") & (raw["metric"] == metric) & (raw["evaluated_on"] == column)]
    return 100 * rows[(rows["size"] == size) & (rows["operator"] == operator)].set_index("finetuning_seed")["value"]


def scores(raw: pd.DataFrame) -> list[Finding]:
    """Table 3 from the released fine-tuning runs."""
    table, spread, found = numbers(TABLE3), numbers(TABLE3, "std"), []
    rows = [f"{size}.{operator}" for size in SIZES for operator in OPERATORS]
    values = {(row, c): _values(raw, *row.split("."), c) for row in rows for c in (*COLUMNS, "glue_score")}
    equal = sum(
        judge(table.text(*key), Fraction(runs.mean())) == HOLDS
        for key, runs in values.items()
        if key[1] != "glue_score"
    )
    found.append(
        whether(
            "C.REL.T3",
            "The released runs give every task cell of Table 3",
            equal == 54,
            f"{equal} of 54 to the last digit",
        )
    )
    both = [
        judge(table.text(row, "glue_score"), Fraction(values[row, "glue_score"].mean())) == HOLDS
        and judge(spread.text(row, "glue_score"), Fraction(values[row, "glue_score"].std())) == HOLDS
        for row in rows
    ]
    statement = "They give the six GLUE scores and their sample standard deviations"
    found.append(whether("C.REL.GLUE", statement, all(both), f"{sum(both)} of 6"))
    accuracy = {row: _values(raw, *row.split("."), "qqp", "raw_accuracy").mean() for row in rows}
    arithmetic = "; ".join(f"{row} {accuracy[row]:.2f} (printed {table.text(row, 'qqp')})" for row in rows)
    agree = all(judge(table.text(row, "qqp"), Fraction(accuracy[row])) == HOLDS for row in rows)
    found.append(
        whether(
            "C.REL.QQP", "Section 3.4: the qqp column is accuracy", agree, arithmetic + "; printed is the mean with F1"
        )
    )
    for size in SIZES:
        one, other = values[f"{size}.pairwise", "glue_score"], values[f"{size}.original", "glue_score"]
        apart, by_seed = (test(one.to_numpy(), other.to_numpy(), 0.95) for test in (estimate.welch, estimate.paired))
        arithmetic = f"{apart.value:+.2f}; Welch p = {apart.p:.3f}, paired by seed p = {by_seed.p:.3f}"
        found.append(
            note(f"C.REL.TTEST.{size}", f"Pairwise minus original over five fine-tuning seeds, {size}", arithmetic)
        )
        gains = {c: values[f"{size}.pairwise", c].mean() - values[f"{size}.original", c].mean() for c in COLUMNS}
        arithmetic = ", ".join(f"{column} {gain / 9:+.3f}" for column, gain in gains.items())
        found.append(note(f"C.REL.WHERE.{size}", f"Where the gain comes from, points of the mean, {size}", arithmetic))
        arithmetic = ", ".join(f"{operator} {values[f'{size}.{operator}', 'rte'].std():.2f}" for operator in OPERATORS)
        found.append(note(f"C.REL.RTE.{size}", f"Standard deviation of RTE over seeds, {size}", arithmetic))
    return found


def copied(raw: pd.DataFrame) -> Iterator[Finding]:
    """Whether the cells that Kowsher et al. copied from Table 3, and call accuracy, are the released accuracies."""
    table, cells = numbers(TABLE3), numbers("kowsher2024_arxiv_table1_glue")
    for task in ("mrpc", "qqp"):
        rows = [f"base.{operator}" for operator in OPERATORS]
        rows = [row for row in rows if table.text(row, task) == cells.text(row, task)]
        accuracy = {row: _values(raw, *row.split("."), task, "raw_accuracy").mean() for row in rows}
        shown = "; ".join(f"{row} {cells.text(row, task)}, accuracy alone {accuracy[row]:.2f}" for row in rows)
        yield whether(
            f"K.METRIC.{task}",
            f"Caption of Table 1: {task.upper()} is accuracy",
            all(judge(cells.text(row, task), Fraction(accuracy[row])) == HOLDS for row in rows),
            f"the copied cells are means with F1: {shown}",
        )


def curves(raw: pd.DataFrame) -> list[Finding]:
    """Figures 2 and 3 from the released losses and checkpoint scores."""

    def of(metric: str, size: str, operator: str, condition: str | None = None) -> float | None:
        rows = raw[(raw["metric"] == metric) & (raw["size"] == size) & (raw["operator"] == operator)]
        rows = rows if condition is None else rows[rows["condition"] == condition]
        return float(rows["value"].iloc[0]) if len(rows) else None

    late = {(size, operator): of("late_loss", size, operator) for size in SIZES for operator in OPERATORS}
    levels = ("5", "3", "2.5", "2", "1.8", "1.7")
    steps = {(o, level): of("steps_to_loss", "base", o, f"loss={level}") for o in OPERATORS for level in levels}
    saved = {level: 1 - steps["pairwise", level] / steps["original", level] for level in levels}
    gap = numbers("courtois2024_text_and_figure_numbers").text("base.symmetric", "final_eval_loss_gap")
    small = [of("steps_to_loss", "small", o, "loss=2.5") for o in ("original", "symmetric")]
    found = [
        note(
            "C.REL.HALF",
            "How many fewer steps pairwise takes to a loss, base",
            ", ".join(f"loss {level}: {100 * share:.0f} % fewer" for level, share in saved.items()),
        ),
        whether(
            "C.REL.FIG2.small",
            "Caption of Figure 2: symmetric converges faster, small",
            small[1] < small[0],
            f"loss 2.5 at step {small[1]:,.0f} against {small[0]:,.0f}",
        ),
        whether(
            "C.REL.FINAL.base",
            "Base: pairwise ends level with original, symmetric 0.1 above",
            judge(gap, Fraction(late["base", "symmetric"] - late["base", "original"])) == HOLDS
            and judge("0.0", Fraction(late["base", "pairwise"] - late["base", "original"])) == HOLDS,
            ", ".join(f"{o} {late['base', o]:.3f}" for o in OPERATORS) + " (means of the last ten evaluations)",
        ),
        whether(
            "C.REL.FINAL.small",
            "Section 5.2: pairwise ends lower overall, small",
            late["small", "pairwise"] < late["small", "original"],
            ", ".join(f"{o} {late['small', o]:.3f}" for o in OPERATORS),
        ),
        *_checkpoints(raw, of),
    ]
    for size in SIZES:
        for o in OPERATORS:
            reached = [f"{x} at {v:,.0f}" for x in levels if (v := of("steps_to_loss", size, o, f"loss={x}"))]
            found.append(
                note(f"C.REL.LOSS.{size}.{o}", f"First evaluation below a loss, {size} {o}", "; ".join(reached))
            )
    return found


def _checkpoints(raw: pd.DataFrame, of) -> list[Finding]:
    rows = raw[(raw["stage"] == "convergence") & (raw["metric"] == "score") & (raw["evaluated_on"] == "glue_score")]
    rows = rows.assign(step=rows["condition"].str.removeprefix("step=").astype(int), value=100 * rows["value"])
    table = rows.pivot(index="step", columns="operator", values="value").sort_index()
    text, found = numbers("courtois2024_text_and_figure_numbers"), []
    for operator in ("pairwise", "original"):
        said = text.text(f"base.{operator}", "steps_to_95pct")
        reached = of("steps_to_95_percent", "base", operator)
        around = table.index[table.index < reached].max(), table.index[table.index >= reached].min()
        arithmetic = (
            f"interpolated {reached:,.0f}, between the checkpoints {around[0]:,} and {around[1]:,}; said {int(said):,}"
        )
        statement = f"Section 4.3: base {operator} reaches 95 % of the final score"
        found.append(Finding(f"C.REL.95.{operator}", statement, judge(said, Fraction(reached)), arithmetic))
    behind = table[table["pairwise"] < table[["original", "symmetric"]].max(axis=1)]
    arithmetic = "not at steps " + ", ".join(f"{step:,}" for step in behind.index)
    found.append(whether("C.REL.CONSISTENT", "Section 5.3: pairwise is best throughout", behind.empty, arithmetic))
    drops = {operator: 100 * of("summed_drops", "base", operator) for operator in OPERATORS}
    arithmetic = "summed drops in points: " + ", ".join(f"{o} {v:.2f}" for o, v in drops.items())
    found.append(
        whether(
            "C.REL.SMOOTH",
            "Section 4.3: pairwise rises more smoothly",
            drops["pairwise"] < drops["original"],
            arithmetic,
        )
    )
    for operator in OPERATORS:
        once, again = table[operator].iloc[-1], _values(raw, "base", operator, "glue_score").loc[1]
        arithmetic = f"{once:.2f} in the checkpoint study, {again:.2f} in the main study"
        found.append(
            note(f"C.REL.SEEDNOISE.{operator}", f"One model and seed scored twice, base {operator}", arithmetic)
        )
    return found
