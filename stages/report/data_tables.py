"""The tables of the data in the report: the corpus and its filter, tokens, sentence pairs, tasks and what scores on
them without attention."""

from dataclasses import replace
from functools import partial

import pandas as pd

from stages.common.evidence.baselines import LABELS
from stages.common.evidence.scores import COLUMNS, GLUE_SCORE
from stages.report import names
from stages.report.tables import Grid, Heading, Value, number, plain, text

FATES = {
    "in": "read",
    "kept": "kept",
    "not_selected": "kept, but beyond the number asked for",
    "malformed": "malformed",
}
count = partial(number, decimals=0)


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
        "cut to them elsewhere. A training pair that is held out, too, is dropped.",
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


def baselines(rows: pd.DataFrame, protocol: str) -> Grid:
    """What each baseline scores in every column, and which of them is the best.

    Args:
        rows: scores of the baselines as fractions, as the analysis has them.
        protocol: the one whose columns are shown.
    """
    rows = rows[(rows["protocol"] == protocol) & rows["evaluated_on"].isin([*COLUMNS, GLUE_SCORE])]
    wide = rows.pivot(index="evaluated_on", columns="operator", values="value")
    wide = 100 * wide.reindex(columns=list(LABELS)).reindex([*COLUMNS, GLUE_SCORE]).dropna(how="all")
    shown = wide.apply(lambda scores: [_marked(score, scores.max()) for score in scores], axis=1, result_type="expand")
    shown = shown.set_axis(wide.columns, axis=1).assign(label=wide.index.map(names.task)) if len(wide) else wide
    columns = {"label": (Heading("Task"), str)} | {
        name: (Heading(label[0].upper() + label[1:]), lambda value: value) for name, label in LABELS.items()
    }
    notes = (
        "Fitted to the training examples of the models; scores as in the papers' GLUE tables, times 100. Best rule: "
        "one property, such as the number of shared words or an equal question word, and for each of its values the "
        "most frequent answer. Bag of words: TF-IDF of the words of both texts. Words and bigrams: of each text. Words "
        "and their overlap: the words of either text, which of them both have, which only one, and how many. These "
        "three are logistic regressions, or for STS-B ridge regressions.",
        "Not pre-trained: the original operator at the first size, fine-tuned by the same recipe from the weights that "
        "its pre-training starts from; the mean over seeds. The recipe was chosen for models that are pre-trained.",
    )
    title = "Baselines, by task"
    made = plain(shown, columns, name="baselines", title=title, stage="baselines", notes=notes)
    return replace(made, csv=wide.reset_index())


def _marked(score: float, best: float) -> Value:
    return Value(number(score, 1), "best" if score == best else "")


def _state(subset: bool, reduced: bool) -> str:
    if subset:
        return "sample of a subset of the original" if reduced else "subset of the original"
    return "sample" if reduced else "whole"
