"""Time and memory of attention by operator: ours, the naive form, stock Hugging Face BERT, and PyTorch's own module.

A block is self-attention with its output projection, dropout, residual sum and LayerNorm; a call is forward and
backward in training mode. A step is forward, backward and AdamW of an encoder of a few layers. All variants are timed
in turn, round by round, so that a machine's drift affects all alike. Columns: `ms`, the median over rounds; `speed-up`,
the median over rounds of stock time / time; `allowed`, the speed-up that the floating-point operations allow; `MB`,
what the forward pass keeps for the backward pass, in 10^6 bytes. `python -m stages.tools.benchmarks.attention --help`.
"""

import argparse
import copy
import statistics
from collections.abc import Callable, Iterator
from functools import partial

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertModel
from transformers.models.bert.modeling_bert import BertAttention

from stages.attention.base import SelfAttention
from stages.attention.bert import Attention, OperatorBertModel
from stages.attention.configuration import configuration
from stages.attention.counts import block_work
from stages.attention.operators import SELF_ATTENTION
from stages.attention.products import merge, split
from stages.training.machine import clocked, interleaved, median_ratio
from stages.training.optimisation import autocast, device

DROPOUT = 0.1
Variant = tuple[str, str]  # operator, and form: stock, torch, naive or ours


