"""Times our training and the training of stock BERT: fine-tuning, and steps of pre-training and translation.

Reads data/tasks, data/tokens (sequences and tokenizer) and data/sentence_pairs. Models start untrained, because speed
does not depend on learned weights. Writes data/observations/timing.csv with these metrics, in `timing.repeats` rounds:
`seconds_per_epoch` of fine-tuning (Kowsher et al., Figure 3; of stock BERT computed from steps), `tokens_per_second`
and `share_of_peak` of pre-training, and `seconds_per_step` of the encoder-decoders of every protocol of `translation`
(size: the protocol). The condition is `round=N` for our training, and `implementation=trainer precision=P round=N` for
Hugging Face's BERT and Trainer, in rows whose operator is `original`. On a CPU, P is float32, and bfloat16 if native;
on a GPU, P is bfloat16, and stock BERT is compiled.

The metric `attention_calls` counts the calls of each of PyTorch's kernels of attention in a forward pass (condition:
`kernel=flash`, or `kernel=written_out` for attention as separate products), because kernels differ in speed, too.

Compared calls are timed in turn within a round, so that a drift of the machine affects all calls. The peaks of matrix
products are in data/runs/timing.json.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial

import torch

from stages.attention.counts import count_training_operations
from stages.classification import training as finetuning
from stages.encoder_decoder.run import TRANSLATION, TranslationRun
from stages.files import observations
from stages.files.observations import Observation
from stages.files.paths import TASK_FOLDER, TOKENIZER, TOKENS
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.runner import pool
from stages.schema.settings import Settings
from stages.timing import peers, speed, stock
from stages.training import machine
from stages.training.machine import call_in_turn
from stages.training.optimisation import has_gpu

PRECISIONS = ("float32", "bfloat16")
# Share of the float32 peak. A lower bfloat16 peak means emulation, with which an epoch would take minutes.
EMULATED = 0.25
# stands for our training where a key names the precision of stock BERT
OURS = ""

# operator; precision of stock BERT, or OURS
Key = tuple[str, str]


@cache
def find_precisions() -> tuple[str, ...]:
    """Finds the precisions in which stock BERT is timed: bfloat16 on a GPU; on a CPU float32, and bfloat16 if native.

    A CPU without bfloat16 emulates the matrix products, at less than EMULATED of the speed of float32.
    """
    if has_gpu():
        return ("bfloat16",)
    if machine.measure_peak("bfloat16") > EMULATED * machine.measure_peak("float32"):
        return PRECISIONS
    return ("float32",)


def time_stock(process: ProcessPoolExecutor, training: peers.Training, steps: int) -> float:
    """Times stock BERT in another process; returns the mean seconds of `steps` steps after a step that is not timed."""
    # Both processes share the memory of a GPU.
    if has_gpu():
        torch.cuda.empty_cache()
    return process.submit(peers.time_steps, training, steps).result()


def make_pretraining_calls(
    settings: Settings, size: str, corpus: Corpus, process: ProcessPoolExecutor
) -> tuple[dict[Key, Callable[[], float]], list[Observation]]:
    """Prepares the measurements of pre-training at a size, so that `call_in_turn` can time the models in turn.

    Args:
        settings: the whole of params.yaml.
        size: a name in `models`.
        corpus: the packed sequences to train on.
        process: trains stock BERT.

    Returns:
        calls: functions by (operator, precision of stock BERT; "" for our training). Each trains for `timing.steps`
            steps after a first step, and returns the seconds per step.
        rows: `attention_calls` of our operators.
    """
    # stock BERT has no warm-up of the sequence length, so our training is timed without it
    recipe = settings.pretraining.model_copy(update={"sequence_length_warmup": None})
    columns = {"size": size, "seed": 1, "model": settings.models[size]}
    steps = settings.timing.steps
    calls, rows = {}, []
    for operator in settings.operators:
        run = PretrainingRun(operator=operator, variant=settings.select_variant(operator), training=recipe, **columns)
        training = speed.Pretraining(run, corpus)
        rows += make_kernel_rows(training.count_kernels(), settings, operator, size)
        calls[operator, OURS] = partial(training.measure_seconds, steps)
    for precision in find_precisions():
        changed = recipe.model_copy(update={"precision": precision})
        run = PretrainingRun(
            operator="original", variant=settings.select_variant("original"), training=changed, **columns
        )
        peer = stock.describe_pretraining(run, corpus, TOKENIZER, steps)
        calls["original", precision] = partial(time_stock, process, peer, steps)
    return calls, rows


def time_pretraining(
    settings: Settings, size: str, process: ProcessPoolExecutor
) -> tuple[list[Observation], dict[str, float]]:
    """Times pre-training with every operator, and with stock BERT.

    Args:
        settings: the whole of params.yaml.
        size: a name in `models`.
        process: trains stock BERT.

    Returns:
        rows: `attention_calls` by operator; and `tokens_per_second` and `share_of_peak` by operator (and precision of
            stock BERT) and round.
        peaks: the operations per second of large matrix products by precision, the highest of all rounds.
    """
    corpus = Corpus.open(TOKENS)
    calls, rows = make_pretraining_calls(settings, size, corpus, process)
    # the peaks are measured in the same rounds as the training
    peak_calls = {precision: partial(machine.measure_peak, precision) for precision in PRECISIONS}
    values = call_in_turn({**calls, **peak_calls}, settings.timing.repeats)
    peaks = {precision: max(values[precision]) for precision in PRECISIONS}
    recipe = settings.pretraining
    model = settings.models[size].model_dump()
    length = corpus.train.sequence_length
    for operator, precision in calls:
        operations = count_training_operations(
            settings.select_variant(operator), model, corpus.vocabulary_size, length, recipe.mask_probability
        )
        # The operations are those of a model with a head at masked positions only, as in our training; the head of
        # stock BERT at all positions does more. Our training computes in the precision of the recipe.
        peak = peaks[precision or recipe.precision]
        rates = [recipe.batch_size * length / seconds for seconds in values[operator, precision]]
        shares = [operations * rate / peak for rate in rates]
        rows += make_rows(rates, precision, operator=operator, size=size, metric="tokens_per_second")
        rows += make_rows(shares, precision, operator=operator, size=size, metric="share_of_peak")
    return rows, peaks


def time_finetuning(settings: Settings, size: str, task: str, process: ProcessPoolExecutor) -> list[Observation]:
    """Times fine-tuning: epochs of ours, batched by length, and steps of stock BERT, padded to the maximum length.

    Args:
        settings: the whole of params.yaml.
        size: a name in `models`.
        task: a GLUE task.
        process: trains stock BERT.

    Returns:
        Two kinds of observations by operator: the calls of each attention kernel of PyTorch in a forward pass
        (`attention_calls`), and the seconds of an epoch (`seconds_per_epoch`) by round, for stock BERT also by
        precision.
    """
    recipe = settings.finetuning[settings.timing.protocol].model_copy(update={"epochs": 1})
    examples = finetuning.encode_table(TASK_FOLDER / task / "train.parquet", TOKENIZER, recipe.maximum_length)
    model = settings.models[size].model_dump()
    vocabulary_size = Corpus.open(TOKENS).vocabulary_size
    steps = settings.timing.steps
    calls, rows = {}, []
    for operator in settings.operators:
        classifier = speed.Finetuning(settings.select_variant(operator), task, recipe, model, vocabulary_size)
        rows += make_kernel_rows(classifier.count_kernels(examples), settings, operator, size, task)
        calls[operator, OURS] = partial(classifier.train, examples)
    for precision in find_precisions():
        changed = recipe.model_copy(update={"precision": precision})
        peer = stock.describe_finetuning(task, changed, model, vocabulary_size, examples, steps)
        calls["original", precision] = partial(time_stock, process, peer, steps)
    # a first call that is not timed: work that a process does once, such as loading kernels, belongs to no round
    calls["original", OURS]()
    for (operator, precision), values in call_in_turn(calls, settings.timing.repeats).items():
        seconds = values
        # All padded examples are equally long, so an epoch of stock BERT takes examples / batch size steps.
        if precision:
            seconds = [step * len(examples) / recipe.batch_size for step in values]
        rows += make_rows(seconds, precision, operator=operator, size=size, metric="seconds_per_epoch", task=task)
    return rows


def time_translation(settings: Settings, protocol: str) -> list[Observation]:
    """Times training steps of the operators of a protocol of `translation`; returns rows of `seconds_per_step`."""
    recipe = settings.translation.protocols[protocol]
    calls = {}
    for operator in recipe.operators:
        run = TranslationRun(operator=operator, task=TRANSLATION, size=protocol, seed=1, training=recipe)
        calls[operator] = partial(speed.Translation(run).measure_seconds, settings.timing.steps)
    columns = {"size": protocol, "protocol": protocol, "metric": "seconds_per_step"}
    rows = []
    for operator, seconds in call_in_turn(calls, settings.timing.repeats).items():
        rows += make_rows(seconds, OURS, operator=operator, **columns)
    return rows


def make_kernel_rows(
    calls: dict[str, int], settings: Settings, operator: str, size: str, task: str | None = None
) -> list[Observation]:
    """Makes observations of `attention_calls`, which show by which kernels of PyTorch the attention was computed.

    Args:
        calls: number of calls in a forward pass by kernel, such as {"flash": 12}. Layers without a call count as the
            kernel `written_out`: separate matrix products.
        settings: the whole of params.yaml.
        operator: name of the operator.
        size: a name in `models`.
        task: the GLUE task of a fine-tuning; `None` for pre-training.
    """
    columns = {"operator": operator, "size": size, "task": task}
    written_out = settings.models[size].layers - sum(calls.values())
    rows = []
    for kernel, number in {**calls, "written_out": written_out}.items():
        if number:
            condition = f"kernel={kernel}"
            row = Observation(stage="timing", metric="attention_calls", condition=condition, value=number, **columns)
            rows.append(row)
    return rows


def make_rows(values: list[float], precision: str, **columns: str) -> list[Observation]:
    """Makes an observation of stage `timing` per round of measurements.

    Args:
        values: the measured value of each round.
        precision: precision of stock BERT; "" for our training.
        columns: all further columns of the observations, including metric and operator.
    """
    prefix = f"implementation=trainer precision={precision} " if precision else ""
    rows = []
    for number, value in enumerate(values, 1):
        rows.append(Observation(stage="timing", condition=f"{prefix}round={number}", value=value, **columns))
    return rows


def main(settings: Settings) -> dict:
    """Times everything and writes the observations; returns the peaks by size and precision, for the run's record."""
    # A CPU computes with a single thread, as in every other stage: several threads would wait for each other whenever
    # another process takes a core.
    torch.set_num_threads(1)
    rows = []
    peaks = {}
    # Stock BERT trains in a separate process, which has the defaults of PyTorch and the C library.
    with pool.open_new_process() as process:
        for size in settings.sizes:
            of_pretraining, peaks[size] = time_pretraining(settings, size, process)
            rows += of_pretraining
            for task in settings.timing.tasks:
                rows += time_finetuning(settings, size, task, process)
    for protocol in settings.translation.protocols:
        rows += time_translation(settings, protocol)
    observations.write(observations.FOLDER / "timing.csv", rows)
    return {"peak_flops": peaks}
