"""Times training, ours and that of stock BERT: epochs of fine-tuning by task and operator, and steps of pre-training.

Reads data/tasks, sequences and tokenizer of data/tokens, and data/sentence_pairs; models have new weights, for speed
does not depend on them. Writes data/observations/timing.csv: seconds_per_epoch of fine-tuning (Kowsher et al., Figure
3), tokens_per_second and share_of_peak of pre-training, and seconds_per_step of the encoder-decoders of every protocol
of `translation` (size: the protocol), each in `timing.repeats` rounds. condition: `round=N` for ours,
`implementation=trainer precision=P round=N` for Hugging Face's BERT and Trainer, in rows whose operator is `original`;
P is float32, and also bfloat16 where the machine does not emulate it. All that is compared is timed in turn within a
round, so that a machine's drift affects all alike; the peaks of matrix products are in data/runs/timing.json. A CPU
computes with one thread, as in every other stage: several would wait for each other wherever another process takes a
core.
"""

from collections.abc import Callable
from functools import cache, partial

import torch

from stages.attention.counts import training_flops
from stages.classification import training as finetuning
from stages.encoder_decoder.run import TRANSLATION, TranslationRun
from stages.files import observations
from stages.files.observations import Observation
from stages.files.paths import TASK_FOLDER, TOKENIZER, TOKENS
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.schema.settings import Settings
from stages.timing import peers, speed
from stages.training import machine
from stages.training.machine import interleaved

PRECISIONS = ("float32", "bfloat16")
OURS = ""  # our training, in place of the precision of stock BERT

Key = tuple[str, str]  # an operator, and the precision in which stock BERT is trained; OURS for our training


@cache
def precisions() -> tuple[str, ...]:
    """Returns the precisions to time stock BERT in; where bfloat16 is emulated, an epoch in it would take minutes."""
    # hardware for bfloat16 is about as fast as that for float32, or faster; an emulation is far slower
    fast = machine.peak("bfloat16") > 0.25 * machine.peak("float32")
    return PRECISIONS if fast else PRECISIONS[:1]


def pretraining_calls(settings: Settings, size: str, corpus: Corpus) -> dict[Key, Callable[[], float]]:
    """Returns the calls that time pre-training at one size, a name in `models`, with our operators and with stock BERT.

    Each trains a model for `timing.steps` steps after its first ones, and returns the seconds per step.
    """
    recipe = settings.pretraining.model_copy(update={"sequence_length_warmup": None})  # stock BERT has none

    def run_of(operator: str, **changes: str) -> PretrainingRun:  # changes: of fields of the recipe
        training, variant = recipe.model_copy(update=changes), settings.variant(operator)
        names = {"operator": operator, "variant": variant, "size": size, "seed": 1}
        return PretrainingRun(**names, model=settings.models[size], training=training)

    ours = {(operator, OURS): speed.Pretraining(run_of(operator), corpus) for operator in settings.operators}
    stock = {
        ("original", name): peers.Pretraining(run_of("original", precision=name), corpus, TOKENIZER)
        for name in precisions()
    }
    return {key: partial(model.seconds, settings.timing.steps) for key, model in (ours | stock).items()}


def pretraining_rows(settings: Settings, size: str) -> tuple[list[Observation], dict[str, float]]:
    """Times pre-training at one size, a name in `models`.

    Returns:
        A pair. First, rows of tokens_per_second and of share_of_peak: the floating-point operations per second that the
        training of a model with a head at masked positions alone would need, as a share of the peak; stock BERT, with a
        head at all positions, does more. Second, the peak by precision: the operations per second of large matrix
        products, the highest of all rounds.
    """
    corpus = Corpus.of(TOKENS)
    calls = pretraining_calls(settings, size, corpus)
    peaks = {name: partial(machine.peak, name) for name in PRECISIONS}
    values = interleaved(calls | peaks, settings.timing.repeats)
    limits = {name: max(values[name]) for name in PRECISIONS}
    length, rows = corpus.train.sequence_length, []
    for operator, stock in calls:
        rates = [settings.pretraining.batch_size * length / seconds for seconds in values[operator, stock]]
        model, share = settings.models[size].model_dump(), settings.pretraining.mask_probability
        work = training_flops(settings.variant(operator), model, corpus.vocabulary_size, length, share)
        limit = limits[stock or settings.pretraining.precision]
        shares = [work * rate / limit for rate in rates]
        for metric, of_rounds in (("tokens_per_second", rates), ("share_of_peak", shares)):
            rows += timed(of_rounds, stock, operator=operator, size=size, metric=metric)
    return rows, limits


