"""Compares speed with common implementations of training, attention, filtering and tokenization.

    python -m stages.tools.benchmarks training       # our steps and epochs; Hugging Face's Trainer
    python -m stages.tools.benchmarks attention      # blocks of attention; stock BERT and PyTorch's own module
    python -m stages.tools.benchmarks filtering      # stage filtering; the json module
    python -m stages.tools.benchmarks tokenization   # stage tokenization; datasets.map and group_texts

All implementations are timed in turn, round by round. A ratio is the median over rounds of the ratio within a round.
All but `attention` read params.yaml and the data of a finished run of `tokenization` and `tasks`.
"""

import argparse
import copy
import io
import json
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import chain, cycle, islice, product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast
from transformers.models.bert.modeling_bert import BertAttention

from stages.attention.bert import Attention
from stages.attention.configuration import make_configuration
from stages.attention.counts import count_block_operations
from stages.attention.operators import SELF_ATTENTION
from stages.classification.training import encode_table
from stages.files.compression import zstd
from stages.files.paths import FILTERED, TASK_FOLDER, TOKENIZER
from stages.files.paths import TOKENS as TOKEN_FOLDER
from stages.filtering import shards
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.run import PretrainingRun
from stages.records import reading
from stages.runner.errors import clear_errors
from stages.runner.pool import open_new_process
from stages.schema.settings import Settings, load_settings
from stages.sequences import packing
from stages.timing import speed
from stages.timing.stage import PRECISIONS
from stages.tokenization import streams
from stages.tools import peers, stock
from stages.training.machine import call_in_turn, compute_median_ratio, measure_peak, measure_seconds
from stages.training.optimisation import find_device, has_gpu, open_autocast

# Share of the float32 peak. A lower bfloat16 peak means emulation, with which an epoch would take minutes.
EMULATED = 0.25
# rates of dropout on the attention weights: BERT's, and none
DROPOUTS = (0.1, 0.0)
# added to the score of a token with itself: the softmax gives a weight of 0
MASKED = -1.0e4
# the rules of Courtois et al. for the metadata of OSCAR, with four of the categories
EXCLUDED = ("agressif", "adult", "phishing", "warez")
LOWEST, HIGHEST = 5.0, 100_000.0  # strict bounds of `harmful_pp`
RULES = {
    "excluded_categories": EXCLUDED,
    "harmful_pp": {"above": LOWEST, "below": HIGHEST},
    "missing_harmful_pp": "drop",
    "quality_warnings": "drop",
}
SEQUENCE_LENGTH = 512
# documents that are filtered
DOCUMENTS = 100_000
# tokens that a block of attention gets in a call; fewer would leave a GPU idle
TOKENS = {"cpu": 2048, "cuda": 32_768}


def time_training(rounds: int) -> None:
    """Prints the speed of our training with the operator `original` beside the speed of transformers' Trainer.

    Pre-training and fine-tuning are each timed in turn with stock BERT, at every size.
    """
    settings = load_settings()
    with open_new_process() as process:
        for size, ours, theirs in product(settings.sizes, find_precisions(), find_precisions()):
            table = compare_training(settings, size, (ours, theirs), process, rounds)
            heading = f"BERT-{size}, ours in {ours}, Trainer in {theirs}, {find_device().type}"
            print(f"\n{heading}\n{table.to_string(index=False)}")


@cache
def find_precisions() -> tuple[str, ...]:
    """Finds the precisions to compare: bfloat16 on a GPU; on a CPU float32, and bfloat16 if native."""
    if has_gpu():
        return ("bfloat16",)
    # A CPU without bfloat16 emulates the matrix products.
    if measure_peak("bfloat16") > EMULATED * measure_peak("float32"):
        return PRECISIONS
    return ("float32",)


