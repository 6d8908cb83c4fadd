"""Counts the work of a run before anyone starts it, by the stages' own plans: tokens, operations and bytes of each job.

Operations are those of attention/counts.py: of matrix products, three times the forward pass where a model is trained.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import nan
from pathlib import Path

from stages.attention.counts import model_parameters, training_flops
from stages.benchmarks.glue import TASKS
from stages.classification.kept_models import EvaluationRun
from stages.classification.run import FinetuningRun, ModelRun
from stages.convergence import stage as convergence
from stages.cross_domain import stage as cross_domain
from stages.encoder_decoder.run import TranslationRun
from stages.finetuning import stage as finetuning
from stages.masked_lm.run import PretrainingRun
from stages.noise import stage as noise
from stages.noise.stage import NoiseRun
from stages.plumbing.observations import NOT_PRETRAINED
from stages.plumbing.settings import REFERENCE, Settings
from stages.plumbing.training_sections import QuestionAnswering
from stages.pretraining import stage as pretraining
from stages.question_answering import stage as question_answering
from stages.question_answering.stage import BEFORE, AnsweringRun
from stages.question_answering.windows import cuts
from stages.tools.planner.amounts import OTHER, Amounts
from stages.translation import stage as translation

FLOAT32 = 4  # bytes
COPIES = 3  # of a model: in data/jobs, the stage's output, DVC's cache; fewer where a file system has reflinks
RESUMED = 3  # weights and both moments of AdamW in the state to resume from, in data/jobs
SPECIAL = 3  # [CLS] and two [SEP] of a window of question and context
FORWARD = 1 / 3  # of the operations of training
STOCK = 2  # precisions in which stage timing trains stock BERT too

AnyRun = PretrainingRun | ModelRun | TranslationRun
Pass = tuple[float, float, float]  # tokens, tokens of a sequence, operations as a share of those of training


@dataclass(frozen=True)
class Work:
    """What one job does.

    recipe: `pretraining`, `question_answering` or a name in `finetuning`, whose batch size and precision hold. run: its
    record; None for what is no job. tokens, flops: of all passes, NaN where these are not counted. length: tokens of a
    sequence of the first pass. bytes: of the models that it leaves.
    """

    stage: str
    size: str
    recipe: str
    run: AnyRun | None
    tokens: float
    length: float
    flops: float
    bytes: int


def planned(settings: Settings, data: Amounts) -> list[Work]:
    """Every job of the stages that train or test models, in the order of dvc.yaml."""

    @cache
    def size_of(kind: str, operator: str, size: str) -> int:
        width = settings.models[size].model_dump() | {"vocab_size": data.vocabulary_size}
        return FLOAT32 * model_parameters(f"{kind}_parameters", settings.variant(operator), width)

    @cache  # of thousands of jobs, few differ in it
    def a_token(operator: str, size: str, length: float, masked: float) -> float:
        variant, width = settings.variant(operator), settings.models[size].model_dump()
        return training_flops(variant, width, data.vocabulary_size, length, masked)

    def left(run: AnyRun, operator: str) -> int:
        if isinstance(run, PretrainingRun):
            return (COPIES * (1 + len(run.leaves)) + RESUMED) * size_of("masked_lm", operator, run.size)
        stays = getattr(run, "keep", None) or getattr(run, "set", None) == BEFORE
        return COPIES * size_of("classifier", operator, run.size) if stays else 0

    def work(stage: str, operator: str, size: str, recipe: str, passes: list[Pass], run: AnyRun | None = None) -> Work:
        operator = REFERENCE if operator == NOT_PRETRAINED else operator
        masked = settings.pretraining.mask_probability if recipe == "pretraining" else 0.0
        bytes_left = left(run, operator) if run else 0
        if not passes:
            return Work(stage, size, recipe, run, nan, nan, nan, bytes_left)
        flops = sum(tokens * share * a_token(operator, size, length, masked) for tokens, length, share in passes)
        return Work(stage, size, recipe, run, sum(tokens for tokens, _, _ in passes), passes[0][1], flops, bytes_left)

    jobs = []
    for stage, run in plans(settings):
        recipe = run.columns["protocol"] if isinstance(run, FinetuningRun | EvaluationRun) else stage
        jobs.append(work(stage, run.operator, run.size, recipe, _passes_of(settings, data, run), run))
    for operator, size in settings.pretrained():
        for recipe, passes in _timing_passes(settings, data, operator).items():
            jobs.append(work("timing", operator, size, recipe, passes))
    return jobs


def plans(settings: Settings) -> Iterator[tuple[str, AnyRun]]:
    """(stage, run) of every job that the stages plan."""
    models, tuned = settings.pretrained(), settings.finetuned()
    nowhere = defaultdict(lambda: Path(BEFORE))  # models after TriviaQA: where they will be is not known yet
    plan = {
        "pretraining": pretraining.planned(settings, models),
        "finetuning": finetuning.planned(settings, tuned),
        "noise": noise.planned(settings, tuned),
        "cross_domain": cross_domain.planned(settings, tuned),
        "convergence": convergence.planned(settings, models),
        "question_answering": [
            *question_answering.first_steps(settings, models),
            *question_answering.planned(settings, models, nowhere),
        ],
        "translation": translation.planned(settings, settings.translation.operators),
    }
    same = {run.text for run in plan["finetuning"]}  # after the last step, some runs of convergence are these jobs
    plan["convergence"] = [run for run in plan["convergence"] if run.text not in same]
    yield from ((stage, run) for stage, runs in plan.items() for run in runs)


def _passes_of(settings: Settings, data: Amounts, run: AnyRun) -> list[Pass]:
    """What a job trains on, and what it predicts. Nothing where that is not known, or not counted."""
    match run:
        case PretrainingRun():
            return pretraining_passes(settings, data)
        case NoiseRun():  # clean, and every level but the first under every seed and kind of noise
            times = 1 + (len(run.noise.levels) - 1) * len(run.noise.seeds) * (1 + len(run.noise.text))
            return [_tested(data, run.task, run.maximum_length, times)]
        case EvaluationRun():
            return [_tested(data, task, run.maximum_length) for task in run.evaluated_on]
        case AnsweringRun():
            windows, length = windows_of(data, run.set, run.training)
            tokens = {split: data.examples[run.set, split] * windows * length for split in ("train", "validation")}
            answered = [] if run.set == BEFORE else [(tokens["validation"], length, FORWARD)]
            return [(run.training.epochs * tokens["train"], length, 1.0), *answered]
        case FinetuningRun():
            longest = run.training.maximum_length
            return [_learned(data, run.task, longest, run.training.epochs), _tested(data, run.task, longest)]
    return []


def pretraining_passes(settings: Settings, data: Amounts) -> list[Pass]:
    """Short sequences first, where the recipe has a warm-up of the length; validation. None for an unknown corpus."""
    recipe, longest = settings.pretraining, settings.tokenization.sequence_length
    if recipe.steps is None and not data.sequences:
        return []
    steps = recipe.steps or -(-recipe.epochs * data.sequences["train"] // recipe.batch_size)
    warmup, tokens = recipe.sequence_length_warmup, steps * recipe.batch_size * longest
    share, short = (warmup.share, warmup.length) if warmup else (0.0, longest)
    tested = math.ceil(steps / recipe.evaluation_interval) * data.sequences.get("validation", 0) * longest
    return [(share * tokens, short, 1.0), ((1 - share) * tokens, longest, 1.0), (tested, longest, FORWARD)]


def _timing_passes(settings: Settings, data: Amounts, operator: str) -> dict[str, list[Pass]]:
    """What the stage timing trains, by recipe; stock BERT, timed beside the reference, counts as two of our models."""
    wanted, length = settings.timing, settings.tokenization.sequence_length
    rounds = wanted.repeats * (1 + STOCK * (operator == REFERENCE))
    steps = rounds * (wanted.steps + 1) * settings.pretraining.batch_size * length
    longest = settings.finetuning[wanted.protocol].maximum_length
    epochs = [_learned(data, task, longest, rounds) for task in wanted.tasks]
    return {"pretraining": [(steps, length, 1.0)], wanted.protocol: epochs}


def _learned(data: Amounts, task: str, maximum_length: int, epochs: int) -> Pass:
    """Training on a task of GLUE, whose examples are cut at `maximum_length` tokens."""
    length = min(data.lengths.get(task, OTHER), maximum_length)
    return epochs * data.examples[task, "train"] * length, length, 1.0


def _tested(data: Amounts, task: str, maximum_length: int, times: int = 1) -> Pass:
    """Predictions for the validation splits of a task of GLUE, made so many times."""
    length = min(data.lengths.get(task, OTHER), maximum_length)
    examples = sum(data.examples[task, split.name] for split in TASKS[task].validation_splits)
    return times * examples * length, length, FORWARD


def windows_of(data: Amounts, name: str, recipe: QuestionAnswering) -> tuple[int, float]:
    """Cuts a question and its context, both of mean length, into the windows of question answering.

    Args:
        data: the amounts that the run meets.
        name: of the set of questions.
        recipe: of question answering.

    Returns:
        Windows a question, and mean tokens of a window.
    """
    before = min(data.lengths["question"], recipe.question_length) + SPECIAL
    context = data.lengths["triviaqa" if name == BEFORE else "context"]
    parts = list(cuts(round(context), math.floor(recipe.maximum_length - before), recipe.stride))
    return len(parts), before + sum(end - start for start, end in parts) / len(parts)
