"""Time and memory of attention by operator: ours, the naive form, stock Hugging Face BERT, and PyTorch's own module.

A block is self-attention with its output projection, dropout, residual and LayerNorm; a call is forward and backward in
training mode. A step is forward, backward and AdamW of an encoder of a few layers. All variants are timed in turn,
round by round, so that a machine's drift falls on all alike; a speed-up is the median over rounds of stock time / own
time. Memory is what the forward pass keeps for the backward pass. `python -m stages.tools.benchmarks.attention --help`.
"""

import argparse
import copy
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

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
from stages.training.machine import clocked
from stages.training.optimisation import device
from stages.training.rounds import interleaved, median_ratio

DROPOUT = 0.1


@dataclass(frozen=True)
class Result:
    """One variant: operator, form (stock, torch, naive or ours), milliseconds (median), speed-up over stock (over the
    rounds), the speed-up that the multiply-adds allow, and megabytes kept for the backward pass."""

    operator: str
    form: str
    milliseconds: float
    speedup: float
    allowed: float
    megabytes: float


def blocks(
    operators: tuple[str, ...], hidden: int, heads: int, length: int, tokens: int, dtype: torch.dtype, rounds: int
) -> list[Result]:
    """Blocks of width `hidden` on `tokens` tokens in sequences of `length`, stock first."""
    X = torch.randn(tokens // length, length, hidden, device=device())
    variants = {key: block.to(device()).train() for key, block in built(operators, hidden, heads, length)}
    memory = {key: kept_megabytes(block, X, dtype) for key, block in variants.items()}
    stock = block_work("original", hidden, heads, length)
    allowed = {key: stock / block_work(key[0], hidden, heads, length) for key in variants}
    return compared({key: _block_call(block, X, dtype) for key, block in variants.items()}, allowed, memory, rounds)


def steps(
    operators: tuple[str, ...],
    hidden: int,
    heads: int,
    length: int,
    tokens: int,
    dtype: torch.dtype,
    rounds: int,
    layers: int,
) -> list[Result]:
    """Training steps of encoders of `layers` layers (feed-forward width 4 `hidden`), stock first; memory as nan."""
    size = {"layers": layers, "hidden": hidden, "heads": heads, "intermediate": 4 * hidden, "positions": length}
    config = configuration("original", **size, vocab_size=1000, attn_implementation="sdpa")
    models = {("original", "stock"): BertModel(config, add_pooling_layer=False)}
    for operator in operators:
        config = configuration(operator, **size, vocab_size=1000)
        models[operator, "ours"] = OperatorBertModel(config, add_pooling_layer=False)
    ids = torch.randint(1000, (tokens // length, length), device=device())
    calls = {key: _step_call(model.to(device()).train(), ids, dtype) for key, model in models.items()}
    feed_forward = 16 * hidden * hidden  # multiply-adds times two a token
    work = {key: block_work(key[0], hidden, heads, length) + feed_forward for key in models}
    allowed = {key: work["original", "stock"] / own for key, own in work.items()}
    return compared(calls, allowed, dict.fromkeys(models, float("nan")), rounds)


def compared(calls: dict[tuple, Callable], allowed: dict, memory: dict, rounds: int) -> list[Result]:
    """Times all calls in turn, `rounds` times after one warm-up."""
    for call in calls.values():
        call()
    seconds = interleaved({key: partial(clocked, call) for key, call in calls.items()}, rounds)
    stock = seconds["original", "stock"]
    return [
        Result(
            *key,
            1000 * statistics.median(own),
            median_ratio(stock, own),
            allowed[key],
            memory[key],
        )
        for key, own in seconds.items()
    ]


def built(operators: tuple[str, ...], hidden: int, heads: int, length: int) -> Iterator[tuple[tuple, nn.Module]]:
    """((operator, form), block) for every variant; ours and naive share their start. Stock calls the fused kernel."""
    size = {"layers": 1, "hidden": hidden, "heads": heads, "intermediate": 4 * hidden, "positions": length}
    settings = {"attention_probs_dropout_prob": DROPOUT, "attn_implementation": "sdpa"}
    stock = BertAttention(configuration("original", **size, **settings))
    yield ("original", "stock"), stock
    yield ("original", "torch"), Torch(nn.MultiheadAttention(hidden, heads, DROPOUT, batch_first=True), stock.output)
    for operator in operators:
        config = configuration(operator, **size, **settings)
        block = Attention(config, copy.deepcopy(stock.output))
        with torch.no_grad():
            block.self.initialise(config.initializer_range)
        yield (operator, "naive"), Naive(copy.deepcopy(block))
        yield (operator, "ours"), block


class Torch(nn.Module):
    """The block around nn.MultiheadAttention, which calls scaled_dot_product_attention and projects by itself."""

    def __init__(self, attention: nn.MultiheadAttention, output: nn.Module):
        super().__init__()
        self.attention, self.output = attention, copy.deepcopy(output)
        del self.output.dense

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, None]:
        context, _ = self.attention(hidden_states, hidden_states, hidden_states, need_weights=False)
        return self.output.LayerNorm(self.output.dropout(context) + hidden_states), None


class Naive(nn.Module):
    """The block as its equation reads: every projection evaluated by itself, a shared one as often as it occurs, every
    diagonal applied on its own, the product written out."""

    def __init__(self, block: Attention):
        super().__init__()
        self.block = block

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, None]:
        module, output = self.block.self, self.block.output
        scores, V = naive_scores(module, hidden_states)
        weights = functional.dropout(torch.softmax(scores, dim=-1), DROPOUT)
        return output(merge(weights @ split(V, module.heads)), hidden_states), None


def naive_scores(module: SelfAttention, X: Tensor) -> tuple[Tensor, Tensor]:
    """Scores [batch, heads, n, n] and values [batch, n, h], without sparing any work."""
    if hasattr(module, "W"):
        return module.scores(X).expand(len(X), -1, -1, -1), module.value(X)
    query, key, value = (getattr(module, name, None) for name in ("query", "key", "value"))
    shared = getattr(module, "shared", None)
    Q = (query or shared)(X)
    K = (key or shared or query)(X)
    V = (value or shared)(X)
    if hasattr(module, "D_q"):
        Q, K, V = Q * module.D_q, K * module.D_k, V * module.D_v
    elif hasattr(module, "D"):
        Q = Q * module.D
    Q, K = split(Q, module.heads), split(K, module.heads)
    if hasattr(module, "S"):
        Q = Q @ module.S
    return Q @ K.transpose(-2, -1) / Q.shape[-1] ** 0.5, V


def _block_call(block: nn.Module, X: Tensor, dtype: torch.dtype) -> Callable[[], None]:
    X = X.clone().requires_grad_()

    def call() -> None:
        with torch.autocast(X.device.type, dtype, enabled=dtype != torch.float32):
            output = block(X)[0]
        output.sum().backward()
        block.zero_grad(set_to_none=True)
        X.grad = None

    return call


def _step_call(model: nn.Module, ids: Tensor, dtype: torch.dtype) -> Callable[[], None]:
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def call() -> None:
        with torch.autocast(ids.device.type, dtype, enabled=dtype != torch.float32):
            output = model(ids).last_hidden_state
        output.square().mean().backward()
        adamw.step()
        adamw.zero_grad(set_to_none=True)

    return call


def kept_megabytes(block: nn.Module, X: Tensor, dtype: torch.dtype) -> float:
    """Distinct storages that autograd saves in one forward pass, without parameters, in 10^6 bytes."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in block.parameters()}
    sizes: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        torch.autocast(X.device.type, dtype, enabled=dtype != torch.float32),
    ):
        output = block(X.clone().requires_grad_())[0]
    del output
    return sum(sizes.values()) / 1e6


def table(results: list[Result]) -> str:
    """Lines of text; memory in 10^6 bytes, `allowed` the speed-up that the multiply-adds allow."""
    lines = [f"{'operator':<20}{'form':<8}{'ms':>9}{'speed-up':>10}{'allowed':>9}{'MB':>8}"]
    lines += [
        f"{r.operator:<20}{r.form:<8}{r.milliseconds:>9.1f}{r.speedup:>10.2f}{r.allowed:>9.2f}{r.megabytes:>8.1f}"
        for r in results
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m stages.tools.benchmarks.attention",
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--operators", nargs="+", choices=SELF_ATTENTION, default=list(SELF_ATTENTION))
    parser.add_argument("--hidden", type=int, default=768, help="width of the model")
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512], help="tokens of a sequence")
    parser.add_argument("--tokens", type=int, default=2048, help="tokens of a batch")
    parser.add_argument("--layers", type=int, default=2, help="layers of the encoder that takes a step")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "bfloat16"), default=["float32", "bfloat16"])
    chosen = parser.parse_args()
    for name in chosen.dtypes:
        for length in chosen.lengths:
            common = (tuple(chosen.operators), chosen.hidden, chosen.heads, length, chosen.tokens)
            timed = (getattr(torch, name), chosen.rounds)
            print(
                f"\n{name}, length {length}, {chosen.tokens} tokens, {device().type}, {torch.get_num_threads()} threads"
            )
            print("attention block, forward and backward", table(blocks(*common, *timed)), sep="\n")
            print(f"training step, {chosen.layers} layers", table(steps(*common, *timed, chosen.layers)), sep="\n")


if __name__ == "__main__":
    main()
