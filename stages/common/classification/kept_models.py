"""The fine-tuned models that stage `finetuning` keeps for the stages that test them.

On disk: data/finetuning/PROTOCOL-OPERATOR-SIZE/TASK-pretraining-SEED-finetuning-SEED.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.plumbing.files import FINETUNED
from stages.plumbing.training_sections import Finetuning

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


def planned(name: str, tasks: tuple[str, ...], finetuning: Finetuning, **further: Any) -> list[dict]:
    """The settings of the jobs that test every kept model of PROTOCOL-OPERATOR-SIZE `name` for `tasks`.

    Args:
        name: as in `kept_models`.
        tasks: that the models were fine-tuned on.
        finetuning: the protocol's section of params.yaml; models are tested at its length and in its precision.
        further: what the settings of every job hold beside, as JSON.
    """
    return [
        {
            "name": f"{name} {model.folder.name}",
            "model": str(model.folder),
            "task": model.task,
            "pretraining_seed": model.pretraining_seed,
            "finetuning_seed": model.finetuning_seed,
            "maximum_length": finetuning.maximum_length,
            "precision": finetuning.precision,
            **further,
        }
        for model in kept_models(name, tasks)
    ]


def load(folder: Path):
    """A kept model, an OperatorBertForSequenceClassification, ready to predict."""
    from stages.common.attention.bert import OperatorBertForSequenceClassification
    from stages.common.training.optimisation import device

    return OperatorBertForSequenceClassification.from_pretrained(folder).to(device()).eval()
