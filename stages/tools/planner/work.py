"""Counts the work of a run before anyone starts it: runs, tokens, operations and bytes, by stage and size.

Reads the settings and the amounts of data (amounts.py) alone. Operations are those of attention/counts.py: matrix
products, three times the forward pass where a model is trained.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Literal

import torch

from stages.common.attention.bert import (
    OperatorBertForMaskedLM,
    OperatorBertForQuestionAnswering,
    OperatorBertForSequenceClassification,
)
from stages.common.attention.configuration import configuration
from stages.common.attention.counts import training_flops, whole_layer_parameters
from stages.common.benchmarks.glue import TASKS
from stages.plumbing.settings import Settings
from stages.plumbing.training_sections import Finetuning, Model, QuestionAnswering
from stages.question_answering.windows import cuts
from stages.tools.planner.amounts import Amounts
from stages.translation.stage import planned as translations

FLOAT32 = 4  # bytes
COPIES = (
    3  # of what a job leaves: in data/jobs, the stage's output, DVC's cache; fewer where a file system has reflinks
)
RESUMED = 3  # weights and both moments of AdamW in the state to resume from, in data/jobs
BEFORE = "triviaqa"
SPECIAL = 3  # [CLS] and two [SEP] of a window
FORWARD = 1 / 3  # of the operations of training
STOCK = 2  # precisions in which stage timing trains stock BERT too
HEADS = {
    "masked_lm": OperatorBertForMaskedLM,
    "classifier": OperatorBertForSequenceClassification,
    "questions": OperatorBertForQuestionAnswering,
}

Kind = Literal["pretraining", "finetuning", "evaluation"]


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a stage does at one size by one recipe, all operators together.

    recipe: the section of params.yaml whose batch size and precision hold. commands: that DVC starts, which share the
    runs equally. runs: jobs; 0 for an evaluation that is part of the jobs of another record. tokens, flops: None where
    the size of the corpus decides them and is not known. length: mean tokens of a sequence. bytes: left on the disk.
    """

    stage: str
    size: str
    kind: Kind
    recipe: str
    commands: int
    runs: int
    tokens: float | None
    flops: float | None
    length: float
    bytes: int


def planned(settings: Settings, amounts: Amounts) -> list[Work]:
    """All stages that train or test models, in the order of dvc.yaml."""
    stages = (pretraining, finetuning, noise, cross_domain, convergence, question_answering, timing)
    counted = [work for stage in stages for size in settings.sizes for work in stage(settings, amounts, size)]
    return [*counted, *translation(settings)]


def pretraining(settings: Settings, amounts: Amounts, size: str) -> Iterable[Work]:
    """Training by steps or epochs from every seed, and the evaluations on the way."""
    recipe, length = settings.pretraining, settings.tokenization.sequence_length
    steps, seeds = steps_of(settings, amounts), len(recipe.seeds)
    count = _Count(settings, amounts, size, "pretraining", "pretraining", recipe.mask_probability)
    checkpoints = len(settings.convergence.steps)
    models = COPIES * (1 + checkpoints) - (steps in settings.convergence.steps) + RESUMED  # equal ones in one cache
    left = seeds * models * sum(count.bytes_of("masked_lm", operator) for operator in settings.operators)
    tokens = None if steps is None else seeds * steps * recipe.batch_size * length
    yield count.work("pretraining", seeds, [(tokens, length)], left)
    if steps is not None and amounts.sequences["validation"] is not None:
        times = math.ceil(steps / recipe.evaluation_interval)
        yield count.work("evaluation", 0, [(seeds * times * amounts.sequences["validation"] * length, length)])