def compare_training(
    settings: Settings, size: str, precisions: tuple[str, str], process: ProcessPoolExecutor, rounds: int
) -> pd.DataFrame:
    """Compares our training in the first precision with Trainer, which runs in `process`, in the second precision.

    Rows are a step of pre-training and an epoch of each of `timing.tasks`, as in `compare_with_trainer`.
    """
    changed, changed_peer = [{"precision": precision} for precision in precisions]
    model, steps = settings.models[size], settings.timing.steps
    corpus = Corpus.open(TOKEN_FOLDER)
    # Trainer has no warm-up of the sequence length.
    recipe = settings.pretraining.model_copy(update={**changed, "sequence_length_warmup": None})
    variant = {"operator": "original"}
    run = PretrainingRun(operator="original", variant=variant, training=recipe, size=size, seed=1, model=model)
    peer = stock.describe_pretraining(run, corpus, TOKENIZER, steps)._replace(**changed_peer)
    ours = partial(speed.Pretraining(run, corpus).measure_seconds, steps)
    rows = [compare_with_trainer("step of pre-training", ours, partial(time_stock, process, peer, steps), rounds)]
    recipe = settings.finetuning[settings.timing.protocol].model_copy(update={**changed, "epochs": 1})
    for task in settings.timing.tasks:
        examples = encode_table(TASK_FOLDER / task / "train.parquet", TOKENIZER, recipe.maximum_length)
        sizes = model.model_dump()
        classifier = speed.Finetuning(variant, task, recipe, sizes, corpus.vocabulary_size)
        peer = stock.describe_finetuning(task, recipe, sizes, corpus.vocabulary_size, examples, steps)
        peer = peer._replace(**changed_peer)
        # All padded examples are equally long, so an epoch of stock BERT takes examples / batch size steps.
        updates = len(examples) / recipe.batch_size
        theirs = partial(time_stock, process, peer, steps, updates)
        rows.append(compare_with_trainer(f"epoch of {task}", partial(classifier.train, examples), theirs, rounds))
    return pd.DataFrame(rows)


def time_stock(process: ProcessPoolExecutor, training: peers.Training, steps: int, updates: float = 1) -> float:
    """Times stock BERT in `process`; returns the seconds of `updates` updates, by the mean of `steps`."""
    # Both processes share the memory of a GPU.
    if has_gpu():
        torch.cuda.empty_cache()
    return updates * process.submit(peers.time_steps, training, steps).result()


def compare_with_trainer(
    name: str, ours: Callable[[], float], theirs: Callable[[], float], rounds: int
) -> dict[str, str | float]:
    """Times both trainings in turn; returns medians in seconds, and the median ratio within a round."""
    # A first call that is not timed: work that a process does once, such as loading kernels, belongs to no round.
    ours()
    seconds = call_in_turn({"ours": ours, "Trainer": theirs}, rounds)
    medians = {f"{way}, s": statistics.median(values) for way, values in seconds.items()}
    return {
        "training": name,
        **medians,
        "speed-up": round(compute_median_ratio(seconds["Trainer"], seconds["ours"]), 2),
    }


