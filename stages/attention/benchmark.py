"""Time and memory of one attention block by operator: ours, the naive form, and stock Hugging Face BERT.

A block is self-attention with its output projection, dropout, residual and LayerNorm; a call is forward and backward in
training mode. All variants are timed in turn, round by round, so that a machine's drift falls on all alike; a ratio is the
median over rounds of stock time / own time. Memory is what the forward pass keeps for the backward pass.
"""

import copy
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.models.bert.modeling_bert import BertAttention

from stages.attention.bert import Attention, configuration, self_attention
from stages.attention.counts import block_work
from stages.attention.operators import SELF_ATTENTION, Positional, SelfAttention
from stages.attention.products import merge, split

DROPOUT = 0.1


@dataclass(frozen=True)
class Result:
    """One variant: operator, form (stock, naive or ours), milliseconds (median), speed-up over stock (median over the
    rounds), the speed-up that the multiply-adds allow, and megabytes kept for the backward pass."""

    operator: str
    form: str
    milliseconds: float
    speedup: float
    allowed: float
    megabytes: float


def measure(
    operators: tuple[str, ...], hidden: int, heads: int, length: int, tokens: int, dtype: torch.dtype, rounds: int
) -> list[Result]:
    """Blocks of width `hidden` on `tokens` tokens in sequences of `length`, stock first."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    X = torch.randn(tokens // length, length, hidden, device=device)
    variants = {key: block.to(device).train() for key, block in built(operators, hidden, heads, length)}
    calls = {key: _call(block, X, dtype) for key, block in variants.items()}
    for call in calls.values():
        call()  # warms up
    seconds = {key: [] for key in calls}
    for _ in range(rounds):
        for key, call in calls.items():
            seconds[key].append(_seconds(call, device))
    stock = seconds["original", "stock"]
    work = block_work("original", hidden, heads, length)
    return [
        Result(
            operator,
            form,
            1000 * statistics.median(own),
            statistics.median(one / other for one, other in zip(stock, own, strict=True)),
            work / block_work(operator, hidden, heads, length),
            kept_megabytes(variants[operator, form], X, dtype),
        )
        for (operator, form), own in seconds.items()
    ]


def built(operators: tuple[str, ...], hidden: int, heads: int, length: int) -> Iterator[tuple[tuple, nn.Module]]:
    """((operator, form), block) for every variant; ours and naive share their start."""
    size = {"layers": 1, "hidden": hidden, "heads": heads, "intermediate": 4 * hidden, "positions": length}
    config = configuration("original", **size, attention_probs_dropout_prob=DROPOUT, attn_implementation="sdpa")
    yield ("original", "stock"), BertAttention(config)
    for operator in operators:
        config.operator = operator
        module = self_attention(config)
        with torch.no_grad():
            module.initialise()
        block = Attention(module, BertAttention(config).output)
        yield (operator, "naive"), Naive(copy.deepcopy(block))
        yield (operator, "ours"), block


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
    if isinstance(module, Positional):
        W = module.W[:, : X.shape[1], : X.shape[1]]
        S = split(X, module.heads)
        scores = W * (S @ S.transpose(-2, -1)) / module.s if hasattr(module, "s") else W.expand(len(X), -1, -1, -1)
        return scores, module.value(X)
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


def _call(block: nn.Module, X: Tensor, dtype: torch.dtype) -> Callable[[], None]:
    X = X.clone().requires_grad_()

    def call() -> None:
        with torch.autocast(X.device.type, dtype, enabled=dtype != torch.float32):
            output = block(X)[0]
        output.sum().backward()
        block.zero_grad(set_to_none=True)
        X.grad = None

    return call


def _seconds(call: Callable[[], None], device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    call()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


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


ALL = tuple(SELF_ATTENTION)
