"""Speed of training beside stock Hugging Face BERT trained the usual way, both timed in turn.

`pretraining`: tokens a second of `original` by our training step, and of BertForMaskedLM by Trainer as in run_mlm.py,
in float32 and bfloat16, on a GPU also compiled; and the share of the machine's measured matrix-product peak that the
operations of the model with a head at masked positions reach. `finetuning`: examples a second and scores of one GLUE
task, ours and as in run_glue.py, every example padded to the maximum length. Columns: the median over rounds, and the
medians over rounds of the ratio to stock in float32 and to stock in bfloat16. All begin with new weights and have a
dropout of 0.1; the data are those of a run: `dvc repro tokenization tasks` makes them.
"""

import argparse
import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import torch

from stages.attention.counts import training_flops
from stages.benchmarks import glue
from stages.benchmarks.metrics import scores
from stages.classification import training as finetuning
from stages.classification.training import Encoded
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.plumbing.files import TOKENIZER, TOKENS, write_atomically
from stages.plumbing.training_sections import Finetuning, Model, Pretraining
from stages.sequences import packing
from stages.timing import peers, speed
from stages.training import machine
from stages.training.rounds import interleaved, median_ratio

MASKED = 0.15
PRECISIONS = ("float32", "bfloat16")
WAYS = tuple((way, precision) for precision in PRECISIONS for way in ("stock", "ours"))
COMPILED = ("compiled", "bfloat16")  # stock, compiled by Trainer: a further peer on a GPU
TRAINING = {
    "steps": 1_000_000, "epochs": None, "warmup_steps": 1000, "learning_rate": 1e-4, "betas": [0.9, 0.999],
    "epsilon": 1e-8, "weight_decay": 0.01, "gradient_clipping": 1.0, "initializer_range": 0.02,
    "mask_probability": MASKED, "hidden_dropout": 0.1, "attention_dropout": 0.1, "evaluation_interval": 1_000_000,
    "checkpoint_interval": 1_000_000, "micro_batch_size": None, "probes": False,
    "sequence_length_warmup": None,
}  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """A fine-tuning: task, model (as section `models` has it), tokens of an example at most, and the recipe."""

    task: str
    size: dict[str, int]
    vocabulary_size: int
    length: int
    batch_size: int
    epochs: int
    learning_rate: float


def pretraining_speeds(
    corpus: Corpus, tokenizer: Path, size: dict[str, int], batch_size: int, steps: int, rounds: int
) -> pd.DataFrame:
    """Times pre-training in all ways.

    Args:
        corpus: the data.
        tokenizer: of the corpus.
        size: of the model, as section `models` has it.
        batch_size: sequences of a step.
        steps: that are timed in a round.
        rounds: of timing.

    Returns:
        The table that the module describes, in tokens a second.
    """
    length = corpus.train.sequence_length
    few = corpus.train[np.arange(min(len(corpus.train), batch_size * (steps + 1)))]
    stock = peers.Pretraining(size, TRAINING, corpus.vocabulary_size, few, tokenizer)
    calls = {}
    for way, precision in (*WAYS, COMPILED) if machine.device().type == "cuda" else WAYS:
        if way != "ours":
            calls[way, precision] = partial(stock.seconds, batch_size, precision, steps, way == "compiled")
        else:
            recipe = Pretraining(**TRAINING, seeds=(1,), precision=precision, batch_size=batch_size)
            names = {"operator": "original", "variant": {"operator": "original"}, "size": "benchmark", "seed": 1}
            run = PretrainingRun(**names, model=Model(**size), training=recipe)
            calls[way, precision] = partial(speed.Pretraining(run, corpus).seconds, steps)
    peaks = {precision: partial(machine.peak, precision) for precision in PRECISIONS}
    values = interleaved(calls | peaks, rounds)
    rates = {key: [batch_size * length / seconds for seconds in values[key]] for key in calls}
    work = training_flops("original", size, corpus.vocabulary_size, length, MASKED)
    shares = {key: work * statistics.median(rates[key]) / max(values[key[1]]) for key in calls}
    return compared(rates, "tokens/s", {"share of peak": {key: f"{share:.0%}" for key, share in shares.items()}})


def finetuning_speeds(problem: Problem, examples: Encoded, validation: Encoded, rounds: int) -> pd.DataFrame:
    """Times fine-tuning in all ways, and scores it.

    Args:
        problem: what is trained.
        examples: of the training split.
        validation: of the validation split.
        rounds: of timing, each with another seed.

    Returns:
        The table that the module describes, in examples a second, with mean and standard deviation of the score.
    """
    metric, reached = glue.TASKS[problem.task].metrics[0], {key: [] for key in WAYS}

    def rate(way: str, precision: str) -> float:
        seed = len(reached[way, precision]) + 1
        train = stock_finetuning if way == "stock" else our_finetuning
        seconds, predictions = train(problem, precision, seed, examples, validation)
        reached[way, precision].append(scores(problem.task, predictions, validation.labels)[metric])
        return len(examples) / seconds

    rates = interleaved({key: partial(rate, *key) for key in WAYS}, rounds)
    frame = pd.DataFrame(reached)
    return compared(rates, "examples/s", {metric: frame.mean().round(3), "sd": frame.std().round(3)})