def finetuning_rows(settings: Settings, size: str, task: str) -> list[Observation]:
    """Times epochs of fine-tuning on a task: ours in batches of similar length, stock BERT's padded to the maximum.

    Args:
        settings, size, task: all of params.yaml, a name in `models`, and a GLUE task.

    Returns:
        Rows of seconds_per_epoch, one for every operator (and precision of stock BERT) and round.
    """
    recipe = settings.finetuning[settings.timing.protocol].model_copy(update={"epochs": 1})
    examples = finetuning.encode(TASK_FOLDER / task / "train.parquet", TOKENIZER, recipe.maximum_length)
    model = settings.models[size].model_dump(), Corpus.of(TOKENS).vocabulary_size
    ours = {
        (operator, OURS): speed.Finetuning(settings.variant(operator), task, recipe, *model)
        for operator in settings.operators
    }
    stock = {
        ("original", name): peers.Finetuning(task, recipe.model_copy(update={"precision": name}), *model)
        for name in precisions()
    }
    calls = {key: partial(classifier.train, examples) for key, classifier in (ours | stock).items()}
    calls["original", OURS]()  # not timed: what a process does once, such as loading kernels, belongs to no round
    values = interleaved(calls, settings.timing.repeats)
    return [
        row
        for (operator, stock), seconds in values.items()
        for row in timed(seconds, stock, operator=operator, size=size, metric="seconds_per_epoch", task=task)
    ]


def translation_rows(settings: Settings, protocol: str) -> list[Observation]:
    """Times training steps of the operators of a protocol of `translation`; returns rows of seconds_per_step."""
    recipe = settings.translation.protocols[protocol]
    calls = {}
    for operator in recipe.operators:
        run = TranslationRun(operator=operator, task=TRANSLATION, size=protocol, seed=1, training=recipe)
        calls[operator] = partial(speed.Translation(run).seconds, settings.timing.steps)
    columns = {"size": protocol, "protocol": protocol, "metric": "seconds_per_step"}
    return [
        row
        for operator, seconds in interleaved(calls, settings.timing.repeats).items()
        for row in timed(seconds, OURS, operator=operator, **columns)
    ]


def timed(values: list[float], stock: str, **columns: str) -> list[Observation]:
    """Makes one row per round.

    Args:
        values, stock: one value per round; the precision of stock BERT, or OURS.
        columns: all further columns of the rows, metric and operator among them.
    """
    prefix = f"implementation=trainer precision={stock} " if stock else ""  # Hugging Face's Trainer
    return [
        Observation(stage="timing", condition=f"{prefix}round={number}", value=value, **columns)
        for number, value in enumerate(values, 1)
    ]


def main(settings: Settings) -> dict:
    """Writes the observations; returns the peaks by size and precision, for the record of the run."""
    torch.set_num_threads(1)
    rows, peaks = [], {}
    for size in settings.sizes:
        steps, peaks[size] = pretraining_rows(settings, size)
        rows += steps
        rows += [row for task in settings.timing.tasks for row in finetuning_rows(settings, size, task)]
    rows += [row for protocol in settings.translation.protocols for row in translation_rows(settings, protocol)]
    observations.write(observations.FOLDER / "timing.csv", rows)
    return {"peak_flops": peaks}
