"""Fine-tunes every operator at every size from intermediate pre-training checkpoints (Courtois et al., Figure 3).

Reads data/checkpoints, data/pretraining (for the last step, where it is listed), data/tasks and the tokenizer of
data/tokens. Writes data/observations/convergence.csv: every metric of every task of `convergence.tasks` by pre-
training step. `analysis` makes the GLUE score by step of it, and the step at which a share of the final score is
reached. Given an operator (and a size), it does the jobs of these alone and writes no outputs.
"""

from stages.classification import runs
from stages.classification.kept_models import kept
from stages.classification.run import FinetuningRun
from stages.plumbing import observations, results
from stages.plumbing.files import CHECKPOINTS, PRETRAINED, seed_folders
from stages.plumbing.settings import Settings


def planned(settings: Settings, models: list[tuple[str, str]]) -> list[FinetuningRun]:
    """One run for every model, step, task, pre-training seed and seed.

    Where `pretraining.steps` is given, the model after the last is that of stage finetuning, so a run that both stages
    ask for is made once.

    Args:
        settings: of params.yaml.
        models: operator and size of each.
    """
    protocol = settings.convergence.protocol
    recipe, plan = settings.finetuning[protocol], []
    for operator, size in models:
        name = f"{operator}-{size}"
        columns = {"stage": "convergence", "protocol": protocol, "operator": operator, "size": size}
        for task in settings.convergence.tasks:
            for number, last in seed_folders(PRETRAINED / name):
                for step in settings.convergence.steps:
                    final = step == settings.pretraining.steps
                    weights = CHECKPOINTS / name / last.name / f"step-{step}"
                    own = (name, last) if final else (f"{name} after step {step}", weights)
                    for seed in settings.convergence.seeds:
                        keep = kept(settings, protocol, name, task, number, seed) if final else None
                        here = columns | {"condition": f"step={step}"}
                        plan.append(runs.planned(*own, number, task, seed, recipe, columns=here, keep=keep))
    return plan


def main(settings: Settings, operator: str | None = None, size: str | None = None) -> dict | None:
    plan = planned(settings, settings.pretrained(operator, size))
    done = runs.run_all(plan, settings.workers)
    if operator:
        return None
    tables = {task: runs.examples(task) for task in settings.convergence.tasks}
    rows = []
    for run, (folder, _) in zip(plan, done, strict=True):
        rows += runs.measured(run, runs.predictions_of(folder), tables[run.task])
    results.hand_on("convergence", [folder for folder, _ in done], without=("model",))
    observations.write(observations.FOLDER / "convergence.csv", rows)
    return {}
