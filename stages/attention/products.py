"""The computations that operators share: packed projections, heads, masks, weighted sums of values, dropout.

n is the number of queries of a sequence, m that of keys, h the width of the model, d = h / heads that of a head.
"""

from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional


def project(X: Tensor, *layers: nn.Linear) -> tuple[Tensor, ...]:
    """Applies each of the Linear layers to X [..., in], and returns as many tensors [..., out], in their order.

    On a GPU that is one matrix product, for which all layers need biases and one output width. On a CPU, joining the
    weights costs what the larger product gains (`python -m stages.tools.benchmarks attention`).
    """
    if X.device.type == "cpu" or len(layers) == 1:
        return tuple(layer(X) for layer in layers)
    weight = torch.cat([layer.weight for layer in layers])
    bias = torch.cat([layer.bias for layer in layers])
    return functional.linear(X, weight, bias).chunk(len(layers), dim=-1)


def split(T: Tensor, heads: int) -> Tensor:
    """Splits channels into heads: [batch, n, h] -> [batch, heads, n, d], h = heads d."""
    return T.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge(T: Tensor) -> Tensor:
    """Undoes `split`: [batch, heads, n, d] -> [batch, n, h]."""
    return T.transpose(1, 2).flatten(2)


def attend(Q: Tensor, K: Tensor, V: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """Computes softmax(Q K^T / sqrt(d)) V for every head, [batch, heads, n, d].

    PyTorch's fused kernel serves GPUs, and float32 without dropout on a CPU; elsewhere a CPU has no fast path for it,
    and the product written out is faster (`python -m stages.tools.benchmarks attention`). They differ for a query that
    a boolean mask lets see no key: the kernel of a CPU gives zeros, the other the mean of all values.

    Args:
        Q, K, V: Q is [batch, heads, n, d], K and V are [batch, heads, m, d].
        mask, dropout: as in `weigh`.
    """
    if Q.device.type != "cpu" or (Q.dtype == torch.float32 and dropout == 0.0):
        return functional.scaled_dot_product_attention(Q, K, V, attn_mask=mask, dropout_p=dropout)
    # Q is scaled and not the scores: n d numbers in place of n m
    return weigh((Q * Q.shape[-1] ** -0.5) @ K.transpose(-2, -1), V, mask, dropout)


def weigh(scores: Tensor, V: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """Computes softmax(scores) V, [batch, heads, n, d], with the softmax over keys.

    Args:
        scores, V: [batch or 1, heads, n, m], and [batch, heads, m, d].
        mask: broadcasts to [batch, heads, n, m]; boolean (True = seen), or numbers to add. None: everything is seen.
        dropout: rate on the weights, in [0, 1).
    """
    weights = torch.softmax(masked(scores, mask), dim=-1)
    if dropout:  # scores of the operator Fixed are the same for all sequences of a batch; each is to lose other weights
        weights = weights.expand(len(V), -1, -1, -1)
    return drop(weights, dropout).to(V.dtype) @ V  # a float32 mask makes the scores of a bfloat16 model float32


def masked(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Sets scores to their type's lowest finite number where a boolean mask is False, or adds a mask of numbers.

    Finite, because a softmax over keys that are all hidden would give NaN at minus infinity.
    """
    if mask is None:
        return scores
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min) if mask.dtype == torch.bool else scores + mask


def joined(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Joins two masks into one that hides what either hides.

    Each is boolean (True = seen), numbers to add to scores, or None where everything is seen; their shapes broadcast.
    The result is boolean if no mask has numbers, and None if both masks are.
    """
    if one is None or other is None:
        return other if one is None else one
    if one.dtype == other.dtype == torch.bool:
        return one & other
    if torch.bool not in (one.dtype, other.dtype):
        return one + other
    numbers, seen = (other, one) if one.dtype == torch.bool else (one, other)
    return masked(numbers.expand(torch.broadcast_shapes(numbers.shape, seen.shape)), seen)


def checked_mask(
    hidden: int, heads: int, X: Tensor, mask: Tensor | None, memory: Tensor | None, causal: bool
) -> Tensor | None:
    """Checks what an operator is given, and joins its mask with the causal one where that is asked for.

    Args:
        hidden, heads: width h of the operator, and its number of heads.
        X: hidden states that give the queries; expected [batch, n, h].
        mask: expected boolean (True = seen) or numbers to add, [batch, heads, n, m] or 1 for any of them, or None.
        memory: hidden states that give keys and values; expected [batch, m, h]. None: X itself.
        causal: whether a token sees only itself and what precedes it.

    Returns:
        The mask to apply; None where everything is seen.

    Raises:
        ValueError: a shape or type is not as expected, or `causal` comes with a memory, which has an order of its own.
    """
    for name, T in {"hidden states": X, "memory": X if memory is None else memory}.items():
        if T.dim() != 3 or T.shape[-1] != hidden or len(T) != len(X):
            raise ValueError(f"{name} of shape {tuple(T.shape)}; expected [{len(X)}, length, {hidden}], batch first")
    if mask is not None:
        expected = [len(X), heads, X.shape[1], (X if memory is None else memory).shape[1]]
        if mask.dim() != 4 or any(given not in (1, size) for given, size in zip(mask.shape, expected, strict=True)):
            raise ValueError(
                f"mask of shape {tuple(mask.shape)}; expected {expected}, or 1 in place of any; of one [batch, keys] "
                "make mask[:, None, None], of one [queries, keys] mask[None, None]"
            )
        if not (mask.dtype == torch.bool or mask.is_floating_point()):
            raise ValueError(
                f"mask of {mask.dtype}; expected torch.bool, True where a key is seen, or numbers to be added"
            )
    if not causal:
        return mask
    if memory is not None:
        raise ValueError("causal: keys of a memory do not follow the queries; give a mask in its place")
    return joined(mask, torch.ones(1, 1, X.shape[1], X.shape[1], dtype=torch.bool, device=X.device).tril())


def drop(X: Tensor, rate: float) -> Tensor:
    """Applies dropout: sets elements to 0 with probability `rate`, in [0, 1), and divides the others by 1 - rate.

    A GPU and compiled code take PyTorch's. A CPU draws 16 random bits per element, four elements at once, and
    compares whole numbers, so that the rate has steps of 2^-16: a sixth of the time of PyTorch's draw, which is a
    sixth of a training step. bfloat16 rounds the factor 1 / (1 - rate), and the rate follows it (0.0986 for 0.1), so
    that the mean of the output is that of the input.
    """
    if rate == 0.0 or X.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.dropout(X, rate)
    factor, pattern = _rounded(1 / (1 - rate)) if X.dtype == torch.bfloat16 else (1 / (1 - rate), None)
    # every int64, drawn from all that there are, is four int16, uniform from -2^15 to 2^15 - 1; -(-a // 4) rounds up
    bits = torch.empty(-(-X.numel() // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
    kept = bits[: X.numel()].view(X.shape).ge_(round((1 - 1 / factor) * 2**16) - 2**15)  # 1 or 0, as int16
    if pattern is not None:  # times the bits of the factor: these, or 0, which read as bfloat16 are the factor or 0.0
        return X * kept.mul_(pattern).view(torch.bfloat16)
    return X * kept.to(X.dtype).mul_(factor)


@lru_cache
def _rounded(value: float) -> tuple[float, int]:
    """Returns the bfloat16 that is nearest to `value`, as a float, and its 16 bits as a whole number."""
    nearest = torch.tensor(value, dtype=torch.bfloat16)
    return nearest.item(), nearest.view(torch.int16).item()


class Dropout(nn.Dropout):
    """PyTorch's module, which applies `drop` in training mode, and nothing in evaluation mode."""

    def forward(self, X: Tensor) -> Tensor:
        return drop(X, self.p if self.training else 0.0)
