"""The first screen: what is known of every operator, one verdict a cell with its number, and a few sentences."""

from dataclasses import dataclass, replace

import pandas as pd

from stages.evidence.arithmetic import FAILS
from stages.evidence.cells import PAPER_SIZES
from stages.evidence.scores import COLUMNS, GLUE_SCORE
from stages.evidence.statistics import FEWEST, TOO_FEW
from stages.report import contrasts, frames, inputs, names
from stages.report.tables import number
from stages.report.words import content, sentence

BIGGEST = PAPER_SIZES[-1]
RELEASED, THIS_RUN, STUDY = "released", "this run", "own study"
FINDINGS = 3  # of the audit, that the first screen names
TONES = ("good", "bad")
SQUAD = "kowsher2025_naacl_table2_squad"


@dataclass(frozen=True)
class Entry:
    """One verdict of a cell. source: who found it; number: with its interval; place: the table or figure that shows it.

    tone: good, bad, open (nothing is decided) or none (nothing is judged).
    """

    source: str
    words: str
    number: str
    place: str
    tone: str = "none"


def matrix(settings, compared: pd.DataFrame, summaries: pd.DataFrame, studies: pd.DataFrame) -> list[dict]:
    """What is known of every operator: those that the layout describes, then further ones of this run.

    Args:
        settings: of the run.
        compared: every comparison with the original operator, as `contrasts.frame` gives them.
        summaries: of this run's counts and scores.
        studies: what this repository's own studies found.

    Returns:
        A dict an operator: `operator`, `does` (a few words, or nothing) and `cells`, in the order of the layout's
        columns, each with its entries.
    """
    described = content("sections")["operators"]
    own = [name for name in dict.fromkeys(compared["arm"]) if name not in described]
    return [
        {
            "operator": names.operator(operator),
            "does": described.get(operator, ""),
            "cells": [
                saved(operator, settings, summaries),
                score(operator, settings, compared, summaries) + studied(operator, "score", studies),
                loss(operator, settings, compared) + studied(operator, "learns", studies),
                noise(operator, settings, compared),
                transfer(operator, settings),
                time(operator, settings),
            ],
        }
        for operator in (*described, *own)
    ]


def saved(operator: str, settings, summaries: pd.DataFrame) -> list[Entry]:
    """The share of a model's parameters that goes: of BERT-base, or of this run's where that is not counted."""
    for size in (BIGGEST, *settings.sizes):
        if (share := saving(summaries, operator, size)) is not None:
            words = "saves parameters" if share > 0 else "saves none"
            number = sentence("saved_number", saved=share, size=size)
            return [Entry("counted", words, number, "courtois2024_table2_model_parameters")]
    return []


def saving(summaries: pd.DataFrame, operator: str, size: str) -> float | None:
    """The share of a masked-language model's parameters that an operator saves, in per cent; None if not counted."""
    rows = summaries[(summaries["metric"] == "saved_percent") & (summaries["operator"] == operator)]
    found = rows.loc[rows["size"] == size, "mean"]
    return float(found.iloc[0]) if len(found) else None


def score(operator: str, settings, compared: pd.DataFrame, summaries: pd.DataFrame) -> list[Entry]:
    """The difference in GLUE score, of the released results by size and of this run's biggest models."""
    rows = contrasts.select(compared, quantity="score", arm=operator, at=GLUE_SCORE)
    released = sorted((row for row in rows if row["source"] == RELEASED), key=lambda row: row["size"] != BIGGEST)
    entries = _as_one([_judged(row, RELEASED, "against_original") for row in released])
    if not released and operator in content("sections")["operators"]:
        entries.append(Entry(RELEASED, "has no raw results", "", "against_original", "open"))
    own = [row for row in rows if row["source"] == "reproduced" and row["size"] == settings.sizes[-1]]
    entries += [_judged(row, THIS_RUN, "against_original") for row in own]
    scores = summaries[(summaries["stage"] == "finetuning") & (summaries["operator"] == operator)]
    if not own and len(scores):
        entries.append(Entry(THIS_RUN, "not fine-tuned on every task", "", "courtois2024_table3_glue", "open"))
    return entries


