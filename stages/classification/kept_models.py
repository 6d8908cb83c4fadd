"""The fine-tuned models that stage `finetuning` keeps for the stages that test them.

On disk: data/finetuning/PROTOCOL-OPERATOR-SIZE/TASK-pretraining-SEED-finetuning-SEED.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.plumbing.files import FINETUNED
from stages.plumbing.settings import Settings

NAME = re.compile(r"(?P<task>\w+)-pretraining-(?P<pretraining_seed>\d+)-finetuning-(?P<finetuning_seed>\d+)")


@dataclass(frozen=True)
class Kept:
    """One model and where it comes from."""

    folder: Path
    task: str
    pretraining_seed: int
    finetuning_seed: int


def model_folder(output: Path, task: str, pretraining_seed: int, finetuning_seed: int) -> Path:
    """Where one model stands below `output`, the folder of PROTOCOL-OPERATOR-SIZE."""
    return output / f"{task}-pretraining-{pretraining_seed}-finetuning-{finetuning_seed}"


def kept(settings: Settings, protocol: str, model: str, task: str, pretraining_seed: int, seed: int) -> Path | None:
    """Where stage finetuning keeps one fine-tuned model of OPERATOR-SIZE `model`; None where no stage tests it."""
    tested = task in (*settings.noise.tasks, *settings.cross_domain.tasks)
    made = (
        protocol in settings.protocols and seed in settings.finetuning[protocol].seeds and task in settings.tasks.names
    )
    return model_folder(FINETUNED / f"{protocol}-{model}", task, pretraining_seed, seed) if tested and made else None


def kept_models(name: str, tasks: tuple[str, ...]) -> list[Kept]:
    """The models of PROTOCOL-OPERATOR-SIZE `name` for `tasks`, sorted.

    ValueError for a task without any, and for a folder that is no model's.
    """
    models = []
    for folder in sorted((FINETUNED / name).glob("*")):
        found = NAME.fullmatch(folder.name)
        if not found:
            raise ValueError(f"{folder}: not a kept model, TASK-pretraining-SEED-finetuning-SEED; delete it")
        models.append(Kept(folder, found["task"], int(found["pretraining_seed"]), int(found["finetuning_seed"])))
    missing = [task for task in tasks if not any(model.task == task for model in models)]
    if missing:
        raise ValueError(f"{FINETUNED / name}: no model fine-tuned on {', '.join(missing)}; run `dvc repro finetuning`")
    return [model for model in models if model.task in tasks]


def planned(
    settings: Settings, models: list[tuple[str, str, str]], tasks: tuple[str, ...], **further: Any
) -> list[tuple[dict, dict]]:
    """Plans the jobs that test kept models at the length and in the precision of their protocol.

    Args:
        settings: of params.yaml.
        models: protocol, operator and size of each.
        tasks: that they were fine-tuned on.
        further: what the settings of every job hold beside, as JSON.

    Returns:
        The columns that say of an observation which model it is of, and the settings of the job.
    """
    plan = []
    for protocol, operator, size in models:
        columns = {"protocol": protocol, "operator": operator, "size": size}
        recipe, name = settings.finetuning[protocol], f"{protocol}-{operator}-{size}"
        for model in kept_models(name, tasks):
            run = {
                "name": f"{name} {model.folder.name}",
                "model": str(model.folder),
                "task": model.task,
                "pretraining_seed": model.pretraining_seed,
                "finetuning_seed": model.finetuning_seed,
                "maximum_length": recipe.maximum_length,
                "precision": recipe.precision,
            }
            plan.append((columns, run | further))
    return plan


def load(folder: Path):
    """A kept model, an OperatorBertForSequenceClassification, ready to predict."""
    from stages.attention.bert import OperatorBertForSequenceClassification
    from stages.classification.training import import_operator
    from stages.training.optimisation import device

    import_operator(folder)
    return OperatorBertForSequenceClassification.from_pretrained(folder).to(device()).eval()
