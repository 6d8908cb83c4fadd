"""params.yaml as frozen, validated records: the only reader of params.yaml.

Every key is checked before any work begins: an unknown key, a missing key, a wrong type or an impossible value gives
one error that names the key, what was given and what is allowed. No record holds a default: every value stands in
params.yaml with its unit and source (complete files for every scale: stages/scales/).
"""

from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

PATH = Path("params.yaml")

Operator = Literal[
    "original", "symmetric", "pairwise", "shared", "partial_qk", "hadamard", "fixed", "parameters", "parameters_wide",
    "original_tied_init", "original_narrow", "shared_kv", "tied_qkv",
]  # fmt: skip
Task = Literal["cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte"]
QuestionSet = Literal["squad1", "squad2", "triviaqa"]
QuestionTask = Literal["squad1", "squad2", "squad1_triviaqa", "squad2_triviaqa"]
Protocol = Literal["courtois2024", "kowsher2025"]


def _listed(values: object) -> object:
    """YAML lists become tuples; a value named twice would be computed, and counted, twice."""
    if not isinstance(values, list):
        return values
    if not values:
        raise ValueError("the list is empty; name at least one value")
    doubles = sorted({str(value) for value in values if values.count(value) > 1})
    if doubles:
        raise ValueError(f"named more than once: {', '.join(doubles)}")
    return tuple(values)


T = TypeVar("T")
Several = Annotated[tuple[T, ...], BeforeValidator(_listed)]
Pair = Annotated[tuple[T, T], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]  # stands in file and stage names
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Share = Annotated[float, Field(ge=0, lt=1)]
Rate = Annotated[float, Field(gt=0)]
Scheduler = Annotated[str, Field(pattern=r"^(tcp|tls|ucx)://\S+:\d+$")]  # address of a Dask scheduler


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Data(Record):
    source: Literal["embedded", "files", "hub"]
    root: str | None

    @model_validator(mode="after")
    def _root_for_files(self):
        if self.source == "files" and self.root is None:
            raise ValueError("source `files` needs `root`, the folder that holds the original files")
        return self


class Hub(Record):
    repository: str
    configuration: str | None
    revision: str


class CorpusHub(Hub):
    files: Several[str] | None


class Corpus(Record):
    documents: Count | None
    shards: Count
    seed: Seed
    files: Several[str]
    hub: Several[CorpusHub]


class HarmfulPerplexity(Record):
    above: Annotated[float, Field(ge=0)]
    below: Rate

    @model_validator(mode="after")
    def _ordered(self):
        if self.above >= self.below:
            raise ValueError(f"no score is above {self.above} and below {self.below}")
        return self


class Annotation(Record):
    blocklists: str | None
    kenlm_model: str | None
    quality_rules: bool


class Filtering(Record):
    excluded_categories: Several[str]
    harmful_pp: HarmfulPerplexity
    missing_harmful_pp: Literal["drop", "keep"]
    quality_warnings: Literal["drop", "keep"]
    annotation: Annotation
    documents: Count | None
    selection: Literal["first", "sample"]
    seed: Seed
    malformed_share: Share


class Tokenization(Record):
    vocabulary: str | None
    vocabulary_size: Annotated[int, Field(ge=100, le=65_536)]  # ids are stored as uint16
    sequence_length: Annotated[int, Field(ge=8)]
    partial_blocks: Literal["keep", "drop_per_batch"]
    validation_documents: Count
    seed: Seed


class Questions(Record):
    names: Several[QuestionSet]
    train_examples: Count | None
    validation_examples: Count | None
    squad2_training: Literal["original", "derived"]
    triviaqa_words: Count
    hub: dict[QuestionSet, Hub]

    @model_validator(mode="after")
    def _every_repository(self):
        missing = [name for name in get_args(QuestionSet) if name not in self.hub]
        if missing:
            raise ValueError(f"hub: no repository for {', '.join(missing)}")
        return self


class Tasks(Record):
    names: Several[Task]
    train_examples: Count | None
    validation_examples: Count | None
    seed: Seed
    hub: Hub
    questions: Questions


class Model(Record):
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
    def _room_for_attention_over_parameters(self):
        if self.intermediate <= 2 * self.hidden:
            raise ValueError(
                f"intermediate: {self.intermediate} must exceed 2 x hidden: {self.hidden}, the width at which "
                "parameters_wide has no pairs left (BERT: 4 x hidden)"
            )
        return self


class Attention(Record):
    pairwise_init: Literal["normal", "identity", "scaled"]


class Training(Record):
    """What pre-training and fine-tuning have in common."""

    seeds: Several[Seed]
    batch_size: Count
    betas: Pair[Share]
    epsilon: Rate
    weight_decay: Annotated[float, Field(ge=0)]
    gradient_clipping: Rate
    hidden_dropout: Share
    attention_dropout: Share
    precision: Literal["float32", "bfloat16"]


class Pretraining(Training):
    steps: Count | None
    epochs: Count | None
    micro_batch_size: Count | None
    warmup_steps: Annotated[int, Field(ge=0)]
    learning_rate: Rate
    initializer_range: Rate
    mask_probability: Annotated[float, Field(gt=0, lt=1)]
    evaluation_interval: Count
    checkpoint_interval: Count

    @model_validator(mode="after")
    def _one_length(self):
        if (self.steps is None) == (self.epochs is None):
            raise ValueError(f"steps: {self.steps} and epochs: {self.epochs}; give one of them and null for the other")
        return self

    @model_validator(mode="after")
    def _warmup_ends(self):
        if self.steps is not None and self.warmup_steps >= self.steps:
            raise ValueError(f"warmup_steps: {self.warmup_steps} leaves nothing of steps: {self.steps}")
        return self


