"""Times our training: fine-tuning, and steps of pre-training and translation.

Reads data/tasks, data/tokens (sequences and tokenizer) and data/sentence_pairs. Models start untrained, because speed
does not depend on learned weights. Writes data/observations/timing.csv with these metrics, in `timing.repeats` rounds
(`round=N`): `seconds_per_epoch` of fine-tuning (Kowsher et al., Figure 3), `tokens_per_second` and `share_of_peak` of
pre-training, and `seconds_per_step` of the encoder-decoders of every protocol of `translation` (size: the protocol).

All models are timed in turn within a round, so that a drift of the machine affects all models. The peaks of matrix
products are in data/runs/timing.json.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch

from stages.attention.counts import count_training_operations
from stages.classification import training as finetuning
from stages.encoder_decoder.run import TRANSLATION, TranslationRun
from stages.files import observations
from stages.files.observations import Observation
from stages.files.paths import TASK_FOLDER, TOKENIZER, TOKENS
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.schema.settings import Settings
from stages.timing import speed
from stages.training import machine
from stages.training.machine import call_in_turn

PRECISIONS = ("float32", "bfloat16")


def plan_pretraining(settings: Settings, operator: str, size: str, **changes: str) -> PretrainingRun:
    """Plans the pre-training to time: the recipe of params.yaml, with `changes` such as another precision."""
    # Most steps of a run come after the warm-up of the sequence length: only such steps are timed.
    recipe = settings.pretraining.model_copy(update={"sequence_length_warmup": None, **changes})
    return PretrainingRun(
        operator=operator,
        variant=settings.collect_operator_settings(operator),
        training=recipe,
        size=size,
        seed=1,
        model=settings.models[size],
    )


def time_pretraining(settings: Settings, size: str) -> tuple[list[Observation], dict[str, float]]:
    """Times pre-training with every operator at a size.

    Returns:
        rows: `tokens_per_second` and `share_of_peak` by operator and round.
        peaks: the operations per second of large matrix products by precision, the highest of all rounds.
    """
    corpus = Corpus.open(TOKENS)
    recipe = settings.pretraining
    calls = {}
    for operator in settings.operators:
        run = plan_pretraining(settings, operator, size)
        calls[operator] = speed.prepare_pretraining(run, corpus, settings.timing.steps)
    # The peaks are measured in the same rounds as the training.
    peak_calls = {precision: partial(machine.measure_peak, precision) for precision in PRECISIONS}
    # by operator the seconds, by precision the peak, of every round
    measured = call_in_turn({**calls, **peak_calls}, settings.timing.repeats)
    peaks = {precision: max(measured[precision]) for precision in PRECISIONS}
    model = settings.models[size].model_dump()
    length = corpus.train.sequence_length
    rows = []
    for operator in calls:
        operations = count_training_operations(
            settings.collect_operator_settings(operator), model, corpus.vocabulary_size, length, recipe.mask_probability
        )
        # tokens per second
        rates = [recipe.batch_size * length / seconds for seconds in measured[operator]]
        shares = [operations * rate / peaks[recipe.precision] for rate in rates]
        rows += make_rows(rates, operator=operator, size=size, metric="tokens_per_second")
        rows += make_rows(shares, operator=operator, size=size, metric="share_of_peak")
    return rows, peaks


def time_finetuning(settings: Settings, size: str, task: str) -> Iterator[Observation]:
    """Times epochs of fine-tuning on a GLUE task; yields rows of `seconds_per_epoch` by operator and round."""
    recipe = settings.finetuning[settings.timing.protocol].model_copy(update={"epochs": 1})
    examples = finetuning.encode_table(TASK_FOLDER / task / "train.parquet", TOKENIZER, recipe.maximum_length)
    model = settings.models[size].model_dump()
    vocabulary_size = Corpus.open(TOKENS).vocabulary_size
    calls = {}
    for operator in settings.operators:
        variant = settings.collect_operator_settings(operator)
        calls[operator] = speed.prepare_finetuning(variant, task, recipe, model, vocabulary_size, examples)
    # A first call that is not timed: work that a process does once, such as loading kernels, belongs to no round.
    calls["original"]()
    return time_in_turn(calls, settings, size=size, metric="seconds_per_epoch", task=task)


def time_translation(settings: Settings, protocol: str) -> Iterator[Observation]:
    """Times training steps of the operators of a protocol of `translation`; yields rows of `seconds_per_step`."""
    recipe = settings.translation.protocols[protocol]
    calls = {}
    for operator in recipe.operators:
        run = TranslationRun(operator=operator, task=TRANSLATION, size=protocol, seed=1, training=recipe)
        calls[operator] = speed.prepare_translation(run, settings.timing.steps)
    return time_in_turn(calls, settings, size=protocol, protocol=protocol, metric="seconds_per_step")


def time_in_turn(calls: dict[str, Callable[[], float]], settings: Settings, **columns: str) -> Iterator[Observation]:
    """Times the calls of all operators in turn, round by round; yields rows with further columns such as metric."""
    for operator, seconds in call_in_turn(calls, settings.timing.repeats).items():
        yield from make_rows(seconds, operator=operator, **columns)


def make_rows(values: list[float], **columns: str) -> Iterator[Observation]:
    """Makes an observation per round of measurements, with further columns such as metric and operator."""
    for number, value in enumerate(values, 1):
        yield Observation(stage="timing", condition=f"round={number}", value=value, **columns)


def main(settings: Settings) -> dict:
    """Times everything and writes the observations; returns the peaks by size and precision, for the run's record."""
    # A CPU computes with a single thread, as in every other stage: several threads would wait for each other whenever
    # another process takes a core.
    torch.set_num_threads(1)
    rows = []
    peaks = {}
    for size in settings.sizes:
        of_pretraining, peaks[size] = time_pretraining(settings, size)
        rows += of_pretraining
        for task in settings.timing.tasks:
            rows += time_finetuning(settings, size, task)
    for protocol in settings.translation.protocols:
        rows += time_translation(settings, protocol)
    observations.write(observations.find_file("timing"), rows)
    return {"peak_flops": peaks}
