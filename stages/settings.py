"""params.yaml as frozen, validated records: the only reader of params.yaml.

Every key is checked before any work begins: an unknown key, a missing key, a wrong type or an impossible value gives
one error that names the key, what was given and what is allowed. Complete files for every scale: stages/scales/.
"""

from pathlib import Path

import yaml
from pydantic import ValidationError, model_validator

from stages.sections import (
    Analysis,
    Attention,
    Convergence,
    Corpus,
    Count,
    CrossDomain,
    Data,
    Filtering,
    Finetuning,
    Model,
    Name,
    Noise,
    Operator,
    Pretraining,
    Protocol,
    QuestionAnswering,
    Record,
    Report,
    Scheduler,
    Several,
    Tasks,
    Timing,
    Tokenization,
)

PATH = Path("params.yaml")


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
            ("convergence.protocol", self.convergence.protocol),
            ("timing.protocol", self.timing.protocol),
        ):
            if protocol not in self.finetuning:
                raise ValueError(f"{key}: `{protocol}` has no block in finetuning; there: {', '.join(self.finetuning)}")
        return self

    def _lengths(self):
        yield "tokenization.sequence_length", self.tokenization.sequence_length
        yield "question_answering.maximum_length", self.question_answering.maximum_length
        for protocol in dict.fromkeys((*self.protocols, self.convergence.protocol, self.timing.protocol)):
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
