"""The report's plain tables: comparisons, corpus, tokens, tasks and provenance."""

from dataclasses import replace
from functools import partial

import pandas as pd

from stages.common.evidence import specifications
from stages.common.evidence.statistics import DIFFERENT, EQUIVALENT, INCONCLUSIVE
from stages.report import names
from stages.report.tables import MISSING, Grid, Heading, Value, found, interval, number, plain, probability, text

FATES = {
    "in": "read",
    "kept": "kept",
    "not_selected": "kept, but beyond the number asked for",
    "malformed": "malformed",
}
TABLE = "courtois2024_table3_glue"
NO_VARIANCE = "no variance"
MARGINED = (EQUIVALENT, DIFFERENT, INCONCLUSIVE)  # verdicts that speak of a margin
count = partial(number, decimals=0)


def against_original(comparisons: pd.DataFrame, confidence: float, alpha: float) -> Grid:
    """GLUE columns by model, of the released results and of this run: difference in points and its interval.

    A star stands where p, adjusted for the columns, is below alpha.
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
                "after Holm: over the nine columns, and for the GLUE score over the operators. All p values, and the "
                "tests of equivalence, are in the CSV."
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
    star = "*" if row.p_holm < alpha else ""
    spread = f"({interval(row.low, row.high, 2)})" if pd.notna(row.low) else ""
    if pd.isna(row.low) and min(row.n, row.n_original) > 1:
        spread = f"({NO_VARIANCE})"
    detail = (
        f"p = {probability(row.p)}, adjusted {probability(row.p_holm)}; n = {row.n} against {row.n_original};"
        f" {row.verdict}"
        + (f" within {row.margin:g} points" if row.verdict in MARGINED else "")
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


def shares(ledger: pd.DataFrame) -> pd.DataFrame:
    """Per cent of documents that each reason drops first, as bars; columns as figures.draw takes them."""
    total = ledger[ledger["shard"] == "total"]
    dropped = total[(total["fate"] == "dropped") & (total["documents"] > 0)]
    dropped = dropped.sort_values(["documents", "rule", "reason"], ascending=[False, True, True])
    everything = total.loc[total["fate"] == "in", "documents"].sum()
    texts = dropped[["rule", "reason"]].fillna("").astype(str)  # a ledger without any drop has empty columns
    names = (texts["rule"] + ": " + texts["reason"]).str.replace("_", " ")
    frame = pd.DataFrame({"label": names, "value": 100 * dropped["documents"] / max(everything, 1)})
    return frame.assign(source="reproduced", quantity="dropped", operator="", size="")


def _units(frame: pd.DataFrame) -> list[str]:
    pairs = frame[["source", "n", "unit_of_inference"]].drop_duplicates().itertuples(index=False)
    sources = {"released": "Released", "reproduced": "This run"}
    return [f"{sources[pair.source]}: n = {pair.n} {pair.unit_of_inference} a side." for pair in pairs]


def corpus(ledger: pd.DataFrame) -> Grid:
    """What became of every document, by first reason; and how many documents each reason applies to."""
    total = ledger[ledger["shard"] == "total"]
    parts = [total[total["fate"] == fate] for fate in ("in", "kept", "not_selected", "malformed")]
    dropped = total[total["fate"] == "dropped"].sort_values(
        ["documents", "rule", "reason"], ascending=[False, True, True]
    )
    frame = pd.concat([*parts, dropped])
    frame = frame[(frame["documents"] > 0) | (frame["all_documents"] > 0)].drop(columns="shard")
    everything = frame.loc[frame["fate"] == "in", "documents"].sum()
    reasons = frame["rule"].fillna("") + " " + frame["reason"].fillna("")
    labels = [
        FATES.get(fate) or f"dropped: {reason.strip()}" for fate, reason in zip(frame["fate"], reasons, strict=True)
    ]
    shown = frame.assign(label=labels, share=100 * frame["documents"] / everything)
    columns = {
        "label": (Heading("Documents"), str),
        "documents": (Heading("Number", "a dropped document counts under its first reason"), count),
        "share": (Heading("Share, %"), partial(number, decimals=1)),
        "bytes": (Heading("Bytes", "of the lines, decompressed"), count),
        "all_documents": (
            Heading("Under this reason", "documents that the reason applies to, first or not"),
            count,
        ),
    }
    made = plain(shown, columns, name="corpus", title="The corpus and its filter", stage="filtering")
    return replace(made, csv=frame)


def tokens(index: dict) -> Grid:
    """Documents, tokens and sequences of both splits."""
    names = ["documents", "tokens", "sequences", "dropped_tokens"]
    frame = pd.DataFrame(
        [{"split": split, **{name: entry[name] for name in names}} for split, entry in index["splits"].items()]
    )
    columns = {"split": (Heading("Split"), str)}
    columns |= {name: (Heading(name.replace("_", " ").capitalize()), count) for name in names}
    note = f"Sequences of {index['sequence_length']} tokens; {count(index['vocabulary_size'])} word pieces."
    return plain(frame, columns, name="tokens", title="Tokens for pre-training", stage="tokenization", notes=(note,))


def sentence_pairs(ledger: pd.DataFrame) -> Grid:
    """What became of every sentence pair, a line a protocol of translation and split."""
    fates = ledger["fate"].where(ledger["reason"].isna(), ledger["fate"] + ": " + ledger["reason"].fillna(""))
    wide = (
        ledger.assign(fate=fates)
        .pivot_table("pairs", ["protocol", "split"], "fate", aggfunc="sum", sort=False)
        .reset_index()
    )
    met = [fate for fate in dict.fromkeys(fates) if wide[fate].fillna(0).any()]
    columns = {"protocol": (Heading("Protocol"), str), "split": (Heading("Split"), str)}
    columns |= {fate: (Heading(fate.replace("_", " ").capitalize()), count) for fate in met}
    notes = (
        "In = kept + dropped. A pair that is over-long, for the positions of params.yaml, is dropped in training and "
        "cut to them elsewhere.",
    )
    title = "Sentence pairs for translation"
    made = plain(wide, columns, name="sentence_pairs", title=title, stage="sentence_pairs", notes=notes)
    return replace(made, csv=ledger)


def tasks(statistics: pd.DataFrame) -> Grid:
    """Examples of every task and split; subsets of the original data, samples and what was left out are named."""
    frame = statistics.assign(
        label=statistics["task"].map(names.task) + ", " + statistics["split"].str.replace("_", " "),
        state=[_state(row.subset, row.reduced) for row in statistics.itertuples()],
        majority=100 * statistics["majority_share"].astype(float),
        reason=statistics["reason"].fillna(""),
    )
    columns = {
        "label": (Heading("Task"), str),
        "examples": (Heading("Examples"), count),
        "available": (Heading("Of available"), count),
        "dropped": (Heading("Left out"), count),
        "majority": (Heading("Most frequent label, %"), partial(number, decimals=1)),
        "state": (Heading("Data"), text),
        "source": (Heading("Source"), text),
        "reason": (Heading("Why left out"), text),
    }
    made = plain(frame, columns, name="tasks", title="GLUE tasks and questions", stage="tasks")
    return replace(made, csv=statistics)


def _state(subset: bool, reduced: bool) -> str:
    if subset:
        return "sample of a subset of the original" if reduced else "subset of the original"
    return "sample" if reduced else "whole"


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
