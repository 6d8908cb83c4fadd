"""params.yaml as frozen, validated records: the only reader of params.yaml.

Every key is checked before any work begins: an unknown key, a missing key, a wrong type or an impossible value gives
one error that names the key, what was given and what is allowed.
"""

import re
from itertools import product
from pathlib import Path

from pydantic import ValidationError, model_validator

from stages.files.documents import read_yaml
from stages.files.storage import sha256
from stages.schema.keys import Stated, covers, key
from stages.schema.names import did_you_mean, require_listed
from stages.schema.operators import described
from stages.schema.sections import (
    GLUE,
    Analysis,
    Corpus,
    Count,
    Data,
    Filtering,
    Name,
    Protocol,
    Record,
    Report,
    Scheduler,
    Script,
    Several,
    Tasks,
    Tokenization,
)
from stages.schema.testing_sections import Convergence, CrossDomain, Noise, Timing
from stages.schema.training_sections import STATED_SIZES, Finetuning, Model, Pretraining, QuestionAnswering, Variant
from stages.schema.translation_sections import Translation

PATH = Path("params.yaml")
REFERENCE = "original"  # the operator that all others are compared with


class Settings(Record):
    """All of params.yaml (see sections.py). A stage reads only sections that dvc.yaml lists for it; a test checks."""

    scale: Name = key("Name of these settings")
    operators: Several[Name] = key(
        "Operators",
        C=Stated("operators", ["original", "symmetric", "pairwise"], covers),
        K=Stated("baselines", ["original", "symmetric", "pairwise", "shared"], covers),
    )
    operators_file: Script = key("File with operators of your own")
    variants: dict[Name, Variant] = key("Operator {name}", items={})
    sizes: Several[Name] = key("Model sizes", C=Stated("models", ["small", "base"]), K=Stated("model", ["base"]))
    protocols: Several[Protocol] = key("Recipes of fine-tuning")
    workers: Count | Scheduler | None = key("Processes for independent jobs", absent="one a core or GPU")
    data: Data
    corpus: Corpus
    filtering: Filtering
    tokenization: Tokenization
    tasks: Tasks
    models: dict[Name, Model] = key("BERT-{name}, a size of no paper", items=STATED_SIZES)
    pretraining: Pretraining
    finetuning: dict[Protocol, Finetuning]
    question_answering: QuestionAnswering
    noise: Noise
    cross_domain: CrossDomain
    convergence: Convergence
    translation: Translation
    timing: Timing
    analysis: Analysis
    report: Report

    @model_validator(mode="after")
    def _operators_are_known(self):
        """Checks all names of operators, and what variants set, against what the operators say of themselves."""
        operators = described(Path(self.operators_file))
        for name, variant in self.variants.items():
            if name in operators:
                raise ValueError(f"variants: `{name}` is the name of an operator; give the variant another")
            require_listed(variant.operator, f"variants.{name}.operator", operators, "the operators")
            operator = operators[variant.operator]
            if variant.start is not None:
                require_listed(
                    variant.start, f"variants.{name}.start", operator.starts, f"the starts of {operator.name}"
                )
            if variant.score_rate is not None and not operator.scores_alone:
                raise ValueError(
                    f"variants.{name}.score_rate: {operator.name} has no parameters that serve its scores alone"
                )
        ours = "the operators of this repository (variants and operators of your own train as BERT alone)"
        for name in self.translation.operators:
            require_listed(name, "translation.operators", described(), ours)
        for place, name in enumerate(self.operators):
            require_listed(name, f"operators.{place}", (*operators, *self.variants), "the operators and variants")
        return self

    @model_validator(mode="after")
    def _parts_fit(self):
        """Checks one section against another: names, limits of lengths and steps, nulls where data are generated."""
        if REFERENCE not in self.operators:
            raise ValueError(f"operators: every comparison is made against `{REFERENCE}`; add it to the list")
        protocols = [("protocols", name) for name in self.protocols]
        protocols += [(f"{section}.protocol", getattr(self, section).protocol) for section in ("convergence", "timing")]
        for place, name in protocols:
            require_listed(name, place, self.finetuning, "finetuning")
        lengths = {
            "tokenization.sequence_length": self.tokenization.sequence_length,
            "question_answering.maximum_length": self.question_answering.maximum_length,
        }
        lengths |= {f"finetuning.{name}.maximum_length": self.finetuning[name].maximum_length for _, name in protocols}
        for size in self.sizes:
            require_listed(size, "sizes", self.models, "models")
            for place, length in lengths.items():
                if length > self.models[size].positions:
                    raise ValueError(
                        f"{place}: {length} exceeds models.{size}.positions: {self.models[size].positions}"
                    )
        warmup, longest = self.pretraining.sequence_length_warmup, self.tokenization.sequence_length
        if warmup and longest % warmup.length:
            raise ValueError(
                f"pretraining.sequence_length_warmup.length: {warmup.length} does not divide "
                f"tokenization.sequence_length: {longest}; every sequence is cut into blocks of that length"
            )
        late = [step for step in self.convergence.steps if step > (self.pretraining.steps or step)]
        if late:  # never where `epochs` stand in place of `steps`: how many steps they are is not known yet
            raise ValueError(f"convergence.steps: {late[0]} exceeds pretraining.steps: {self.pretraining.steps}")
        if self.data.generated:
            for task in self.tasks.names:
                require_listed(task, "tasks.names", GLUE, "the tasks that data.source: embedded generates")
            sections = {"tasks": self.tasks, "tasks.questions": self.tasks.questions, "corpus": self.corpus}
            sections |= {f"translation.protocols.{name}": one for name, one in self.translation.protocols.items()}
            amounts = ("documents", "train_examples", "validation_examples", "train_pairs", "held_out_pairs")
            for section, amount in product(sections, amounts):
                if getattr(sections[section], amount, "not of this section") is None:
                    raise ValueError(f"{section}.{amount}: null; data.source: embedded needs the number to generate")
        for place, pair in enumerate(self.analysis.pairs):
            for arm in pair:
                for name in (arm,) if isinstance(arm, str) else arm:
                    require_listed(name, f"analysis.pairs.{place}", self.operators, "operators")
            if REFERENCE in pair:
                compared = f"all operators are compared with `{REFERENCE}` already"
                raise ValueError(f"analysis.pairs.{place}: {compared}; remove this pair")
        for section in ("noise", "cross_domain", "convergence", "timing"):
            for task in getattr(self, section).tasks:
                require_listed(task, f"{section}.tasks", self.tasks.names, "tasks.names")
        for task in self.question_answering.tasks:
            for name in task.split("_"):  # squad1_triviaqa needs both sets
                key = f"question_answering.tasks: {task}"
                require_listed(name, key, self.tasks.questions.names, "tasks.questions.names")
        return self

    def variant(self, name: str) -> dict:
        """Returns the settings that decide the model of an operator, by its name in `operators`.

        These are `operator`, its name in the code; for a variant also `variant`, its name in params.yaml, and those of
        its settings that are not null; for a user's own operator also `operators_file` and `operators_sha256`, its file
        and the digest of this. Other variants' settings and operators' code thus do not enter a job's fingerprint.
        """
        variant = {"operator": name}
        if name in self.variants:
            variant = {"variant": name} | self.variants[name].model_dump(exclude_none=True)
        if variant["operator"] not in described():
            variant |= {"operators_file": self.operators_file, "operators_sha256": sha256(Path(self.operators_file))}
        return variant

    def pretrained(self, operator: str | None = None, size: str | None = None) -> list[tuple[str, str]]:
        """(operator, size) of every pre-trained model, size by size; only those of the operator or size, if given."""
        return [
            (one, at_size)
            for at_size in self.sizes
            for one in self.operators
            if operator in (None, one) and size in (None, at_size)
        ]

    def finetuned(
        self, operator: str | None = None, size: str | None = None, protocol: str | None = None
    ) -> list[tuple[str, str, str]]:
        """(protocol, operator, size) of the models fine-tuned on GLUE, by protocol, then by size; None takes all."""
        return [
            (recipe, *model)
            for recipe in self.protocols
            for model in self.pretrained(operator, size)
            if protocol in (None, recipe)
        ]


