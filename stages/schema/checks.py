"""Checks of sections of params.yaml against each other. Every check raises ValueError for the first mistake."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stages.schema.names import require_listed
from stages.schema.operators import describe_operators
from stages.schema.sections import GLUE

if TYPE_CHECKING:
    from stages.schema.settings import Settings

# The operator that all other operators are compared with
REFERENCE = "original"
# of each split of a generated GLUE task; 8 would leave out a kind of pair of STS-B
LEAST_EXAMPLES = 10


def check_variants(settings: Settings) -> None:
    """Checks that every variant has a new name, and settings that the operator has."""
    operators = describe_operators(Path(settings.operators_file))
    for name, variant in settings.variants.items():
        place = f"variants.{name}"
        if name in operators:
            raise ValueError(f"variants: `{name}` is the name of an operator; give the variant another")
        require_listed(variant.operator, f"{place}.operator", operators, "the operators")
        operator = operators[variant.operator]
        if variant.start is not None:
            require_listed(variant.start, f"{place}.start", operator.starts, f"the starts of {operator.name}")
        if variant.score_rate is not None and not operator.scores_alone:
            raise ValueError(f"{place}.score_rate: {operator.name} has no parameters that serve only the scores")


def check_operators(settings: Settings) -> None:
    """Checks that all listed operators exist, and that the reference is listed."""
    known = [*describe_operators(Path(settings.operators_file)), *settings.variants]
    for number, name in enumerate(settings.operators):
        require_listed(name, f"operators.{number}", known, "the operators and variants")
    if REFERENCE not in settings.operators:
        raise ValueError(f"operators: every comparison is made against `{REFERENCE}`; add `{REFERENCE}` to the list")
    ours = "the operators of this repository (variants and operators of your own train only as BERT)"
    for name in settings.translation.operators:
        require_listed(name, "translation.operators", describe_operators(), ours)


def check_pairs(settings: Settings) -> None:
    """Checks that further comparisons name listed operators, and repeat no comparison with the reference."""
    for number, pair in enumerate(settings.analysis.pairs):
        place = f"analysis.pairs.{number}"
        for arm in pair:
            names = [arm] if isinstance(arm, str) else arm
            for name in names:
                require_listed(name, place, settings.operators, "operators")
        if REFERENCE in pair:
            raise ValueError(f"{place}: all operators are compared with `{REFERENCE}` already; remove this pair")


def list_recipes(settings: Settings) -> dict[str, str]:
    """Lists the recipes of fine-tuning in use, by the key of params.yaml that names them."""
    recipes = {f"protocols.{number}": name for number, name in enumerate(settings.protocols)}
    recipes["convergence.protocol"] = settings.convergence.protocol
    recipes["timing.protocol"] = settings.timing.protocol
    return recipes


def check_recipes(settings: Settings) -> None:
    """Checks that all recipes in use are described."""
    for place, name in list_recipes(settings).items():
        require_listed(name, place, settings.finetuning, "finetuning")


def check_lengths(settings: Settings) -> None:
    """Checks that all sizes are described and have a position for every token."""
    lengths = {
        "tokenization.sequence_length": settings.tokenization.sequence_length,
        "question_answering.maximum_length": settings.question_answering.maximum_length,
    }
    for name in list_recipes(settings).values():
        lengths[f"finetuning.{name}.maximum_length"] = settings.finetuning[name].maximum_length
    for size in settings.sizes:
        require_listed(size, "sizes", settings.models, "models")
        positions = settings.models[size].positions
        for place, length in lengths.items():
            if length > positions:
                raise ValueError(f"{place}: {length} exceeds models.{size}.positions: {positions}")


def check_steps(settings: Settings) -> None:
    """Checks that short sequences divide long ones, and that pre-training reaches all intermediate checkpoints."""
    warmup = settings.pretraining.sequence_length_warmup
    longest = settings.tokenization.sequence_length
    if warmup and longest % warmup.length:
        raise ValueError(
            f"pretraining.sequence_length_warmup.length: {warmup.length} does not divide "
            f"tokenization.sequence_length: {longest}; every sequence is cut into blocks of that length"
        )
    # the steps of `pretraining.epochs` are known only when the corpus is there
    last = settings.pretraining.steps
    if last is not None:
        for step in settings.convergence.steps:
            if step > last:
                raise ValueError(f"convergence.steps: {step} exceeds pretraining.steps: {last}")


def check_root(settings: Settings) -> None:
    """Checks that tasks from files have a folder."""
    if settings.tasks.source == "files" and settings.data.root is None:
        raise ValueError("tasks.source: files needs data.root, the folder that holds the original files")


def check_generated(settings: Settings) -> None:
    """Checks that generated text and sentence pairs have a number of documents and pairs."""
    if not settings.data.generated:
        return
    amounts = {"corpus.documents": settings.corpus.documents}
    for name, protocol in settings.translation.protocols.items():
        amounts[f"translation.protocols.{name}.train_pairs"] = protocol.train_pairs
        amounts[f"translation.protocols.{name}.held_out_pairs"] = protocol.held_out_pairs
    _require_amounts(amounts, "data.source")


def check_generated_tasks(settings: Settings) -> None:
    """Checks that generated tasks have a number of examples, and are tasks that the generator knows."""
    if not settings.tasks_generated:
        return
    tasks = settings.tasks
    source = "tasks.source" if tasks.source else "data.source"
    for task in tasks.names:
        require_listed(task, "tasks.names", GLUE, f"the tasks that {source}: embedded generates")
    examples = {
        "tasks.train_examples": tasks.train_examples,
        "tasks.validation_examples": tasks.validation_examples,
    }
    questions = {
        "tasks.questions.train_examples": tasks.questions.train_examples,
        "tasks.questions.validation_examples": tasks.questions.validation_examples,
    }
    _require_amounts({**examples, **questions}, source)
    for key, number in examples.items():
        if number < LEAST_EXAMPLES:
            raise ValueError(f"{key}: {number}; {source}: embedded needs at least {LEAST_EXAMPLES}")


def _require_amounts(amounts: dict[str, int | None], source: str) -> None:
    """Raises ValueError for an amount, by its key, that is null. source: the key that asks for generated data."""
    for key, amount in amounts.items():
        if amount is None:
            raise ValueError(f"{key}: null; {source}: embedded needs the number to generate")


def check_tasks(settings: Settings) -> None:
    """Checks that every task that a section tests is prepared."""
    tested = {
        "noise.tasks": settings.noise.tasks,
        "cross_domain.tasks": settings.cross_domain.tasks,
        "convergence.tasks": settings.convergence.tasks,
        "timing.tasks": settings.timing.tasks,
    }
    for place, tasks in tested.items():
        for task in tasks:
            require_listed(task, place, settings.tasks.names, "tasks.names")
    for task in settings.question_answering.tasks:
        # squad1_triviaqa needs both sets
        for name in task.split("_"):
            place = f"question_answering.tasks: {task}"
            require_listed(name, place, settings.tasks.questions.names, "tasks.questions.names")


CHECKS = (
    check_variants,
    check_operators,
    check_pairs,
    check_recipes,
    check_lengths,
    check_steps,
    check_root,
    check_generated,
    check_generated_tasks,
    check_tasks,
)
