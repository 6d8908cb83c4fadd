"""A pre-training run as a record, and the number of steps, without torch."""

from typing import Any

from pydantic import SkipValidation

from stages.files.paths import TOKENS, find_model_after, find_pretrained
from stages.runner.job import Job, Run
from stages.schema.training_sections import Model, Pretraining


class PretrainingRun(Run):
    """A pre-training run of an operator and a size, by their names in params.yaml."""

    # These two fields decide no result. Sections were validated with params.yaml.
    beside = Run.beside | {"saved_steps": True, "curves": True}
    operator: str
    size: str
    # the section of the size
    model: SkipValidation[Model]
    # the operator as arguments of `make_configuration`
    variant: dict[str, Any]
    training: SkipValidation[Pretraining]
    # steps after which the model is saved, besides the last step; 0 for the untrained model
    saved_steps: tuple[int, ...] = ()
    # names of the files with the curves of all runs in params.yaml
    curves: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the run in progress and errors, such as `shared-tiny seed 1`."""
        return f"{self.operator}-{self.size} seed {self.seed}"

    @property
    def saved_models(self) -> dict[int, str]:
        """Folders of the models after `saved_steps`, within the folder of the job, by step."""
        return {step: f"intermediate_models/step-{step}" for step in self.saved_steps}

    @property
    def job(self) -> Job:
        """The run as a job, which reads data/tokens and must leave the models named by `saved_models`."""
        # where the stage copies the final model and the saved models, whose folders step-0, step-100, … have one parent
        external = {
            "model": find_pretrained(self.operator, self.size, self.seed),
            "intermediate_models": find_model_after(self.operator, self.size, self.seed, step=0).parent,
        }
        # roughly proportional to the weights of all layers, so that the runs of the largest models start first
        work = self.model.layers * self.model.hidden**2
        required = tuple(self.saved_models.values())
        return Job(self.name, self, (TOKENS,), required=required, external_files=external, work=work)


def count_steps(recipe: Pretraining, sequences: int) -> int:
    """Returns the number of updates of a run: the recipe's `steps`, or the updates of all epochs, rounded up.

    `sequences` counts the training split. ValueError if the warm-up of the learning rate takes all updates.
    """
    steps = recipe.steps or 0
    if recipe.epochs:
        # -(-a // b) rounds a / b up
        steps = -(-recipe.epochs * sequences // recipe.batch_size)
    if recipe.warmup_steps >= steps:
        raise ValueError(
            f"pretraining.warmup_steps: {recipe.warmup_steps} leaves nothing of the {steps} steps that "
            f"{recipe.epochs} epochs of {sequences} sequences are"
        )
    return steps
