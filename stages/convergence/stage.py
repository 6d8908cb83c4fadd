"""Fine-tunes every operator at every size from intermediate pre-training checkpoints (Courtois et al., Figure 3).

Reads data/checkpoints, data/pretraining (for the last step, where it is listed), data/tasks and the tokenizer of
data/tokens. Writes data/observations/convergence.csv: every metric of every task of `convergence.tasks`, by step of
pre-training. From it `analysis` computes the GLUE score by step, and the step at which a share of the final score is
reached. Given an operator (and a size), it does the jobs of these alone and writes no outputs.
"""

from itertools import product
from pathlib import Path

from stages.classification import runs
from stages.classification.kept_models import kept
from stages.classification.runs import FinetuningRun
from stages.files.observations import Observation
from stages.files.paths import checkpoint, pretrained
from stages.runner import model_jobs
from stages.schema.settings import Settings


def planned(settings: Settings, models: list[tuple[str, str]]) -> list[FinetuningRun]:
    """Plans one run for every model, task, pre-training seed, step and seed.

    The checkpoint of the last step, where `pretraining.steps` says which that is, is the pre-trained model that stage
    finetuning starts from. A run on it that both stages ask for is one job, and keeps its model where finetuning does.
    models: operator and size of each. A run's condition, by which rows of different steps differ, is `step=N`.
    """
    section, protocol = settings.convergence, settings.convergence.protocol
    pretraining_seeds = settings.pretraining.seeds
    plan = []
    for operator, size in models:
        columns = {"stage": "convergence", "protocol": protocol, "operator": operator, "size": size}
        for task, number, step, seed in product(section.tasks, pretraining_seeds, section.steps, section.seeds):
            final = step == settings.pretraining.steps
            weights = pretrained(operator, size, number) if final else checkpoint(operator, size, number, step)
            keep = kept(settings, (protocol, operator, size), task, number, seed) if final else None
            fields = {"task": task, "pretraining_seed": number, "seed": seed, "weights": str(weights), "keep": keep}
            fields |= {"training": settings.finetuning[protocol], "columns": columns | {"condition": f"step={step}"}}
            plan.append(FinetuningRun(**fields))
    return plan


def outputs(done: list[tuple[FinetuningRun, Path, dict]]) -> tuple[list[Observation], dict]:
    """Returns every metric of all runs, given as (run, folder of its job, result); adds nothing to the record."""
    return [row for run, folder, _ in done for row in runs.measured(run, folder)], {}


def main(settings: Settings, operator: str | None = None, size: str | None = None) -> dict | None:
    """Does the jobs; returns what the record in data/runs has in addition, or None where it did only a part of them."""
    plan = planned(settings, settings.pretrained(operator, size))
    return model_jobs.run(runs.finetune, plan, "convergence", settings.workers, outputs, whole=not operator)
