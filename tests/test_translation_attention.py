"""Operators in a decoder: cross-attention takes its queries from one sequence, keys and values from another."""

import pytest
import torch

from stages.attention.operators import SELF_ATTENTION, attention

HIDDEN, HEADS, POSITIONS = 24, 4, 9


def built(operator: str):
    torch.manual_seed(1)
    made = attention(operator, HIDDEN, HEADS, positions=POSITIONS, output=False).double().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.4)
    return made


def sequences(*lengths: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(2, n, HIDDEN, dtype=torch.float64, generator=generator) for n in lengths]


@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_attention_to_the_sequence_itself_is_self_attention(operator):
    layer, [X] = built(operator), sequences(6)
    torch.testing.assert_close(layer(X, None, X), layer(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_every_query_attends_by_itself(operator):
    layer, [X, memory] = built(operator), sequences(5, 8)
    changed = X.clone()
    changed[:, 3] += 1
    one, other = layer(X, None, memory), layer(changed, None, memory)
    others = [0, 1, 2, 4]
    assert one.shape == X.shape
    torch.testing.assert_close(one[:, others], other[:, others], rtol=0, atol=1e-12)
    assert operator == "fixed" or not torch.allclose(one[:, 3], other[:, 3])


@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_masked_keys_have_no_influence(operator):
    layer, [X, memory] = built(operator), sequences(5, 8)
    seen = (torch.arange(8) < 6)[None, None, None]
    changed = memory.clone()
    changed[:, 6:] += 1
    torch.testing.assert_close(layer(X, seen, memory), layer(X, seen, changed), rtol=0, atol=1e-12)
    torch.testing.assert_close(layer(X, seen, memory), layer(X, None, memory[:, :6]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("operator", ["original", "symmetric", "pairwise", "partial_qk", "shared", "shared_kv"])
def test_cross_attention_is_the_equation_of_the_operator(operator):
    layer, [X, memory] = built(operator), sequences(5, 8)
    d = HIDDEN // HEADS
    (Q, _, _), (_, K, V) = (
        [(T @ weight.T + bias).unflatten(-1, (HEADS, d)).transpose(1, 2) for weight, bias in layer.projections()]
        for T in (X, memory)
    )
    weights = torch.softmax(Q @ K.transpose(-2, -1) / d**0.5, dim=-1)
    expected = (weights @ V).transpose(1, 2).flatten(2)
    torch.testing.assert_close(layer(X, None, memory), expected, rtol=0, atol=1e-12)


def test_hadamards_cross_attention_is_that_of_the_blogs_code():
    """The post's own order of steps: whole-width products, the kernel, the divisor, an added mask, then the values."""
    layer, [X, memory] = built("hadamard"), sequences(5, 8)
    seen = torch.ones(2, 8, dtype=torch.bool)
    seen[1, 6:] = False
    expected = torch.empty_like(X)
    for b in range(2):
        product = X[b] @ memory[b].T  # q and k are not split into heads
        values = memory[b] @ layer.value.weight.T + layer.value.bias
        for head in range(HEADS):
            channels = slice(head * HIDDEN // HEADS, (head + 1) * HIDDEN // HEADS)
            logits = product * layer.W[head, :5, :8] / layer.s + (~seen[b]) * -1e9
            expected[b, :, channels] = torch.exp(logits - logits.logsumexp(-1, keepdim=True)) @ values[:, channels]
    torch.testing.assert_close(layer(X, seen[:, None, None], memory), expected, rtol=0, atol=1e-12)