def load_settings(path: Path = PATH) -> Settings:
    """Reads and checks a whole params.yaml. ValueError where it is missing, no YAML, or has mistakes.

    The message has a line for each mistake; a check of several keys, made only where each is right, finds the first.
    """
    try:
        content = read_yaml(path)
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; `python -m stages scale laptop` writes a complete one") from None
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        problems = "\n".join(_problem(details) for details in error.errors(include_url=False))
        raise ValueError(f"{path}: {error.error_count()} problem(s)\n{problems}") from None


def _keys(record: type[Record]) -> set[str]:
    """The keys of a class of records and its loaded subclasses; of Record: all of params.yaml but names in its maps."""
    return {*record.model_fields}.union(*map(_keys, record.__subclasses__()))


def _problem(details: dict) -> str:
    """Words an error of pydantic's list `errors` as a line: key, what was given, what is allowed, perhaps a hint."""
    # pydantic marks a mistake in the name of a map's entry, not in its value, by `[key]` after the name
    key = ".".join(str(part) for part in details["loc"] if part != "[key]") or "the file"
    match details["type"]:
        case "extra_forbidden":
            near = did_you_mean(key.rpartition(".")[2], _keys(Record)) or "; remove it or mend the spelling"
            return f"  {key}: unknown key (given: {details['input']!r}){near}"
        case "missing":
            return f"  {key}: missing; stages/scales/laptop.yaml shows every key"
        case "value_error":  # a check of several keys is given their section, and names itself what is wrong there
            given = "" if isinstance(details["input"], dict) else f" (given: {details['input']!r})"
            return f"  {key}: {details['ctx']['error']}{given}"
        case "tuple_type":  # lists become tuples before pydantic sees them (sections.py)
            return f"  {key}: given {details['input']!r}; input should be a list, as in [{details['input']}]"
    hint = ""
    if details["type"] == "literal_error":
        hint = did_you_mean(str(details["input"]), re.findall("'(.*?)'", details["ctx"]["expected"]))
    if details["type"] in ("float_type", "int_type") and re.match(r"\d.*e", str(details["input"])):
        hint = "; YAML takes a number with an exponent only with a dot, as in 1.0e-5"
    return f"  {key}: given {details['input']!r}; {details['msg'][0].lower()}{details['msg'][1:]}{hint}"
