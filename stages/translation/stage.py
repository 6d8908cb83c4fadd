"""Trains translation models, and models of two exact sequence tasks, with every operator, once for every seed.

Reads data/sentence_pairs. Trains by every protocol of `translation` that names the operator, and on both sequence
tasks where these name it. Writes data/observations/translation.csv: by epoch, the TensorFlow tutorial's accuracy over
all positions with its ceiling, and accuracy of real tokens and perplexity of held-out sentences; after the last epoch,
BLEU of greedy and of beam search; and the error on each sequence task. data/translations/OPERATOR.parquet holds every
translation. Given an operator, it does the jobs of this one alone and writes no outputs.
"""

from itertools import groupby, product
from pathlib import Path

import pandas as pd

from stages.encoder_decoder.run import TRANSLATION, TranslationRun
from stages.files.observations import Observation
from stages.files.paths import TRANSLATIONS
from stages.files.storage import temporary_sibling
from stages.runner import model_jobs
from stages.schema.settings import Settings

BY_EPOCH = ("training_loss", "training_accuracy", "accuracy_ceiling", "accuracy", "perplexity")
SEARCHES = ("greedy", "beam")
TASKS = ("recurrence", "copy")
SEQUENCES = "sequences"  # what observations name as the size of models on sequence tasks


def compute(run: TranslationRun, folder: Path) -> dict:
    """Job: trains and evaluates a model, with its checkpoint in `folder`; returns what `train` of its module does."""
    from stages.translation import loop, sequences  # these load torch, which is left to the worker

    return sequences.train(run) if run.task in TASKS else loop.train(run, folder)


def planned(settings: Settings, operators: tuple[str, ...]) -> list[TranslationRun]:
    """Plans one run for every operator, every protocol and sequence task that names it, and every seed of these."""
    section = settings.translation
    recipes = [(TRANSLATION, name, protocol) for name, protocol in section.protocols.items()]
    recipes += [(task, SEQUENCES, section.sequence_tasks) for task in TASKS]
    return [
        TranslationRun(operator=operator, task=task, size=size, seed=seed, training=recipe)
        for operator, (task, size, recipe) in product(operators, recipes)
        if operator in recipe.operators
        for seed in recipe.seeds
    ]


def rows(run: TranslationRun, result: dict) -> list[Observation]:
    """Makes observations of the result of a run, as `compute` returns it.

    The column pretraining_seed has the seed of the run; size and protocol both have the protocol's name, or SEQUENCES.
    """
    shared = {"stage": "translation", "operator": run.operator, "size": run.size, "task": run.task}
    shared |= {"protocol": run.size, "pretraining_seed": run.seed}
    if run.task in TASKS:
        return [Observation(metric="error", value=result["error"], **shared)]
    by_epoch = [
        Observation(
            condition=f"epoch={entry['epoch']}",
            metric=metric,
            value=entry[metric],
            n=entry["tokens"] if metric in ("accuracy", "perplexity") else None,  # both of held-out pairs
            **shared,
        )
        for entry in result["log"]
        for metric in BY_EPOCH
    ]
    scores = [
        Observation(metric=f"{name}_bleu", value=result[f"{name}_bleu"], n=len(result["greedy"]), **shared)
        for name in (*SEARCHES, "copy")
    ]
    return [*by_epoch, *scores]


def outputs(done: list[tuple[TranslationRun, Path, dict]]) -> tuple[list[Observation], dict]:
    """Writes the translations of every operator, by run, search and `example`, the number of the sentence from 0.

    done: every run, operator by operator, with the folder and the result of its job. Returns the results of all runs as
    observations; and for the record `sacrebleu`, the signatures that say how BLEU was computed.
    """
    translated = [(run, result) for run, _, result in done if run.task == TRANSLATION]
    with temporary_sibling(TRANSLATIONS) as output:
        output.mkdir()
        for name, of_operator in groupby(translated, key=lambda job: job[0].operator):
            frames = []
            for (run, result), search in product(of_operator, SEARCHES):
                columns = {"search": search, "example": range(len(result[search])), "translation": result[search]}
                frames.append(pd.DataFrame(columns | {"protocol": run.size, "seed": run.seed}))
            pd.concat(frames).to_parquet(output / f"{name}.parquet", index=False)
    signatures = {result["signature"] for _, result in translated}
    return [row for run, _, result in done for row in rows(run, result)], {"sacrebleu": sorted(signatures)}


def main(settings: Settings, operator: str | None = None) -> dict | None:
    """Does the jobs; returns the record of `outputs`, which goes into data/runs, or None given an operator."""
    plan = planned(settings, (operator,) if operator else settings.translation.operators)
    return model_jobs.run(compute, plan, "translation", settings.workers, outputs, whole=not operator)
