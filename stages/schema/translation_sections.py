"""The section of params.yaml on translation and sequence tasks, as frozen records; see sections.py."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from stages.schema.names import require_listed
from stages.schema.sections import (
    Batch,
    Count,
    Hub,
    Language,
    Name,
    Pair,
    Rate,
    Record,
    Seed,
    Several,
    Share,
    VocabularySize,
)
from stages.schema.training_sections import Sized, require_steps_after_warmup


class Layers(Sized):
    """The size and the optimiser of the models that stage `translation` trains, with their operators and seeds."""

    operators: Several[Name]
    seeds: Several[Seed]
    # channels of positions are pairs of sine and cosine
    hidden: Annotated[Count, Field(ge=2, multiple_of=2)]
    # fewer positions leave hardly anything to predict
    positions: Annotated[Count, Field(ge=4)]
    dropout: Share
    batch_size: Batch
    warmup_steps: Count
    betas: Pair[Share]
    epsilon: Rate

    @model_validator(mode="after")
    def _check_operators(self):
        self.require_room(self.operators)
        if "original" not in self.operators:
            raise ValueError("operators: every comparison is made against `original`; add `original` to the list")
        return self


class PairFiles(Record):
    """Files below data.root by split: NAME of NAME.SOURCE and NAME.TARGET, or a whole NAME.tsv."""

    train: str
    validation: str
    test: str


class TranslationProtocol(Layers):
    """A recipe of translation."""

    source: Language
    target: Language
    files: PairFiles
    hub: Hub
    train_pairs: Count | None
    held_out_pairs: Count | None
    vocabulary: Literal["separate", "shared"]
    vocabulary_size: VocabularySize
    label_smoothing: Share
    epochs: Count
    precision: Literal["float32", "bfloat16"]
    scored: Literal["validation", "test"]
    beams: Count
    length_penalty: Annotated[float, Field(ge=0)]


class SequenceTasks(Layers):
    """The recipe of the two exact sequence tasks."""

    steps: Count
    learning_rate: Rate

    @model_validator(mode="after")
    def _check_steps_and_positions(self):
        require_steps_after_warmup(self.warmup_steps, self.steps)
        # every position has its own key, except the last, which asks for the key of another position
        if self.positions > 17:
            raise ValueError(
                f"positions: {self.positions}; the 16 keys of the copying task fill 17 at most; give 17 or fewer"
            )
        return self


class Translation(Record):
    """The recipes of all models that stage `translation` trains."""

    operators: Several[Name]
    protocols: dict[Literal["blog", "draft"], TranslationProtocol]
    sequence_tasks: SequenceTasks

    @model_validator(mode="after")
    def _check_operators(self):
        recipes = {f"protocols.{name}": recipe for name, recipe in self.protocols.items()}
        recipes["sequence_tasks"] = self.sequence_tasks
        for place, recipe in recipes.items():
            for operator in recipe.operators:
                require_listed(operator, f"{place}.operators", self.operators, "operators")
        return self
