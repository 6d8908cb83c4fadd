"""Trains translation models, and models of two exact sequence tasks, with one operator, once for every seed.

Reads data/sentence_pairs. Trains by every protocol of `translation` that names the operator, and on both sequence
tasks where these name it. Writes data/observations/translation-OPERATOR.csv: by epoch, the tutorial's accuracy over all
positions with its ceiling, accuracy of real tokens and perplexity of held-out sentences; after the last, BLEU of greedy
and of beam search; and the error of each sequence task. data/translations/OPERATOR.parquet holds every translation.
"""

from pathlib import Path

import pandas as pd

from stages.plumbing import jobs, observations
from stages.plumbing.files import SENTENCE_PAIRS, TRANSLATIONS, temporary_sibling
from stages.plumbing.observations import Observation
from stages.plumbing.settings import Settings

BY_EPOCH = ("training_loss", "training_accuracy", "accuracy_ceiling", "accuracy", "perplexity")
OF_HELD_OUT = ("accuracy", "perplexity")
SEARCHES = ("greedy", "beam")
TASKS = ("recurrence", "copy")
SEQUENCES = "sequences"  # the size of the models of sequence tasks, as the protocols name theirs


def compute(job: dict, folder: Path) -> dict:
    """One job, in a worker."""
    from stages.translation import loop, sequences

    if job["task"] in TASKS:
        return sequences.train(job)
    return loop.train(job, SENTENCE_PAIRS / job["protocol"], folder)


def planned(settings: Settings, operator: str) -> list[dict]:
    """One job for every protocol or sequence task that names the operator, and seed."""
    section, made = settings.translation, []
    recipes = [("translation", name, protocol) for name, protocol in section.protocols.items()]
    recipes += [(task, SEQUENCES, section.sequence_tasks) for task in TASKS]
    for task, protocol, recipe in recipes:
        if operator not in recipe.operators:
            continue
        training = recipe.model_dump(mode="json", exclude={"operators", "seeds"})
        for seed in recipe.seeds:
            shared = {"operator": operator, "seed": seed, "task": task, "protocol": protocol, "training": training}
            made.append(shared | {"name": f"{task}, {protocol}, {operator}, seed {seed}"})
    return made


def rows(job: dict, result: dict) -> list[Observation]:
    """What a job found, as observations."""
    shared = {"stage": "translation", "operator": job["operator"], "size": job["protocol"], "task": job["task"]}
    shared |= {"protocol": job["protocol"], "pretraining_seed": job["seed"]}
    if job["task"] in TASKS:
        return [Observation(metric="error", value=result["error"], **shared)]
    by_epoch = [
        Observation(
            condition=f"epoch={entry['epoch']}",
            metric=metric,
            value=entry[metric],
            n=entry["tokens"] if metric in OF_HELD_OUT else None,
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


def translations(job: dict, result: dict) -> pd.DataFrame:
    """The translations of one job, a line a sentence and search."""
    frames = [
        pd.DataFrame({"search": name, "example": range(len(result[name])), "translation": result[name]})
        for name in SEARCHES
    ]
    return pd.concat(frames).assign(protocol=job["protocol"], seed=job["seed"])


def main(settings: Settings, operator: str) -> dict:
    plan = planned(settings, operator)
    inputs = {name: (SENTENCE_PAIRS / name,) for name in settings.translation.protocols}
    work = [jobs.Job(job["name"], job, inputs.get(job["protocol"], ())) for job in plan]
    done = jobs.run(compute, work, "translation", settings.workers, on_gpu=True)
    results = [(job, result) for job, (_, result) in zip(plan, done, strict=True)]
    observations.write(
        observations.FOLDER / f"translation-{operator}.csv",
        [row for job, result in results for row in rows(job, result)],
    )
    translated = [(job, result) for job, result in results if job["task"] not in TASKS]
    empty = pd.DataFrame(columns=["search", "example", "translation", "protocol", "seed"])
    with temporary_sibling(TRANSLATIONS / f"{operator}.parquet") as path:
        frames = [translations(job, result) for job, result in translated]
        (pd.concat(frames) if frames else empty).to_parquet(path, index=False)
    signatures = {result["signature"] for _, result in translated}
    seconds = round(sum(result["seconds"] for _, result in translated), 1)
    return {"sacrebleu": sorted(signatures), "seconds_of_jobs": seconds}
