"""Compares speed with common implementations of training, attention, filtering and tokenization.

    python -m stages.tools.benchmarks training       # our steps and epochs; Hugging Face's Trainer
    python -m stages.tools.benchmarks attention      # blocks of attention; stock BERT and PyTorch's own module
    python -m stages.tools.benchmarks filtering      # stage filtering; the json module
    python -m stages.tools.benchmarks tokenization   # stage tokenization; datasets.map

All implementations are timed in turn, round by round. A ratio is the median over rounds of the ratio within a round.
All but `attention` read the data of a finished run; `training` reads params.yaml, too.
"""

import argparse
import copy
import statistics
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import torch
from torch import Tensor, nn
from transformers.models.bert.modeling_bert import BertAttention

from stages.attention.bert import Attention
from stages.attention.configuration import make_configuration
from stages.attention.counts import count_block_operations
from stages.attention.operators import SELF_ATTENTION
from stages.classification.training import encode_table
from stages.files.paths import TASK_FOLDER, TOKENIZER, TOKENS
from stages.masked_lm.corpus import Corpus
from stages.runner.errors import clear_errors
from stages.runner.pool import open_new_process
from stages.schema.settings import Settings, load_settings
from stages.timing import speed
from stages.timing.stage import PRECISIONS, plan_pretraining
from stages.tools import documents, peers, stock
from stages.training.machine import (
    call_in_turn,
    compute_median_ratio,
    find_device,
    has_gpu,
    measure_peak,
    measure_seconds,
    open_autocast,
)

# rates of dropout on the attention weights: BERT's, and none
DROPOUTS = (0.1, 0.0)
# added to the score of a token with itself: the softmax gives a weight of 0
MASKING_SCORE = -1.0e4
# tokens that a block of attention gets in a call; fewer would leave a GPU idle
TOKENS_PER_CALL = {"cpu": 2048, "cuda": 32_768}


def time_training(rounds: int) -> None:
    """Prints the speed of our training with the operator `original` beside the speed of transformers' Trainer.

    Pre-training and fine-tuning are each timed in turn with stock BERT, at every size.
    """
    settings = load_settings()
    with open_new_process() as process:
        for size, ours, theirs in product(settings.sizes, find_precisions(), find_precisions()):
            table = compare_training(settings, size, (ours, theirs), process, rounds)
            print(f"\nBERT-{size}, ours in {ours}, Trainer in {theirs}, {find_device().type}")
            print(table.to_string(index=False))


@cache
def find_precisions() -> tuple[str, ...]:
    """Finds the precisions to compare: bfloat16 on a GPU; on a CPU float32, and bfloat16 if native."""
    if has_gpu():
        return ("bfloat16",)
    # Without native bfloat16, a CPU emulates the products far slower than in float32: an epoch would take minutes.
    if measure_peak("bfloat16") > 0.25 * measure_peak("float32"):
        return PRECISIONS
    return ("float32",)


def compare_training(
    settings: Settings, size: str, precisions: tuple[str, str], process: ProcessPoolExecutor, rounds: int
) -> pd.DataFrame:
    """Compares our training in the first precision with Trainer, which runs in `process`, in the second precision.

    Rows are a step of pre-training and an epoch of each of `timing.tasks`, as in `compare_in_turn`.
    """
    precision, precision_of_trainer = precisions
    steps = settings.timing.steps
    corpus = Corpus.open(TOKENS)
    # Neither side has a warm-up of the sequence length.
    run = plan_pretraining(settings, "original", size, precision=precision)
    training = stock.describe_pretraining(run, corpus, TOKENIZER, steps)._replace(precision=precision_of_trainer)
    ours = speed.prepare_pretraining(run, corpus, steps)
    theirs = partial(time_stock, process, training, steps)
    rows = [compare_in_turn("step of pre-training", ours, theirs, "Trainer", rounds)]
    recipe = settings.finetuning[settings.timing.protocol].model_copy(update={"precision": precision, "epochs": 1})
    for task in settings.timing.tasks:
        examples = encode_table(TASK_FOLDER / task / "train.parquet", TOKENIZER, recipe.maximum_length)
        model = run.model.model_dump()
        ours = speed.prepare_finetuning(run.variant, task, recipe, model, corpus.vocabulary_size, examples)
        training = stock.describe_finetuning(task, recipe, model, corpus.vocabulary_size, examples, steps)
        training = training._replace(precision=precision_of_trainer)
        # All padded examples are equally long, so an epoch of stock BERT takes examples / batch size steps.
        updates = len(examples) / recipe.batch_size
        theirs = partial(time_stock, process, training, steps, updates)
        rows.append(compare_in_turn(f"epoch of {task}", ours, theirs, "Trainer", rounds))
    return pd.DataFrame(rows)


