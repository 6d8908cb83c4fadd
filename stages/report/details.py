"""The report's tables of comparisons with the original operator, of margins and of provenance."""

from dataclasses import replace
from functools import partial

import pandas as pd

from stages.common.evidence import specifications
from stages.common.evidence.baselines import AT_CHANCE
from stages.common.evidence.statistics import EQUIVALENT, TOO_FEW
from stages.report import names
from stages.report.tables import MISSING, Grid, Heading, Value, found, interval, number, plain, probability, text

TABLE = "courtois2024_table3_glue"
NO_VARIANCE = "no variance"
count = partial(number, decimals=0)


def against_original(comparisons: pd.DataFrame, confidence: float, alpha: float) -> Grid:
    """GLUE columns by model, of the released results and of this run: difference in points and its interval.

    A star stands where p, adjusted for the columns, is below alpha, but not for too few seeds or scores at chance.
    """
    several = comparisons["protocol"].nunique() > 1
    columns = {"column": (Heading("Column"), str)}
    rows = {column.key: {"column": column.label} for column in specifications.load()[0][TABLE].columns}
    order = comparisons.sort_values("source", key=lambda sources: sources != "released", kind="stable")
    models = list(order.groupby(["source", "protocol", "size", "operator"], sort=False))
    for place, ((source, protocol, size, operator), family) in enumerate(models):
        where = "released" if source == "released" else "this run"
        where += f", {names.protocol(protocol)}" if several and source != "released" else ""
        columns[str(place)] = (Heading(names.model(size, operator), where), _value)
        for row in family.itertuples():
            rows[row.column][str(place)] = _difference(row, alpha)
    made = plain(
        pd.DataFrame(rows.values(), columns=list(columns)),
        columns,
        name="against_original",
        title="GLUE scores: differences to the original operator",
        stage="analysis",
        notes=(
            (
                f"Points (100 × the score), with Welch's {confidence:.0%} interval. * marks p below {alpha}, "
                "after Holm: over the nine columns, and for the GLUE score over the operators; none stands where "
                "seeds are too few or scores at chance. All p values, and the tests of equivalence, are in the CSV."
            ),
            *_no_variance(comparisons),
            *_units(comparisons),
        ),
    )
    return replace(made, csv=comparisons)


def loss_differences(losses: pd.DataFrame, confidence: float, alpha: float) -> Grid:
    """The final validation loss of every operator against `original`, its verdict, and what would have been found."""
    shown = losses.assign(
        label=[names.model(row.size_, row.operator) for row in losses.rename(columns={"size": "size_"}).itertuples()],
        effect=[
            Value(number(row.difference, 3), f"({interval(row.low, row.high, 3)})" if pd.notna(row.low) else "")
            for row in losses.itertuples()
        ],
    )
    columns = {
        "label": (Heading("Model"), str),
        "effect": (Heading("Against original", "nats, with interval"), lambda value: value),
        "p_holm": (Heading("p", "after Holm over the operators"), probability),
        "verdict": (Heading("Verdict"), text),
        "detectable": (Heading("Detectable", "nats, with 80 % power"), partial(number, decimals=3)),
        "n": (Heading("Seeds", "of pre-training"), count),
    }
    notes = (
        f"Welch's {confidence:.0%} intervals over pre-training seeds; verdicts at {alpha:g}, with the margin of the "
        "appendix. Intervals are not adjusted for several operators. Detectable: the difference that so many seeds "
        "with this spread would show in 80 % of such runs, before Holm.",
    )
    made = plain(
        shown,
        columns,
        name="loss_differences",
        title="Final validation loss of this run: every operator against original",
        stage="analysis",
        notes=notes,
    )
    return replace(made, csv=losses)


def _value(value: object) -> Value:
    return value if isinstance(value, Value) else Value(MISSING)


def _difference(row, alpha: float) -> Value:
    star = "*" if row.p_holm < alpha and row.verdict not in (TOO_FEW, AT_CHANCE) else ""
    spread = f"({interval(row.low, row.high, 2)})" if pd.notna(row.low) else ""
    if pd.isna(row.low) and min(row.n, row.n_original) > 1:
        spread = f"({NO_VARIANCE})"
    detail = (
        f"p = {probability(row.p)}, adjusted {probability(row.p_holm)}; n = {row.n} against {row.n_original};"
        f" {row.verdict}"
        + (f" within {row.margin:g} points" if row.verdict == EQUIVALENT else "")
        + (f"; {found(row.detectable)}" if row.detectable > 0 else "")
    )
    return Value(number(row.difference, 2) + star, spread, detail)


def _no_variance(frame: pd.DataFrame) -> list[str]:
    none = frame["low"].isna() & (frame[["n", "n_original"]].min(axis=1) > 1)
    said = (
        f"{NO_VARIANCE.capitalize()}: all runs of one side score the same, which leaves no interval; where the sides "
        "lie apart, p is that of an exact permutation test."
    )
    return [said] if none.any() else []


def _units(frame: pd.DataFrame) -> list[str]:
    pairs = frame[["source", "n", "unit_of_inference"]].drop_duplicates().itertuples(index=False)
    sources = {"released": "Released", "reproduced": "This run"}
    return [f"{sources[pair.source]}: n = {pair.n} {pair.unit_of_inference} a side." for pair in pairs]


def margins(values: dict[str, float]) -> Grid:
    """What counts as equivalent."""
    frame = pd.DataFrame({"quantity": list(map(names.task, values)), "margin": list(values.values())})
    columns = {
        "quantity": (Heading("Quantity"), str),
        "margin": (Heading("Margin", "points; nats for the loss"), partial(number, decimals=2)),
    }
    note = "Set in params.yaml before the run, with their sources beside them."
    return plain(frame, columns, name="margins", title="Margins of equivalence", stage="analysis", notes=(note,))


def environment(facts: pd.DataFrame) -> Grid:
    """Commit, lock, versions and machine."""
    columns = {"fact": (Heading("What"), str), "value": (Heading("Value"), text)}
    return plain(facts, columns, name="environment", title="What it ran on", stage="report")


def stages(runs: list[dict]) -> Grid:
    """Duration and start of every stage instance, and how long its training jobs took."""
    names = ["stage", "seconds", "seconds_of_jobs", "started"]
    frame = pd.DataFrame([{name: run.get(name) for name in names} for run in runs], columns=names)
    frame = frame.astype({"seconds": float, "seconds_of_jobs": float})
    columns = {
        "stage": (Heading("Stage"), str),
        "seconds": (Heading("Seconds"), partial(number, decimals=1)),
        "seconds_of_jobs": (
            Heading("Of its training", "seconds, one job after the other"),
            partial(number, decimals=1),
        ),
        "started": (Heading("Started"), text),
    }
    note = (
        f"{number(frame['seconds'].sum(), 0)} seconds in all. Jobs run side by side; a stage that was run again and "
        "found its jobs done takes next to none, and its training is told all the same."
    )
    return plain(frame, columns, name="stages", title="Time of each stage", stage="report", notes=(note,))
