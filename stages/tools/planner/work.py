"""Counts the work of a run before anyone starts it, by the stages' own plans: tokens, operations and bytes of each job.

Operations are those of attention/counts.py: of matrix products, three times the forward pass where a model is trained.
"""

import math
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from stages.attention.counts import model_parameters, training_flops
from stages.benchmarks.glue import TASKS
from stages.classification.run import TunedRun
from stages.convergence import stage as convergence
from stages.cross_domain import stage as cross_domain
from stages.finetuning import stage as finetuning
from stages.noise import stage as noise
from stages.plumbing.files import PRETRAINED
from stages.plumbing.observations import NOT_PRETRAINED
from stages.plumbing.settings import REFERENCE, Settings
from stages.pretraining import stage as pretraining
from stages.question_answering import stage as question_answering
from stages.question_answering.windows import cuts
from stages.tools.planner import amounts
from stages.tools.planner.amounts import Amounts
from stages.translation import stage as translation

FLOAT32 = 4  # bytes
COPIES = 3  # of a model: in data/jobs, the stage's output, DVC's cache; fewer where a file system has reflinks
RESUMED = 3  # weights and both moments of AdamW in the state to resume from, in data/jobs
SPECIAL = 3  # [CLS] and two [SEP] of a window of question and context
FORWARD = 1 / 3  # of the operations of training
STOCK = 2  # precisions in which stage timing trains stock BERT too

Plan = list[tuple[dict, dict]]  # of a stage: columns of observations, and settings of a job
Pass = tuple[float, float, float]  # tokens, tokens of a sequence, operations as a share of those of training


@dataclass(frozen=True)
class Run:
    """What one job does.

    recipe: `pretraining`, `question_answering` or a name in `finetuning`, whose batch size and precision hold. job: its
    settings in data/jobs. tokens, flops: None where they are not counted. sequences: that the tokens are in. bytes: of
    the models that it leaves.
    """

    stage: str
    operator: str
    size: str
    recipe: str
    job: dict
    tokens: float | None = None
    sequences: float = 0.0
    flops: float | None = None
    bytes: int = 0


def planned(settings: Settings, data: Amounts) -> list[Run]:
    """Every job of the stages that train or test models, in the order of dvc.yaml."""

    @cache
    def size_of(kind: str, operator: str, size: str) -> int:
        width = settings.models[size].model_dump() | {"vocab_size": data.vocabulary_size}
        return FLOAT32 * model_parameters(f"{kind}_parameters", settings.variant(operator), width)

    @cache  # of thousands of jobs, few differ in it
    def a_token(operator: str, size: str, length: float, masked: float) -> float:
        variant, width = settings.variant(operator), settings.models[size].model_dump()
        return training_flops(variant, width, data.vocabulary_size, length, masked)

    def run(stage: str, operator: str, size: str, recipe: str, job: dict, passes: list[Pass], left: int = 0) -> Run:
        masked = settings.pretraining.mask_probability if recipe == "pretraining" else 0.0
        tokens, sequences = sum(each[0] for each in passes), sum(each[0] / each[1] for each in passes)
        flops = sum(count * share * a_token(operator, size, length, masked) for count, length, share in passes)
        known = passes or None
        return Run(stage, operator, size, recipe, job, known and tokens, sequences, known and flops, left)

    runs = []
    for job in pretraining.planned(settings, settings.pretrained()):
        model = job.operator, job.size
        left = (COPIES * (1 + len(job.leaves)) + RESUMED) * size_of("masked_lm", *model)
        runs.append(run("pretraining", *model, "pretraining", job.content, pretraining_passes(settings, data), left))
    for stage, plan in plans(settings).items():
        for columns, job in plan:
            operator = REFERENCE if columns["operator"] == NOT_PRETRAINED else columns["operator"]
            stays = job.get("keep") or job["task"] == question_answering.BEFORE
            left = COPIES * size_of("classifier", operator, columns["size"]) if stays else 0
            recipe, passes = columns.get("protocol", stage), passes_of(settings, data, stage, job)
            runs.append(run(stage, operator, columns["size"], recipe, job, passes, left))
    for model in settings.pretrained():
        for recipe, passes in timing_passes(settings, data, model[0]).items():
            runs.append(run("timing", *model, recipe, {}, passes))
    for job in translation.planned(settings, settings.translation.operators):
        runs.append(Run("translation", job["operator"], job["protocol"], job["protocol"], job))
    return runs


