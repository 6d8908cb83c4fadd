"""The fine-tuned models that stage `finetuning` keeps for other stages, and the runs that evaluate these models."""

from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from stages.classification.runs import EvaluationRun, ModelNames
from stages.files.paths import find_finetuned
from stages.schema.settings import Settings

AnyEvaluation = TypeVar("AnyEvaluation", bound=EvaluationRun)


def find_kept_folder(settings: Settings, model: ModelNames, task: str, pretraining_seed: int, seed: int) -> Path | None:
    """Returns the folder in which stage finetuning keeps a model; None if the stage does not keep the model.

    Stages noise and cross_domain evaluate fine-tuned models, so models of the tasks of these stages are kept. `seed` is
    the seed of the fine-tuning.
    """
    protocol = model[0]
    evaluated = task in settings.noise.tasks or task in settings.cross_domain.tasks
    # Stage convergence asks, too, with protocols and seeds that stage finetuning does not always use.
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
    """Plans an evaluation of every kept model, at the maximum length and in the precision of the protocol.

    Args:
        kind: Class of the runs.
        settings: All of params.yaml.
        stage: Name of the stage that evaluates.
        models: Protocol, operator and size of each; every task and pair of seeds has a separate model.
        tasks: Tasks on which the models were fine-tuned.
        further: Further fields of every run. The default of `evaluated_on` is the task of the fine-tuning.

    Returns:
        The runs, in the order of `models`, and for each of these sorted by the folder, as the observations will be.
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
        # The order of the folders is the order of the rows in observations.
        plan += sorted(runs, key=lambda run: run.folder)
    return plan


def load_kept_model(folder: str):
    """Loads a kept model, an OperatorBertForSequenceClassification, in evaluation mode on this process's device."""
    # Planning does without torch.
    from stages.attention.bert import OperatorBertForSequenceClassification
    from stages.classification.training import import_operator
    from stages.training.optimisation import find_device

    # The class loads a user's own operator only after its import.
    import_operator(Path(folder))
    return OperatorBertForSequenceClassification.from_pretrained(folder).to(find_device()).eval()