def time_attention(rounds: int) -> None:
    """Prints the time of an attention block by operator, in both precisions, at two lengths, with and without dropout.

    A block, of the width of BERT-base, is self-attention with output projection, dropout, residual sum and LayerNorm; a
    call is a forward and a backward pass with PyTorch's default kernels.
    """
    if has_gpu():
        # `find_device` has asked for deterministic kernels, and switched cuDNN's attention off
        torch.use_deterministic_algorithms(False)
        torch.backends.cuda.enable_cudnn_sdp(True)
    device = find_device().type
    for precision, length, dropout in product(PRECISIONS, (128, 512), DROPOUTS):
        size = {"layers": 1, "hidden": 768, "heads": 12, "intermediate": 3072, "positions": length}
        table = compare_blocks(list(SELF_ATTENTION), size, dropout, TOKENS[device] // length, precision, rounds)
        print(f"\n{precision}, length {length}, dropout {dropout}, {device}")
        print(table.to_string(index=False))


def compare_blocks(
    operators: list[str], size: dict[str, int], dropout: float, batch: int, precision: str, rounds: int
) -> pd.DataFrame:
    """Times the attention blocks of operators on `batch` sequences of `positions` tokens.

    `size` has layers, hidden, heads, intermediate and positions.

    Returns:
        A row per block: `operator`, `form` (`stock`, `torch`, `ours` or `masked`), the median `ms`, the `speed-up` over
        stock BERT, and the speed-up that the smaller number of operations would allow (`allowed`).
    """
    X = torch.randn(batch, size["positions"], size["hidden"], device=find_device())
    blocks = build_blocks(operators, size, dropout)
    calls = {}
    for key, block in blocks.items():
        call = partial(run_block, block.to(find_device()).train(), X, precision)
        # a first call that is not timed
        call()
        calls[key] = partial(measure_seconds, call)
    seconds = call_in_turn(calls, rounds)
    stock = seconds["original", "stock"]
    shape = size["hidden"], size["heads"], size["positions"]
    stock_work = count_block_operations("original", *shape)
    rows = []
    for (operator, form), times in seconds.items():
        row = {
            "operator": operator,
            "form": form,
            "ms": round(1000 * statistics.median(times), 1),
            "speed-up": round(compute_median_ratio(stock, times), 2),
            "allowed": round(stock_work / count_block_operations(operator, *shape), 2),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def build_blocks(operators: list[str], size: dict[str, int], dropout: float) -> dict[tuple[str, str], nn.Module]:
    """Builds attention blocks by (operator, form): stock BERT, PyTorch's nn.MultiheadAttention, and our operators.

    The form `masked` is the original with a token's own score masked.
    """
    settings = {"attention_probs_dropout_prob": dropout, "attn_implementation": "sdpa"}
    stock = BertAttention(make_configuration("original", **size, **settings))
    attention = nn.MultiheadAttention(size["hidden"], size["heads"], dropout, batch_first=True)
    blocks = {("original", "stock"): stock, ("original", "torch"): TorchBlock(attention, stock.output)}
    forms = [(operator, "ours", None) for operator in operators]
    # Fused attention gets a mask that is not needed otherwise, and unfused attention adds a number to the scores.
    forms.append(("original", "masked", MASKED))
    for operator, form, self_score in forms:
        config = make_configuration(operator, **size, **settings, self_score=self_score)
        block = Attention(config, copy.deepcopy(stock.output))
        with torch.no_grad():
            block.self.initialise(config.initializer_range)
        blocks[operator, form] = block
    return blocks


class TorchBlock(nn.Module):
    """An attention block with nn.MultiheadAttention, and dropout and LayerNorm copied from stock BERT."""

    def __init__(self, attention: nn.MultiheadAttention, output: nn.Module):
        super().__init__()
        self.attention = attention
        self.dropout = copy.deepcopy(output.dropout)
        self.norm = copy.deepcopy(output.LayerNorm)

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, None]:
        """Returns hidden states [batch, n, h] and, as stock BERT's block does, attention weights (`None`)."""
        context, _ = self.attention(hidden_states, hidden_states, hidden_states, need_weights=False)
        return self.norm(self.dropout(context) + hidden_states), None


def run_block(block: nn.Module, X: Tensor, precision: str) -> None:
    """Does a forward and a backward pass on X [batch, n, h]."""
    inputs = X.clone().requires_grad_()
    with open_autocast(precision):
        output = block(inputs)[0]
    # a random gradient: the sum of the output of LayerNorm has no gradient except rounding errors
    output.backward(torch.randn_like(output))
    block.zero_grad(set_to_none=True)


def compare_ways(ways: dict[str, Callable[[], object]], amount: int, unit: str, rounds: int) -> pd.DataFrame:
    """Times equivalent functions, by name, by CPU time; the first is the baseline.

    Returns:
        A row per function: name, units (of `amount` in a call) a second in the fastest round, and median ratio to the
        baseline.
    """
    calls = {name: partial(measure_cpu_seconds, way) for name, way in ways.items()}
    seconds = call_in_turn(calls, rounds)
    baseline = next(iter(seconds.values()))
    rows = []
    for name, times in seconds.items():
        ratio = round(compute_median_ratio(baseline, times), 2)
        rows.append({"way": name, f"{unit} a second": round(amount / min(times)), "ratio": ratio})
    return pd.DataFrame(rows)


def measure_cpu_seconds(call: Callable[[], object]) -> float:
    """Measures the seconds of CPU time of a call, threads included."""
    started = time.process_time()
    call()
    return time.process_time() - started


def repeat_documents(folder: Path, number: int) -> Path:
    """Writes a shard of `number` documents, repeated from data/filtered; seven of eight have a quality warning."""
    path = folder / "shard.jsonl.zst"
    lines = []
    for shard in reading.list_shards(FILTERED):
        for line in reading.read_lines(shard):
            record = json.loads(line)
            record["metadata"]["quality_warnings"] = ["short_sentences"]
            flagged = json.dumps(record, ensure_ascii=False).encode()
            lines.append(line)
            # Real corpora lose most documents, but data/filtered has only documents that were kept.
            lines += [flagged] * 7
    with reading.open_zstd_writer(path) as file:
        for line in islice(cycle(lines), number):
            file.write(line + b"\n")
    return path


def time_filtering(rounds: int) -> None:
    """Prints the speed of stage `filtering` and of the json module; both must keep the same documents."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        shard = repeat_documents(folder, DOCUMENTS)
        plain = folder / "plain.jsonl.zst"
        annotation = {"blocklists": None, "kenlm_model": None, "quality_rules": False}
        settings = {"shard": str(shard), "rules": RULES, "annotation": annotation}
        ways = {
            "json, kept documents written anew": partial(filter_with_json, shard, plain),
            "stage filtering": partial(shards.filter_shard, settings, folder),
        }
        table = compare_ways(ways, DOCUMENTS, "documents", rounds)
        # A faster way that keeps other documents would not be comparable.
        theirs = list(map(json.loads, reading.read_lines(plain)))
        ours = list(map(json.loads, reading.read_lines(folder / shards.PASSED)))
        if theirs != ours:
            raise ValueError("both ways of filtering must keep the same documents")
        print(f"{len(ours)} of {DOCUMENTS} documents kept\n{table.to_string(index=False)}")


def filter_with_json(shard: Path, target: Path) -> None:
    """Filters by the rules of the benchmark, and writes kept records anew."""
    with (
        io.BufferedReader(zstd.open(shard), 1 << 20) as lines,
        zstd.open(target, "wt", encoding="utf-8") as kept,
    ):
        for line in lines:
            record = json.loads(line)
            metadata = record["metadata"]
            # a missing perplexity, null or 0, is to be dropped
            perplexity = metadata["harmful_pp"] or HIGHEST
            listed = any(category in EXCLUDED for category in metadata["categories"] or ())
            if not listed and LOWEST < perplexity < HIGHEST and not metadata["quality_warnings"]:
                kept.write(json.dumps(record, ensure_ascii=False) + "\n")


def time_tokenization(rounds: int) -> None:
    """Prints the speed of stage `tokenization` and of datasets.map; both must make the same sequences."""
    # both ways use a single core
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with TemporaryDirectory() as name:
        folder = Path(name)
        shard = repeat_documents(folder, 5_000)
        ways = {
            "datasets.map and group_texts": partial(tokenize_with_datasets, shard, folder / "cache"),
            "stage tokenization": partial(tokenize_with_stage, shard, folder),
        }
        theirs, ours = [way() for way in ways.values()]
        if not np.array_equal(theirs, ours):
            raise ValueError("both ways of tokenizing must give the same sequences")
        print(compare_ways(ways, ours.size, "tokens", rounds).to_string(index=False))


def tokenize_with_datasets(shard: Path, cache: Path) -> np.ndarray:
    """Tokenizes as Hugging Face's run_mlm.py does; returns sequences [number, length] of token ids."""
    from datasets import disable_progress_bars, load_dataset

    disable_progress_bars()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(TOKENIZER), model_max_length=1 << 30)
    encode = partial(tokenizer, return_special_tokens_mask=True)
    # a round must not reuse the result of the round before
    fresh = {"batched": True, "load_from_cache_file": False}
    texts = load_dataset("json", data_files=str(shard), split="train", cache_dir=cache)
    encoded = texts.map(encode, input_columns="content", remove_columns=texts.column_names, **fresh)
    grouped = encoded.map(group_texts, **fresh)
    return np.array(grouped["input_ids"])