def stock_finetuning(
    problem: Problem, precision: str, seed: int, examples: Encoded, validation: Encoded
) -> tuple[float, np.ndarray]:
    """Trains stock BERT with Trainer; returns the seconds of an epoch, and predictions."""
    labels = glue.TASKS[problem.task].outputs
    recipe = TRAINING | {"maximum_length": problem.length}
    stock = peers.Finetuning(problem.size, recipe, problem.vocabulary_size, labels, precision, seed)
    seconds = stock.train(examples, problem.batch_size, problem.epochs, problem.learning_rate)
    return seconds, stock.predict(validation)


def our_finetuning(
    problem: Problem, precision: str, seed: int, examples: Encoded, validation: Encoded
) -> tuple[float, np.ndarray]:
    """Trains `original` as the stages do; returns the seconds of an epoch, and predictions."""
    common = {name: TRAINING[name] for name in Finetuning.model_fields if name in TRAINING}
    changed = {
        "seeds": (seed,), "precision": precision, "batch_size": problem.batch_size, "epochs": problem.epochs,
        "schedule": "linear", "learning_rates": (problem.learning_rate,), "warmup_share": peers.WARMUP,
        "weight_decay": 0.0, "maximum_length": problem.length,
    }  # fmt: skip
    recipe, variant = Finetuning(**common | changed), {"operator": "original"}
    ours = speed.Finetuning(problem.task, recipe, variant, problem.size, problem.vocabulary_size, seed)
    return ours.train(examples), finetuning.predict(ours.model, validation, precision)


def compared(rates: dict[tuple[str, str], list[float]], unit: str, columns: dict[str, Mapping]) -> pd.DataFrame:
    """Compares speeds with those of stock BERT.

    Args:
        rates: by way and precision, one a round.
        unit: of the rates.
        columns: further ones, by way and precision.

    Returns:
        The table that the module describes.
    """
    rows = [
        {"way": key[0], "precision": key[1], unit: round(statistics.median(values), 1)}
        | {f"x stock {one}": round(median_ratio(values, rates["stock", one]), 2) for one in PRECISIONS}
        | {name: column[key] for name, column in columns.items()}
        for key, values in rates.items()
    ]
    return pd.DataFrame(rows)


def repacked_corpus(folder: Path, tokens: Path, length: int) -> Corpus:
    """Cuts the packed tokens of a run into sequences of another length.

    Args:
        folder: for the new sequences.
        tokens: data/tokens of the run.
        length: of the new sequences, in tokens.

    Returns:
        The corpus in `folder`.
    """
    index = packing.read_index(tokens)
    for split in index["splits"]:
        streams = sorted((tokens / split).glob("*.bin"))
        index["splits"][split] |= packing.pack(streams, folder / split, length)
    write_atomically(folder / packing.INDEX, json.dumps(index | {"sequence_length": length}))
    return Corpus.of(folder)


def parsed() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.tools.benchmarks.training",
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("what", choices=("pretraining", "finetuning"))
    parser.add_argument("--data", type=Path, default="data", help="of a run that has made tokens and tasks")
    parser.add_argument("--task", choices=glue.TASKS, default="sst2")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--length", type=int, default=128, help="tokens of a sequence, or of an example at most")
    parser.add_argument("--batch-size", type=int, default=32, help="sequences or examples")
    parser.add_argument("--steps", type=int, default=4, help="that are timed a round, of pre-training")
    parser.add_argument("--epochs", type=int, default=3, help="of fine-tuning")
    parser.add_argument("--learning-rate", type=float, default=5e-4, help="peak, of fine-tuning")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    return parser.parse_args()


def main() -> None:
    options = parsed()
    torch.set_num_threads(options.threads)
    size = {"layers": options.layers, "hidden": options.hidden, "heads": options.heads}
    size |= {"intermediate": 4 * options.hidden, "positions": options.length}
    print(f"{options.what}, {size}, batches of {options.batch_size}, {speed.device().type}, {options.threads} threads")
    tokens, tokenizer = (options.data / path.relative_to("data") for path in (TOKENS, TOKENIZER))
    with TemporaryDirectory() as folder:
        corpus = repacked_corpus(Path(folder), tokens, options.length)
        if options.what == "pretraining":
            arguments = corpus, tokenizer, size, options.batch_size, options.steps, options.rounds
            print(pretraining_speeds(*arguments).to_string(index=False))
            return
    splits = (split.name for split in glue.TASKS[options.task].splits[:2])
    tables = (options.data / "tasks" / options.task / f"{split}.parquet" for split in splits)
    examples, validation = (finetuning.encode(table, tokenizer, options.length) for table in tables)
    print(f"{options.task}: {len(examples)} training and {len(validation)} validation examples")
    recipe = options.length, options.batch_size, options.epochs, options.learning_rate
    problem = Problem(options.task, size, corpus.vocabulary_size, *recipe)
    print(finetuning_speeds(problem, examples, validation, options.rounds).to_string(index=False))


if __name__ == "__main__":
    main()