def time_stock(process: ProcessPoolExecutor, training: peers.Training, steps: int, updates: float = 1) -> float:
    """Times stock BERT in `process`; returns the mean seconds of `steps` updates, times `updates`."""
    # Both processes share the memory of a GPU.
    if has_gpu():
        torch.cuda.empty_cache()
    return updates * process.submit(peers.time_steps, training, steps).result()


def compare_in_turn(
    name: str, ours: Callable[[], float], theirs: Callable[[], float], peer: str, rounds: int
) -> dict[str, str | float]:
    """Times our work and `peer`'s in turn; returns medians in seconds, and the median ratio within a round."""
    # A first call that is not timed: work that a process does once, such as loading kernels, belongs to no round.
    ours()
    seconds = call_in_turn({"ours": ours, peer: theirs}, rounds)
    medians = {f"{side}, s": statistics.median(values) for side, values in seconds.items()}
    return {
        "work": name,
        **medians,
        "speed-up": round(compute_median_ratio(seconds[peer], seconds["ours"]), 2),
    }


def time_documents(prepare: Callable[[Path], documents.WorkPair], peer: str, rounds: int) -> None:
    """Prints the speed of a stage beside a peer; `prepare` takes a temporary folder, and returns the calls of both."""
    with TemporaryDirectory() as folder:
        ours, theirs = [partial(measure_seconds, call) for call in prepare(Path(folder))]
        row = compare_in_turn("documents", ours, theirs, peer, rounds)
    print(pd.DataFrame([row]).to_string(index=False))


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
        table = compare_blocks(
            list(SELF_ATTENTION), size, dropout, TOKENS_PER_CALL[device] // length, precision, rounds
        )
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
    stock_seconds = seconds["original", "stock"]
    shape = size["hidden"], size["heads"], size["positions"]
    stock_operations = count_block_operations("original", *shape)
    rows = []
    for (operator, form), times in seconds.items():
        rows.append(
            {
                "operator": operator,
                "form": form,
                "ms": round(1000 * statistics.median(times), 1),
                "speed-up": round(compute_median_ratio(stock_seconds, times), 2),
                "allowed": round(stock_operations / count_block_operations(operator, *shape), 2),
            }
        )
    return pd.DataFrame(rows)


def build_blocks(operators: list[str], size: dict[str, int], dropout: float) -> dict[tuple[str, str], nn.Module]:
    """Builds attention blocks by (operator, form): stock BERT, PyTorch's nn.MultiheadAttention, and our operators.

    The form `masked` is the original with a token's own score masked.
    """
    settings = {"attention_probs_dropout_prob": dropout, "attn_implementation": "sdpa"}
    stock = BertAttention(make_configuration("original", **size, **settings))
    # `dense`, the output projection of BERT, gives way to the projection in PyTorch's module.
    torch_block = copy.deepcopy(stock)
    torch_block.self = TorchAttention(nn.MultiheadAttention(size["hidden"], size["heads"], dropout, batch_first=True))
    torch_block.output.dense = nn.Identity()
    blocks: dict[tuple[str, str], nn.Module] = {("original", "stock"): stock, ("original", "torch"): torch_block}
    forms = [(operator, "ours", None) for operator in operators]
    # The form `masked` measures the cost of the mask: fused attention gets a mask that it does not need otherwise, and
    # unfused attention adds a number to the scores.
    forms.append(("original", "masked", MASKING_SCORE))
    for operator, form, self_score in forms:
        config = make_configuration(operator, **size, **settings, self_score=self_score)
        block = Attention(config, copy.deepcopy(stock.output))
        with torch.no_grad():
            block.self.initialise(config.initializer_range)
        blocks[operator, form] = block
    return blocks


class TorchAttention(nn.Module):
    """nn.MultiheadAttention in place of the self-attention of stock BERT."""

    def __init__(self, attention: nn.MultiheadAttention):
        super().__init__()
        self.attention = attention

    def forward(self, X: Tensor, *_, **__) -> tuple[Tensor, None]:
        """Returns hidden states [batch, n, h] and, as stock BERT's module does, attention weights (`None`)."""
        return self.attention(X, X, X, need_weights=False)


def run_block(block: nn.Module, X: Tensor, precision: str) -> None:
    """Does a forward and a backward pass on X [batch, n, h]."""
    inputs = X.clone().requires_grad_()
    with open_autocast(precision):
        output = block(inputs)[0]
    # a random gradient: the sum of the output of LayerNorm has no gradient except rounding errors
    output.backward(torch.randn_like(output))
    block.zero_grad(set_to_none=True)


BENCHMARKS = {
    "training": time_training,
    "attention": time_attention,
    "filtering": partial(time_documents, documents.prepare_filtering, "json"),
    "tokenization": partial(time_documents, documents.prepare_tokenization, "datasets.map"),
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