def group_texts(batch: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
    """Concatenates each column of a batch and cuts sequences of 512 tokens; an incomplete last sequence is dropped."""
    grouped = {}
    for name, column in batch.items():
        stream = list(chain.from_iterable(column))
        # With sequences of two tokens, [[1, 2], [3, 4, 5]] gives [[1, 2], [3, 4]].
        starts = range(0, len(stream) - SEQUENCE_LENGTH + 1, SEQUENCE_LENGTH)
        grouped[name] = [stream[start : start + SEQUENCE_LENGTH] for start in starts]
    return grouped


def tokenize_with_stage(shard: Path, folder: Path) -> np.ndarray:
    """Tokenizes as stage `tokenization` does; returns sequences [number, length] of token ids."""
    # `cut` drops an incomplete sequence of every 1,000 documents, as datasets.map does
    settings = {"shard": str(shard), "tokenizer": str(TOKENIZER), "validation": [], "cut": SEQUENCE_LENGTH}
    streams.tokenize_shard(settings, folder)
    packing.pack([folder / "train.bin"], folder / "train", SEQUENCE_LENGTH)
    tokens = np.fromfile(folder / "train" / "part_1.bin", dtype=packing.ITEM)
    return tokens.reshape(-1, SEQUENCE_LENGTH)


BENCHMARKS = {
    "training": time_training,
    "attention": time_attention,
    "filtering": time_filtering,
    "tokenization": time_tokenization,
}


def main() -> None:
    """Runs the benchmark that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=BENCHMARKS, help="Benchmark to run.")
    parser.add_argument("--rounds", type=int, default=5, help="Number of timings of each implementation (default: 5).")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with clear_errors():
        BENCHMARKS[options.what](options.rounds)


if __name__ == "__main__":
    main()
