"""How fast training is beside stock Hugging Face BERT trained the usual way, in one run, in turns.

`pretraining`: tokens a second of `original` by our training step, and of BertForMaskedLM by Trainer as run_mlm.py does,
in float32 and bfloat16, on a GPU also compiled; and the share of the machine's measured matrix-product peak that goes
into the operations of the model with a head at masked positions only. `finetuning`: examples a second and scores of one
GLUE task, ours and as run_glue.py does, every example padded to the maximum length. All start from new weights, with a
dropout of 0.1, and train on the data of a run: `dvc repro tokenization tasks` makes them.
"""

import argparse
import json
import statistics
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
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
class Speed:
    """One way of training. rate: units a second, median over rounds; ratio: to stock float32 and to stock bfloat16,
    medians over rounds of the ratio within a round; rest: what else is to be said."""

    way: str
    precision: str
    rate: float
    ratios: tuple[float, float]
    rest: str


@dataclass(frozen=True)
class Problem:
    """A fine-tuning: task, model (a record of `models`), tokens of an example at most, and the recipe."""

    task: str
    size: dict[str, int]
    vocabulary_size: int
    length: int
    batch_size: int
    epochs: int
    learning_rate: float


def pretraining_speeds(
    corpus: Corpus, tokenizer: Path, size: dict[str, int], batch_size: int, steps: int, rounds: int
) -> list[Speed]:
    """Tokens a second of the four ways, `steps` steps of `batch_size` sequences a round."""
    length = corpus.train.sequence_length
    few = corpus.train[np.arange(min(len(corpus.train), batch_size * (steps + 1)))]
    stock = peers.Pretraining(size, TRAINING, corpus.vocabulary_size, few, tokenizer)
    calls = {}
    for way, precision in (*WAYS, COMPILED) if machine.device().type == "cuda" else WAYS:
        if way != "ours":
            calls[way, precision] = partial(stock.seconds, batch_size, precision, steps, way == "compiled")
        else:
            recipe = Pretraining(**TRAINING, seeds=(1,), precision=precision, batch_size=batch_size)
            own = {"operator": "original", "variant": {"operator": "original"}, "seed": 1}
            run = PretrainingRun(**own, size="benchmark", model=Model(**size), training=recipe)
            calls[way, precision] = partial(speed.Pretraining(run, corpus).seconds, steps)
    peaks = {precision: partial(machine.peak, precision) for precision in PRECISIONS}
    values = interleaved(calls | peaks, rounds)
    rates = {key: [batch_size * length / seconds for seconds in values[key]] for key in calls}
    work = training_flops("original", size, corpus.vocabulary_size, length, MASKED)
    shares = {key: work * statistics.median(rates[key]) / max(values[key[1]]) for key in calls}
    return compared(rates, {key: f"{share:.0%} of the peak" for key, share in shares.items()})


def finetuning_speeds(problem: Problem, examples: Encoded, validation: Encoded, rounds: int) -> list[Speed]:
    """Examples a second of the four ways, and the mean score of each; every round is another seed."""
    reached = {key: [] for key in WAYS}

    def rate(way: str, precision: str) -> float:
        seed = len(reached[way, precision]) + 1
        train = stock_finetuning if way == "stock" else our_finetuning
        seconds, predictions = train(problem, precision, seed, examples, validation)
        values = scores(problem.task, predictions, validation.labels)
        reached[way, precision].append(values[glue.TASKS[problem.task].metrics[0]])
        return len(examples) / seconds

    rates = interleaved({key: partial(rate, *key) for key in WAYS}, rounds)
    spread = {key: statistics.stdev(values) if rounds > 1 else float("nan") for key, values in reached.items()}
    metric = glue.TASKS[problem.task].metrics[0]
    rest = {key: f"{metric} {statistics.mean(reached[key]):.3f}, sd {spread[key]:.3f}" for key in WAYS}
    return compared(rates, rest)