def loss(operator: str, settings, compared: pd.DataFrame) -> list[Entry]:
    """How soon the released run leaves the plateau, and the final validation loss of this run."""
    rows = contrasts.select(compared, quantity="loss", source="reproduced", arm=operator, size=settings.sizes[-1])
    entries = [_judged(row, THIS_RUN, "loss_differences") for row in rows]
    steps = inputs.read("milestones")
    steps = steps[
        (steps["source"] == RELEASED) & (steps["milestone"] == "plateau_end_step") & (steps["size"] == BIGGEST)
    ]
    steps = steps.set_index("operator")["mean"]
    if operator in steps.index:
        number = sentence("released_start", own=steps[operator], original=steps["original"])
        entries.insert(0, Entry(RELEASED, "leaves the plateau, one run", number, "milestones", "open"))
    return entries


def noise(operator: str, settings, compared: pd.DataFrame) -> list[Entry]:
    """What noise on the embeddings takes more than from original, over all tasks that were tested."""
    rows = contrasts.select(compared, quantity="lost_noise", arm=operator, size=settings.sizes[-1])
    if not rows:
        return []
    found = [contrasts.finding(row) for row in rows]
    if found[0] == TOO_FEW:
        return [Entry(THIS_RUN, TOO_FEW, "", "noise_lost", "open")]
    shown = [name for name in found if name in (contrasts.HIGHER, contrasts.LOWER)]
    finding = (shown[0] if len(set(shown)) == 1 else "mixed") if shown else contrasts.UNDECIDED
    estimates = [row["estimate"] for row in rows]
    number = sentence("noise_number", shown=len(shown), tasks=len(rows), least=min(estimates), most=max(estimates))
    return [_entry("noise", finding, THIS_RUN, number, "noise_lost")]


def transfer(operator: str, settings) -> list[Entry]:
    """Balanced accuracy on tasks that a model was not trained on; no test is made of it."""
    rows = frames.transfer(inputs.read("transfer"))
    rows = rows[(rows["metric"] == "elsewhere") & (rows["size"] == settings.sizes[-1])]
    means = rows.groupby("operator")["mean"].mean()
    if operator not in means.index:
        return []
    number = sentence("transfer_number", own=means[operator], original=means["original"])
    return [Entry(THIS_RUN, "measured, not tested", number, "transfer_matrices", "open")]


def time(operator: str, settings) -> list[Entry]:
    """Tokens a second of pre-training beside original's; no test is made of it."""
    rows = inputs.read("speed")
    rows = rows[(rows["metric"] == "tokens_per_second") & rows["stock"].isna() & (rows["size"] == settings.sizes[-1])]
    means = rows.set_index("operator")["mean"]
    if operator not in means.index or "original" not in means.index:
        return []
    number = sentence("time_number", change=100 * (means[operator] / means["original"] - 1))
    return [Entry(THIS_RUN, "measured, not tested", number, "training_speed", "open")]


def studied(operator: str, question: str, studies: pd.DataFrame) -> list[Entry]:
    """What this repository's own studies found, whatever was run here."""
    rows = studies[(studies["operator"] == operator) & (studies["question"] == question)]
    return _as_one(
        [
            Entry(STUDY, row["what"], sentence("study_number", **row), "studies", _tone(question, row["verdict"]))
            for row in rows.to_dict("records")
        ]
    )


def _as_one(entries: list[Entry]) -> list[Entry]:
    """The first of several entries of one source, with the others behind its number."""
    if not entries:
        return []
    first, *others = entries
    return [replace(first, number="; ".join([first.number, *(f"{entry.words} {entry.number}" for entry in others)]))]


def _judged(row: dict, source: str, place: str) -> Entry:
    quantity = row["quantity"]
    return _entry(quantity, contrasts.finding(row), source, sentence(f"{quantity}_number", **row), place)


def _entry(quantity: str, finding: str, source: str, number: str, place: str) -> Entry:
    words = content("sentences")["verdicts"][quantity].get(finding, finding)
    return Entry(source, words, number, place, _tone(quantity, finding))


def _tone(quantity: str, finding: str) -> str:
    """Whether a finding speaks for the operator or against it; open where nothing is decided."""
    return next((tone for tone in TONES if content("sentences")[tone][quantity] == finding), "open")


def sentences(settings, summaries: pd.DataFrame, checks: pd.DataFrame) -> list[dict]:
    """At most six sentences: what was run, what it cannot tell, and what the audit finds, each with its links."""
    facts = of_run(settings, summaries)
    told = [sentence(name, **facts) for name in ("description", "cannot", "floor")]
    return [{"text": text, "links": []} for text in told if text] + findings(content("sections")["findings"], checks)