def steps_of(settings: Settings, amounts: Amounts) -> int | None:
    """Updates of a pre-training run; None where they follow from a corpus whose size is not known."""
    recipe, sequences = settings.pretraining, amounts.sequences["train"]
    if recipe.steps is not None:
        return recipe.steps
    return None if sequences is None else -(-recipe.epochs * sequences // recipe.batch_size)


def finetuning(settings: Settings, amounts: Amounts, size: str) -> Iterable[Work]:
    """Training on every task from every pair of seeds, by every protocol."""
    kept = _kept(settings)
    for protocol in settings.protocols:
        count = _Count(settings, amounts, size, "finetuning", f"finetuning.{protocol}")
        seeds = len(settings.pretraining.seeds) * len(settings.finetuning[protocol].seeds)
        models = sum(task in kept for task in settings.tasks.names) * seeds * COPIES
        left = models * sum(count.bytes_of("classifier", operator) for operator in settings.operators)
        yield from _finetuned(count, settings.finetuning[protocol], settings.tasks.names, seeds, left)


def convergence(settings: Settings, amounts: Amounts, size: str) -> Iterable[Work]:
    """Runs from the last step and with a seed that stage finetuning has too are the jobs of that stage."""
    wanted, last = settings.convergence, settings.pretraining.steps
    recipe = settings.finetuning[wanted.protocol]
    count = _Count(settings, amounts, size, "convergence", f"finetuning.{wanted.protocol}")
    elsewhere = recipe.seeds if wanted.protocol in settings.protocols else ()
    from_last = len(set(wanted.seeds) - set(elsewhere)) if last in wanted.steps else 0
    seeds = sum(step != last for step in wanted.steps) * len(wanted.seeds) + from_last
    models = sum(task in _kept(settings) for task in wanted.tasks) * from_last * len(settings.pretraining.seeds)
    left = models * sum(count.bytes_of("classifier", operator) for operator in settings.operators)
    yield from _finetuned(count, recipe, wanted.tasks, seeds * len(settings.pretraining.seeds), left)


def _finetuned(count: "_Count", recipe: Finetuning, tasks: tuple[str, ...], seeds: int, left: int) -> Iterable[Work]:
    """Training on every task from `seeds` pairs of seeds, and the predictions afterwards."""
    examples, trained, tested = count.amounts.examples, [], []
    for task in tasks:
        length = mean_length(count.amounts, task, recipe.maximum_length)
        trained.append((seeds * recipe.epochs * examples[task, "train"] * length, length))
        tested.append((seeds * _validation(count.amounts, task) * length, length))
    yield count.work("finetuning", seeds * len(tasks), trained, left)
    yield count.work("evaluation", 0, tested)


def question_answering(settings: Settings, amounts: Amounts, size: str) -> Iterable[Work]:
    """Training on every question set, TriviaQA first where a task asks for it, from every pair of seeds."""
    recipe = settings.question_answering
    count = _Count(settings, amounts, size, "question_answering", "question_answering")
    seeds = len(settings.pretraining.seeds) * len(recipe.seeds)
    first = [BEFORE] * any(task.endswith(BEFORE) for task in recipe.tasks)
    sets = first + [task.removesuffix(f"_{BEFORE}") for task in recipe.tasks]
    trained, tested = [], []
    for name in sets:
        windows, length = windows_of(amounts, name, recipe)
        trained.append((seeds * recipe.epochs * amounts.examples[name, "train"] * windows * length, length))
        if name != BEFORE:
            tested.append((seeds * amounts.examples[name, "validation"] * windows * length, length))
    models = len(first) * seeds  # they stay in data/jobs alone
    left = models * sum(count.bytes_of("questions", operator) for operator in settings.operators)
    yield count.work("finetuning", seeds * len(sets), trained, left)
    yield count.work("evaluation", 0, tested)


def noise(settings: Settings, amounts: Amounts, size: str) -> Iterable[Work]:
    """Passes over the validation splits: a clean one, and one for every level, seed, and kind of noise."""
    wanted = settings.noise
    passes = 1 + (len(wanted.levels) - 1) * len(wanted.seeds) * (1 + len(wanted.text))
    yield from _tested(settings, amounts, size, "noise", {task: (task,) * passes for task in wanted.tasks})


def cross_domain(settings: Settings, amounts: Amounts, size: str) -> Iterable[Work]:
    """Every fine-tuned model on the validation splits of all tasks."""
    wanted = settings.cross_domain
    yield from _tested(settings, amounts, size, "cross_domain", dict.fromkeys(wanted.tasks, wanted.tasks))


def _tested(
    settings: Settings, amounts: Amounts, size: str, stage: str, passes: dict[str, tuple[str, ...]]
) -> Iterable[Work]:
    """passes: by the task a model was fine-tuned on, the tasks whose validation splits it meets."""
    for protocol in settings.protocols:
        recipe = settings.finetuning[protocol]
        count = _Count(settings, amounts, size, stage, f"finetuning.{protocol}")
        models = len(settings.pretraining.seeds) * len(recipe.seeds)
        parts = []
        for tasks in passes.values():
            for task in tasks:
                length = mean_length(amounts, task, recipe.maximum_length)
                parts.append((models * _validation(amounts, task) * length, length))
        yield count.work("evaluation", models * len(passes), parts)


def timing(settings: Settings, amounts: Amounts, size: str) -> Iterable[Work]:
    """One process, one call after the other; stock BERT, which does more work a token, is counted as ours."""
    wanted, recipe = settings.timing, settings.finetuning[settings.timing.protocol]
    rounds = wanted.repeats * (1 + STOCK / len(settings.operators))  # stock BERT as further operators
    length = settings.tokenization.sequence_length
    tokens = rounds * (wanted.steps + 1) * settings.pretraining.batch_size * length
    count = _Count(settings, amounts, size, "timing", "pretraining", settings.pretraining.mask_probability, 1)
    yield count.work("pretraining", 1, [(tokens, length)])
    parts = []
    for task in wanted.tasks:
        length = mean_length(amounts, task, recipe.maximum_length)
        parts.append((rounds * amounts.examples[task, "train"] * length, length))
    count = _Count(settings, amounts, size, "timing", f"finetuning.{wanted.protocol}", commands=1)
    yield count.work("finetuning", 1, parts)


def translation(settings: Settings) -> Iterable[Work]:
    """Runs of every protocol and of the sequence tasks; their operations are not counted."""
    jobs = [job for operator in settings.translation.operators for job in translations(settings, operator)]
    for size in dict.fromkeys(job["protocol"] for job in jobs):
        own = [job for job in jobs if job["protocol"] == size]
        yield Work(
            stage="translation",
            size=size,
            kind="pretraining",
            recipe=f"translation.{size}",
            commands=len({job["operator"] for job in own}),
            runs=len(own),
            tokens=None,
            flops=None,
            length=own[0]["training"]["positions"],
            bytes=0,
        )


def _kept(settings: Settings) -> set[str]:
    """Tasks whose fine-tuned models stay, to be tested."""
    return {*settings.noise.tasks, *settings.cross_domain.tasks}


def mean_length(amounts: Amounts, task: str, maximum_length: int) -> float:
    """Tokens of an example, cut."""
    return fmean(min(length, maximum_length) for length in amounts.lengths[task])


def windows_of(amounts: Amounts, name: str, recipe: QuestionAnswering) -> tuple[float, float]:
    """Windows of a question, and tokens of a window."""
    sizes, asked = [], amounts.questions[name]
    for question, context in asked:
        before = min(question, recipe.question_length) + SPECIAL
        room = math.floor(recipe.maximum_length - before)
        sizes += [before + end - start for start, end in cuts(round(context), room, recipe.stride)]
    return len(sizes) / len(asked), fmean(sizes)


def _validation(amounts: Amounts, task: str) -> int:
    return sum(amounts.examples[task, split.name] for split in TASKS[task].validation_splits)


def parameters(head: str, variant: dict, model: Model, vocabulary_size: int) -> int:
    """Of a whole model as it is saved: what is tied counts once.

    head: a key of HEADS. variant: of Settings.variant.
    """
    layer = whole_layer_parameters(variant, model.model_dump())
    return _outside(head, model, vocabulary_size) + model.layers * layer


@cache
def _outside(head: str, model: Model, vocabulary_size: int) -> int:
    """Parameters of the embeddings and of the head, counted in a model without layers."""
    size = model.model_dump() | {"layers": 0}
    with torch.device("meta"):
        built = HEADS[head](configuration("original", **size, vocab_size=vocabulary_size))
    return sum(parameter.numel() for parameter in built.parameters())


@dataclass(frozen=True)
class _Count:
    """What the records of a stage at a size by a recipe have in common. masked: share of tokens that the head sees."""

    settings: Settings
    amounts: Amounts
    size: str
    stage: str
    recipe: str
    masked: float = 0.0
    commands: int | None = None  # None: one an operator

    def work(self, kind: Kind, runs: int, parts: list[tuple[float | None, float]], left: int = 0) -> Work:
        """runs, parts (tokens, and tokens of a sequence): of one operator; left: bytes of all."""
        operators, share = self.settings.operators, FORWARD if kind == "evaluation" else 1.0
        known = all(tokens is not None for tokens, _ in parts)
        tokens = sum(tokens for tokens, _ in parts) if known else None
        flops = share * sum(tokens * self._a_token(length) for tokens, length in parts) if known else None
        lengths = sum(tokens / length for tokens, length in parts) if known else 0
        return Work(
            stage=self.stage,
            size=self.size,
            kind=kind,
            recipe=self.recipe,
            commands=self.commands or len(operators),
            runs=runs if self.commands else runs * len(operators),
            tokens=tokens if tokens is None else tokens * len(operators),
            flops=flops,
            length=tokens / lengths if lengths else parts[0][1],
            bytes=left,
        )

    def bytes_of(self, head: str, operator: str) -> int:
        variant = self.settings.variant(operator)
        return FLOAT32 * parameters(head, variant, self._model, self.amounts.vocabulary_size)

    def _a_token(self, length: float) -> float:
        """Operations of training a token with every operator."""
        size, words = self._model.model_dump(), self.amounts.vocabulary_size
        variants = map(self.settings.variant, self.settings.operators)
        return sum(training_flops(variant, size, words, length, self.masked) for variant in variants)

    @property
    def _model(self) -> Model:
        return self.settings.models[self.size]
