"""The fine-tuned models that stage `finetuning` keeps for the stages that test them.

On disk: data/finetuning/PROTOCOL-OPERATOR-SIZE/models/TASK-pretraining-SEED-finetuning-SEED.
"""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("data/finetuning")


@dataclass(frozen=True)
class Kept:
    """One model and where it comes from."""

    folder: Path
    task: str
    pretraining_seed: int
    finetuning_seed: int


def kept_models(name: str, tasks: tuple[str, ...]) -> list[Kept]:
    """The models of PROTOCOL-OPERATOR-SIZE `name` for `tasks`, sorted. ValueError for a task without any."""
    models = []
    for folder in sorted((FOLDER / name / "models").glob("*")):
        task, _, pretraining_seed, _, finetuning_seed = folder.name.split("-")
        models.append(Kept(folder, task, int(pretraining_seed), int(finetuning_seed)))
    missing = [task for task in tasks if not any(model.task == task for model in models)]
    if missing:
        raise ValueError(f"{FOLDER / name}: no model fine-tuned on {', '.join(missing)}; run `dvc repro finetuning`")
    return [model for model in models if model.task in tasks]
