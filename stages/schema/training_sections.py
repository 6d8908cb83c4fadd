"""The sections of params.yaml on BERT models and their training, as frozen records; sections.py explains their form."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from stages.schema.keys import OPEN, Key, Stated, count, key
from stages.schema.sections import Batch, Count, Name, Pair, QuestionTask, Rate, Record, Seed, Several, Share

# These operators take width from the feed-forward network, which must be at least so many times hidden + 1 wide. The
# largest comes first, so that an error names the strictest demand.
EXCEEDS = {"over_parameters_wide": 2, "over_parameters": 1, "original_narrow": 1}


def require_steps_after_warmup(warmup_steps: int, steps: int) -> None:
    """ValueError for a warm-up at least as long as the run: no steps would be left for the learning rate to fall."""
    if warmup_steps >= steps:
        raise ValueError(f"warmup_steps: {warmup_steps} leaves nothing of steps: {steps}")


class Sized(Record):
    """The size of a Transformer: of its encoder and, where it has one, of its decoder alike."""

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
        """Checks that every operator which takes width from the feed-forward network leaves some of it."""
        built = getattr(self, "operators", EXCEEDS)  # without a list, any may be built in this size
        for operator in (name for name in EXCEEDS if name in built):
            least = EXCEEDS[operator] * (self.hidden + 1)
            if self.intermediate < least:
                raise ValueError(
                    f"intermediate: {self.intermediate} must be {least} or more for hidden: {self.hidden}; below, "
                    f"{operator} has too little left of it (BERT: 4 x hidden)"
                )
        return self


class Model(Sized):
    """A size of BERT in `models` of params.yaml; any operator may be built in it."""


SMALL = {"layers": 4, "hidden": 512, "heads": 8, "intermediate": 2048, "positions": 512}
BASE = {"layers": 12, "hidden": 768, "heads": 12, "intermediate": 3072, "positions": 512}
STATED_SIZES = {
    "small": Key("BERT-small", C=Stated("models.small", SMALL)),
    "base": Key("BERT-base", C=Stated("models.base", BASE), K=Stated("model", BASE)),
}


class Variant(Record):
    """An operator with settings of its own; a setting that is left out, or null, is as the operator's source has it.

    start: how its weights are initialised, one of `starts` of its class. score_spread: standard deviation of its scores
    before training. score_rate: learning rate of `scores_alone` of its class, as a multiple of that of all others.
    self_score: number that is added to the score of every token with itself, before the softmax.
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
    """Sequences are cut into blocks of `length` tokens for the first `share` of the steps, and whole thereafter."""

    share: Annotated[float, Field(gt=0, le=1)]
    length: Annotated[int, Field(ge=2)]


class Pretraining(Training):
    inherited: ClassVar[dict[str, Key]] = {
        "seeds": Key("Pre-training seeds", CC=Stated("pretraining.seeds", 1, count), K=OPEN),
        "batch_size": Key(
            "Pre-training batch, sequences", C="pretraining.batch_size", K=Stated("pretraining.batch_size", 528)
        ),
        "betas": Key(
            "Adam betas in pre-training",
            C=Stated("pretraining.optimizer", [0.9, 0.999]),
            K=Stated("pretraining.optimizer", [0.9, 0.999]),
        ),
        "epsilon": Key("Adam epsilon in pre-training", C="pretraining.optimizer.epsilon", K=OPEN),
        "weight_decay": Key("Weight decay in pre-training", CC="pretraining.weight_decay", K=OPEN),
        "gradient_clipping": Key("Gradient clipping in pre-training", CC="pretraining.gradient_clipping", K=OPEN),
        "hidden_dropout": Key(
            "Dropout of hidden states in pre-training", CC="pretraining.hidden_dropout", K="model.hidden_dropout"
        ),
        "attention_dropout": Key(
            "Dropout of attention in pre-training", CC="pretraining.attention_dropout", K="model.attention_dropout"
        ),
        "precision": Key("Precision of pre-training", CC="pretraining.precision", K=OPEN),
    }
    steps: Count | None = key(
        "Pre-training steps",
        absent="given by the epochs",
        only={"pretraining.epochs": None},
        C="pretraining.steps",
        K=Stated("pretraining.steps", 200_000),
    )
    epochs: Count | None = key(
        "Pre-training epochs",
        absent="given by the steps",
        only={"pretraining.steps": None},
        C=Stated("pretraining_data.epochs.value", 1),
        K="pretraining.epochs",
    )
    sequence_length_warmup: SequenceLengthWarmup | None = key(
        "Short sequences first",
        absent="one length throughout",
        C=Stated("pretraining_data.sequence_length.how", None),
        K=Stated("model.max_sequence_length", None),
    )
    micro_batch_size: Batch | None = key("Sequences that a device takes at once")
    warmup_steps: Annotated[int, Field(ge=0, le=10**12)] = key(
        "Pre-training warm-up steps", C="pretraining.learning_rate.warmup_steps", K=OPEN
    )
    learning_rate: Rate = key("Pre-training peak learning rate", C="pretraining.learning_rate.peak", K=OPEN)
    initializer_range: Rate = key("Standard deviation of new weights", CC="pretraining.initializer_range", K=OPEN)
    mask_probability: Annotated[float, Field(gt=0, lt=1)] = key(
        "Share of masked tokens", C="pretraining.mask_probability", K="pretraining.mask_probability"
    )
    evaluation_interval: Count = key("Evaluation every, steps", CC="pretraining.evaluation_interval")
    checkpoint_interval: Count = key("State to resume from every, steps", CC="pretraining.checkpoint_interval")
    probes: bool = key("Probes of attention during pre-training")

    @model_validator(mode="after")
    def _one_length(self):
        if (self.steps is None) == (self.epochs is None):
            raise ValueError(f"steps: {self.steps} and epochs: {self.epochs}; give one of them and null for the other")
        return self

    @model_validator(mode="after")
    def _warmup_ends(self):
        if self.steps is not None:  # those of epochs are counted when the corpus is there
            require_steps_after_warmup(self.warmup_steps, self.steps)
        return self