def plans(settings: Settings) -> dict[str, Plan]:
    """What the stages after pre-training plan: they go by the models that they find.

    So they are asked in an empty folder, with a folder in the place of every model that there will be.
    """
    models, tuned, answering = settings.pretrained(), settings.finetuned(), []
    with TemporaryDirectory() as folder, chdir(folder):
        for operator, size in models:
            for seed in settings.pretraining.seeds:
                Path(PRETRAINED, f"{operator}-{size}", f"seed-{seed}").mkdir(parents=True)
            here = [(operator, size)]
            first = question_answering.first_steps(settings, here)
            trained = {(each.weights, each.seed): Path(question_answering.BEFORE) for each in first}
            answering += [*first, *question_answering.planned(settings, here, trained)]
        first_tuned = finetuning.planned(settings, tuned)
        for each in first_tuned:
            if each.keep:
                each.keep.mkdir(parents=True)
        tests = {"noise": noise.planned(settings, tuned), "cross_domain": cross_domain.planned(settings, tuned)}
        protocol = settings.convergence.protocol  # after the last step some runs are jobs of stage finetuning
        same = {each.name for each in first_tuned if each.columns["protocol"] == protocol}
        others = [each for each in convergence.planned(settings, models) if each.name not in same]
    return {
        "finetuning": _contents(first_tuned),
        **tests,
        "convergence": _contents(others),
        "question_answering": _contents(answering),
    }


def _contents(runs: Sequence[TunedRun]) -> Plan:
    """Columns and content of runs, with the place where a model is kept."""
    return [(run.columns, run.content | {"keep": getattr(run, "keep", None)}) for run in runs]


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


def passes_of(settings: Settings, data: Amounts, stage: str, job: dict) -> list[Pass]:
    """What a job of a later stage trains on, and what it predicts."""
    if stage == "noise":
        wanted = settings.noise  # clean, and every level but the first under every seed and kind of noise
        times = 1 + (len(wanted.levels) - 1) * len(wanted.seeds) * (1 + len(wanted.text))
        return [tested(data, job["task"], job["maximum_length"], times)]
    if stage == "cross_domain":
        return [tested(data, task, job["maximum_length"]) for task in settings.cross_domain.tasks]
    recipe = job["training"]
    if stage == "question_answering":
        windows, length = windows_of(data, job["set"], recipe)
        tokens = {split: data.examples[job["set"], split] * windows * length for split in ("train", "validation")}
        answered = [] if job["set"] == question_answering.BEFORE else [(tokens["validation"], length, FORWARD)]
        return [(recipe["epochs"] * tokens["train"], length, 1.0), *answered]
    longest = recipe["maximum_length"]
    return [learned(data, job["task"], longest, recipe["epochs"]), tested(data, job["task"], longest)]


def timing_passes(settings: Settings, data: Amounts, operator: str) -> dict[str, list[Pass]]:
    """What stage timing does, by recipe; stock BERT, which does more work a token, counts as two of our models."""
    wanted, length = settings.timing, settings.tokenization.sequence_length
    rounds = wanted.repeats * (1 + STOCK * (operator == REFERENCE))
    steps = rounds * (wanted.steps + 1) * settings.pretraining.batch_size * length
    longest = settings.finetuning[wanted.protocol].maximum_length
    epochs = [learned(data, task, longest, rounds) for task in wanted.tasks]
    return {"pretraining": [(steps, length, 1.0)], wanted.protocol: epochs}


def learned(data: Amounts, task: str, maximum_length: int, epochs: int) -> Pass:
    """Training on a task of GLUE."""
    length = min(data.lengths.get(task, amounts.OTHER), maximum_length)
    return epochs * data.examples[task, "train"] * length, length, 1.0


def tested(data: Amounts, task: str, maximum_length: int, times: int = 1) -> Pass:
    """Predictions for its validation splits."""
    length = min(data.lengths.get(task, amounts.OTHER), maximum_length)
    examples = sum(data.examples[task, split.name] for split in TASKS[task].validation_splits)
    return times * examples * length, length, FORWARD


def windows_of(data: Amounts, name: str, recipe: dict) -> tuple[int, float]:
    """Windows of a question of mean length, and mean tokens of a window. recipe: a record `question_answering`."""
    before = min(data.lengths["question"], recipe["question_length"]) + SPECIAL
    context = data.lengths["triviaqa" if name == question_answering.BEFORE else "context"]
    parts = list(cuts(round(context), math.floor(recipe["maximum_length"] - before), recipe["stride"]))
    return len(parts), before + sum(end - start for start, end in parts) / len(parts)
