"""The section of params.yaml on translation and the sequence tasks, as frozen records; none holds a default."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, model_validator

from stages.plumbing.sections import Batch, Count, Hub, Name, Pair, Rate, Record, Seed, Several, Share
from stages.plumbing.training_sections import Sized, require_steps_after_warmup


class Layers(Sized):
    """The size and the optimiser of a model of the stage translation."""

    operators: Several[Name]
    seeds: Several[Seed]
    hidden: Annotated[Count, Field(ge=2, multiple_of=2)]  # sine and cosine channels in pairs
    positions: Annotated[Count, Field(ge=4)]
    dropout: Share
    batch_size: Batch
    warmup_steps: Count
    betas: Pair[Share]
    epsilon: Rate

    def may_be_built(self) -> Iterable[str]:
        return self.operators


class PairFiles(Record):
    train: str
    validation: str
    test: str


class TranslationProtocol(Layers):
    source: Name
    target: Name
    files: PairFiles
    hub: Hub
    train_pairs: Count | None
    held_out_pairs: Count | None
    vocabulary: Literal["separate", "shared"]
    vocabulary_size: Annotated[int, Field(ge=100, le=65_536)]  # ids are stored as uint16
    label_smoothing: Share
    epochs: Count
    precision: Literal["float32", "bfloat16"]
    scored: Literal["validation", "test"]
    beams: Count
    length_penalty: Annotated[float, Field(ge=0)]


class SequenceTasks(Layers):
    steps: Count
    learning_rate: Rate

    @model_validator(mode="after")
    def _warmup_ends(self):
        require_steps_after_warmup(self.warmup_steps, self.steps)
        return self

    @model_validator(mode="after")
    def _a_key_for_every_position(self):
        if self.positions > 17:
            raise ValueError(f"positions: {self.positions}; the 16 keys of the copying task fill 17 at most")
        return self


class Translation(Record):
    operators: Several[Name]
    seed: Seed
    protocols: dict[Literal["blog", "draft"], TranslationProtocol]
    sequence_tasks: SequenceTasks

    @model_validator(mode="after")
    def _every_operator_has_a_stage(self):
        places = {f"protocols.{name}": protocol for name, protocol in self.protocols.items()}
        for place, recipe in (places | {"sequence_tasks": self.sequence_tasks}).items():
            missing = [operator for operator in recipe.operators if operator not in self.operators]
            if missing:
                raise ValueError(f"{place}.operators: `{missing[0]}` is not in operators: {', '.join(self.operators)}")
            if "original" not in recipe.operators:
                raise ValueError(f"{place}.operators: every comparison is made against `original`; add it to the list")
        return self
