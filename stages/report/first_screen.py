"""The first screen: what is known of every operator, as verdicts with their numbers, and a few sentences.

The layout is reports/templates/sections.yaml. `settings` are those of the run (`Settings`).
"""

from dataclasses import dataclass, field, replace

import pandas as pd

from stages.benchmarks.glue import TASK_OF
from stages.evidence.arithmetic import FAILS
from stages.evidence.cells import PAPER_SIZES
from stages.evidence.scores import COLUMNS, GLUE_SCORE
from stages.evidence.statistics import ONE_CHECKPOINT, TOO_FEW
from stages.files.observations import NOT_PRETRAINED
from stages.report import frames, inputs, names
from stages.report.inputs import select
from stages.report.words import content, sentence
from stages.schema.settings import REFERENCE

BIGGEST = PAPER_SIZES[-1]  # base
RELEASED, THIS_RUN, STUDY = "released", "this run", "own study"


@dataclass(frozen=True)
class Entry:
    """One verdict of a cell. source: who found it, `counted` or one of the constants above. words: the verdict.

    tone: good or bad for the operator, open (decides nothing) or none (judges nothing). number: behind it, with its
    interval, or "". place: the table or figure that shows it. facts: what the templates of the entry may name.
    """

    source: str
    words: str
    tone: str
    number: str
    place: str
    facts: dict = field(default_factory=dict)


def entry(quantity: str, finding: str, source: str, place: str, facts: dict) -> Entry:
    """Makes a verdict in the words that sentences.yaml has for a finding.

    Args:
        quantity, finding: keys of sentences.yaml; a finding that is none stands for itself and decides nothing.
        source, place, facts: the fields of Entry.
    """
    words, tone = content("sentences")["verdicts"][quantity].get(finding, (finding, "open"))
    return Entry(source, words, tone, sentence(f"{quantity}_number", **facts), place, facts)


def matrix(settings, summaries: pd.DataFrame) -> list[dict]:
    """Gathers what is known of every operator that the layout describes, then of others compared with the original.

    Returns a dict per operator: `operator` (its name for readers), `does` (a few words, or "") and `cells`: column of
    the layout's matrix -> entries, most about the last size of the run. summaries: as `inputs.summaries` reads them.
    """
    compared, studies, size = inputs.contrasts(), inputs.studies(), settings.sizes[-1]
    losses = select(compared, quantity="loss", source="reproduced", size=size)
    steps = select(inputs.read("milestones"), source=RELEASED, milestone="plateau_end_step", size=BIGGEST)
    elsewhere = select(frames.transfer(inputs.read("transfer")), metric="elsewhere", size=size)
    matrices = f"transfer_matrices-{settings.protocols[0]}-{size}"  # the means are over all protocols: the first stands
    speeds = inputs.read("speed")  # `stock` names the precision of a stock BERT, which is no operator of ours
    speeds = select(speeds[speeds["stock"].isna()], metric="tokens_per_second", size=size)
    described = content("sections")["operators"]
    return [
        {
            "operator": names.operator(operator),
            "does": described.get(operator, ""),
            "cells": {
                "saved": _saved(operator, settings, summaries),
                "score": _score(operator, size, compared, summaries) + _studied(operator, "score", studies),
                "loss": [
                    *_beside_original("plateau", operator, steps, RELEASED, "milestones"),
                    *_compared(select(losses, arm=operator), THIS_RUN, "loss_differences"),
                    *_studied(operator, "learns", studies),
                ],
                "noise": _noise(select(compared, quantity="lost_noise", arm=operator, size=size)),
                "transfer": _beside_original("transfer", operator, elsewhere, THIS_RUN, matrices),
                "time": _beside_original("time", operator, speeds, THIS_RUN, "training_speed"),
            },
        }
        for operator in dict.fromkeys([*described, *compared["arm"]])
    ]


def one_a_source(entries: list[Entry]) -> list[Entry]:
    """Merges the entries of each source into its first: appends their numbers, after the verdict where it changes."""
    shown, words = {}, {}  # of each source its entry, and the verdict of the last number in it
    for other in entries:
        first = shown.setdefault(other.source, other)
        if first is not other:
            number = other.number if other.words == words[other.source] else f"{other.words} {other.number}"
            shown[other.source] = replace(first, number=f"{first.number}; {number}")
        words[other.source] = other.words
    return list(shown.values())


def answer(column: str, rows: list[dict]) -> str:
    """Says in sentences what a column of `matrix` (a key of `cells`) shows; rows: what `matrix` returns."""
    sources: dict[str, dict[str, list[Entry]]] = {}
    for row in rows:
        for shown in row["cells"][column]:
            sources.setdefault(shown.source, {}).setdefault(row["operator"], []).append(shown)
    sources.pop(STUDY, None)  # this repository's own studies have a section of their own
    if not sources:
        return sentence("nothing_measured")
    return sentence(f"{column}_answer", sources=sources, phrases=content("sentences")["phrases"])