def findings(listed: list[dict], checks: pd.DataFrame) -> list[dict]:
    """The first of the listed checks that fail, in words and with their arithmetic, each linked to its place.

    Args:
        listed: by weight; `check`, and `says`: what it means when that check fails.
        checks: the audit.
    """
    found = checks[checks["verdict"] == FAILS].set_index("check")["arithmetic"]
    failing = [entry for entry in listed if entry["check"] in found.index][:FINDINGS]
    return [
        {
            "text": f"{entry['says'].rstrip('.')} ({names.prose(found[entry['check']])}).",
            "links": [(f"audit, {entry['check']}", f"audit.html#{entry['check']}")],
        }
        for entry in failing
    ]


def of_run(settings, summaries: pd.DataFrame) -> dict[str, object]:
    """The facts of a run that its sentences name."""
    scores = scored(settings, summaries)
    whole = scores[scores["evaluated_on"] == GLUE_SCORE]
    columns = scores[scores["evaluated_on"].isin(COLUMNS)]
    read = whole if len(whole) else columns
    chance = columns.groupby("evaluated_on", sort=False)["at_chance"].agg(lambda marks: bool(marks.eq(True).all()))
    words = whole["words_and_overlap"].dropna()
    return {
        "scale": settings.scale,
        "shapes": {size: settings.models[size] for size in settings.sizes},
        "data": settings.report.data or content("sentences")["sources"][settings.data.source],
        "generated": settings.data.source == "embedded",
        "operators": settings.operators,
        "tuned": len(scores) > 0,
        "epochs": settings.pretraining.epochs if settings.pretraining.steps is None else 0,
        "steps": settings.pretraining.steps,
        "batch_size": settings.pretraining.batch_size,
        "sequence_length": settings.tokenization.sequence_length,
        "pretraining_seeds": len(settings.pretraining.seeds),
        "finetuning_seeds": {name: len(settings.finetuning[name].seeds) for name in settings.protocols},
        "tasks": settings.tasks.names,
        "examples": settings.tasks.train_examples,
        "fewest": FEWEST,
        "strange": [f"BERT-{size}" for size in settings.sizes if size not in PAPER_SIZES],
        "scores": len(read),
        "whole": len(whole) > 0,
        "at_chance": None if read["at_chance"].isna().all() else int(read["at_chance"].eq(True).sum()),
        "chance_tasks": [column for column in COLUMNS if chance.get(column, False)],
        "beaten": words.iloc[0] if len(words) and (whole.loc[words.index, "mean"] < words).all() else None,
    }


def scored(settings, summaries: pd.DataFrame) -> pd.DataFrame:
    """The scores of this run's fine-tuned models, a row for every operator, size, protocol and column."""
    rows = summaries[(summaries["metric"] == "score") & (summaries["stage"] == "finetuning")]
    rows = rows[rows["size"].isin(settings.sizes) & rows["operator"].isin(settings.operators)]
    return rows.reindex(columns=list(dict.fromkeys([*rows.columns, "at_chance", "words_and_overlap"])))


def differing(compared: pd.DataFrame) -> dict[str, object]:
    """Which operators' GLUE scores differ from the original's: of this run, and of the released checkpoints."""
    told = {"shown": [], "released": [], "tested": len(contrasts.judged(compared))}
    for row in contrasts.select(compared, quantity="score", at=GLUE_SCORE):
        if (finding := contrasts.finding(row)) in (contrasts.HIGHER, contrasts.LOWER):
            words = content("sentences")["verdicts"]["score"][finding]
            place = "released" if row["source"] == RELEASED else "shown"
            told[place].append(f"{names.model(row['size'], row['arm'])} {words}")
    return told


def questions(cells: pd.DataFrame) -> list[str]:
    """The mean F1 of question answering of every model of this run, in words."""
    rows = cells[(cells["table"] == SQUAD) & (cells["column_key"] == "avg_f1") & cells["reproduced"].notna()]
    return [f"{names.label(row.row)} {number(row.reproduced, 1)}" for row in rows.itertuples()]


def bleu(translation: pd.DataFrame) -> list[str]:
    """The BLEU of every operator of this run by protocol, in words."""
    rows = translation[translation["metric"] == "beam_bleu"]
    return [f"{names.operator(row.operator)} ({row.protocol}) {number(row.mean, 1)}" for row in rows.itertuples()]
