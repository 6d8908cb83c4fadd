"""Checks of sections of params.yaml against each other. Every check raises ValueError for the first mistake found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.schema.names import require_listed
from stages.schema.operators import describe_operators

if TYPE_CHECKING:
    from stages.schema.settings import Settings

# The operator that all other operators are compared with
REFERENCE = "original"
# sections whose `tasks` are among `tasks.names`
TESTS_ON_TASKS = ("noise", "cross_domain", "convergence", "timing")


def check_variants(settings: Settings) -> None:
    """Checks that no variant has the name of an operator, or a setting that the operator lacks."""
    operators = settings.describe_operators()
    for name, variant in settings.variants.items():
        place = f"variants.{name}"
        if name in operators:
            raise ValueError(f"variants: `{name}` is the name of an operator; give the variant another name")
        require_listed(variant.operator, f"{place}.operator", operators, "the operators")
        operator = operators[variant.operator]
        if variant.start is not None:
            require_listed(variant.start, f"{place}.start", operator.starts, f"the starts of {operator.name}")
        if variant.score_rate is not None and not operator.scores_alone:
            raise ValueError(
                f"{place}.score_rate: {operator.name} has no parameters that influence only the scores; remove the key"
            )


def check_operators(settings: Settings) -> None:
    """Checks that all listed operators exist, and that the reference `original` is listed."""
    known = [*settings.describe_operators(), *settings.variants]
    for number, name in enumerate(settings.operators):
        require_listed(name, f"operators.{number}", known, "the operators and variants")
    if REFERENCE not in settings.operators:
        raise ValueError(f"operators: every comparison is made against `{REFERENCE}`; add `{REFERENCE}` to the list")
    where = "the operators of this repository (variants and operators of your own train only as BERT)"
    for name in settings.translation.operators:
        require_listed(name, "translation.operators", describe_operators(), where)


def check_pairs(settings: Settings) -> None:
    """Checks that `analysis.pairs` compares listed operators, and repeats no comparison with `original`."""
    for number, pair in enumerate(settings.analysis.pairs):
        place = f"analysis.pairs.{number}"
        # A side is an operator, or two operators whose difference is compared.
        for side in pair:
            names = [side] if isinstance(side, str) else side
            for name in names:
                require_listed(name, place, settings.operators, "operators")
        if REFERENCE in pair:
            raise ValueError(f"{place}: all operators are compared with `{REFERENCE}` already; remove this pair")


def check_recipes_and_sizes(settings: Settings) -> None:
    """Checks that all recipes and sizes in use exist, and that sizes suffice for all operators and sequence lengths."""
    # the longest sequences by key of params.yaml
    lengths = {
        "tokenization.sequence_length": settings.tokenization.sequence_length,
        "question_answering.maximum_length": settings.question_answering.maximum_length,
    }
    # the fine-tuning recipes in use by key of params.yaml, such as {"protocols.0": "courtois2024"}
    recipes = {f"protocols.{number}": name for number, name in enumerate(settings.protocols)}
    recipes["convergence.protocol"] = settings.convergence.protocol
    recipes["timing.protocol"] = settings.timing.protocol
    for key, recipe in recipes.items():
        require_listed(recipe, key, settings.finetuning, "finetuning")
        lengths[f"finetuning.{recipe}.maximum_length"] = settings.finetuning[recipe].maximum_length
    # in place of a variant, the operator that the variant changes
    operators = [settings.variants[name].operator if name in settings.variants else name for name in settings.operators]
    for size in settings.sizes:
        require_listed(size, "sizes", settings.models, "models")
        try:
            settings.models[size].require_room(operators)
        except ValueError as error:
            raise ValueError(f"models.{size}.{error}") from None
        positions = settings.models[size].positions
        for key, length in lengths.items():
            if length > positions:
                raise ValueError(
                    f"{key}: {length} exceeds models.{size}.positions: {positions}; make the sequences shorter, or "
                    "give the size more positions"
                )


def check_steps(settings: Settings) -> None:
    """Checks that short sequences divide long sequences, and that pre-training reaches all `convergence.steps`."""
    warmup = settings.pretraining.sequence_length_warmup
    longest = settings.tokenization.sequence_length
    if warmup and longest % warmup.length:
        raise ValueError(
            f"pretraining.sequence_length_warmup.length: {warmup.length} does not divide "
            f"tokenization.sequence_length: {longest}; every sequence is cut into blocks of that length"
        )
    # the steps of `pretraining.epochs` are known only when the corpus is there
    last = settings.pretraining.steps
    for step in settings.convergence.steps:
        if last and step > last:
            raise ValueError(f"convergence.steps: {step} exceeds pretraining.steps: {last}; remove the step")


def check_root(settings: Settings) -> None:
    """Checks that `data.root` names a folder if tasks are read from files."""
    if settings.tasks.source == "files" and settings.data.root is None:
        raise ValueError("tasks.source: files needs data.root, the folder that holds the original files")


def check_tasks(settings: Settings) -> None:
    """Checks that section `tasks` lists every task on which another section tests models."""
    for section in TESTS_ON_TASKS:
        for task in getattr(settings, section).tasks:
            require_listed(task, f"{section}.tasks", settings.tasks.names, "tasks.names")
    for task in settings.question_answering.tasks:
        # squad1_triviaqa is two sets, squad1 and triviaqa
        for name in task.split("_"):
            place = f"question_answering.tasks: {task}"
            require_listed(name, place, settings.tasks.questions.names, "tasks.questions.names")


CHECKS = (
    check_variants,
    check_operators,
    check_pairs,
    check_recipes_and_sizes,
    check_steps,
    check_root,
    check_tasks,
)
