"""The sections of params.yaml on data, analysis and report as frozen records, and the kinds of values in all sections.

No record but `Variant` holds a default. What a key does and what null means there, the comments in
stages/scales/laptop.yaml say, with unit and source. `key` adds its name in the report and, by the letters of keys.py,
what each source has of it; `inherited` does so for the fields of a record that have no Key of their own.
"""

from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from stages.schema.keys import OPEN, Stated, contains, covers, equal, key

Task = Literal["cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte"]
QuestionSet = Literal["squad1", "squad2", "triviaqa"]
QuestionTask = Literal["squad1", "squad2", "squad1_triviaqa", "squad2_triviaqa"]  # _triviaqa: after training on that
Protocol = Literal["courtois2024", "kowsher2025"]  # recipes of fine-tuning
GLUE = ["cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte"]  # the tasks of both papers


def _listed(values: object) -> object:
    """Turns a YAML list into a tuple; other values stay, for pydantic. ValueError if it is empty or repeats a value."""
    if not isinstance(values, list):
        return values
    if not values:
        raise ValueError("the list is empty; name at least one value")
    doubles = sorted({str(value) for value in values if values.count(value) > 1})
    if doubles:  # they would be computed, and counted, twice
        raise ValueError(f"named more than once: {', '.join(doubles)}")
    return tuple(values)


T = TypeVar("T")
Several = Annotated[tuple[T, ...], BeforeValidator(_listed)]  # a strict record would take no list for a tuple
Pair = Annotated[tuple[T, T], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]  # stands in file and stage names
Count = Annotated[int, Field(ge=1, le=10**12)]  # more of anything is a slip of the keyboard
Seed = Annotated[int, Field(ge=0, lt=2**32)]  # one word of NumPy's SeedSequence, which joins it with others
Share = Annotated[float, Field(ge=0, lt=1)]
Rate = Annotated[float, Field(gt=0)]
Level = Annotated[float, Field(ge=0, le=1000)]  # of noise; nothing is left of a text or a vector far below
Batch = Annotated[int, Field(ge=1, le=1_000_000)]  # in examples, sequences or pairs; more is a slip, too
Script = Annotated[str, Field(pattern=r"^\w[\w./-]*\.py$")]  # relative path of a Python file
Scheduler = Annotated[str, Field(pattern=r"^(tcp|tls|ucx)://\S+:\d+$")]  # address of a Dask scheduler


def every(names: Any) -> AfterValidator:
    """Returns a validator by which a map must have a value for every name of `names`, a Literal."""

    def complete(values: dict) -> dict:
        if missing := [name for name in get_args(names) if name not in values]:
            raise ValueError(f"nothing for {', '.join(missing)}; give each of {', '.join(get_args(names))}")
        return values

    return AfterValidator(complete)


class Record(BaseModel):
    """A section of params.yaml; refuses an unknown key, NaN, infinity, and another type but an integer for a float."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Data(Record):
    source: Literal["embedded", "files", "hub"] = key(
        "Where the data come from",
        C=Stated("pretraining_data.corpus.dataset_name", "hub", also=("corpus.hub",)),
        K=Stated("pretraining_data.corpora", "hub", also=("corpus.hub",)),
        T=Stated("data", "hub", also=("translation.protocols.blog.hub",)),
        V=Stated("data", "hub", also=("translation.protocols.draft.hub",)),
    )
    root: str | None = key("Folder of the data", absent="none")

    @property
    def generated(self) -> bool:
        """Whether this repository generates the data, so that no score on them is one of the papers'."""
        return self.source == "embedded"

    @model_validator(mode="after")
    def _root_for_files(self):
        if self.source == "files" and self.root is None:
            raise ValueError("source `files` needs `root`, the folder that holds the original files")
        return self


class HubRepository(Record):
    """A repository of the Hugging Face hub, or a folder of the same layout, at a commit, branch or tag."""

    repository: str
    revision: str


class Hub(HubRepository):
    """A dataset in one of its configurations; None where it has only one."""

    configuration: str | None


class CorpusHub(Hub):
    """A dataset of documents: OSCAR's own files that match `files`; None: its rows, by column `content` or `text`."""

    files: Several[str] | None


class Corpus(Record):
    documents: Count | None = key(
        "Documents read", C=Stated("pretraining_data.corpus.value", None), K=Stated("pretraining_data.corpora", None)
    )
    shards: Count = key("Files of the corpus")
    seed: Seed = key("Seed of the generated corpus", only={"data.source": "embedded"})
    files: Several[str] = key("Text files", only={"data.source": "files"})
    hub: Several[CorpusHub] = key(
        "Corpus on the hub",
        only={"data.source": "hub"},
        C=Stated(  # one of the two or both: they hold the same corpus
            "pretraining_data.corpus.dataset_name",
            ["mcrts/OSCAR-2301_en_30M", "oscar-corpus/OSCAR-2301"],
            lambda hubs, expected: {hub["repository"] for hub in hubs} <= {*expected},
        ),
        K=Stated(  # both, in any order, configuration and revision
            "pretraining_data.corpora",
            ["rojagtap/bookcorpus", "wikimedia/wikipedia"],
            lambda hubs, expected: equal([hub["repository"] for hub in hubs], expected),
        ),
    )