def _saved(operator: str, settings, summaries: pd.DataFrame) -> list[Entry]:
    """The share of the parameters saved: of BERT-base, or else of this run's first size for which it is counted."""
    for size in (BIGGEST, *settings.sizes):
        if (share := saving(summaries, operator, size)) is not None:
            finding, facts = "some" if share > 0 else "none", {"saved": share, "size": size}
            return [entry("saved", finding, "counted", "courtois2024_table2_model_parameters", facts)]
    return []


def saving(summaries: pd.DataFrame, operator: str, size: str) -> float | None:
    """Looks up the per cent of a masked-language model's parameters that an operator saves; None where not counted.

    Args:
        summaries: of this run's counts, as `inputs.summaries` reads them.
        operator, size: the keys of the model.
    """
    shares = select(summaries, metric="saved_percent", operator=operator, size=size)["mean"]
    return float(shares.iloc[0]) if len(shares) else None


def _score(operator: str, size: str, compared: pd.DataFrame, summaries: pd.DataFrame) -> list[Entry]:
    """Differences in GLUE score: released results, BERT-base first, then this run at `size`; or why there is none."""
    rows = select(compared, quantity="score", arm=operator, at=GLUE_SCORE)
    released = select(rows, source=RELEASED).sort_values("size", key=lambda sizes: sizes != BIGGEST, kind="stable")
    trained = select(rows, source="reproduced", size=size)
    entries = [*_compared(released, RELEASED, "against_original"), *_compared(trained, THIS_RUN, "against_original")]
    if released.empty and operator in content("sections")["operators"]:
        entries.insert(0, Entry(RELEASED, "no raw results", "open", "", "against_original"))
    if trained.empty and len(select(summaries, stage="finetuning", operator=operator)):
        entries.append(Entry(THIS_RUN, "not fine-tuned on every task", "open", "", "courtois2024_table3_glue"))
    return entries


def _noise(compared: pd.DataFrame) -> list[Entry]:
    """Judges, in one entry if any, how much more score noise on the embeddings costs an operator than the original.

    compared: of `inputs.contrasts`, in points, a row for each split (MNLI's two count as one task) and protocol. The
    verdict is the direction of all rows that show one, or `mixed` where they show both.
    """
    if compared.empty:
        return []
    findings = pd.Series([inputs.finding(row) for row in compared.to_dict("records")], compared.index)
    if (findings == TOO_FEW).any():  # all rows have equally many seeds
        return [Entry(THIS_RUN, TOO_FEW, "open", "", "noise_lost")]
    tasks, lost = compared["at"].map(TASK_OF), compared["estimate"]
    shown = findings.isin([inputs.HIGHER, inputs.LOWER])
    directions = findings[shown].unique()
    finding = (directions[0] if len(directions) == 1 else "mixed") if len(directions) else inputs.UNDECIDED
    facts = {"shown": tasks[shown].nunique(), "tasks": tasks.nunique(), "least": lost.min(), "most": lost.max()}
    return [entry("noise", finding, THIS_RUN, "noise_lost", facts)]


def _beside_original(quantity: str, operator: str, rows: pd.DataFrame, source: str, place: str) -> list[Entry]:
    """The mean over an operator's `rows`, next to the original's and without a test; no entry unless both are there."""
    means = rows.groupby("operator")["mean"].mean()
    if not {operator, "original"} <= {*means.index}:
        return []
    return [entry(quantity, "measured", source, place, {"value": means[operator], "original": means["original"]})]


def _studied(operator: str, question: str, studies: pd.DataFrame) -> list[Entry]:
    """What `inputs.studies` found of an operator on a question (`learns`: of the plateau; `score`), an entry each."""
    rows = select(studies, operator=operator, question=question).to_dict("records")
    return [entry("study", row["verdict"], STUDY, "studies", row) for row in rows]


def _compared(rows: pd.DataFrame, source: str, place: str) -> list[Entry]:
    """An entry for each comparison in `rows`, which are of `inputs.contrasts`."""
    return [entry(row["quantity"], inputs.finding(row), source, place, row) for row in rows.to_dict("records")]


