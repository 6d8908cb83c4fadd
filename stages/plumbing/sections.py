"""The sections of params.yaml on data, analysis and report as frozen records, and the kinds of values in all sections.

No record holds a default: every value stands in params.yaml with its unit and source.
"""

from typing import Annotated, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

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
Count = Annotated[int, Field(ge=1, le=10**12)]  # more of anything is a slip of the keyboard
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Share = Annotated[float, Field(ge=0, lt=1)]
Rate = Annotated[float, Field(gt=0)]
Level = Annotated[float, Field(ge=0, le=1000)]  # of noise; nothing is left of a text or a vector far below
Batch = Annotated[int, Field(ge=1, le=1_000_000)]  # examples whose ids fit into the memory of any machine
Script = Annotated[str, Field(pattern=r"^\w[\w./-]*\.py$")]  # a Python file below this folder
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


class HubRepository(Record):
    repository: str
    revision: str


class Hub(HubRepository):
    configuration: str | None


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
    vocabulary_revision: str
    vocabulary_size: Annotated[int, Field(ge=100, le=65_536)]  # ids are stored as uint16
    sequence_length: Annotated[Count, Field(ge=8)]
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
    hub: HubRepository
    questions: Questions


Margin = Literal[
    "glue_score", "mrpc", "cola", "mnli_m", "mnli_mm", "qqp", "rte", "stsb", "qnli", "sst2", "squad", "validation_loss",
]  # fmt: skip


class Analysis(Record):
    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    alpha: Annotated[float, Field(gt=0, lt=0.5)]
    margins: dict[Margin, Rate]
    resamples: Annotated[Count, Field(ge=100)]
    seed: Seed

    @model_validator(mode="after")
    def _every_margin(self):
        missing = [name for name in get_args(Margin) if name not in self.margins]
        if missing:
            raise ValueError(f"margins: nothing for {', '.join(missing)}; every comparison needs its margin")
        return self


class Report(Record):
    pdf: bool
    data: str | None
    remark: str | None
