"""Counts the work of a run before anyone starts it, by the stages' own plans: tokens, operations and bytes of each job.

Operations are those of attention/counts.py: of matrix products, three times the forward pass where a model is trained.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from math import nan
from pathlib import Path
from statistics import mean

import pandas as pd

from stages.attention.counts import model_parameters, training_flops
from stages.benchmarks.glue import TASKS
from stages.classification.kept_models import EvaluationRun
from stages.classification.run import FinetuningRun
from stages.convergence import stage as convergence
from stages.cross_domain import stage as cross_domain
from stages.finetuning import stage as finetuning
from stages.masked_lm import run as masked_lm
from stages.masked_lm.run import PretrainingRun
from stages.noise import stage as noise
from stages.noise.stage import NoiseRun
from stages.plumbing.observations import NOT_PRETRAINED
from stages.plumbing.run import Run
from stages.plumbing.settings import REFERENCE, Settings
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
COLUMNS = ["command", "stage", "size", "recipe", "run", "tokens", "length", "flops", "bytes"]

Pass = tuple[float, float, float]  # tokens, tokens of a sequence, operations as a share of those of training


def planned(settings: Settings, data: Amounts) -> pd.DataFrame:
    """Counts the work of every job of the stages that train or test models, in the order of dvc.yaml.

    Returns:
        COLUMNS. command: that does the job, as DVC has it: `pretraining@original-tiny`. recipe: `pretraining`,
        `question_answering` or a name in `finetuning`, whose batch size and precision hold. run: the record of the job;
        None of what is no job. tokens, flops: of all passes, NaN where these are not counted. length: tokens of a
        sequence of the first pass. bytes: of the models that it leaves.
    """

    @cache
    def size_of(kind: str, operator: str, size: str) -> int:
        width = settings.models[size].model_dump() | {"vocab_size": data.vocabulary_size}
        return FLOAT32 * model_parameters(kind, settings.variant(operator), width)

    @cache  # of thousands of jobs, few differ in it
    def a_token(operator: str, size: str, length: float, masked: float) -> float:
        variant, width = settings.variant(operator), settings.models[size].model_dump()
        return training_flops(variant, width, data.vocabulary_size, length, masked)

    rows = []
    for stage, size, operator, recipe, run, passes in [*_jobs(settings, data), *_timing(settings, data)]:
        command = f"{stage}@{operator}-{size}" if stage == "pretraining" else stage
        model = REFERENCE if operator == NOT_PRETRAINED else operator
        masked = settings.pretraining.mask_probability if recipe == "pretraining" else 0.0
        flops = [tokens * share * a_token(model, size, length, masked) for tokens, length, share in passes]
        work = (sum(tokens for tokens, _, _ in passes), passes[0][1], sum(flops)) if passes else (nan, nan, nan)
        kind, copies = _kept_models(run)
        rows.append((command, stage, size, recipe, run, *work, copies * size_of(kind, model, size) if copies else 0))
    return pd.DataFrame(rows, columns=COLUMNS)


def plans(settings: Settings) -> dict[str, list]:
    """Lists the jobs that the stages plan, by stage."""
    models, tuned = settings.pretrained(), settings.finetuned()
    nowhere = defaultdict(lambda: Path(BEFORE))  # models after TriviaQA: where they will be is not known yet
    finetuned = finetuning.planned(settings, tuned)
    same = {run.text for run in finetuned}  # after the last step, some runs of convergence are these jobs
    return {
        "pretraining": pretraining.planned(settings, models),
        "finetuning": finetuned,
        "noise": noise.planned(settings, tuned),
        "cross_domain": cross_domain.planned(settings, tuned),
        "convergence": [run for run in convergence.planned(settings, models) if run.text not in same],
        "question_answering": [
            *question_answering.first_steps(settings, models),
            *question_answering.planned(settings, models, nowhere),
        ],
        "translation": translation.planned(settings, settings.translation.operators),
    }


def _jobs(settings: Settings, data: Amounts) -> Iterator[tuple]:
    """Yields stage, size, operator, recipe, record and passes of every job."""
    for stage, runs in plans(settings).items():
        for run in runs:
            recipe = run.columns["protocol"] if isinstance(run, FinetuningRun | EvaluationRun) else stage
            yield stage, run.size, run.operator, recipe, run, _passes(settings, data, run)


def _timing(settings: Settings, data: Amounts) -> Iterator[tuple]:
    """Yields the same of what stage timing trains; stock BERT, timed beside the reference, counts as two models."""
    timing, length = settings.timing, settings.tokenization.sequence_length
    longest = settings.finetuning[timing.protocol].maximum_length
    for operator, size in settings.pretrained():
        rounds = timing.repeats * (1 + STOCK * (operator == REFERENCE))
        steps = rounds * (timing.steps + 1) * settings.pretraining.batch_size * length
        yield "timing", size, operator, "pretraining", None, [(steps, length, 1.0)]
        epochs = [_learned(data, task, longest, rounds) for task in timing.tasks]
        yield "timing", size, operator, timing.protocol, None, epochs


def _kept_models(run: Run | None) -> tuple[str, int]:
    """The kind of the models that a job keeps, and their number with all copies."""
    if isinstance(run, PretrainingRun):
        return "masked_lm_parameters", COPIES * (1 + len(run.leaves)) + RESUMED
    stays = getattr(run, "keep", None) or getattr(run, "set", None) == BEFORE
    return "classifier_parameters", COPIES if stays else 0


def _passes(settings: Settings, data: Amounts, run: Run) -> list[Pass]:
    """What a job trains on, and what it predicts. Nothing where that is not known, or not counted."""
    match run:
        case PretrainingRun():
            return _pretrained(settings, data)
        case NoiseRun():  # clean, and every level but the first under every seed and kind of noise
            times = 1 + (len(run.noise.levels) - 1) * len(run.noise.seeds) * (1 + len(run.noise.text))
            return [_predictions(data, run.task, run.maximum_length, times)]
        case EvaluationRun():
            return [_predictions(data, task, run.maximum_length) for task in run.evaluated_on]
        case AnsweringRun():
            return _answered(data, run)
        case FinetuningRun():
            longest = run.training.maximum_length
            return [_learned(data, run.task, longest, run.training.epochs), _predictions(data, run.task, longest)]
    return []


def _pretrained(settings: Settings, data: Amounts) -> list[Pass]:
    """Short sequences first, where the recipe has a warm-up of the length; validation. None of an unknown corpus."""
    recipe, longest = settings.pretraining, settings.tokenization.sequence_length
    if recipe.steps is None and not data.sequences:
        return []
    steps = masked_lm.length(recipe, data.sequences.get("train", 0))
    warmup, tokens = recipe.sequence_length_warmup, steps * recipe.batch_size * longest
    share, short = (warmup.share, warmup.length) if warmup else (0.0, longest)
    tested = math.ceil(steps / recipe.evaluation_interval) * data.sequences.get("validation", 0) * longest
    return [(share * tokens, short, 1.0), ((1 - share) * tokens, longest, 1.0), (tested, longest, FORWARD)]


def _learned(data: Amounts, task: str, maximum_length: int, epochs: int) -> Pass:
    """Training on a task of GLUE, whose examples are cut at `maximum_length` tokens."""
    length = min(data.lengths.get(task, OTHER), maximum_length)
    return epochs * data.examples[task, "train"] * length, length, 1.0


def _predictions(data: Amounts, task: str, maximum_length: int, times: int = 1) -> Pass:
    """Predictions for the validation splits of a task of GLUE, made so many times."""
    length = min(data.lengths.get(task, OTHER), maximum_length)
    examples = sum(data.examples[task, split.name] for split in TASKS[task].validation_splits)
    return times * examples * length, length, FORWARD


def _answered(data: Amounts, run: AnsweringRun) -> list[Pass]:
    """Questions and their contexts, all of mean length, in windows; after training on TriviaQA none is answered."""
    recipe = run.training
    before = min(data.lengths["question"], recipe.question_length) + SPECIAL
    context = data.lengths["triviaqa" if run.set == BEFORE else "context"]
    windows = list(cuts(round(context), math.floor(recipe.maximum_length - before), recipe.stride))
    length = before + mean(end - start for start, end in windows)
    train, validation = (data.examples[run.set, split] * len(windows) * length for split in ("train", "validation"))
    answered = [] if run.set == BEFORE else [(validation, length, FORWARD)]
    return [(recipe.epochs * train, length, 1.0), *answered]
