"""The section of params.yaml on translation and sequence tasks, as frozen records; sections.py explains their form."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from stages.schema.keys import OPEN, Key, Stated, covers, key
from stages.schema.names import require_listed
from stages.schema.sections import Batch, Count, Hub, Name, Pair, Rate, Record, Seed, Several, Share
from stages.schema.training_sections import Sized, require_steps_after_warmup


class Layers(Sized):
    """The size and the optimiser of the models that stage `translation` trains, with their operators and seeds."""

    operators: Several[Name]
    seeds: Several[Seed]
    hidden: Annotated[Count, Field(ge=2, multiple_of=2)]  # channels are pairs of sine and cosine
    positions: Annotated[Count, Field(ge=4)]  # fewer leave hardly anything to predict
    dropout: Share
    batch_size: Batch
    warmup_steps: Count
    betas: Pair[Share]
    epsilon: Rate


class PairFiles(Record):  # by split: NAME of NAME.SOURCE and NAME.TARGET, or a whole NAME.tsv, below data.root
    train: str
    validation: str
    test: str


HUB = {  # the datasets that the sources of the two protocols train on
    "blog": {"repository": "neulab/ted_hrlr", "configuration": "pt_to_en", "revision": "refs/convert/parquet"},
    "draft": {
        "repository": "wmt/wmt14",
        "configuration": "de-en",
        "revision": "b199e406369ec1b7634206d3ded5ba45de2fe696",
    },
}
# Null is a source's "all" only where the pairs are those of its dataset on the hub, and in T between its languages
BLOG_PAIRS = ("data.source", *(f"translation.protocols.blog.{name}" for name in ("hub", "source", "target")))
DRAFT_PAIRS = ("data.source", "translation.protocols.draft.hub")


class TranslationProtocol(Layers):
    inherited: ClassVar[dict[str, Key]] = {
        "operators": Key(
            "Translating operators",
            B=Stated("operator", ["original", "hadamard"], covers),
            D=Stated("base", ["original", "over_parameters", "over_parameters_wide"], covers),
        ),
        "seeds": Key("Translation, seeds", B=OPEN, D=OPEN),
        "hidden": Key("Translation, width", B="d_model", D="base.d_model"),
        "intermediate": Key(
            "Translation, intermediate", T="intermediate", D=Stated("base.d_ff", name="Translation, inner width")
        ),
        "positions": Key("Translation, positions", B="sequence_length", D=OPEN),
        "batch_size": Key(
            "Translation, batch size", T="batch_size", V=Stated("batch_size", 900, name="Translation, batch, pairs")
        ),
        "*": Key("Translation, {name}", T="{name}", V="{name}"),
    }
    source: Name = key("Language translated from", B=Stated("task", "pt"), D=Stated("evaluation.data", "en"))
    target: Name = key("Language translated to", B=Stated("task", "en"), D=Stated("evaluation.data", "de"))
    files: PairFiles = key("Files of sentence pairs ({part})", only={"data.source": "files"})
    hub: Hub = key(
        "Sentence pairs on the hub",
        only={"data.source": "hub"},
        T=Stated("data", HUB["blog"]),
        V=Stated("data", HUB["draft"]),
    )
    train_pairs: Count | None = key(
        "Training pairs", T=Stated("data", None, also=BLOG_PAIRS), V=Stated("data", None, also=DRAFT_PAIRS)
    )
    held_out_pairs: Count | None = key(
        "Pairs held out", T=Stated("data", None, also=BLOG_PAIRS), D=Stated("evaluation.data", None, also=DRAFT_PAIRS)
    )
    vocabulary: Literal["separate", "shared"]
    vocabulary_size: Annotated[int, Field(ge=100, le=65_536)] = key(  # ids are stored as uint16
        "Translation, vocabulary size", T=Stated("vocabulary_size", 8000), V="vocabulary_size"
    )
    label_smoothing: Share
    epochs: Count = key("Translation, epochs", B="epochs", V=Stated("epochs", 20))
    precision: Literal["float32", "bfloat16"] = key("Translation, precision", B=OPEN, D=OPEN)
    scored: Literal["validation", "test"] = key(
        "Split that is translated", B=OPEN, D=Stated("evaluation.data", "validation")
    )
    beams: Count = key("Beams ({part})", V=Stated("beams", name="Translation, beams"))
    length_penalty: Annotated[float, Field(ge=0)] = key(
        "Length penalty of beams ({part})", V=Stated("length_penalty", name="Translation, length penalty")
    )


class SequenceTasks(Layers):
    inherited: ClassVar[dict[str, Key]] = {"*": Key("Sequence tasks, {name}")}
    steps: Count
    learning_rate: Rate

    @model_validator(mode="after")
    def _warmup_ends(self):
        require_steps_after_warmup(self.warmup_steps, self.steps)
        return self

    @model_validator(mode="after")
    def _a_key_for_every_position(self):
        if self.positions > 17:  # the last position asks for a key of another, and every other has its own
            raise ValueError(f"positions: {self.positions}; the 16 keys of the copying task fill 17 at most")
        return self


class Translation(Record):
    operators: Several[Name] = key("Operators that translate")
    seed: Seed = key("Seed of the generated sentence pairs", only={"data.source": "embedded"})
    protocols: dict[Literal["blog", "draft"], TranslationProtocol]
    sequence_tasks: SequenceTasks

    @model_validator(mode="after")
    def _recipes_use_trained_operators_and_the_original(self):
        """Checks that each recipe lists `original`, to compare with, and only operators that the stage trains."""
        places = {f"protocols.{name}": protocol for name, protocol in self.protocols.items()}
        for place, recipe in (places | {"sequence_tasks": self.sequence_tasks}).items():
            for operator in recipe.operators:
                require_listed(operator, f"{place}.operators", self.operators, "operators")
            if "original" not in recipe.operators:
                raise ValueError(f"{place}.operators: every comparison is made against `original`; add it to the list")
        return self
