"""The fine-tuned models that stage `finetuning` keeps for other stages, and the runs that evaluate these models."""

from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from stages.classification.runs import EvaluationRun, ModelNames
from stages.files.paths import find_finetuned
from stages.schema.settings import Settings

AnyEvaluation = TypeVar("AnyEvaluation", bound=EvaluationRun)


def find_kept_folder(settings: Settings, model: ModelNames, task: str, pretraining_seed: int, seed: int) -> Path | None:
    """Returns the folder in which stage finetuning keeps a fine-tuned model; None if the stage does not keep the model.

    `seed` is the seed of the fine-tuning.
    """
    protocol = model[0]
    # Only stages noise and cross_domain need kept models.
    evaluated = task in settings.noise.tasks or task in settings.cross_domain.tasks
    # Stage convergence calls this function with protocols and seeds that stage finetuning may not use.
    trained = protocol in settings.protocols and seed in settings.finetuning[protocol].seeds
    if evaluated and trained:
        return find_finetuned(model, task, pretraining_seed, seed)
    return None


def plan_evaluations(
    kind: type[AnyEvaluation],
    settings: Settings,
    stage: str,
    models: list[ModelNames],
    tasks: tuple[str, ...],
    **further: Any,
) -> list[AnyEvaluation]:
    """Plans an evaluation, of class `kind`, of every kept model, at the maximum length and precision of the protocol.

    `tasks` are the tasks of the fine-tuning. `further` are fields of every run, and may replace the fields below.
    """
    plan = []
    for model in models:
        protocol, operator, size = model
        recipe = settings.finetuning[protocol]
        runs = []
        for task, pretraining_seed, seed in product(tasks, settings.pretraining.seeds, recipe.seeds):
            fields = {
                "columns": {"stage": stage, "protocol": protocol, "operator": operator, "size": size},
                "folder": str(find_finetuned(model, task, pretraining_seed, seed)),
                "task": task,
                "pretraining_seed": pretraining_seed,
                "seed": seed,
                "evaluated_on": (task,),
                "maximum_length": recipe.maximum_length,
                "precision": recipe.precision,
                **further,
            }
            runs.append(kind(**fields))
        # The rows of the observations have the order of the folders.
        plan += sorted(runs, key=lambda run: run.folder)
    return plan


def load_kept_model(folder: str):
    """Loads a kept model, an OperatorBertForSequenceClassification, in evaluation mode on this process's device."""
    # Imported here, because planning needs no torch.
    from stages.attention.bert import OperatorBertForSequenceClassification
    from stages.classification.training import import_operator
    from stages.training.machine import find_device

    # A user's own operator must be imported before the model is loaded.
    import_operator(Path(folder))
    return OperatorBertForSequenceClassification.from_pretrained(folder).to(find_device()).eval()