def sentences(settings, summaries: pd.DataFrame, checks: pd.DataFrame) -> list[dict]:
    """Composes at most six sentences: what was run, what it cannot decide, and what the audit finds.

    Args:
        settings, summaries, checks: of the run, and as `inputs.summaries` and `inputs.audited` read them.

    Returns:
        Dicts with `text`, not empty, and `check`: the check of the audit that it is about, or an empty text. Of the
        checks that the layout lists by weight, the first three that fail are named.
    """
    facts = of_run(settings, summaries)
    texts = [sentence(name, **facts) for name in ("description", "cannot", "floor")]
    arithmetic = select(checks, verdict=FAILS).set_index("check")["arithmetic"]
    failing = [item for item in content("sections")["findings"] if item["check"] in arithmetic.index]
    return [{"text": text, "check": ""} for text in texts if text] + [
        item | {"text": f"{item['says'].rstrip('.')} ({names.prose(arithmetic[item['check']])})."}
        for item in failing[:3]
    ]


def of_run(settings, summaries: pd.DataFrame) -> dict[str, object]:
    """Gathers the facts of a run that its sentences name; None for a score that there is not."""
    scores = select(summaries, metric="score", stage="finetuning", size=settings.sizes, operator=settings.operators)
    averages, columns = select(scores, evaluated_on=GLUE_SCORE), select(scores, evaluated_on=COLUMNS)
    judged = averages if len(averages) else columns
    chance = columns.groupby("evaluated_on", sort=False)["at_chance"].agg(lambda marks: bool(marks.eq(True).all()))
    words = averages["words_and_overlap"].dropna()  # a baseline's GLUE scores, fractions; `beaten` if above all models
    protocol = settings.protocols[0]  # and the first size: those of the baseline that is not pre-trained
    first = {"size": settings.sizes[0], "protocol": protocol}
    reference = select(averages, operator=REFERENCE, **first)["mean"]
    untrained = inputs.baseline_scores(NOT_PRETRAINED, "score", protocol)  # in per cent, by column
    trained = (100 * select(columns, operator=REFERENCE, **first).set_index("evaluated_on")["mean"]).to_dict()
    both = [column for column in COLUMNS if column in trained and column in untrained]
    means = (100 * select(averages, **first).set_index("operator")["mean"]).to_dict()
    floor = untrained.get(GLUE_SCORE)
    return {
        "settings": settings,
        "data": settings.report.data or content("sentences")["sources"][settings.data.source],  # of texts and tasks
        "generated": settings.data.generated,  # whether this repository made these
        "tuned": len(scores) > 0,  # whether there are scores of fine-tuned models
        "strange": [f"BERT-{size}" for size in settings.sizes if size not in PAPER_SIZES],  # in no paper
        "scores": len(judged),  # GLUE scores, or else scores of single columns
        "averaged": len(averages) > 0,  # whether there are GLUE scores
        "at_chance": int(judged["at_chance"].eq(True).sum()),  # how many of `scores` are
        "chance_unknown": int(judged["at_chance"].isna().sum()),  # of how many it is not known
        "chance_tasks": [column for column in COLUMNS if chance.get(column, False)],  # where all scores are at chance
        "untrained": floor,  # GLUE score of the original without pre-training, in per cent
        "columns": len(both),  # on which the original was tested with and without pre-training
        "lowered": sum(trained[column] < untrained[column] for column in both),  # of these: lower with it
        "below_untrained": {name: score for name, score in means.items() if floor and score < floor},
        "pretrained": 100 * reference.iloc[0] if len(reference) else None,  # GLUE score of the original, in per cent
        "beaten": words.iloc[0] if len(words) and (averages.loc[words.index, "mean"] < words).all() else None,
    }


def differing() -> dict[str, object]:
    """Lists the models whose GLUE score differs from the original's: source -> HIGHER or LOWER -> names."""
    rows = inputs.contrasts(quantity="score", at=GLUE_SCORE)
    models = {source: {inputs.HIGHER: [], inputs.LOWER: []} for source in ("reproduced", RELEASED)}
    for row in rows.to_dict("records"):  # a model with any other finding goes into a list that is thrown away
        models[row["source"]].get(inputs.finding(row), []).append(names.model(row["size"], row["arm"]))
    judged = (rows["source"] == "reproduced") & ~rows["verdict"].isin([ONE_CHECKPOINT, TOO_FEW])
    return models | {"tested": int(judged.sum())}  # comparisons of this run with enough seeds for a verdict


def questions(cells: pd.DataFrame) -> dict[str, list[tuple[str, float]]]:
    """Selects this run's mean F1 (%) on SQuAD 1.1 and 2.0: condition -> pairs (model, F1).

    cells: of analysis. condition: `single`, `triviaqa` (fine-tuned on it first) or, for constant answers, "".
    """
    rows = select(cells, table="kowsher2025_naacl_table2_squad", column_key="avg_f1")
    scores: dict[str, list[tuple[str, float]]] = {}
    for row in rows[rows["reproduced"].notna()].itertuples():
        model, _, condition = row.row.partition(", ")  # `MODEL, CONDITION`; before `label`, as some names have a comma
        scores.setdefault(condition, []).append((names.label(model), row.reproduced))
    return scores
