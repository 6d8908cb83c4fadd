"""The sections of params.yaml on BERT models, their training and their tests, as frozen records.

No record but `Variant` holds a default: every value stands in params.yaml with its unit and source.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, model_validator

from stages.plumbing.sections import (
    Batch,
    Count,
    Level,
    Name,
    Pair,
    Protocol,
    QuestionTask,
    Rate,
    Record,
    Seed,
    Several,
    Share,
    Task,
)

# What some operators take from the width of the feed-forward network, in multiples of hidden; the widest first
EXCEEDS = {"over_parameters_wide": 2, "over_parameters": 1, "original_narrow": 1}


def require_steps_after_warmup(warmup_steps: int, steps: int) -> None:
    """ValueError for a warm-up that fills the run: the rate would never fall, or be divided by nothing."""
    if warmup_steps >= steps:
        raise ValueError(f"warmup_steps: {warmup_steps} leaves nothing of steps: {steps}")


class Sized(Record):
    """The size of a Transformer, in encoder and, where it has one, decoder alike."""

    layers: Count
    hidden: Count
    heads: Count
    intermediate: Count
    positions: Count

    @model_validator(mode="after")
    def _heads_divide_hidden(self):
        if self.hidden % self.heads:
            raise ValueError(f"heads: {self.heads} does not divide hidden: {self.hidden}")
        return self

    @model_validator(mode="after")
    def _room_in_the_feed_forward_network(self):
        for operator in (name for name in EXCEEDS if name in self.may_be_built()):
            if self.intermediate <= EXCEEDS[operator] * self.hidden:
                raise ValueError(
                    f"intermediate: {self.intermediate} must exceed {EXCEEDS[operator]} x hidden: {self.hidden}, the "
                    f"width at which {operator} has nothing left of it (BERT: 4 x hidden)"
                )
        return self

    def may_be_built(self) -> Iterable[str]:
        """The operators that may be built in this size."""
        return EXCEEDS


class Model(Sized):
    """A BERT of params.yaml's `models`, which any operator may be built in."""


class Variant(Record):
    """An operator with settings of its own; one that is left out, or null, is as the operator's source has it.

    What each is, and for which operators: OperatorConfig, and `starts` and `scores_alone` of the operator's class.
    """

    operator: Name
    start: Name | None = None
    score_spread: Rate | None = None
    score_rate: Rate | None = None


class Training(Record):
    """What pre-training and fine-tuning have in common."""

    seeds: Several[Seed]
    batch_size: Batch
    betas: Pair[Share]
    epsilon: Rate
    weight_decay: Annotated[float, Field(ge=0)]
    gradient_clipping: Rate
    hidden_dropout: Share
    attention_dropout: Share
    precision: Literal["float32", "bfloat16"]


class SequenceLengthWarmup(Record):
    """Blocks of `length` tokens for the first `share` of the steps, whole sequences thereafter."""

    share: Annotated[float, Field(gt=0, le=1)]
    length: Annotated[int, Field(ge=2)]


class Pretraining(Training):
    steps: Count | None
    epochs: Count | None
    sequence_length_warmup: SequenceLengthWarmup | None
    micro_batch_size: Batch | None
    warmup_steps: Annotated[int, Field(ge=0, le=10**12)]
    learning_rate: Rate
    initializer_range: Rate
    mask_probability: Annotated[float, Field(gt=0, lt=1)]
    evaluation_interval: Count
    checkpoint_interval: Count
    probes: bool

    @model_validator(mode="after")
    def _one_length(self):
        if (self.steps is None) == (self.epochs is None):
            raise ValueError(f"steps: {self.steps} and epochs: {self.epochs}; give one of them and null for the other")
        return self

    @model_validator(mode="after")
    def _warmup_ends(self):
        if self.steps is not None:
            require_steps_after_warmup(self.warmup_steps, self.steps)
        return self


class Finetuning(Training):
    epochs: Count
    learning_rates: Several[Rate]
    schedule: Literal["linear", "steps"]
    warmup_share: Share
    maximum_length: Annotated[Count, Field(ge=8)]

    @model_validator(mode="after")
    def _rates_fit_schedule(self):
        if self.schedule == "linear" and len(self.learning_rates) != 1:
            raise ValueError(f"schedule `linear` takes one of learning_rates, not {len(self.learning_rates)}")
        return self


class QuestionAnswering(Finetuning):
    tasks: Several[QuestionTask]
    question_length: Count
    stride: Count
    answer_length: Count
    null_threshold: float

    @model_validator(mode="after")
    def _windows_leave_nothing_out(self):
        room = self.maximum_length - self.question_length - 3  # [CLS] and two [SEP]
        if self.stride > room:
            raise ValueError(
                f"stride: {self.stride} leaves out tokens between windows; maximum_length: {self.maximum_length} and "
                f"question_length: {self.question_length} leave a window {room} tokens of the context"
            )
        return self


class Noise(Record):
    tasks: Several[Task]
    levels: Several[Level]
    kind: Literal["expected_norm", "exact_norm", "unit"]
    place: Literal["word_embeddings", "embedding_output"]
    special_tokens: bool
    seeds: Several[Seed]
    text: Several[Literal["typos", "dropped_words", "swapped_words"]]
    probes: bool

    @model_validator(mode="after")
    def _clean_first(self):
        if self.levels[0] != 0.0 or list(self.levels) != sorted(self.levels):
            raise ValueError("levels: must rise from 0.0, the clean score, that the others are compared with")
        return self


class CrossDomain(Record):
    tasks: Several[Task]
    positive_labels: dict[Task, Several[str]]

    @model_validator(mode="after")
    def _every_task_mapped(self):
        for task in self.tasks:
            if task not in self.positive_labels:
                raise ValueError(
                    f"positive_labels: `{task}` is missing; say which of its labels count as the same meaning"
                )
        return self


class Convergence(Record):
    protocol: Protocol
    steps: Several[Count]
    tasks: Several[Task]
    seeds: Several[Seed]


class Timing(Record):
    protocol: Protocol
    tasks: Several[Task]
    repeats: Count
    steps: Count
