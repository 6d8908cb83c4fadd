"""Fine-tunes one operator at one size from intermediate pre-training checkpoints (Courtois et al., Figure 3).

Reads data/checkpoints/OPERATOR-SIZE, data/pretraining/OPERATOR-SIZE (for the last step, where it is listed), data/tasks
and the tokenizer of data/tokens. Writes data/observations/convergence-OPERATOR-SIZE.csv: every metric of every task of
`convergence.tasks` by pre-training step. `analysis` makes the GLUE score by step of it, and the step at which a share
of the final score is reached.
"""

from stages.common.classification import runs
from stages.plumbing import observations
from stages.plumbing.files import CHECKPOINTS, PRETRAINED, seed_folders
from stages.plumbing.settings import Settings


def planned(settings: Settings, operator: str, size: str) -> list[tuple[int, dict]]:
    """(pre-training step, run) for every step, task, pre-training seed and seed.

    Where `pretraining.steps` is given, the model after the last is that of stage finetuning, so a run that both stages
    ask for is made once.
    """
    training = settings.finetuning[settings.convergence.protocol].model_dump(mode="json")
    del training["seeds"]
    name = f"{operator}-{size}"
    kept = (*settings.noise.tasks, *settings.cross_domain.tasks)
    plan = []
    for task in settings.convergence.tasks:
        for pretraining_seed, last in seed_folders(PRETRAINED / name):
            for step in settings.convergence.steps:
                final = step == settings.pretraining.steps
                weights = CHECKPOINTS / name / last.name / f"step-{step}"
                own = (name, last) if final else (f"{name} after step {step}", weights)
                for seed in settings.convergence.seeds:
                    run = runs.planned(*own, pretraining_seed, task, seed, training, keep=final and task in kept)
                    plan.append((step, run))
    return plan


def main(settings: Settings, operator: str, size: str) -> dict:
    plan = planned(settings, operator, size)
    results = runs.run_all([run for _, run in plan], settings.workers)
    tables = {task: runs.examples(task) for task in settings.convergence.tasks}
    columns = {"stage": "convergence", "protocol": settings.convergence.protocol, "operator": operator, "size": size}
    rows = []
    for (step, run), (folder, _) in zip(plan, results, strict=True):
        condition = {"condition": f"step={step}"}
        rows += runs.measured(run, runs.predictions_of(folder), tables[run["task"]], columns | condition)
    observations.write(observations.FOLDER / f"convergence-{operator}-{size}.csv", rows)
    return {}
