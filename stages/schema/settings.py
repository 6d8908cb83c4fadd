"""params.yaml as frozen, validated records: the only reader of params.yaml.

Every key is checked before any work begins: a mistake gives an error with the key, the given value and the allowed
values.
"""

import re
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError, model_validator

from stages.files.quoting import quote_bare, quote_value
from stages.files.storage import compute_source_digest
from stages.files.yaml_files import is_generated, read_yaml
from stages.schema.checks import CHECKS, REFERENCE, TESTS_ON_TASKS
from stages.schema.names import suggest_name
from stages.schema.operators import describe_operators
from stages.schema.sections import (
    Analysis,
    Corpus,
    Data,
    Filtering,
    Name,
    Protocol,
    Record,
    Report,
    Script,
    Several,
    Tasks,
    Tokenization,
    Workers,
)
from stages.schema.testing_sections import Convergence, CrossDomain, Noise, Timing
from stages.schema.training_sections import Finetuning, Model, Pretraining, QuestionAnswering, Variant
from stages.schema.translation_sections import Translation

# checks.py needs REFERENCE, too, which all other code takes from here
__all__ = ["PATH", "REFERENCE", "Settings", "load_settings"]

PATH = Path("params.yaml")


class Settings(Record):
    """All of params.yaml. A stage reads only sections that dvc.yaml lists for the stage; a test checks."""

    scale: Name
    operators: Several[Name]
    operators_file: Script
    variants: dict[Name, Variant]
    sizes: Several[Name]
    protocols: Several[Protocol]
    workers: Workers
    data: Data
    corpus: Corpus
    filtering: Filtering
    tokenization: Tokenization
    tasks: Tasks
    models: dict[Name, Model]
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

    @model_validator(mode="before")
    @classmethod
    def _empty_tests(cls, content: Any) -> Any:
        # If a user empties `tasks.names`, `tasks` of every section in TESTS_ON_TASKS is emptied, too, so that the user
        # edits one list instead of five. `match` works with any content, which has not been checked yet.
        emptied = []
        match content:
            case {"tasks": {"names": []}}:
                emptied += TESTS_ON_TASKS
        match content:
            case {"tasks": {"questions": {"names": []}}}:
                emptied.append("question_answering")
        for name in emptied:
            section = content.get(name)
            if isinstance(section, dict):
                content = {**content, name: {**section, "tasks": []}}
        return content

    @model_validator(mode="after")
    def _check_sections(self):
        for check in CHECKS:
            check(self)
        return self

    @property
    def task_source(self) -> str:
        """The source of tasks and questions."""
        return self.tasks.source or self.data.source

    @property
    def has_tasks(self) -> bool:
        """Whether the run has tasks or questions."""
        return bool(self.tasks.names or self.tasks.questions.names)

    @property
    def task_folder(self) -> Path:
        """The folder of the original files of tasks and questions."""
        return self.data.find_folder(self.task_source)

    @property
    def text_generated(self) -> bool:
        """Whether text and sentence pairs are artificial."""
        return self.data.source != "hub" and is_generated(self.data.folder)

    @property
    def tasks_generated(self) -> bool:
        """Whether the tasks and questions that the run has are artificial."""
        return self.has_tasks and self.task_source != "hub" and is_generated(self.task_folder)

    @property
    def generated(self) -> bool:
        """Whether text or tasks are artificial, so that no number is compared with a paper's."""
        return self.text_generated or self.tasks_generated

    def describe_operators(self) -> dict[str, Any]:
        """Describes all operators by name, also the user's; ValueError for a mistake in an operator of this run."""
        named = [*self.operators, *(variant.operator for variant in self.variants.values())]
        return describe_operators(Path(self.operators_file), named)

    def collect_operator_settings(self, name: str) -> dict:
        """Collects the settings that decide the model of an entry of `operators`, as a part of a job's fingerprint.

        Returns:
            A dictionary with these keys:
            `operator`: the name in the code.
            `variant`, and all settings that are not null: the name and the values in params.yaml; only for a variant.
            `operators_file`, `operators_sha256`: file and hash of the code; only for a user's own operator.
        """
        # No more settings than these: a change of another variant, for example, leaves finished jobs valid.
        settings = {"operator": name}
        if name in self.variants:
            settings = {"variant": name}
            settings.update(self.variants[name].model_dump(exclude_none=True))
        if settings["operator"] not in describe_operators():
            settings["operators_file"] = self.operators_file
            settings["operators_sha256"] = compute_source_digest(Path(self.operators_file))
        return settings

    def list_pretrained(self, operator: str | None = None, size: str | None = None) -> list[tuple[str, str]]:
        """Lists (operator, size) of every pre-trained model, size by size, or only of an operator or size."""
        sizes = [size] if size else self.sizes
        operators = [operator] if operator else self.operators
        return [(name, of_size) for of_size in sizes for name in operators]

    def list_finetuned(
        self,
        operator: str | None = None,
        size: str | None = None,
        protocol: str | None = None,
    ) -> list[tuple[str, str, str]]:
        """Lists (protocol, operator, size) of the models fine-tuned on GLUE, recipe by recipe, then size by size."""
        recipes = [protocol] if protocol else self.protocols
        return [(recipe, *model) for recipe in recipes for model in self.list_pretrained(operator, size)]


