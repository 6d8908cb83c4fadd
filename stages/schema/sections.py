"""The sections of params.yaml on data, analysis and report as frozen records, and the types of values of all sections.

Comments in stages/scales/laptop.yaml describe every key, with unit, source and the meaning of null. Only `Variant` has
default values.
"""

import re
from collections import Counter
from os.path import expanduser
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from stages.files import commits
from stages.files.paths import EMBEDDED
from stages.files.quoting import CONTROLS, quote_value
from stages.schema.names import require_text

Task = Literal["cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte"]
QuestionSet = Literal["squad1", "squad2", "triviaqa"]
# _triviaqa: trained on TriviaQA before
QuestionTask = Literal["squad1", "squad2", "squad1_triviaqa", "squad2_triviaqa"]
# Recipes of fine-tuning
Protocol = Literal["courtois2024", "kowsher2025"]


# Every combination of the values of lists is a job, and stage `settings` counts the jobs one by one.
LONGEST_LIST = 1000


def _make_tuple(value: object) -> object:
    """Turns a YAML list into a tuple, because strict records refuse lists; other values stay."""
    return tuple(value) if isinstance(value, list) else value


def _make_distinct(values: object) -> object:
    """Turns a YAML list into a tuple, as `_make_tuple`; ValueError for a long list or a value named twice."""
    if isinstance(values, list):
        if len(values) > LONGEST_LIST:
            raise ValueError(f"{len(values)} values, at most {LONGEST_LIST} are allowed")
        # A value that is named twice would be computed and counted twice.
        times = Counter(map(str, values))
        doubles = sorted(value for value in times if times[value] > 1)
        if doubles:
            raise ValueError(f"named more than once: {quote_value(', '.join(doubles))}")
    return _make_tuple(values)


def _require_filled(values: object) -> object:
    """Returns the values; ValueError for an empty list."""
    if values == []:
        raise ValueError("the list is empty; name at least one value")
    return values


def _check_repository(value: str) -> str:
    """Returns the value; ValueError unless a name OWNER/NAME, or a path with a slash."""
    # The library `datasets` would take other names, such as `json`, for a file format.
    if "/" not in value or "://" in value:
        raise ValueError("not OWNER/NAME, a repository of the hub; write a folder as a path, such as ./NAME")
    return value


def _check_workers(value: object) -> object:
    # `isinstance` would allow true, which is an int
    if value is None or (type(value) is int and value > 0):
        return value
    if isinstance(value, str) and re.fullmatch(r"(tcp|tls|ucx)://\S+:\d+", value):
        return value
    raise ValueError("give null (a process per core or GPU), a number from 1, or a Dask scheduler as tcp://HOST:8786")


def _check_text(value: str) -> str:
    if CONTROLS.search(value):
        raise ValueError("has a character that readers cannot see, such as NUL; delete the character")
    return value


T = TypeVar("T")
# may be empty
Possibly = Annotated[tuple[T, ...], BeforeValidator(_make_distinct)]
Several = Annotated[Possibly[T], BeforeValidator(_require_filled)]
Pair = Annotated[tuple[T, T], BeforeValidator(_make_tuple)]

# Upper bounds refuse slips of the keyboard.
Count = Annotated[int, Field(ge=1, le=10**12)]
Batch = Annotated[int, Field(ge=1, le=1_000_000)]
# Seeds are words of NumPy's SeedSequence.
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Share = Annotated[float, Field(ge=0, lt=1)]
Rate = Annotated[float, Field(gt=0)]
# Noise relative to the clean input, of which a level far below the bound leaves nothing.
Level = Annotated[float, Field(ge=0, le=1000)]
# Token ids are stored as uint16.
VocabularySize = Annotated[int, Field(ge=100, le=65_536)]
# Names stand in the names of files, of which some hold three; a file system allows 255 letters.
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60), AfterValidator(require_text)]
# Code of a language, such as pt-BR, eng_Latn or ca@valencia, which ends the names of files.
Language = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9@_-]*$", max_length=60)]
# A text for readers.
Text = Annotated[str, AfterValidator(_check_text)]
# A file or folder of the user; ~ is the home directory, as in a shell.
UsersPath = Annotated[str, AfterValidator(expanduser)]
# Relative path of a Python file.
Script = Annotated[str, Field(pattern=r"^\w[\w./-]*\.py$")]
# Where data are from.
Source = Literal["embedded", "files", "hub"]
# Number of processes, None for a process per core or GPU, or the address of a Dask scheduler.
Workers = Annotated[int | str | None, BeforeValidator(_check_workers)]


