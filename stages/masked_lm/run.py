"""One pre-training run as a record, the number of its steps and the length of its sequences; nothing loads torch."""

from typing import Any, ClassVar

from pydantic import SkipValidation

from stages.files.paths import TOKENS, checkpoint, pretrained
from stages.runner.run import Job, Run
from stages.schema.training_sections import Model, Pretraining


class PretrainingRun(Run):
    """One pre-training run.

    operator, size: their names in params.yaml, which has `model` for the size. variant: the operator as arguments of
    `configuration`. training: the recipe. leaves: steps after which the model is saved, besides the last; 0: untrained.
    """

    beside: ClassVar[dict[str, Any]] = Run.beside | {"leaves": True}  # what decides no result
    operator: str
    size: str
    model: SkipValidation[Model]  # as the recipe, it has been validated with params.yaml
    variant: dict[str, Any]
    training: SkipValidation[Pretraining]
    leaves: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """What progress and errors call the run."""
        return f"{self.operator}-{self.size} seed {self.seed}"

    @property
    def places(self) -> dict[int, str]:
        """Where in the folder of its job the run leaves the models of `leaves`, by their steps."""
        return {step: f"checkpoints/step-{step}" for step in self.leaves}

    @property
    def job(self) -> Job:
        """The run as a job, which reads data/tokens and must leave the models of `places`."""
        outputs = {
            "model": pretrained(self.operator, self.size, self.seed),
            "checkpoints": checkpoint(self.operator, self.size, self.seed, step=0).parent,
        }
        # proportional to the weights of the layers, so that the runs of the largest models start first
        work = self.model.layers * self.model.hidden**2
        return Job(self.name, self, (TOKENS,), tuple(self.places.values()), outputs, work)


def length(recipe: Pretraining, sequences: int) -> int:
    """Returns the number of updates of a run: the recipe's `steps`, or, rounded up, those of its epochs of `sequences`.

    ValueError where the warm-up of the learning rate takes all of them.
    """
    steps = recipe.steps or -(-recipe.epochs * sequences // recipe.batch_size)
    if recipe.warmup_steps >= steps:
        raise ValueError(
            f"pretraining.warmup_steps: {recipe.warmup_steps} leaves nothing of the {steps} steps that "
            f"{recipe.epochs} epochs of {sequences} sequences are"
        )
    return steps


def sequence_length(recipe: Pretraining, step: int, steps: int, longest: int) -> int:
    """Returns the length in tokens of the sequences of an update: short ones first, where the recipe asks for that.

    Attention over n tokens that is still uniform dilutes what one neighbour says to one part in n, so that a model
    learns to attend sooner from short sequences. Devlin et al. 2018 (appendix A.2) trained nine tenths of the steps on
    128 tokens, the rest on 512; Nagatsuka et al. 2021 made the length a curriculum. A packed sequence is cut into short
    blocks, and each takes the positions from 0, as a sequence of its length would: with blocks that kept their places
    in the packed sequence, a run of the default scale ended at 2.21 nats in place of 1.15 (one seed of original).

    Args:
        recipe: of pre-training; its `sequence_length_warmup` says how long sequences are short, and how short.
        step, steps: number of the update, from 0, and number of updates of the whole run.
        longest: tokens of a packed sequence, a multiple of the short length.
    """
    warmup = recipe.sequence_length_warmup
    return warmup.length if warmup and step < round(warmup.share * steps) else longest
