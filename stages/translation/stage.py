"""Stage `translation`: trains translation models and models of two exact sequence tasks, per operator and seed.

Reads data/sentence_pairs. Trains by every protocol of `translation` that names the operator, and on both sequence tasks
if these name the operator. Writes:

- data/observations/translation.csv: by epoch, the TensorFlow tutorial's accuracy over all positions with the ceiling,
  and accuracy of real tokens and perplexity of held-out sentences; after the last epoch, BLEU of greedy and of beam
  search; and the error on each sequence task.
- data/translations/OPERATOR.parquet: every translation.

Given an operator, the stage does only the jobs of this operator and writes no outputs.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from stages.encoder_decoder.run import TRANSLATION, TranslationRun
from stages.files.observations import Observation
from stages.files.paths import TRANSLATIONS
from stages.files.storage import make_temporary_sibling
from stages.runner import model_jobs
from stages.schema.settings import Settings

BY_EPOCH = ("training_loss", "training_accuracy", "accuracy_ceiling", "accuracy", "perplexity")
# Metrics of BY_EPOCH that are measured on held-out pairs.
HELD_OUT_METRICS = ("accuracy", "perplexity")
SEARCHES = ("greedy", "beam")
TASKS = ("recurrence", "copy")
# Entry in the column `size` of observations for models of sequence tasks.
SEQUENCES = "sequences"


def train_and_evaluate(run: TranslationRun, folder: Path) -> dict:
    """Trains and evaluates a model as a job, with checkpoints in `folder`."""
    # These modules load torch, which only the worker needs.
    from stages.translation import loop, sequences

    if run.task in TASKS:
        return sequences.train(run)
    return loop.train(run, folder)


def plan_jobs(settings: Settings, operators: tuple[str, ...]) -> list[TranslationRun]:
    """Plans a run for every operator and seed, in each recipe (protocol or sequence task) that lists the operator."""
    section = settings.translation
    # (task, entry in the column `size` of observations, section of params.yaml)
    recipes = [(TRANSLATION, name, protocol) for name, protocol in section.protocols.items()]
    recipes += [(task, SEQUENCES, section.sequence_tasks) for task in TASKS]
    runs = []
    for operator in operators:
        for task, size, recipe in recipes:
            if operator not in recipe.operators:
                continue
            for seed in recipe.seeds:
                runs.append(
                    TranslationRun(
                        operator=operator,
                        task=task,
                        size=size,
                        seed=seed,
                        training=recipe,
                    )
                )
    return runs


def make_rows(run: TranslationRun, result: dict) -> Iterator[Observation]:
    """Converts the result of a run to observations: an error for a sequence task, or metrics by epoch and BLEU.

    Metrics on held-out pairs state the number `n` of tokens.
    """
    # `size` and `protocol` both have the protocol's name, or `sequences`.
    shared = {
        "stage": "translation",
        "operator": run.operator,
        "size": run.size,
        "task": run.task,
        "protocol": run.size,
        "pretraining_seed": run.seed,
    }
    if run.task in TASKS:
        yield Observation(metric="error", value=result["error"], **shared)
        return
    for entry in result["log"]:
        epoch = f"epoch={entry['epoch']}"
        for metric in BY_EPOCH:
            n = entry["tokens"] if metric in HELD_OUT_METRICS else None
            yield Observation(condition=epoch, metric=metric, value=entry[metric], n=n, **shared)
    sentences = len(result["greedy"])
    # `copy_bleu` scores the source texts as if these were translations.
    for name in (*SEARCHES, "copy"):
        metric = f"{name}_bleu"
        yield Observation(metric=metric, value=result[metric], n=sentences, **shared)


def write_outputs(done: list[tuple[TranslationRun, Path, dict]]) -> model_jobs.Outputs:
    """Writes a table of translations for every operator, with the number of the sentence, from 0, as `example`.

    Returns the results as observations; and `sacrebleu`, the signatures that say how BLEU was computed.
    """
    tables = defaultdict(list)
    signatures = set()
    observed = []
    for run, _, result in done:
        observed += make_rows(run, result)
        if run.task != TRANSLATION:
            continue
        signatures.add(result["signature"])
        for search in SEARCHES:
            table = {
                "search": search,
                "example": range(len(result[search])),
                "translation": result[search],
                "protocol": run.size,
                "seed": run.seed,
            }
            tables[run.operator].append(pd.DataFrame(table))
    with make_temporary_sibling(TRANSLATIONS) as output:
        output.mkdir()
        for operator, frames in tables.items():
            pd.concat(frames).to_parquet(output / f"{operator}.parquet", index=False)
    return observed, {"sacrebleu": sorted(signatures)}


def main(settings: Settings, operator: str | None = None) -> dict | None:
    """Runs the jobs; returns sacrebleu's signatures for the record, or `None` if an operator is given."""
    operators = (operator,) if operator else settings.translation.operators
    return model_jobs.run(
        train_and_evaluate,
        plan_jobs(settings, operators),
        "translation",
        settings.workers,
        write_outputs,
        whole=not operator,
    )