class Finetuning(Training):
    inherited: ClassVar[dict[str, Key]] = {
        "seeds": Key("Fine-tuning seeds", C=Stated("finetuning.trials", 5, count), K=OPEN),
        "batch_size": Key(
            "Fine-tuning batch",
            C="finetuning.batch_size",
            K=Stated("training_time.batch_size", name="Fine-tuning batch (stated for timing)"),
        ),
        "weight_decay": Key("Fine-tuning weight decay", CC="finetuning.weight_decay", K="glue.weight_decay"),
        "attention_dropout": Key(
            "Fine-tuning attention dropout",
            CC="finetuning.attention_dropout",
            K=Stated("glue.dropout_attention", name="Fine-tuning dropout of attention"),
        ),
        "*": Key("Fine-tuning {name}", CC="finetuning.{name}", K=OPEN),
    }
    epochs: Count = key("Fine-tuning epochs", C="finetuning.epochs", K="glue.epochs")
    learning_rates: Several[Rate] = key(
        "Fine-tuning peak learning rate",
        C=Stated("finetuning.learning_rate.value", [1.0e-5]),
        K=Stated("glue.learning_rate", [1.0e-4, 2.0e-5, 2.0e-6], name="Fine-tuning learning rates"),
    )
    schedule: Literal["linear", "steps"] = key("Fine-tuning schedule", C="finetuning.learning_rate.schedule", K=OPEN)
    warmup_share: Share
    maximum_length: Annotated[Count, Field(ge=8)]

    @model_validator(mode="after")
    def _rates_fit_schedule(self):
        if self.schedule == "linear" and len(self.learning_rates) != 1:
            raise ValueError(f"schedule `linear` takes one of learning_rates, not {len(self.learning_rates)}")
        return self


class QuestionAnswering(Finetuning):
    inherited: ClassVar[dict[str, Key]] = {
        "epochs": Key("Question answering, epochs", K="squad.epochs"),
        "learning_rates": Key(
            "Question answering, learning rates", K=Stated("squad.learning_rate", [1.0e-4, 2.0e-5, 2.0e-6])
        ),
        "weight_decay": Key("Question answering, weight decay", K="squad.weight_decay"),
        "hidden_dropout": Key("Question answering, dropout of hidden states", K="squad.dropout"),
        "attention_dropout": Key("Question answering, dropout of attention", K="squad.attention_dropout"),
        "*": Key("Question answering, {name}", K=OPEN),
    }
    tasks: Several[QuestionTask] = key(
        "Question answering", K=Stated("squad.variants", ["squad1", "squad2", "squad1_triviaqa", "squad2_triviaqa"])
    )
    question_length: Count
    stride: Count
    answer_length: Count
    null_threshold: float

    @model_validator(mode="after")
    def _windows_leave_nothing_out(self):
        """Checks that no token of a context lies between two windows; the longest question leaves the least room."""
        room = self.maximum_length - self.question_length - 3  # [CLS] and two [SEP]
        if self.stride > room:  # windows begin `stride` tokens apart
            raise ValueError(
                f"stride: {self.stride} leaves out tokens between windows; maximum_length: {self.maximum_length} and "
                f"question_length: {self.question_length} leave a window {room} tokens of the context"
            )
        return self
