"""Speed of training against stock Hugging Face BERT trained the usual way, both timed in turn.

`pretraining`: tokens per second of `original` by our training step, and of BertForMaskedLM by Trainer as in run_mlm.py,
in float32 and bfloat16, on a GPU also compiled; and the share of the machine's measured matrix-product peak that the
operations of the model with a head at masked positions reach. `finetuning`: examples per second and scores of one GLUE
task, ours and as in run_glue.py, every example padded to the maximum length. Columns: the median over rounds, and the
medians over rounds of the ratio to stock in float32 and to stock in bfloat16. All begin with new weights and have a
dropout of 0.1; the data are those of a run: `dvc repro tokenization tasks` makes them.
"""

import argparse
import json
import statistics
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import torch

from stages.attention.counts import training_flops
from stages.benchmarks import glue
from stages.benchmarks.metrics import scores
from stages.classification import training as finetuning
from stages.classification.training import Encoded
from stages.files.documents import read_yaml
from stages.files.paths import TOKENIZER, TOKENS
from stages.files.storage import write_atomically
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.schema import scales
from stages.schema.training_sections import Finetuning, Model, Pretraining
from stages.sequences import packing
from stages.timing import peers, speed
from stages.timing.stage import PRECISIONS
from stages.training import machine
from stages.training.machine import interleaved, median_ratio
from stages.training.optimisation import device

WAYS = tuple((way, precision) for precision in PRECISIONS for way in ("stock", "ours"))
COMPILED = ("compiled", "bfloat16")  # stock, compiled by Trainer: timed in addition on a GPU
ORIGINAL = {"operator": "original"}
COMMON = {
    "seeds": (1,), "betas": (0.9, 0.999), "epsilon": 1e-8, "gradient_clipping": 1.0, "hidden_dropout": 0.1,
    "attention_dropout": 0.1, "precision": "float32",
}  # fmt: skip
PRETRAINING = read_yaml(scales.FOLDER / "laptop.yaml")["pretraining"] | COMMON | {
    "steps": 1_000_000, "epochs": None, "warmup_steps": 1000, "learning_rate": 1e-4, "weight_decay": 0.01,
    "initializer_range": 0.02, "mask_probability": 0.15, "evaluation_interval": 1_000_000,
    "checkpoint_interval": 1_000_000, "sequence_length_warmup": None,  # 1_000_000: more steps than are timed
}  # fmt: skip
FINETUNING = COMMON | {"schedule": "linear", "warmup_share": peers.WARMUP, "weight_decay": 0.0}


def pretraining_speeds(run: PretrainingRun, corpus: Corpus, tokenizer: Path, steps: int, rounds: int) -> pd.DataFrame:
    """Times pre-training in all ways; returns the table of `compared`, in tokens per second, with `share of peak`.

    Args:
        run: a run of `original`, whose precision is replaced by those that are timed.
        corpus, tokenizer: the data, and their tokenizer.json.
        steps, rounds: how many steps are timed in a round, and in how many rounds every way is.
    """
    calls = {}
    for way, precision in (*WAYS, COMPILED) if device().type == "cuda" else WAYS:
        timed = run.model_copy(update={"training": run.training.model_copy(update={"precision": precision})})
        if way == "ours":
            model = speed.Pretraining(timed, corpus)
        else:
            model = peers.Pretraining(timed, corpus, tokenizer, way == "compiled")
        calls[way, precision] = partial(model.seconds, steps)
    peaks = {precision: partial(machine.peak, precision) for precision in PRECISIONS}
    values = interleaved(calls | peaks, rounds)
    recipe, length, size = run.training, corpus.train.sequence_length, run.model.model_dump()
    rates = {key: [recipe.batch_size * length / seconds for seconds in values[key]] for key in calls}
    work = training_flops("original", size, corpus.vocabulary_size, length, recipe.mask_probability)
    shares = {key: work * statistics.median(rates[key]) / max(values[key[1]]) for key in calls}
    return compared(rates, "tokens/s", {"share of peak": {key: f"{share:.0%}" for key, share in shares.items()}})