def load_settings(path: Path = PATH) -> Settings:
    """Reads and checks a whole params.yaml.

    Raises:
        ValueError: the file is missing, is no YAML, or has mistakes. The message has a line for each mistake; checks of
            several keys, which run only if every single key is right, report the first mistake.
    """
    try:
        content = read_yaml(path) or {}
    except FileNotFoundError:
        raise ValueError(
            f"{path}: no such file here; change to the folder of dvc.yaml, or write a complete file by "
            "`python -m stages scale laptop`"
        ) from None
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        problems = "\n".join(_describe_problem(details) for details in error.errors(include_url=False))
        raise ValueError(f"{path}: {error.error_count()} problem(s)\n{problems}") from None


def _list_keys(place: tuple) -> list[str]:
    """Lists the keys of the section at a place in params.yaml: "layers", "hidden" and so on for ("models", "tiny")."""
    record = Settings
    for part in place:
        # a name that a user chose, such as "tiny", is no field
        if part in record.model_fields:
            kind: Any = record.model_fields[part].annotation
            # the type of a map or list of sections is, for example, dict[Name, Model]
            for inner in (kind, *get_args(kind)):
                if isinstance(inner, type) and issubclass(inner, Record):
                    record = inner
    return list(record.model_fields)


def _describe_problem(details: dict) -> str:
    """Formats an error of pydantic: "  pretraining.stepz: unknown key (given: 5); did you mean `steps`?"."""
    # pydantic marks a mistake in the name of a map's entry, not in its value, by `[key]` after the name
    key = ".".join(quote_bare(part) for part in details["loc"] if part != "[key]") or "the file"
    given = details["input"]
    kind = details["type"]
    if kind == "extra_forbidden":
        *place, name = details["loc"]
        hint = suggest_name(str(name), _list_keys(place)) or "; remove it or correct the spelling"
        return f"  {key}: unknown key (given: {quote_value(given)}){hint}"
    if kind == "missing":
        return f"  {key}: missing; stages/scales/laptop.yaml shows every key"
    if kind == "value_error":
        # A check of several keys gets the whole section; the message of the check already has the wrong values.
        shown = "" if isinstance(given, dict) else f" (given: {quote_value(given)})"
        return f"  {key}: {details['ctx']['error']}{shown}"
    # lists of params.yaml become tuples before this check
    if kind == "tuple_type":
        return f"  {key}: given {quote_value(given)}; input should be a list, as in [{quote_value(given)}]"
    # pydantic's own message says what is allowed
    hint = ""
    if kind == "literal_error":
        hint = suggest_name(str(given), re.findall("'(.*?)'", details["ctx"]["expected"]))
    elif kind == "string_type" and not isinstance(given, dict | list | None):
        hint = "; put the text in quotation marks"
    elif kind in ("int_type", "float_type") and isinstance(given, str) and given[:1].isdigit():
        hint = "; write digits without quotation marks and leading zeros"
    elif kind == "bool_type":
        hint = ", true or false"
    message = details["msg"]
    return f"  {key}: given {quote_value(given)}; {message[0].lower()}{message[1:]}{hint}"