def stock_finetuning(
    problem: Problem, precision: str, seed: int, examples: Encoded, validation: Encoded
) -> tuple[float, np.ndarray]:
    """Seconds of an epoch, and predictions."""
    labels = glue.TASKS[problem.task].outputs
    recipe = TRAINING | {"maximum_length": problem.length}
    stock = peers.Finetuning(problem.size, recipe, problem.vocabulary_size, labels, precision, seed)
    seconds = stock.train(examples, problem.batch_size, problem.epochs, problem.learning_rate)
    return seconds, stock.predict(validation)


def our_finetuning(
    problem: Problem, precision: str, seed: int, examples: Encoded, validation: Encoded
) -> tuple[float, np.ndarray]:
    """Seconds of an epoch, and predictions."""
    common = {name: TRAINING[name] for name in Finetuning.model_fields if name in TRAINING}
    changed = {
        "seeds": (seed,), "precision": precision, "batch_size": problem.batch_size, "epochs": problem.epochs,
        "schedule": "linear", "learning_rates": (problem.learning_rate,), "warmup_share": peers.WARMUP,
        "weight_decay": 0.0, "maximum_length": problem.length,
    }  # fmt: skip
    recipe, variant = Finetuning(**common | changed), {"operator": "original"}
    own = speed.Finetuning(problem.task, recipe, variant, problem.size, problem.vocabulary_size, seed)
    return own.train(examples), finetuning.predict(own.model, validation, precision)


def compared(rates: dict[tuple[str, str], list[float]], rest: dict[tuple[str, str], str]) -> list[Speed]:
    """The lines of the table."""
    return [
        Speed(
            *key,
            statistics.median(values),
            tuple(median_ratio(values, rates["stock", precision]) for precision in PRECISIONS),
            rest[key],
        )
        for key, values in rates.items()
    ]


def table(speeds: list[Speed], unit: str) -> str:
    """Lines of text."""
    lines = [f"{'way':<9}{'precision':<11}{unit + '/s':>12}{'x stock float32':>17}{'x stock bfloat16':>18}"]
    for line in speeds:
        first, second = line.ratios
        lines.append(f"{line.way:<9}{line.precision:<11}{line.rate:>12,.1f}{first:>17.2f}{second:>18.2f}   {line.rest}")
    return "\n".join(lines)


def repacked_corpus(folder: Path, tokens: Path, length: int) -> Corpus:
    """Cuts the tokens of a run anew, into a folder, as sequences of `length` tokens."""
    index = packing.read_index(tokens)
    for split in index["splits"]:
        streams = sorted((tokens / split).glob("*.bin"))
        index["splits"][split] |= packing.pack(streams, folder / split, length)
    write_atomically(folder / packing.INDEX, json.dumps(index | {"sequence_length": length}))
    return Corpus.of(folder)


def options() -> argparse.Namespace:
    """What the command line asks for."""
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
    chosen = options()
    torch.set_num_threads(chosen.threads)
    size = {"layers": chosen.layers, "hidden": chosen.hidden, "heads": chosen.heads}
    size |= {"intermediate": 4 * chosen.hidden, "positions": chosen.length}
    print(f"{chosen.what}, {size}, batches of {chosen.batch_size}, {speed.device().type}, {chosen.threads} threads")
    tokens, tokenizer = (chosen.data / path.relative_to("data") for path in (TOKENS, TOKENIZER))
    with TemporaryDirectory() as folder:
        corpus = repacked_corpus(Path(folder), tokens, chosen.length)
        if chosen.what == "pretraining":
            common = (corpus, tokenizer, size, chosen.batch_size)
            print(table(pretraining_speeds(*common, chosen.steps, chosen.rounds), "tokens"))
            return
    recipe = chosen.length, chosen.batch_size, chosen.epochs, chosen.learning_rate
    splits = (split.name for split in glue.TASKS[chosen.task].splits[:2])
    tables = (chosen.data / "tasks" / chosen.task / f"{split}.parquet" for split in splits)
    examples, validation = (finetuning.encode(table, tokenizer, chosen.length) for table in tables)
    print(f"{chosen.task}: {len(examples)} training and {len(validation)} validation examples")
    problem = Problem(chosen.task, size, corpus.vocabulary_size, *recipe)
    print(table(finetuning_speeds(problem, examples, validation, chosen.rounds), "examples"))


if __name__ == "__main__":
    main()
