"""The sections of params.yaml on BERT models and their training, as frozen records; see sections.py."""

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import Field, model_validator

from stages.schema.sections import Batch, Count, Name, Pair, Possibly, QuestionTask, Rate, Record, Seed, Several, Share

# Operators that take width from the feed-forward network, and the least width of this network, in units of hidden + 1.
# The largest width comes first, so that an error names the strictest demand.
LEAST_WIDTHS = {"over_parameters_wide": 2, "over_parameters": 1, "original_narrow": 1}


def require_steps_after_warmup(warmup_steps: int, steps: int) -> None:
    """Raises ValueError for a warm-up that leaves no steps for the learning rate to fall."""
    if warmup_steps >= steps:
        raise ValueError(f"warmup_steps: {warmup_steps} leaves nothing of steps: {steps}; give fewer warm-up steps")


class Sized(Record):
    """The size of a Transformer: of the encoder and, in an encoder-decoder, of the decoder."""

    layers: Count
    hidden: Count
    heads: Count
    intermediate: Count
    positions: Count

    @model_validator(mode="after")
    def _check_heads(self):
        if self.hidden % self.heads:
            raise ValueError(f"heads: {self.heads} does not divide hidden: {self.hidden}; choose a divisor")
        return self

    def find_least_width(self, operator: str) -> int:
        """Returns the least width of the feed-forward network for an operator; 0 if the operator takes no width."""
        return LEAST_WIDTHS.get(operator, 0) * (self.hidden + 1)

    def require_room(self, operators: Collection[str]) -> None:
        """Raises ValueError if an operator would leave the feed-forward network no width."""
        for operator in LEAST_WIDTHS:
            least = self.find_least_width(operator)
            if operator in operators and self.intermediate < least:
                raise ValueError(
                    f"intermediate: {self.intermediate} must be {least} or more for hidden: {self.hidden}; with less, "
                    f"{operator} has no width left for the feed-forward network (BERT: 4 x hidden)"
                )


class Model(Sized):
    """A size of BERT."""


class Variant(Record):
    """An operator with further settings; a setting that is null, or left out, is as in the operator's source.

    stages/attention/base.py explains the settings.
    """

    operator: Name
    start: Name | None = None
    score_spread: Rate | None = None
    score_rate: Rate | None = None
    self_score: float | None = None


class Training(Record):
    """The keys that the recipes of pre-training and of fine-tuning have in common."""

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
    """Sequences are cut into blocks of `length` tokens for the first `share` of the steps."""

    share: Annotated[float, Field(gt=0, le=1)]
    length: Annotated[int, Field(ge=2)]


class Pretraining(Training):
    """The recipe of masked language modelling."""

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
    def _check_steps(self):
        if (self.steps is None) == (self.epochs is None):
            raise ValueError(f"steps: {self.steps} and epochs: {self.epochs}; give one key, and null for the other key")
        # the steps of epochs are known only when the corpus is there
        if self.steps is not None:
            require_steps_after_warmup(self.warmup_steps, self.steps)
        return self


class Finetuning(Training):
    """A recipe of fine-tuning."""

    epochs: Count
    learning_rates: Several[Rate]
    schedule: Literal["linear", "steps"]
    warmup_share: Share
    maximum_length: Annotated[Count, Field(ge=8)]

    @model_validator(mode="after")
    def _check_rates(self):
        if self.schedule == "linear" and len(self.learning_rates) != 1:
            raise ValueError(
                f"schedule `linear` takes one of learning_rates, not {len(self.learning_rates)}; keep a single value"
            )
        return self


class QuestionAnswering(Finetuning):
    """The recipe for questions on passages, which are cut into windows."""

    tasks: Possibly[QuestionTask]
    question_length: Count
    stride: Count
    answer_length: Count
    null_threshold: float

    @model_validator(mode="after")
    def _check_windows(self):
        # a window is [CLS], the question, [SEP], tokens of the context and [SEP]; a long question leaves the least room
        room = self.maximum_length - self.question_length - 3
        # windows begin `stride` tokens apart
        if self.stride > room:
            raise ValueError(
                f"stride: {self.stride} leaves out tokens between windows; maximum_length: {self.maximum_length} and "
                f"question_length: {self.question_length} leave a window {room} tokens of the context; make the stride "
                "shorter"
            )
        return self