class Record(BaseModel):
    """A section of params.yaml, without unknown keys, NaN and infinity; an integer may stand for a float."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Data(Record):
    """The source of text, of sentence pairs and, unless `tasks.source` names another, of tasks."""

    source: Source
    root: UsersPath | None

    @property
    def folder(self) -> Path:
        """The folder of the original files of text and sentence pairs."""
        return self.find_folder(self.source)

    def find_folder(self, source: str) -> Path:
        """Returns the folder of files: data/embedded, `root`, or the working directory if `root` is null."""
        return EMBEDDED if source == "embedded" else Path(self.root or ".")

    @model_validator(mode="after")
    def _check_root(self):
        if self.source == "files" and self.root is None:
            raise ValueError("source `files` needs `root`, the folder that holds the original files; set `root`")
        return self


class HubRepository(Record):
    """A repository of the hub, OWNER/NAME, at a commit, branch or tag, or a folder of the same layout, ./NAME."""

    repository: Annotated[str, AfterValidator(_check_repository)]
    revision: str

    def pin_revision(self, key: str) -> Self:
        """Returns the repository at the commit that the branch or tag names now; `key` is as in `find_commit`."""
        return self.model_copy(update={"revision": commits.find_commit(self.repository, self.revision, key)})


class Hub(HubRepository):
    """A dataset of the hub; `configuration` is null for a dataset without configurations."""

    configuration: str | None


class CorpusHub(Hub):
    """A dataset of documents; files: patterns of OSCAR's files, or null for rows with a column `content` or `text`."""

    files: Several[str] | None


class Corpus(Record):
    """The source of the documents of pre-training."""

    documents: Count | None
    shards: Count
    files: Several[str]
    hub: Several[CorpusHub]


class HarmfulPerplexity(Record):
    """Bounds of the perplexity by a model of harmful text; kept documents lie strictly between."""

    above: Annotated[float, Field(ge=0)]
    below: Rate

    @model_validator(mode="after")
    def _check_order(self):
        if self.above >= self.below:
            raise ValueError(f"no score is above {self.above} and below {self.below}; `below` must be the larger bound")
        return self


class Annotation(Record):
    """Ways to annotate documents that lack the metadata of the filter; null and false leave the metadata unknown."""

    blocklists: UsersPath | None
    kenlm_model: UsersPath | None
    quality_rules: bool


class Filtering(Record):
    """The three rules of the filter, and the choice of the documents that pass."""

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
    """The vocabulary, and the sequences of pre-training."""

    vocabulary: str | None
    vocabulary_revision: str
    vocabulary_size: VocabularySize
    sequence_length: Annotated[Count, Field(ge=8)]
    partial_blocks: Literal["keep", "drop_per_batch"]
    validation_documents: Count
    seed: Seed


class Questions(Record):
    """Sets of questions on passages."""

    names: Possibly[QuestionSet]
    train_examples: Count | None
    validation_examples: Count | None
    squad2_training: Literal["original", "derived"]
    triviaqa_words: Count
    hub: dict[QuestionSet, Hub]

    @model_validator(mode="after")
    def _check_hub(self):
        missing = [name for name in self.names if name not in self.hub]
        if missing:
            raise ValueError(f"hub: nothing for {', '.join(missing)}; give a repository for each name in names")
        return self


class Tasks(Record):
    """Tasks of the GLUE kind, and questions."""

    source: Source | None
    names: Possibly[Task]
    train_examples: Count | None
    validation_examples: Count | None
    seed: Seed
    hub: HubRepository
    questions: Questions


# A side of a comparison: an operator, or a pair of operators whose difference is compared
Arm = Name | Pair[Name]


class Analysis(Record):
    """Levels of intervals and of losses, and comparisons beside those of every operator with `original`."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    alpha: Annotated[float, Field(gt=0, lt=0.5)]
    levels: Several[Rate]
    pairs: Annotated[tuple[Pair[Arm], ...], BeforeValidator(_make_tuple)]


class Report(Record):
    """Texts and formats of the report."""

    pdf: bool
    data: Text | None
    remark: Text | None