def blocks(operators: list[str], size: dict[str, int], tokens: int, precision: str, rounds: int) -> pd.DataFrame:
    """Times attention blocks, stock first; returns the table that the module describes.

    Args:
        operators: names in SELF_ATTENTION.
        size: layers, hidden, heads, intermediate and positions, the length of the sequences.
        tokens: of a batch, at most, as its sequences are whole; at least one sequence.
        precision, rounds: float32 or bfloat16; the rounds in which all variants are timed in turn.
    """
    length = size["positions"]
    X = torch.randn(max(tokens // length, 1), length, size["hidden"], device=device())
    variants = {key: block.to(device()).train() for key, block in built(operators, size)}
    memory = {key: _kept_megabytes(block, X, precision) for key, block in variants.items()}
    work = {key: block_work(key[0], size["hidden"], size["heads"], length) for key in variants}
    return compared({key: _call(block, X, precision) for key, block in variants.items()}, work, memory, rounds)


def _steps(operators: list[str], size: dict[str, int], tokens: int, precision: str, rounds: int) -> pd.DataFrame:
    """Times training steps of encoders, stock first. Arguments and table are those of `blocks`, but for its `MB`."""
    # the small vocabulary leaves the time to the layers; `allowed` counts these alone
    config = configuration("original", **size, vocab_size=1000, attn_implementation="sdpa")
    models = {("original", "stock"): BertModel(config, add_pooling_layer=False)}
    for operator in operators:
        config = configuration(operator, **size, vocab_size=1000)
        models[operator, "ours"] = OperatorBertModel(config, add_pooling_layer=False)
    ids = torch.randint(1000, (max(tokens // size["positions"], 1), size["positions"]), device=device())
    calls = {}
    for key, model in models.items():
        adamw = torch.optim.AdamW(model.to(device()).train().parameters(), lr=1e-5, fused=True)
        calls[key] = _call(model, ids, precision, adamw)
    weights, _ = SELF_ATTENTION["original"].feed_forward_weights(size["hidden"], size["intermediate"])
    work = {key: block_work(key[0], size["hidden"], size["heads"], size["positions"]) + 2 * weights for key in models}
    return compared(calls, work, {}, rounds)


def compared(
    calls: dict[Variant, Callable[[], None]], work: dict[Variant, int], memory: dict[Variant, float], rounds: int
) -> pd.DataFrame:
    """Times all calls in turn, after one of each to warm up; returns the module's table, with `operator` and `form`.

    Args:
        calls, rounds: by variant, ("original", "stock") among them; how often each is timed.
        work: floating-point operations per token of each, forward.
        memory: megabytes of each; may be empty, and the table is then without `MB`.
    """
    for call in calls.values():
        call()
    seconds = interleaved({key: partial(clocked, call) for key, call in calls.items()}, rounds)
    stock = "original", "stock"
    rows = [
        {
            "operator": key[0],
            "form": key[1],
            "ms": 1000 * statistics.median(times),
            "speed-up": median_ratio(seconds[stock], times),
            "allowed": work[stock] / work[key],
            "MB": memory.get(key, float("nan")),
        }
        for key, times in seconds.items()
    ]
    return pd.DataFrame(rows).dropna(axis="columns").round({"ms": 1, "speed-up": 2, "allowed": 2, "MB": 1})


def built(operators: list[str], size: dict[str, int]) -> Iterator[tuple[Variant, nn.Module]]:
    """Yields every variant and its block; those of ours and naive have equal weights. Stock calls the fused kernel."""
    settings = {"attention_probs_dropout_prob": DROPOUT, "attn_implementation": "sdpa"}
    stock = BertAttention(configuration("original", **size, **settings))
    yield ("original", "stock"), stock
    attention = nn.MultiheadAttention(size["hidden"], size["heads"], DROPOUT, batch_first=True)
    yield ("original", "torch"), Torch(attention, stock.output)
    for operator in operators:
        config = configuration(operator, **size, **settings)
        block = Attention(config, copy.deepcopy(stock.output))
        with torch.no_grad():
            block.self.initialise(config.initializer_range)
        yield (operator, "naive"), Naive(copy.deepcopy(block))
        yield (operator, "ours"), block


class Torch(nn.Module):
    """The block around nn.MultiheadAttention, which calls scaled_dot_product_attention and has an output projection.

    `output`: stock BERT's, of which dropout and LayerNorm are used. Here and below, `forward` returns a pair, as stock
    BERT's block does: hidden states [batch, n, h], and None for the attention weights.
    """

    def __init__(self, attention: nn.MultiheadAttention, output: nn.Module):
        super().__init__()
        self.attention, self.output = attention, copy.deepcopy(output)
        del self.output.dense

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, None]:
        context, _ = self.attention(hidden_states, hidden_states, hidden_states, need_weights=False)
        return self.output.LayerNorm(self.output.dropout(context) + hidden_states), None


class Naive(nn.Module):
    """The block as its equation reads: a shared projection is evaluated as often as it occurs, every diagonal is
    applied, the product is written out."""

    def __init__(self, block: Attention):
        super().__init__()
        self.block = block

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, None]:
        module, output = self.block.self, self.block.output
        scores, V = naive_scores(module, hidden_states)
        weights = functional.dropout(torch.softmax(scores, dim=-1), DROPOUT)
        return output(merge(weights @ split(V, module.heads)), hidden_states), None


def naive_scores(module: SelfAttention, X: Tensor) -> tuple[Tensor, Tensor]:
    """Returns scores [batch, heads, n, n] and values [batch, n, h], computed without sparing any work.

    module: an operator. X: hidden states [batch, n, h]. An operator without `roles` projects no queries and keys: its
    own method gives the scores, which may be [1, heads, n, n], the same for all sequences.
    """
    if not module.roles:
        return module.scores(X).expand(len(X), -1, -1, -1), module.value(X)
    # `roles` names the layers of queries, keys and values; diagonals and the matrix S per head are some operators' own
    Q, K, V = (layer(X) for layer in map(module.get_submodule, module.roles))
    if hasattr(module, "D_q"):
        Q, K, V = Q * module.D_q, K * module.D_k, V * module.D_v
    elif hasattr(module, "D"):
        Q = Q * module.D
    Q, K = split(Q, module.heads), split(K, module.heads)
    if hasattr(module, "S"):
        Q = Q @ module.S
    return Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5, V


def _call(module: nn.Module, inputs: Tensor, precision: str, adamw: torch.optim.Optimizer | None = None) -> Callable:
    """Returns a function that does a forward and a backward pass, and a step of the optimiser where there is one.

    inputs: hidden states [batch, n, h], or token ids [batch, n]. module: returns its output [batch, n, h] first.
    """
    inputs = inputs.clone().requires_grad_(inputs.is_floating_point())  # as in a model; token ids have none
    gradient = None  # of the output: random, for the sum of what LayerNorm returns has no gradient but rounding errors

    def call() -> None:
        nonlocal gradient
        with autocast(precision):
            output = module(inputs)[0]
        gradient = torch.randn_like(output) if gradient is None else gradient
        output.backward(gradient)
        if adamw:
            adamw.step()
        module.zero_grad(set_to_none=True)
        inputs.grad = None

    return call


def _kept_megabytes(block: nn.Module, X: Tensor, precision: str) -> float:
    """Measures what autograd saves in a forward pass, in 10^6 bytes: each storage once, those of parameters not."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in block.parameters()}
    sizes: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:  # called by autograd with every tensor that it saves
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), autocast(precision):
        block(X.clone().requires_grad_())
    return sum(sizes.values()) / 1e6


def main() -> None:
    """Prints the tables of blocks and of steps for every precision and length."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.tools.benchmarks.attention",
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--operators", nargs="+", choices=SELF_ATTENTION, default=list(SELF_ATTENTION))
    parser.add_argument("--hidden", type=int, default=768, help="width of the model")
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512], help="tokens of a sequence")
    parser.add_argument("--tokens", type=int, default=2048, help="tokens of a batch, which has one sequence at least")
    parser.add_argument("--layers", type=int, default=2, help="layers of the encoder that takes a step")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "bfloat16"), default=["float32", "bfloat16"])
    options = parser.parse_args()
    width = {"hidden": options.hidden, "heads": options.heads, "intermediate": 4 * options.hidden}
    for precision in options.dtypes:
        for length in options.lengths:
            size = width | {"layers": options.layers, "positions": length}
            arguments = options.operators, size, options.tokens, precision, options.rounds
            threads = f"{device().type}, {torch.get_num_threads()} threads"
            print(f"\n{precision}, length {length}, {options.tokens} tokens, {threads}")
            print("attention block, forward and backward", blocks(*arguments).to_string(index=False), sep="\n")
            print(f"training step, {options.layers} layers", _steps(*arguments).to_string(index=False), sep="\n")


if __name__ == "__main__":
    main()
