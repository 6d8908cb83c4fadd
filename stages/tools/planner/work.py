"""Counts the work of a run before anyone starts it, by the stages' own plans: tokens, operations and bytes of each job.

Operations are floating-point operations of matrix products alone (attention/counts.py); training takes three times
those of a forward pass. The amounts of data are read from data/tokens and data/tasks or, before these are there, from
PRINTED and LENGTHS.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import nan
from pathlib import Path
from statistics import mean
from types import SimpleNamespace

import pandas as pd

from stages.attention.counts import model_parameters, training_flops
from stages.benchmarks.glue import TASKS
from stages.classification.runs import FinetuningRun
from stages.convergence import stage as convergence
from stages.cross_domain import stage as cross_domain
from stages.files.observations import NOT_PRETRAINED
from stages.files.paths import STATISTICS, TOKENS
from stages.finetuning import stage as finetuning
from stages.masked_lm import run as masked_lm
from stages.noise import stage as noise
from stages.pretraining import stage as pretraining
from stages.question_answering import stage as question_answering
from stages.question_answering.stage import BEFORE, AnsweringRun
from stages.question_answering.windows import cuts
from stages.runner.progress import finished
from stages.runner.run import Run
from stages.schema.settings import REFERENCE, Settings
from stages.sequences import packing
from stages.translation import stage as translation

DATA = ("corpus", "filtering", "tokenization")  # the commands that make data/tokens
PRINTED = "data/published/kowsher2024_arxiv_table7_dataset_statistics.csv"  # examples of whole splits
TRIVIAQA = 95_000  # questions of all splits (Joshi et al. 2017, abstract), taken for each: Kowsher et al. give none
# Mean tokens of a training example, [CLS] and [SEP] included: 2,000 examples of each original file with the vocabulary
# of bert-base-uncased; 400 generated ones with the vocabulary of scale `laptop`. The last two are the mean tokens of a
# question and of its context, without special tokens.
LENGTHS = {
    "original": {
        "cola": 11.4, "sst2": 13.2, "mrpc": 53.5, "stsb": 30.9, "qqp": 30.6, "mnli": 38.3, "qnli": 49.0, "rte": 70.3,
        "question": 12.3, "context": 158.3,
    },
    "embedded": {
        "cola": 9.0, "sst2": 10.5, "mrpc": 15.1, "stsb": 16.6, "qqp": 19.7, "mnli": 16.0, "qnli": 15.7, "rte": 16.3,
        "question": 7.1, "context": 18.3,
    },
}  # fmt: skip
OTHER, UNPRINTED = 30.0, 10_000  # tokens of an example, and examples of a split, of any other task
PIECES_A_WORD = 1.3  # word pieces, in SQuAD's contexts; TriviaQA's are taken to be as long as allowed
FLOAT32 = 4  # bytes
COPIES = 3  # of a model: in data/jobs, the stage's output, DVC's cache; fewer where a file system has reflinks
RESUMED = 3  # weights and both moments of AdamW in the state to resume from, in data/jobs
SPECIAL = 3  # [CLS] and two [SEP] of a window of question and context
FORWARD = 1 / 3  # of the operations of training
STOCK = 2  # precisions, at most, in which stage timing trains stock BERT in addition to the reference operator
COLUMNS = ["command", "stage", "size", "recipe", "run", "tokens", "length", "flops", "bytes"]

# A pass is what a job does with sequences of one length, training or prediction: all tokens of it, the tokens of one
# sequence, and the operations per token as a share of those of training.
Pass = tuple[float, float, float]


@dataclass(frozen=True)
class Amounts:
    """How much data there is, or will be. lengths: mean tokens, as in LENGTHS; `triviaqa`: of its contexts.

    vocabulary_size: of data/tokens; before that is there, the largest that the settings allow. sequences: the number of
    packed sequences by split; empty before data/tokens is there. examples: their number by (task or set of questions,
    split). tasks: whether data/tasks is there, so that `examples` were counted and not estimated.
    """

    vocabulary_size: int
    sequences: dict[str, int]
    examples: dict[tuple[str, str], int]
    lengths: dict[str, float]
    tasks: bool


def amounts(settings: Settings) -> Amounts:
    """Counts the data that a run with these settings has made or, before it has made them, estimates them."""
    questions = settings.tasks.questions
    vocabulary_size, sequences = settings.tokenization.vocabulary_size, {}
    if finished(settings, *DATA) == [*DATA]:
        index = packing.read_index(TOKENS)
        vocabulary_size = index["vocabulary_size"]
        sequences = {name: split["sequences"] for name, split in index["splits"].items()}
    if tasks := bool(finished(settings, "tasks")):
        examples = pd.read_csv(STATISTICS).set_index(["task", "split"])["examples"].to_dict()
    else:
        examples = {(name, split.name): UNPRINTED for name in settings.tasks.names for split in TASKS[name].splits}
        # row_key: task or set of questions; column_key: split; no value where it has none
        examples |= pd.read_csv(PRINTED).set_index(["row_key", "column_key"])["value"].dropna().astype(int).to_dict()
        examples |= {("triviaqa", split): TRIVIAQA for split in ("train", "validation")}
        examples |= {
            ("mnli", f"validation_{kind}"): examples["mnli", "validation"] for kind in ("matched", "mismatched")
        }
        for name, split in examples:  # no more than the settings allow; null: all
            section = questions if name in questions.hub else settings.tasks
            limit = section.train_examples if split == "train" else section.validation_examples
            examples[name, split] = min(examples[name, split], limit or examples[name, split])
    generated = settings.data.generated
    lengths = LENGTHS["embedded" if generated else "original"]
    longest = lengths["context"] if generated else questions.triviaqa_words * PIECES_A_WORD
    return Amounts(vocabulary_size, sequences, examples, lengths | {"triviaqa": longest}, tasks)


def planned(settings: Settings, data: Amounts) -> pd.DataFrame:
    """Counts the work of every job of the stages that train or test models, in the order of dvc.yaml.

    Returns:
        COLUMNS, one row per job. command: the one that does the job, as DVC calls it: `pretraining@original-tiny`.
        recipe: `pretraining`, `question_answering`, `translation` or a name in `finetuning`, whose batch size and
        precision hold. run: the record of the job, or operator and size of what timing trains. tokens, flops: of all
        passes, NaN where these are not counted. length: tokens of a sequence of the first pass, or NaN. bytes: of all
        copies of the models that the job leaves.
    """

    @cache
    def size_of(kind: str, operator: str, size: str) -> int:  # bytes of a model, of a kind in counts.MODELS
        width = settings.models[size].model_dump() | {"vocab_size": data.vocabulary_size}
        return FLOAT32 * model_parameters(kind, settings.variant(operator), width)

    @cache  # operations of training per token; of thousands of jobs, few differ in them
    def a_token(operator: str, size: str, length: float, masked: float) -> float:
        variant, width = settings.variant(operator), settings.models[size].model_dump()
        return training_flops(variant, width, data.vocabulary_size, length, masked)

    rows = []
    for stage, recipe, run, passes in jobs(settings, data):
        command = f"{stage}@{run.operator}-{run.size}" if stage == "pretraining" else stage
        model, size = REFERENCE if run.operator == NOT_PRETRAINED else run.operator, run.size
        masked = settings.pretraining.mask_probability if recipe == "pretraining" else 0.0
        flops = [tokens * share * a_token(model, size, length, masked) for tokens, length, share in passes]
        work = (sum(tokens for tokens, _, _ in passes), passes[0][1], sum(flops)) if passes else (nan, nan, nan)
        if stage == "pretraining":
            kept = (COPIES * (1 + len(run.leaves)) + RESUMED) * size_of("masked_lm_parameters", model, size)
        else:  # a fine-tuned model is left for noise or cross_domain (`keep`), or for SQuAD by a run on TriviaQA
            stays = getattr(run, "keep", None) or getattr(run, "set", None) == BEFORE
            kept = COPIES * size_of("classifier_parameters", model, size) if stays else 0
        rows.append((command, stage, size, recipe, run, *work, kept))
    return pd.DataFrame(rows, columns=COLUMNS)


def jobs(settings: Settings, data: Amounts) -> Iterator[tuple[str, str, Run | SimpleNamespace, list[Pass]]]:
    """Yields stage, recipe, run and passes, as in `planned`, of every job that the stages plan.

    There are no passes where the work is not counted: for translation, and for epochs of a corpus of unknown size.
    """
    models, tuned = settings.pretrained(), settings.finetuned()
    for run in pretraining.planned(settings, models):
        yield "pretraining", "pretraining", run, _pretrained(settings, data)
    finetuned = finetuning.planned(settings, tuned)
    for run in finetuned:
        yield "finetuning", run.columns["protocol"], run, _tuned(data, run)
    for run in noise.planned(settings, tuned):  # clean, and each level but the first by every seed and kind of noise
        times = 1 + (len(run.noise.levels) - 1) * len(run.noise.seeds) * (1 + len(run.noise.text))
        yield "noise", run.columns["protocol"], run, [_predicted(data, run.task, run.maximum_length, times)]
    for run in cross_domain.planned(settings, tuned):
        predicted = [_predicted(data, task, run.maximum_length) for task in run.evaluated_on]
        yield "cross_domain", run.columns["protocol"], run, predicted
    same = {run.text for run in finetuned}  # after the last step, some runs of convergence are these jobs
    for run in convergence.planned(settings, models):
        if run.text not in same:
            yield "convergence", run.columns["protocol"], run, _tuned(data, run)
    nowhere = defaultdict(lambda: Path(BEFORE))  # models after TriviaQA: where they will be is not known yet
    after = question_answering.planned(settings, models, nowhere)
    for run in [*question_answering.first_steps(settings, models), *after]:
        yield "question_answering", "question_answering", run, _answered(data, run)
    for run in translation.planned(settings, settings.translation.operators):
        yield "translation", "translation", run, []
    timing, length = settings.timing, settings.tokenization.sequence_length
    longest = settings.finetuning[timing.protocol].maximum_length
    for operator, size in models:
        timed = SimpleNamespace(operator=operator, size=size)
        rounds = timing.repeats * (1 + STOCK * (operator == REFERENCE))  # stock BERT counts as the reference
        steps = rounds * (timing.steps + 1) * settings.pretraining.batch_size * length  # in tokens; one step to warm up
        yield "timing", "pretraining", timed, [(steps, length, 1.0)]
        yield "timing", timing.protocol, timed, [_learned(data, task, longest, rounds) for task in timing.tasks]


def _pretrained(settings: Settings, data: Amounts) -> list[Pass]:
    """Returns the passes of pre-training: the warm-up of the length (no tokens without one), the rest, validation."""
    recipe, longest = settings.pretraining, settings.tokenization.sequence_length
    if recipe.steps is None and not data.sequences:  # epochs of a corpus whose size is not known yet
        return []
    steps = masked_lm.length(recipe, data.sequences.get("train", 0))
    warmup, tokens = recipe.sequence_length_warmup, steps * recipe.batch_size * longest
    share, short = (warmup.share, warmup.length) if warmup else (0.0, longest)
    tested = math.ceil(steps / recipe.evaluation_interval) * data.sequences.get("validation", 0) * longest
    return [(share * tokens, short, 1.0), ((1 - share) * tokens, longest, 1.0), (tested, longest, FORWARD)]


def _tuned(data: Amounts, run: FinetuningRun) -> list[Pass]:
    """Returns the passes of fine-tuning on a task of GLUE, and of predicting its validation splits."""
    longest = run.training.maximum_length
    return [_learned(data, run.task, longest, run.training.epochs), _predicted(data, run.task, longest)]


def _learned(data: Amounts, task: str, maximum_length: int, epochs: int) -> Pass:
    """Returns the pass of training on a task of GLUE, whose examples are cut at `maximum_length` tokens."""
    length = min(data.lengths.get(task, OTHER), maximum_length)
    return epochs * data.examples[task, "train"] * length, length, 1.0


def _predicted(data: Amounts, task: str, maximum_length: int, times: int = 1) -> Pass:
    """Returns the pass of predicting the validation splits of a task of GLUE, `times` times."""
    length = min(data.lengths.get(task, OTHER), maximum_length)
    examples = sum(data.examples[task, split.name] for split in TASKS[task].validation_splits)
    return times * examples * length, length, FORWARD


def _answered(data: Amounts, run: AnsweringRun) -> list[Pass]:
    """Returns the passes of training on a set of questions and, but for TriviaQA, of answering its validation split."""
    recipe = run.training
    before = min(data.lengths["question"], recipe.question_length) + SPECIAL  # all but the context
    context = data.lengths["triviaqa" if run.set == BEFORE else "context"]
    # all questions and contexts are taken to have the mean length
    windows = list(cuts(round(context), math.floor(recipe.maximum_length - before), recipe.stride))
    length = before + mean(end - start for start, end in windows)
    train, validation = (data.examples[run.set, split] * len(windows) * length for split in ("train", "validation"))
    answered = [] if run.set == BEFORE else [(validation, length, FORWARD)]
    return [(recipe.epochs * train, length, 1.0), *answered]
