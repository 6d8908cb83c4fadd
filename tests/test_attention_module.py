"""The operators as modules for models of others: whole when made, and in the place of PyTorch's own attention."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from stages.attention.multihead import AsMultiheadAttention
from stages.attention.operators import SELF_ATTENTION, attention
from tests.toy import moved

FOLDER = Path(__file__).parents[1] / "stages/attention"
HIDDEN, HEADS = 24, 4
PROJECTED = [name for name, kind in SELF_ATTENTION.items() if kind.exportable]


def made(operator: str, **settings):
    torch.manual_seed(0)
    return attention(operator, HIDDEN, HEADS, positions=9, **settings)


def sequence(length: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(2, length, HIDDEN, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def apart(tmp_path):
    """An environment in which the folder stands alone, as a package of its name."""
    (tmp_path / "fewer_attention").symlink_to(FOLDER)
    return {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}}


def as_multihead_attention(layer) -> nn.MultiheadAttention:
    """PyTorch's own module with the projections of an operator."""
    twin = nn.MultiheadAttention(HIDDEN, HEADS, batch_first=True, dtype=torch.float64)
    parts = layer.projections()
    with torch.no_grad():
        twin.in_proj_weight.copy_(torch.cat([weight for weight, _ in parts]))
        twin.in_proj_bias.copy_(torch.cat([bias for _, bias in parts]))
        twin.out_proj.load_state_dict(layer.output.state_dict())
    return twin


@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_a_layer_is_started_when_it_is_made(operator):
    layer = made(operator, dropout=0.1)
    for name in layer.linear_layers:
        assert not getattr(layer, name).bias.any()
    assert all(torch.isfinite(parameter).all() for parameter in layer.parameters())
    assert torch.isfinite(layer(torch.randn(2, 9, HIDDEN))).all()


@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_every_parameter_of_a_layer_takes_part(operator):
    layer = moved(made(operator).double(), 0.3)
    layer(sequence(9)).square().sum().backward()
    assert all(parameter.grad.any() for name, parameter in layer.named_parameters() if name != "key.bias")


def test_what_nobody_has_started_yet_shows():
    assert made("shared", deviation=None)(torch.randn(2, 5, HIDDEN)).isnan().all()


@pytest.mark.parametrize("kind", [None, "key", "pair", "head", "added"])
@pytest.mark.parametrize("operator", PROJECTED)
def test_a_layer_is_pytorchs_own_with_its_projections(operator, kind):
    layer = moved(made(operator).double(), 0.3)
    ours, twin, X, memory = AsMultiheadAttention(layer), as_multihead_attention(layer), sequence(6), sequence(8, seed=2)
    hidden_keys = torch.arange(8) >= torch.tensor([[8], [5]])
    pairs = torch.ones(6, 8, dtype=torch.bool).triu(3)
    masks = {
        "key": {"key_padding_mask": hidden_keys},
        "pair": {"key_padding_mask": hidden_keys, "attn_mask": pairs},
        "head": {"attn_mask": torch.rand(2 * HEADS, 6, 8, dtype=torch.float64)},
        "added": {
            "key_padding_mask": torch.zeros(2, 8, dtype=torch.float64).masked_fill(hidden_keys, -torch.inf),
            "attn_mask": torch.rand(6, 8, dtype=torch.float64),
        },
    }.get(kind, {})
    for average in (True, False):
        found = ours(X, memory, memory, average_attn_weights=average, **masks)
        wanted = twin(X, memory, memory, average_attn_weights=average, **masks)
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other)
    assert ours(X, X, X, need_weights=False)[1] is None


def test_projections_hold_the_scale_of_the_weighted_values(monkeypatch):
    layer, X = attention("original", 8, 2), torch.randn(2, 5, 8)
    monkeypatch.setattr(type(layer), "output_scale", lambda self: torch.linspace(0.5, 2.0, 8))
    expected, (*_, (weight, bias)) = layer(X), layer.projections()
    monkeypatch.undo()
    layer.value.weight, layer.value.bias = nn.Parameter(weight), nn.Parameter(bias)
    torch.testing.assert_close(layer(X), expected)


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("operator", PROJECTED)
def test_a_layer_stands_in_an_encoder_of_pytorchs(operator, training):
    block = nn.TransformerEncoderLayer(HIDDEN, HEADS, 48, dropout=0.0, batch_first=True, dtype=torch.float64)
    layer = moved(made(operator).double(), 0.3)
    block.self_attn = as_multihead_attention(layer)
    X, padding = sequence(6), torch.arange(6) >= torch.tensor([[6], [4]])
    block.train(training)
    wanted = block(X, src_key_padding_mask=padding)
    block.self_attn = AsMultiheadAttention(layer)
    found = nn.TransformerEncoder(block, 1).train(training)(X, src_key_padding_mask=padding)
    torch.testing.assert_close(found[~padding], wanted[~padding])


