"""The fine-tuned models that stage `finetuning` keeps for other stages, and the runs by which these evaluate them."""

from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from stages.classification.runs import ModelRun
from stages.files.paths import TASK_FOLDER, TOKENIZER, finetuned
from stages.runner.run import Job
from stages.schema.settings import Settings


class EvaluationRun(ModelRun):
    """An evaluation of one fine-tuned model.

    folder: where the model is kept. task: the one it was fine-tuned on. evaluated_on: the GLUE tasks whose validation
    splits it predicts. maximum_length (in tokens), precision (float32 or bfloat16), seed: those of its fine-tuning.
    """

    folder: str
    evaluated_on: tuple[str, ...]
    maximum_length: int
    precision: str

    @property
    def job(self) -> Job:
        """The run as a job, whose result is computed anew when the model, a table or the tokenizer changes."""
        inputs = (Path(self.folder), *(TASK_FOLDER / task for task in self.evaluated_on), TOKENIZER)
        return Job(self.name, self, inputs)


AnyEvaluation = TypeVar("AnyEvaluation", bound=EvaluationRun)


def kept(settings: Settings, model: tuple[str, str, str], task: str, pretraining_seed: int, seed: int) -> Path | None:
    """Returns the folder in which stage finetuning keeps a model, or None where it keeps no such model.

    It keeps the models that it trains on the tasks of the stages noise and cross_domain. Stage convergence, which asks
    as well, may train by protocols and from fine-tuning seeds that stage finetuning does not use.

    Args:
        settings, model: all of params.yaml; protocol, operator and size of the model.
        task: the GLUE task that the model is fine-tuned on.
        pretraining_seed, seed: the seeds of its pre-training and of its fine-tuning.
    """
    evaluated = task in (*settings.noise.tasks, *settings.cross_domain.tasks)
    trained = model[0] in settings.protocols and seed in settings.finetuning[model[0]].seeds
    return finetuned(model, task, pretraining_seed, seed) if evaluated and trained else None


def planned(
    kind: type[AnyEvaluation],
    settings: Settings,
    stage: str,
    models: list[tuple[str, str, str]],
    tasks: tuple[str, ...],
    **further: Any,
) -> list[AnyEvaluation]:
    """Plans one evaluation of every kept model, at the maximum length and in the precision of its protocol.

    Args:
        kind, settings, stage: the class of the runs; all of params.yaml; the name of the stage that evaluates.
        models: protocol, operator and size of each; every task and pair of seeds has a model of its own.
        tasks: the tasks on which the models were fine-tuned.
        further: further fields of every run. Without `evaluated_on` among them, a model is evaluated on its own task.

    Returns:
        The runs, in the order of `models`, and for each of these sorted by the folder, as its observations will be.
    """
    plan = []
    for model in models:
        recipe = settings.finetuning[model[0]]
        columns = {"stage": stage} | dict(zip(("protocol", "operator", "size"), model, strict=True))
        shared = {"columns": columns, "maximum_length": recipe.maximum_length, "precision": recipe.precision} | further
        trained = product(tasks, settings.pretraining.seeds, recipe.seeds)
        folders = {str(finetuned(model, *training)): training for training in trained}
        plan += [
            kind(**{"evaluated_on": (task,)} | shared, folder=folder, task=task, pretraining_seed=number, seed=seed)
            for folder, (task, number, seed) in sorted(folders.items())
        ]
    return plan


def load(folder: str):
    """Loads a kept model, an OperatorBertForSequenceClassification, in evaluation mode on this process's device."""
    from stages.attention.bert import OperatorBertForSequenceClassification  # here, as planning does without torch
    from stages.classification.training import import_operator
    from stages.training.optimisation import device

    import_operator(Path(folder))  # without which a user's own operator is not known
    return OperatorBertForSequenceClassification.from_pretrained(folder).to(device()).eval()