class HarmfulPerplexity(Record):  # by a model of harmful text; kept are documents strictly between the two
    above: Annotated[float, Field(ge=0)] = key(
        "Perplexity kept above", rule="harmful_pp", C=Stated("pretraining_data.filters.harmful_perplexity.read_as", 5.0)
    )
    below: Rate = key(
        "Perplexity kept below", rule="harmful_pp", C=Stated("pretraining_data.filters.harmful_perplexity.read_as", 1e5)
    )

    @model_validator(mode="after")
    def _ordered(self):
        if self.above >= self.below:
            raise ValueError(f"no score is above {self.above} and below {self.below}")
        return self


class Annotation(Record):  # of documents that lack the metadata; null and false leave it unknown
    blocklists: str | None = key("Lists that give categories to documents without", absent="none")
    kenlm_model: str | None = key("Model that gives a perplexity to documents without", absent="none")
    quality_rules: bool = key("Rules that give warnings to documents without")


class Filtering(Record):
    excluded_categories: Several[str] = key(
        "Excluded categories", rule="categories", C="pretraining_data.filters.excluded_ut1_categories"
    )
    harmful_pp: HarmfulPerplexity
    missing_harmful_pp: Literal["drop", "keep"] = key(
        "Documents without a perplexity", CC="filtering.missing_harmful_pp"
    )
    quality_warnings: Literal["drop", "keep"] = key(
        "Documents with quality warnings",
        rule="quality_warnings",
        C=Stated("pretraining_data.filters.quality_warnings", "drop"),
    )
    annotation: Annotation
    documents: Count | None = key(
        "Documents kept",
        absent="all that pass, of those read ({corpus.documents})",
        C=Stated("pretraining_data.corpus.value", 30_000_000),
    )
    selection: Literal["first", "sample"] = key("Choice of the documents kept", CC="filtering.selection")
    seed: Seed = key("Seed of that choice", only={"filtering.selection": "sample"})
    malformed_share: Share = key("Share of malformed documents or sentence pairs that stops a stage")


class Tokenization(Record):
    vocabulary: str | None = key(
        "Vocabulary",
        absent="trained on the filtered corpus",
        C=Stated("pretraining_data.tokenizer.value", "bert-base-uncased", contains),
        K=OPEN,
    )
    vocabulary_revision: str = key("Revision of a vocabulary of the hub")
    vocabulary_size: Annotated[int, Field(ge=100, le=65_536)] = key(  # ids are stored as uint16
        "Word pieces of a trained vocabulary",
        only={"tokenization.vocabulary": None},
        CC="tokenization.vocabulary_size",
    )
    sequence_length: Annotated[Count, Field(ge=8)] = key(
        "Sequence length, tokens", C="pretraining_data.sequence_length.value", K="model.max_sequence_length"
    )
    partial_blocks: Literal["keep", "drop_per_batch"] = key(
        "Partial sequences", CC="tokenization.partial_blocks", K=OPEN
    )
    validation_documents: Count = key("Validation documents", CC="tokenization.validation_documents", K=OPEN)
    seed: Seed = key("Seed of the validation split", C=OPEN)


class Questions(Record):
    names: Several[QuestionSet] = key(
        "Sets of questions", K=Stated("squad.variants", ["squad1", "squad2", "triviaqa"], covers)
    )
    train_examples: Count | None = key("Training questions a set", K=Stated("data_sizes", None))
    validation_examples: Count | None = key("Validation questions a set", K=Stated("data_sizes", None))
    squad2_training: Literal["original", "derived"] = key(
        "Training questions of SQuAD 2.0", K=Stated("squad.datasets", "original")
    )
    triviaqa_words: Count = key("Words of a document in which TriviaQA's answer is sought", K=OPEN)
    hub: Annotated[dict[QuestionSet, Hub], every(QuestionSet)] = key(
        "Questions on the hub", only={"data.source": "hub"}
    )


class Tasks(Record):
    names: Several[Task] = key("Tasks", C=Stated("finetuning.benchmark", GLUE), K=Stated("glue.tasks", GLUE))
    train_examples: Count | None = key(
        "Training examples a task", C=Stated("finetuning.benchmark", None), K=Stated("data_sizes", None)
    )
    validation_examples: Count | None = key(
        "Validation examples a task", C=Stated("finetuning.benchmark", None), K=Stated("data_sizes", None)
    )
    seed: Seed = key("Seed of samples of tasks and questions")
    hub: HubRepository = key("GLUE on the hub", only={"data.source": "hub"})
    questions: Questions


Arm = Name | Pair[Name]  # one side of a comparison: an operator, or a pair of operators, whose difference is compared


def _tuples(value: object) -> object:
    """Turns YAML lists, and lists in them, into tuples; other values stay, for pydantic."""
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value


class Analysis(Record):
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = key("Level of intervals")
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = key("Level of tests")
    levels: Several[Rate] = key("Levels of the validation loss whose steps are compared")
    pairs: Annotated[tuple[Pair[Arm], ...], BeforeValidator(_tuples)] = key("Further pairs of arms that are compared")


class Report(Record):
    pdf: bool = key("Whether the report is also a PDF")
    data: str | None = key("What the data are called on every page")
    remark: str | None = key("What the first screen says of how the run was planned")