@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_a_causal_layer_sees_no_later_token(operator):
    layer, X = moved(made(operator).double(), 0.3), sequence(6)
    changed = X.clone()
    changed[:, 4:] += 1
    seen = torch.ones(2, 1, 1, 6, dtype=torch.bool)
    for mask in (None, seen, torch.zeros(2, 1, 1, 6, dtype=torch.float64)):
        one, other = (layer(T, mask, causal=True)[:, :4] for T in (X, changed))
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    assert not layer.weights(X, causal=True).triu(1).any()
    with pytest.raises(ValueError, match="causal: keys of a memory"):
        layer(X, memory=X, causal=True)


@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_a_memory_gives_keys_and_values_and_every_query_attends_by_itself(operator):
    layer, X, memory = moved(made(operator).double(), 0.3), sequence(5), sequence(8, seed=2)
    torch.testing.assert_close(layer(X, memory=X), layer(X), rtol=0, atol=1e-12)
    changed = X.clone()
    changed[:, 3] += 1
    one, other = (layer(T, memory=memory) for T in (X, changed))
    torch.testing.assert_close(one[:, [0, 1, 2, 4]], other[:, [0, 1, 2, 4]], rtol=0, atol=1e-12)
    assert operator == "fixed" or not torch.allclose(one[:, 3], other[:, 3])
    seen = (torch.arange(8) < 6)[None, None, None]
    torch.testing.assert_close(layer(X, seen, memory), layer(X, None, memory[:, :6]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_a_layer_compiles_whole_trains_in_lower_precision_and_keeps_its_state(operator):
    torch.compiler.reset()  # no more than eight kinds of layer are compiled by one process
    layer, X = made(operator, dropout=0.1), torch.randn(2, 9, HIDDEN)
    compiled = torch.compile(layer.eval(), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(X), layer(X))
    layer.train()
    torch.compile(layer, backend="aot_eager", fullgraph=True)(X).sum().backward()
    with torch.autocast("cpu", torch.bfloat16):
        out = layer(X)
    out.float().sum().backward()
    assert out.dtype == torch.bfloat16 and all(p.grad.isfinite().all() for p in layer.parameters())
    twin = made(operator, start=layer.starts[-1])
    twin.load_state_dict(layer.state_dict())
    torch.testing.assert_close(twin(X), layer.eval()(X), rtol=0, atol=0)


def test_the_state_has_the_names_of_the_papers():
    state = made("shared").state_dict()
    assert set(state) == {"D_q", "D_k", "D_v", "shared.weight", "shared.bias", "output.weight", "output.bias"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((torch.zeros(5, HIDDEN),), r"hidden states of shape \(5, 24\); expected .*batch first"),
        ((torch.zeros(2, 5, 20),), r"expected \[2, length, 24\]"),
        ((torch.zeros(2, 5, HIDDEN), None, torch.zeros(3, 5, HIDDEN)), r"memory of shape \(3, 5, 24\)"),
        ((torch.zeros(2, 5, HIDDEN), torch.ones(2, 5, dtype=torch.bool)), r"make mask\[:, None, None\]"),
        ((torch.zeros(2, 5, HIDDEN), torch.ones(2, 1, 1, 6, dtype=torch.bool)), r"expected \[2, 4, 5, 5\]"),
        ((torch.zeros(2, 5, HIDDEN), torch.ones(2, 3, 5, 5, dtype=torch.bool)), r"expected \[2, 4, 5, 5\]"),
        ((torch.zeros(2, 5, HIDDEN), torch.ones(2, 1, 1, 5, dtype=torch.int64)), "mask of torch.int64"),
    ],
)
def test_what_does_not_fit_is_one_clear_error(arguments, said):
    with pytest.raises(ValueError, match=said):
        made("pairwise")(*arguments)


def test_an_operator_that_leaves_attention_as_it_is_says_so():
    for operator in ("over_parameters", "original_narrow"):
        with pytest.raises(ValueError, match=f"{operator}: attention is `original` there.*`feed_forward_width` of"):
            made(operator)


def test_keys_and_values_of_two_sequences_are_an_error():
    with pytest.raises(ValueError, match="key and value: expected one and the same"):
        AsMultiheadAttention(made("shared"))(sequence(5), sequence(5), sequence(5))


def test_the_example_learns_and_exports_a_stock_bert_with_equal_logits(apart):
    command = [sys.executable, "fewer_attention/example.py"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, **apart).stdout
    right, difference = (float(re.search(rf"{name} ([\d.e-]+)", said)[1]) for name in ("right", "of logits"))
    assert right > 0.5 and difference < 1e-4


def test_the_example_in_the_package_s_docstring_is_true_of_the_folder_alone(apart):
    code = "import doctest, fewer_attention as f; r = doctest.testmod(f); assert r.attempted > 5 and not r.failed"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, **apart)
    assert not said.returncode, said.stdout + said.stderr