def finetuning_speeds(
    task: str, recipe: Finetuning, model: tuple[dict[str, int], int], data: tuple[Encoded, Encoded], rounds: int
) -> pd.DataFrame:
    """Times fine-tuning in all ways, and scores it.

    Args:
        task, recipe: of GLUE, and of fine-tuning; its precision is replaced by those that are timed.
        model: its size, as section `models` has it, and the number of word pieces.
        data: examples of the training and of the validation split.
        rounds: how often each way is timed, each time from another seed.

    Returns:
        The table of `compared`, in examples per second, with mean and standard deviation (`sd`) of the first metric.
    """
    (examples, validation), metric = data, glue.TASKS[task].metrics[0]
    kinds = {"stock": peers.Finetuning, "ours": partial(speed.Finetuning, ORIGINAL)}
    reached = {key: [] for key in WAYS}

    def rate(way: str, precision: str) -> float:  # trains and scores a new model; examples per second
        seed = len(reached[way, precision]) + 1
        classifier = kinds[way](task, recipe.model_copy(update={"precision": precision}), *model, seed)
        seconds = classifier.train(examples)
        reached[way, precision].append(scores(task, classifier.predict(validation), validation.labels)[metric])
        return len(examples) / seconds

    rates = interleaved({key: partial(rate, *key) for key in WAYS}, rounds)
    frame = pd.DataFrame(reached)
    return compared(rates, "examples/s", {metric: frame.mean().round(3), "sd": frame.std().round(3)})


def compared(rates: dict[tuple[str, str], list[float]], unit: str, columns: dict[str, Mapping]) -> pd.DataFrame:
    """Compares speeds with those of stock BERT.

    Args:
        rates: by way and precision, one per round.
        unit: of the rates, which names their column.
        columns: further columns by name, each with a value by way and precision.

    Returns:
        A row for each key of `rates`: `way`, `precision`, the median rate, the ratios `x stock float32` and `x stock
        bfloat16`, and the further columns.
    """
    rows = [
        {"way": key[0], "precision": key[1], unit: round(statistics.median(values), 1)}
        | {f"x stock {one}": round(median_ratio(values, rates["stock", one]), 2) for one in PRECISIONS}
        | {name: column[key] for name, column in columns.items()}
        for key, values in rates.items()
    ]
    return pd.DataFrame(rows)


def repacked_corpus(folder: Path, tokens: Path, length: int) -> Corpus:
    """Cuts the packed tokens of a run into sequences of another length, and returns their corpus.

    Args:
        folder, tokens: an empty one for the new sequences, and data/tokens of the run.
        length: of the new sequences, in tokens.
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
    """Prints the table of pre-training or of fine-tuning."""
    options = parsed()
    torch.set_num_threads(options.threads)
    size = {"layers": options.layers, "hidden": options.hidden, "heads": options.heads}
    size |= {"intermediate": 4 * options.hidden, "positions": options.length}
    print(f"{options.what}, {size}, batches of {options.batch_size}, {device().type}, {options.threads} threads")
    tokens, tokenizer = (options.data / path.relative_to("data") for path in (TOKENS, TOKENIZER))
    if options.what == "pretraining":
        recipe = Pretraining(**PRETRAINING | {"batch_size": options.batch_size})
        names = {"operator": "original", "variant": ORIGINAL, "size": "benchmark", "seed": 1}
        run = PretrainingRun(**names, model=Model(**size), training=recipe)
        with TemporaryDirectory() as folder:
            corpus = repacked_corpus(Path(folder), tokens, options.length)
            print(pretraining_speeds(run, corpus, tokenizer, options.steps, options.rounds).to_string(index=False))
        return
    splits = (split.name for split in glue.TASKS[options.task].splits[:2])
    tables = (options.data / "tasks" / options.task / f"{split}.parquet" for split in splits)
    data = [finetuning.encode(table, tokenizer, options.length) for table in tables]
    print("{}: {} training and {} validation examples".format(options.task, *map(len, data)))
    asked = {name: getattr(options, name) for name in ("batch_size", "epochs")}
    recipe = Finetuning(**FINETUNING, **asked, learning_rates=(options.learning_rate,), maximum_length=options.length)
    model = size, packing.read_index(tokens)["vocabulary_size"]
    print(finetuning_speeds(options.task, recipe, model, data, options.rounds).to_string(index=False))


if __name__ == "__main__":
    main()