class Finetuning(Training):
    epochs: Count
    learning_rates: Several[Rate]
    schedule: Literal["linear", "steps"]
    warmup_share: Share
    maximum_length: Annotated[int, Field(ge=8)]

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


Margin = Literal[
    "glue_score", "mrpc", "cola", "mnli_m", "mnli_mm", "qqp", "rte", "stsb", "qnli", "sst2", "squad", "validation_loss",
]  # fmt: skip


class Noise(Record):
    tasks: Several[Task]
    levels: Several[Annotated[float, Field(ge=0)]]
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
    steps: Several[Count]
    tasks: Several[Task]
    seeds: Several[Seed]


class Timing(Record):
    protocol: Protocol
    tasks: Several[Task]
    repeats: Count
    steps: Count


class Analysis(Record):
    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    alpha: Annotated[float, Field(gt=0, lt=0.5)]
    margins: dict[Margin, Rate]
    resamples: Annotated[int, Field(ge=100)]
    seed: Seed

    @model_validator(mode="after")
    def _every_margin(self):
        missing = [name for name in get_args(Margin) if name not in self.margins]
        if missing:
            raise ValueError(f"margins: nothing for {', '.join(missing)}; every comparison needs its margin")
        return self


class Report(Record):
    pdf: bool


class Settings(Record):
    """All of params.yaml. A stage reads only the sections that dvc.yaml lists for it (a test holds it to that)."""

    scale: Name
    operators: Several[Operator]
    sizes: Several[Name]
    protocols: Several[Protocol]
    workers: Count | Scheduler | None
    data: Data
    corpus: Corpus
    filtering: Filtering
    tokenization: Tokenization
    tasks: Tasks
    models: dict[Name, Model]
    attention: Attention
    pretraining: Pretraining
    finetuning: dict[Protocol, Finetuning]
    question_answering: QuestionAnswering
    noise: Noise
    cross_domain: CrossDomain
    convergence: Convergence
    timing: Timing
    analysis: Analysis
    report: Report

    @model_validator(mode="after")
    def _parts_fit(self):
        if "original" not in self.operators:
            raise ValueError("operators: every comparison is made against `original`; add it to the list")
        for size in self.sizes:
            if size not in self.models:
                raise ValueError(f"sizes: `{size}` is not described in models; allowed: {', '.join(self.models)}")
            for place, length in self._lengths():
                if length > self.models[size].positions:
                    raise ValueError(
                        f"{place}: {length} exceeds models.{size}.positions: {self.models[size].positions}"
                    )
        late = [step for step in self.convergence.steps if step > (self.pretraining.steps or step)]
        if late:
            raise ValueError(f"convergence.steps: {late[0]} exceeds pretraining.steps: {self.pretraining.steps}")
        for section in ("noise", "cross_domain", "convergence", "timing"):
            for task in getattr(self, section).tasks:
                if task not in self.tasks.names:
                    raise ValueError(f"{section}.tasks: `{task}` is not in tasks.names: {', '.join(self.tasks.names)}")
        for task in self.question_answering.tasks:
            for name in task.split("_"):
                if name not in self.tasks.questions.names:
                    raise ValueError(
                        f"question_answering.tasks: `{task}` needs `{name}` in tasks.questions.names: "
                        f"{', '.join(self.tasks.questions.names)}"
                    )
        for key, protocol in (
            *(("protocols", name) for name in self.protocols),
            ("timing.protocol", self.timing.protocol),
        ):
            if protocol not in self.finetuning:
                raise ValueError(f"{key}: `{protocol}` has no block in finetuning; there: {', '.join(self.finetuning)}")
        return self

    def _lengths(self):
        yield "tokenization.sequence_length", self.tokenization.sequence_length
        yield "question_answering.maximum_length", self.question_answering.maximum_length
        for protocol in dict.fromkeys((*self.protocols, self.timing.protocol)):
            if protocol in self.finetuning:
                yield f"finetuning.{protocol}.maximum_length", self.finetuning[protocol].maximum_length


def load_settings(path: Path = PATH) -> Settings:
    """Reads and checks the whole file. ValueError with every problem found, one line each."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"{path}: no such file; `cp stages/scales/laptop.yaml params.yaml` gives a complete one"
        ) from None
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not YAML: {error}") from None
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        problems = "\n".join(_problem(details) for details in error.errors(include_url=False))
        raise ValueError(f"{path}: {error.error_count()} problem(s)\n{problems}") from None


def _problem(details: dict) -> str:
    """One line: the key, what was given, what is allowed."""
    key = ".".join(str(part) for part in details["loc"] if part != "[key]") or "the file"
    match details["type"]:
        case "extra_forbidden":
            return f"  {key}: unknown key (given: {details['input']!r}); remove it or mend the spelling"
        case "missing":
            return f"  {key}: missing; stages/scales/laptop.yaml shows every key"
        case "value_error":
            given = "" if isinstance(details["input"], dict) else f" (given: {details['input']!r})"
            return f"  {key}: {details['ctx']['error']}{given}"
    hint = ""
    if details["type"] in ("float_type", "int_type") and isinstance(details["input"], str):
        hint = "; YAML takes a number with an exponent only with a dot, as in 1.0e-5"
    return f"  {key}: given {details['input']!r}; {details['msg'][0].lower()}{details['msg'][1:]}{hint}"
