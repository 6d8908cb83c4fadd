"""The fine-tuned models that stage `finetuning` keeps for the stages that evaluate them, and runs that do so.

On disk: data/finetuning/PROTOCOL-OPERATOR-SIZE/TASK-pretraining-SEED-finetuning-SEED.
"""

from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from stages.classification.runs import ModelRun
from stages.plumbing.files import FINETUNED, TASK_FOLDER, TOKENIZER
from stages.plumbing.jobs import Job
from stages.plumbing.settings import Settings


class EvaluationRun(ModelRun):
    """An evaluation of one fine-tuned model.

    folder: of the model. evaluated_on: tasks whose validation splits it predicts. maximum_length, precision: of its
    protocol.
    """

    folder: str
    evaluated_on: tuple[str, ...]
    maximum_length: int
    precision: str

    @property
    def job(self) -> Job:
        inputs = (Path(self.folder), *(TASK_FOLDER / task for task in self.evaluated_on), TOKENIZER)
        return Job(self.name, self, inputs)


AnyEvaluation = TypeVar("AnyEvaluation", bound=EvaluationRun)


def _model_folder(model: tuple[str, str, str], task: str, pretraining_seed: int, seed: int) -> Path:
    """Where one model stands. model: protocol, operator and size."""
    return FINETUNED / "-".join(model) / f"{task}-pretraining-{pretraining_seed}-finetuning-{seed}"


def kept(settings: Settings, model: tuple[str, str, str], task: str, pretraining_seed: int, seed: int) -> Path | None:
    """Where stage finetuning keeps a model; None where no stage evaluates it, or the stage does not train it.

    Args:
        settings: of params.yaml.
        model: protocol, operator and size.
        task: that it is fine-tuned on.
        pretraining_seed: of its pre-training.
        seed: of its fine-tuning.
    """
    evaluated = task in (*settings.noise.tasks, *settings.cross_domain.tasks) and task in settings.tasks.names
    trained = model[0] in settings.protocols and seed in settings.finetuning[model[0]].seeds
    return _model_folder(model, task, pretraining_seed, seed) if evaluated and trained else None


def planned(
    kind: type[AnyEvaluation],
    settings: Settings,
    stage: str,
    models: list[tuple[str, str, str]],
    tasks: tuple[str, ...],
    **further: Any,
) -> list[AnyEvaluation]:
    """Plans an evaluation of every kept model, at the length and in the precision of its protocol.

    Args:
        kind: of the runs.
        settings: of params.yaml.
        stage: that evaluates.
        models: protocol, operator and size of each.
        tasks: that they were fine-tuned on.
        further: what the runs hold beside; `evaluated_on`, unless it is their own task.

    Returns:
        The runs, those of a model by the names of the folders.
    """
    plan = []
    for model in models:
        recipe = settings.finetuning[model[0]]
        columns = {"stage": stage} | dict(zip(("protocol", "operator", "size"), model, strict=True))
        shared = {"columns": columns, "maximum_length": recipe.maximum_length, "precision": recipe.precision} | further
        trained = product(tasks, settings.pretraining.seeds, recipe.seeds)
        folders = {str(_model_folder(model, *training)): training for training in trained}
        plan += [
            kind(**{"evaluated_on": (task,)} | shared, folder=folder, task=task, pretraining_seed=number, seed=seed)
            for folder, (task, number, seed) in sorted(folders.items())
        ]
    return plan


def load(folder: str):
    """A kept model, an OperatorBertForSequenceClassification, ready to predict."""
    from stages.attention.bert import OperatorBertForSequenceClassification
    from stages.classification.training import import_operator
    from stages.training.optimisation import device

    import_operator(Path(folder))
    return OperatorBertForSequenceClassification.from_pretrained(folder).to(device()).eval()
