"""Fine-tunes every operator at every size from intermediate models of pre-training (Courtois et al., Figure 3).

Reads data/intermediate_models, data/pretraining (for the last step, where listed), data/tasks and the tokenizer of
data/tokens. Writes data/observations/convergence.csv: every metric of every task of `convergence.tasks`, by step of
pre-training. From these, `analysis` computes the GLUE score by step, and the step at which a share of the final score
is reached. Given an operator (and a size), the stage does only these jobs and writes no outputs.
"""

from itertools import product
from pathlib import Path

from stages.classification.job import finetune, measure_run
from stages.classification.kept_models import find_kept_folder
from stages.classification.runs import FinetuningRun
from stages.files.paths import find_model_after, find_pretrained
from stages.runner import model_jobs
from stages.schema.settings import Settings


def plan_runs(settings: Settings, models: list[tuple[str, str]]) -> list[FinetuningRun]:
    """Plans a fine-tuning from every step in `convergence.steps`, for every model, task and pair of seeds.

    Models are pairs of operator and size.
    """
    section = settings.convergence
    protocol = section.protocol
    plan = []
    combinations = product(models, section.tasks, settings.pretraining.seeds, section.steps, section.seeds)
    for (operator, size), task, pretraining_seed, step, seed in combinations:
        weights = find_model_after(operator, size, pretraining_seed, step)
        keep = None
        # Stage finetuning starts from the model of the last step, too. Both stages share the job of such a run, so the
        # fine-tuned model is kept in the same folder.
        if step == settings.pretraining.steps:
            weights = find_pretrained(operator, size, pretraining_seed)
            keep = find_kept_folder(settings, (protocol, operator, size), task, pretraining_seed, seed)
        run = FinetuningRun(
            task=task,
            pretraining_seed=pretraining_seed,
            seed=seed,
            weights=str(weights),
            keep=keep,
            training=settings.finetuning[protocol],
            # The condition keeps the rows of different steps apart.
            columns={
                "stage": "convergence",
                "protocol": protocol,
                "operator": operator,
                "size": size,
                "condition": f"step={step}",
            },
        )
        plan.append(run)
    return plan


def write_outputs(done: list[tuple[FinetuningRun, Path, dict]]) -> model_jobs.Outputs:
    """Computes the metrics of all runs from the predictions in their folders; the stage's record gets no entries."""
    rows = []
    for run, folder, _ in done:
        rows += measure_run(run, folder)
    return rows, {}


def main(settings: Settings, operator: str | None = None, size: str | None = None) -> dict | None:
    """Runs all jobs and returns entries of the stage's record; given an operator, runs only the operator's jobs."""
    plan = plan_runs(settings, settings.list_pretrained(operator, size))
    return model_jobs.run(finetune, plan, "convergence", settings.workers, write_outputs, whole=not operator)
