"""The computations that operators share: packed projections, heads, masks, weighted sums of values, dropout.

n is the number of queries, m the number of keys, h the width of the model, d = h / heads the width of a head. A mask
holds booleans (True = seen) or numbers to add to the scores, [batch, heads, n, m] or 1 for any; `None`: all seen.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules import module as modules

# A mask broadcasts to [batch, heads, n, m] and holds booleans (True = seen) or numbers to add to the scores. `None`:
# everything is seen.
Mask = Tensor | None


def is_plain(layer: nn.Module) -> bool:
    """Returns whether a call of a layer does no more than multiply by `layer.weight` and add `layer.bias`.

    False for adapters, for quantised, pruned, parametrised and offloaded layers, and for layers with hooks. The weight
    of such a layer means nothing without the call.
    """
    # A quantised weight may be a subclass of Tensor; accelerate replaces `forward` in the module's own dictionary.
    if type(layer) is not nn.Linear or "forward" in layer.__dict__:
        return False
    if type(layer.weight) is not nn.Parameter or type(layer.bias) is not nn.Parameter:
        return False
    # Not cached, because a hook may be registered between two calls.
    own_hooks = layer._forward_hooks, layer._forward_pre_hooks, layer._backward_hooks, layer._backward_pre_hooks
    # Profilers, for example, register hooks on all modules.
    return not any(own_hooks) and not modules._has_any_global_hook()


def apply_linear_layers(X: Tensor, *layers: nn.Linear) -> tuple[Tensor, ...]:
    """Applies Linear layers to the same tensor X [..., in]; a layer that is given twice is computed once.

    Returns:
        A tensor [..., out] per layer, in the order of the layers.
    """
    # On a GPU, a single product computes all layers. On a CPU, joining the weights costs as much as the larger product
    # gains (`python -m stages.tools.benchmarks attention`).
    distinct = list(dict.fromkeys(layers))
    if X.device.type != "cpu" and len(distinct) > 1 and all(map(is_plain, distinct)):
        weight = torch.cat([layer.weight for layer in distinct])
        bias = torch.cat([layer.bias for layer in distinct])
        widths = [layer.out_features for layer in distinct]
        outputs = functional.linear(X, weight, bias).split(widths, dim=-1)
    else:
        outputs = [layer(X) for layer in distinct]
    output_of = dict(zip(distinct, outputs, strict=True))
    return tuple(output_of[layer] for layer in layers)


def apply_scaled_layer(X: Tensor, D: Tensor | None, layer: nn.Linear) -> Tensor:
    """Applies a Linear layer to X D, where X is [..., in] and the diagonal D is [in]; `None`: to X."""
    if D is None:
        return layer(X)
    if is_plain(layer):
        # (X D) W^T = X (W D)^T: D multiplies in x out weights, usually fewer than activations.
        return functional.linear(X, layer.weight * D, layer.bias)
    # Under autocast D is float32 and would make X float32.
    return layer(X * D.to(X.dtype))


def split_heads(T: Tensor, heads: int) -> Tensor:
    """Splits channels into heads: [batch, n, h] -> [batch, heads, n, d], such as [2, 10, 768] -> [2, 12, 10, 64]."""
    return T.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(T: Tensor) -> Tensor:
    """Joins heads to channels: [batch, heads, n, d] -> [batch, n, h], such as [2, 12, 10, 64] -> [2, 10, 768]."""
    return T.transpose(1, 2).flatten(2)


def attend(
    Q: Tensor,
    K: Tensor,
    V: Tensor,
    mask: Mask,
    dropout: float,
) -> Tensor:
    """Computes softmax(Q K^T / sqrt(d)) V for every head.

    Q is [batch, heads, n, d]; K and V are [batch, heads, m, d]; `dropout` is the rate on the weights, in [0, 1).
    """
    # PyTorch's fused kernel is fast on GPUs, and on a CPU only in float32 without dropout. In all other cases
    # separate products are faster (`python -m stages.tools.benchmarks attention`). If a boolean mask hides all keys of
    # a query, the fused kernel of a CPU gives zeros, and separate products give the mean of all values.
    fused_on_cpu = Q.dtype == torch.float32 and dropout == 0.0
    if Q.device.type != "cpu" or fused_on_cpu:
        return functional.scaled_dot_product_attention(Q, K, V, attn_mask=mask, dropout_p=dropout)
    # Scaling Q takes n d products, scaling the scores n m.
    scores = (Q * Q.shape[-1] ** -0.5) @ K.transpose(-2, -1)
    return weigh_values(scores, V, mask, dropout)


def weigh_values(
    scores: Tensor,
    V: Tensor,
    mask: Mask,
    dropout: float,
) -> Tensor:
    """Computes softmax(scores) V, [batch, heads, n, d], with the softmax over keys.

    The scores are [batch or 1, heads, n, m]; `dropout` is a rate in [0, 1).
    """
    weights = torch.softmax(mask_scores(scores, mask), dim=-1)
    if dropout:
        # The operator Fixed has the same scores for all sequences of a batch, but dropout shall differ.
        weights = weights.expand(V.shape[0], -1, -1, -1)
    # A float32 mask makes the scores of a bfloat16 model float32.
    return drop_elements(weights, dropout).to(V.dtype) @ V


def mask_scores(scores: Tensor, mask: Mask) -> Tensor:
    """Hides keys in scores [batch, heads, n, m]: False gives the lowest finite number, numbers are added."""
    if mask is None:
        return scores
    if mask.dtype == torch.bool:
        # At minus infinity, a softmax over hidden keys only would give NaN.
        return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores + mask


def join_masks(first: Mask, second: Mask) -> Mask:
    """Joins two masks; the result hides every key that either mask hides.

    [True, False] and [2.0, 1.0] become [2.0, -3.4e38] in float32.
    """
    if first is None:
        return second
    # Numbers to add are masked as scores are.
    if first.dtype != torch.bool:
        return mask_scores(first, second)
    # The swapped call takes one of the two cases above.
    if second is None or second.dtype != torch.bool:
        return join_masks(second, first)
    return first & second


def check_inputs(
    X: Tensor,
    mask: Mask,
    memory: Tensor,
    hidden: int,
    heads: int,
) -> None:
    """Checks the inputs of an operator of width `hidden`.

    Expected are X [batch, n, h], `memory` [batch, m, h], and a mask [batch, heads, n, m] or 1 for any of these.

    Raises:
        ValueError: a shape or type is not as expected.
    """
    # `len` would fix the size of the batch for torch.export.
    batch = X.shape[0]
    for name, T in {"hidden states": X, "memory": memory}.items():
        fits = T.dim() == 3 and T.shape[0] == batch and T.shape[-1] == hidden
        if not fits:
            raise ValueError(f"{name} of shape {tuple(T.shape)}; expected [{batch}, length, {hidden}], batch first")
    if mask is None:
        return
    expected = [batch, heads, X.shape[1], memory.shape[1]]
    fits = mask.dim() == 4 and all(given in (1, size) for given, size in zip(mask.shape, expected, strict=True))
    if not fits:
        raise ValueError(
            f"mask of shape {tuple(mask.shape)}; expected {expected}, or 1 in place of any; turn a mask [batch, keys] "
            "into mask[:, None, None], a mask [queries, keys] into mask[None, None]"
        )
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise ValueError(f"mask of {mask.dtype}; expected torch.bool, True where a key is seen, or numbers to be added")


def drop_elements(X: Tensor, rate: float) -> Tensor:
    """Applies dropout: sets elements to 0 with probability `rate`, and multiplies the rest by 1 / (1 - rate).

    A CPU draws 16 random bits per element, so that the rate has steps of 2^-16; 0.1 becomes 0.0986 in bfloat16.
    """
    # 16 bits take a sixth of the time of PyTorch's draw, which is a sixth of a training step on a CPU.
    if rate in (0.0, 1.0) or X.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.dropout(X, rate)
    factor = 1 / (1 - rate)
    # bfloat16 rounds the factor. The rate follows, so that the mean of the output is the mean of the input.
    if X.dtype == torch.bfloat16:
        factor = torch.tensor(factor, dtype=torch.bfloat16).item()
    # Every int64, drawn from the whole range, is four int16, uniform from -2^15 to 2^15 - 1; -(-a // 4) rounds up.
    quadruples = torch.empty(-(-X.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = quadruples.view(torch.int16)[: X.numel()].view(X.shape)
    # An element is kept with probability 1 / factor; `ge_` writes 1 or 0 over the bits.
    threshold = round((1 - 1 / factor) * 2**16) - 2**15
    kept = bits.ge_(threshold).to(X.dtype)
    return X * kept.mul_(factor)


class Dropout(nn.Dropout):
    """PyTorch's module, with `drop_elements`."""

    def forward(self, X: Tensor) -> Tensor:
        """Drops elements of X, a tensor of any shape, in training mode."""
        return drop_elements(X, self.p if self.training else 0.0)
