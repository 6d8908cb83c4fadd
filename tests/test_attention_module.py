"""The operators as modules for other people's models, and in the place of PyTorch's own attention."""

import re
from functools import partial
from importlib.util import find_spec

import pytest
import torch
from torch import nn

from stages.attention.bert import OperatorBertForMaskedLM
from stages.attention.configuration import make_configuration
from stages.attention.multihead import AsMultiheadAttention, replace_attention
from stages.attention.operators import SELF_ATTENTION, build_attention
from tests.places import ROOT
from tests.processes import run
from tests.toy_weights import move_parameters

FOLDER = ROOT / "stages/attention"
HIDDEN, HEADS = 24, 4
assert_nearly_equal = partial(torch.testing.assert_close, rtol=0, atol=1e-12)
PROJECTED = [name for name, kind in SELF_ATTENTION.items() if kind.exportable]
for_every_operator = pytest.mark.parametrize("operator", SELF_ATTENTION)


def make_operator(operator: str, **settings):
    torch.manual_seed(0)
    return build_attention(operator, HIDDEN, HEADS, positions=9, **settings)


def make_moved_operator(operator: str):
    """In float64, with parameters away from the initial values."""
    return move_parameters(make_operator(operator).double(), 0.3)


def draw_sequence(length: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(2, length, HIDDEN, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def run_apart(tmp_path):
    """A function that runs code in a folder in which the package of operators stands apart."""
    (tmp_path / "fewer_attention").symlink_to(FOLDER)
    return partial(run, tmp_path, "python", "-c", PYTHONPATH=str(tmp_path), OMP_NUM_THREADS="1")


def build_multihead_attention(layer, **layout) -> nn.MultiheadAttention:
    """PyTorch's own module with the projections of an operator."""
    twin = nn.MultiheadAttention(HIDDEN, HEADS, dtype=torch.float64, **layout)
    parts = layer.build_projections()
    with torch.no_grad():
        twin.in_proj_weight.copy_(torch.cat([weight for weight, _ in parts]))
        twin.in_proj_bias.copy_(torch.cat([bias for _, bias in parts]))
        twin.out_proj.load_state_dict(layer.output.state_dict())
    return twin


def assert_attends_as_pytorchs_own(layer, layout: dict, X, memory, masks: dict) -> None:
    ours, twin = AsMultiheadAttention(layer, **layout), build_multihead_attention(layer, **layout)
    for average in (True, False):
        found = ours(X, memory, memory, average_attn_weights=average, **masks)
        wanted = twin(X, memory, memory, average_attn_weights=average, **masks)
        torch.testing.assert_close(found, wanted)
    # without weights, the second result is None
    torch.testing.assert_close(ours(X, X, X, need_weights=False), twin(X, X, X, need_weights=False))


def test_a_layer_that_nobody_has_started_gives_nan():
    assert make_operator("shared", deviation=None)(torch.randn(2, 5, HIDDEN)).isnan().all()


# [n, batch, h], PyTorch's default, and [batch, n, h]
LAYOUTS = [{"batch_first": False}, {"batch_first": True}]
in_both_layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=str)
HIDDEN_KEYS = torch.arange(8) >= torch.tensor([[8], [5]])
ADDED_KEYS = torch.zeros(2, 8, dtype=torch.float64).masked_fill(HIDDEN_KEYS, -torch.inf)
HIDDEN_PAIRS = torch.ones(6, 8, dtype=torch.bool).triu(3)
HIDDEN_BY_HEAD = torch.arange(2 * HEADS * 48).reshape(2 * HEADS, 6, 8) % 5 == 0
MASKS = {
    "none": {},
    "key": {"key_padding_mask": HIDDEN_KEYS},
    "pair": {"key_padding_mask": HIDDEN_KEYS, "attn_mask": HIDDEN_PAIRS},
    "hidden by head": {"key_padding_mask": HIDDEN_KEYS, "attn_mask": HIDDEN_BY_HEAD},
    "added by head": {"attn_mask": torch.rand(2 * HEADS, 6, 8, dtype=torch.float64)},
    "added": {"key_padding_mask": ADDED_KEYS, "attn_mask": torch.rand(6, 8, dtype=torch.float64)},
    "causal": {"attn_mask": HIDDEN_PAIRS, "is_causal": True},
}


def draw_hidden_states(T: torch.Tensor, layout: dict) -> torch.Tensor:
    """Hidden states [batch, n, h] in the layout of nn.MultiheadAttention(..., **layout)."""
    return T if layout["batch_first"] else T.transpose(0, 1)


@in_both_layouts
@pytest.mark.parametrize("masks", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("operator", PROJECTED)
def test_a_layer_is_pytorchs_own_with_its_projections(operator, masks, layout):
    X, memory = draw_hidden_states(draw_sequence(6), layout), draw_hidden_states(draw_sequence(8, seed=2), layout)
    assert_attends_as_pytorchs_own(make_moved_operator(operator), layout, X, memory, masks)


@in_both_layouts
@pytest.mark.parametrize("masks", MASKS.values(), ids=MASKS)
def test_a_single_sequence_without_a_batch_is_attended_as_pytorchs_own_does(masks, layout):
    # the second sequence, whose keys are partly hidden
    single = {}
    for name, mask in masks.items():
        by_sequence = name == "key_padding_mask" or (name == "attn_mask" and mask.dim() == 3)
        single[name] = mask.unflatten(0, (2, -1))[1].squeeze(0) if by_sequence else mask
    X, memory = draw_sequence(6)[1], draw_sequence(8, seed=2)[1]
    assert_attends_as_pytorchs_own(make_moved_operator("shared"), layout, X, memory, single)


PADDING = torch.arange(6) >= torch.tensor([[6], [4]])
LATER = torch.ones(6, 6, dtype=torch.bool).triu(1)
BLOCK_MASKS = {
    "none": {},
    "key": {"src_key_padding_mask": PADDING},
    "pair": {"src_mask": LATER, "src_key_padding_mask": PADDING},
    "causal": {"src_mask": nn.Transformer.generate_square_subsequent_mask(6).double(), "is_causal": True},
    "added by head": {"src_mask": torch.rand(2 * HEADS, 6, 6, dtype=torch.float64)},
}
SMALL_BLOCK = {"dim_feedforward": 48, "dropout": 0.0, "dtype": torch.float64}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("norm_first", [False, True], ids=["norm last", "norm first"])
@in_both_layouts
@pytest.mark.parametrize("masks", BLOCK_MASKS.values(), ids=BLOCK_MASKS)
def test_a_layer_stands_in_an_encoder_of_pytorchs(masks, layout, norm_first, training):
    block = nn.TransformerEncoderLayer(HIDDEN, HEADS, **SMALL_BLOCK, norm_first=norm_first, **layout).train(training)
    layer = make_moved_operator("pairwise")
    block.self_attn = build_multihead_attention(layer, **layout)
    X = draw_hidden_states(draw_sequence(6), layout)
    wanted = draw_hidden_states(block(X, **masks), layout)
    block.self_attn = AsMultiheadAttention(layer, **layout)
    stack = nn.TransformerEncoder(block.train(training), 1)
    # in evaluation without gradients, PyTorch has a fused path around `forward`
    with torch.set_grad_enabled(training):
        found = block(X, **masks), stack(X, **{name.replace("src_mask", "mask"): T for name, T in masks.items()})
    for one in found:
        torch.testing.assert_close(draw_hidden_states(one, layout)[~PADDING], wanted[~PADDING])


# of the first argument, whose padding no token may see
STACK_MASKS = {
    nn.TransformerEncoder: {"src_key_padding_mask": PADDING},
    nn.TransformerDecoder: {"tgt_key_padding_mask": PADDING},
    nn.Transformer: {"src_key_padding_mask": PADDING, "memory_key_padding_mask": PADDING},
}


def build_stack(kind, **layout) -> nn.Module:
    if kind is nn.Transformer:
        return kind(HIDDEN, HEADS, 2, 2, **SMALL_BLOCK, **layout)
    block = nn.TransformerEncoderLayer if kind is nn.TransformerEncoder else nn.TransformerDecoderLayer
    return kind(block(HIDDEN, HEADS, **SMALL_BLOCK, **layout), 2)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@in_both_layouts
@pytest.mark.parametrize("kind", STACK_MASKS)
@for_every_operator
def test_replaced_layers_of_a_stack_evaluate_as_they_train_and_see_no_padding(operator, kind, layout):
    stack = build_stack(kind, **layout).eval()
    replaced = replace_attention(stack, operator, positions=9)
    assert len(replaced) == {nn.TransformerEncoder: 2, nn.TransformerDecoder: 4, nn.Transformer: 6}[kind]
    assert not any(isinstance(part, nn.MultiheadAttention) for part in stack.modules())
    weights = [stack.get_submodule(name).attention.output.weight for name in replaced]
    assert not any(torch.equal(weights[0], other) for other in weights[1:])
    memory = [] if kind is nn.TransformerEncoder else [draw_hidden_states(draw_sequence(6, seed=2), layout)]

    @torch.no_grad()
    def run(X):
        return draw_hidden_states(stack(draw_hidden_states(X, layout), *memory, **STACK_MASKS[kind]), layout)

    X = draw_sequence(6)
    before = run(X)
    torch.testing.assert_close(run(torch.where(PADDING[..., None], X + 1, X))[~PADDING], before[~PADDING])
    other = X.clone()
    other[1] += 1
    torch.testing.assert_close(run(other)[0], before[0])
    stack.train()
    torch.testing.assert_close(run(X)[~PADDING], before[~PADDING])


def test_a_replaced_layer_keeps_its_settings_and_a_layer_in_two_places_stays_a_single_layer():
    layer = nn.MultiheadAttention(HIDDEN, HEADS, dropout=0.3, dtype=torch.float16, device="meta").eval()
    module = nn.ModuleDict({"first": layer, "second": nn.Sequential(layer)})
    assert replace_attention(module, "shared") == {"first": layer, "second.0": layer}
    ours = module["first"]
    assert module["second"][0] is ours and not ours.training
    assert (ours.attention.rate, ours.attention.heads, ours.batch_first) == (0.3, HEADS, False)
    assert {(parameter.dtype, parameter.device.type) for parameter in ours.parameters()} == {(torch.float16, "meta")}


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Linear(2, 2), "expected a module that holds nn.MultiheadAttention, given Linear"),
        (nn.MultiheadAttention(8, 2), "expected a module that holds nn.MultiheadAttention, given MultiheadAttention"),
        (nn.Sequential(nn.MultiheadAttention(8, 2, kdim=6)), "0: keys or values of another width, or added keys"),
        (nn.Sequential(nn.MultiheadAttention(8, 2, add_bias_kv=True)), "0: keys or values of another width"),
        (nn.Sequential(nn.MultiheadAttention(8, 2, add_zero_attn=True)), "0: keys or values of another width"),
        (nn.Sequential(type("Own", (nn.MultiheadAttention,), {})(8, 2)), "0: a Own with its own code or with hooks"),
    ],
)
def test_a_module_whose_attention_cannot_be_replaced_is_a_clear_error(module, message):
    with pytest.raises(ValueError, match=message):
        replace_attention(module, "pairwise")


def test_an_error_leaves_a_module_with_hooks_unchanged():
    module = nn.Sequential(nn.MultiheadAttention(8, 2), nn.MultiheadAttention(8, 2))
    module[1].register_forward_hook(lambda *arguments: None)
    with pytest.raises(ValueError, match="1: a MultiheadAttention with its own code or with hooks"):
        replace_attention(module, "pairwise")
    assert isinstance(module[0], nn.MultiheadAttention)


def test_a_layer_refuses_another_layout_and_evaluates_in_an_encoder_that_was_built_for_nested_tensors():
    stack = build_stack(nn.TransformerEncoder, batch_first=True).eval()
    with pytest.raises(ValueError, match="batch_first False: the replaced layer has batch_first=True"):
        AsMultiheadAttention(make_operator("shared"), False, stack.layers[0].self_attn)
    for block in stack.layers.children():
        block.self_attn = AsMultiheadAttention(make_operator("shared").double(), True, block.self_attn)
    assert stack.use_nested_tensor
    with torch.no_grad():
        found = stack(draw_sequence(6), src_key_padding_mask=PADDING)
    stack.use_nested_tensor = False
    torch.testing.assert_close(found, stack(draw_sequence(6), src_key_padding_mask=PADDING))


@for_every_operator
def test_a_causal_layer_sees_no_later_token(operator):
    layer, X = make_moved_operator(operator), draw_sequence(6)
    changed = X.clone()
    changed[:, 4:] += 1
    seen = torch.ones(2, 1, 1, 6, dtype=torch.bool)
    for mask in (None, seen, seen.double()):
        before = layer(X, mask, causal=True)[:, :4]
        after = layer(changed, mask, causal=True)[:, :4]
        assert_nearly_equal(before, after)
    assert not layer.compute_weights(X, causal=True).triu(1).any()


@for_every_operator
def test_a_memory_gives_keys_and_values_and_every_query_attends_by_itself(operator):
    layer = make_moved_operator(operator)
    X, memory = draw_sequence(5), draw_sequence(8, seed=2)
    assert_nearly_equal(layer(X, memory=X), layer(X))
    changed = X.clone()
    changed[:, 4] += 1
    before, after = layer(X, memory=memory), layer(changed, memory=memory)
    assert_nearly_equal(before[:, :4], after[:, :4])
    assert operator == "fixed" or not torch.allclose(before[:, 4], after[:, 4])
    seen = (torch.arange(8) < 6)[None, None, None]
    assert_nearly_equal(layer(X, seen, memory), layer(X, None, memory[:, :6]))


@for_every_operator
def test_a_layer_compiles_whole_trains_in_lower_precision_and_keeps_its_state(operator):
    # A process compiles no more than eight kinds of layer.
    torch.compiler.reset()
    layer, X = make_operator(operator, dropout=0.1), torch.randn(2, 9, HIDDEN)
    compiled = torch.compile(layer.eval(), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(X), layer(X))
    layer.train()
    torch.compile(layer, backend="aot_eager", fullgraph=True)(X).sum().backward()
    with torch.autocast("cpu", torch.bfloat16):
        out = layer(X)
    assert out.dtype == torch.bfloat16
    out.float().sum().backward()
    for parameter in layer.parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all()
    twin = make_operator(operator, start=layer.starts[-1])
    twin.load_state_dict(layer.state_dict())
    assert torch.equal(twin(X), layer.eval()(X))


def test_the_state_has_the_names_of_the_papers():
    state = make_operator("shared").state_dict()
    assert set(state) == {"D_q", "D_k", "D_v", "shared.weight", "shared.bias", "output.weight", "output.bias"}


X = torch.zeros(2, 5, HIDDEN)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": X[0]}, r"hidden states of shape \(5, 24\); expected .*batch first"),
        ({"X": X, "memory": X[:1]}, r"memory of shape \(1, 5, 24\)"),
        ({"X": X, "memory": X, "causal": True}, "causal: keys of a memory"),
        ({"X": X, "mask": torch.ones(2, 5).bool()}, r"into mask\[:, None, None\]"),
        ({"X": X, "mask": torch.ones(2, 1, 1, 6).bool()}, r"expected \[2, 4, 5, 5\]"),
        ({"X": X, "mask": torch.ones(2, 1, 1, 5).long()}, "mask of torch.int64"),
    ],
)
def test_an_input_that_does_not_fit_is_a_clear_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_operator("pairwise")(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"value": draw_sequence(5)}, "key and value: expected the same tensor"),
        ({"key_padding_mask": PADDING}, r"key_padding_mask of shape \(2, 6\).* \(6, 2\) with batch_first=False"),
        ({"attn_mask": LATER}, r"attn_mask of shape \(6, 6\).* \(2, 2\) or \(24, 2, 2\) with batch_first=False"),
        ({"key_padding_mask": PADDING.T.long()}, "type torch.int64; .*torch.bool, True where a key is not seen"),
    ],
)  # fmt: skip
def test_an_argument_that_nn_multihead_attention_does_not_take_is_a_clear_error(arguments, message):
    X = draw_sequence(6)
    with pytest.raises(ValueError, match=message):
        AsMultiheadAttention(make_operator("shared").double(), False)(**{"query": X, "key": X, "value": X} | arguments)


PREPARED = """
import torch
from torch import nn
X = Z = torch.randn(2, 5, 768)
mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
input_ids = labels = torch.arange(10).reshape(2, 5)
"""
CHECKED = """
assert encoder(X).shape == Y.shape == X.shape and len(replaced) == 2
torch.testing.assert_close(stock.eval()(input_ids).logits, model.eval()(input_ids).logits, atol=1e-4, rtol=1e-4)
"""


def test_the_code_of_the_page_runs_and_exports_a_stock_bert_with_equal_logits(run_apart, tmp_path):
    page = (FOLDER / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    if not find_spec("peft"):
        blocks = [block for block in blocks if "peft" not in block]
    code = "\n".join(blocks).replace('"layers": 12', '"layers": 1')
    # The page loads a model of the pipeline: here the model of the page itself.
    saved = f'model.save_pretrained("{tmp_path}")\nmodel = AutoModelForMaskedLM.from_pretrained("{tmp_path}")'
    code = re.sub(r"model = AutoModelForMaskedLM.*", saved, code)
    assert "AutoModelForMaskedLM.from_pretrained" in code and "convert_to_stock_bert(model)" in code
    run_apart(PREPARED + code + CHECKED)


LOAD = """
import sys
from transformers import AutoConfig, AutoModel, AutoModelForMultipleChoice, AutoModelForQuestionAnswering
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification
assert type(AutoConfig.from_pretrained(sys.argv[1])).__name__ == "OperatorConfig"
heads = AutoModelForMaskedLM, AutoModelForQuestionAnswering, AutoModelForSequenceClassification
for kind in (AutoModel, *heads, AutoModelForTokenClassification, AutoModelForMultipleChoice):
    model = kind.from_pretrained(sys.argv[1])
    head = kind.__name__.removeprefix("AutoModel") or "Model"
    assert type(model).__name__ == "OperatorBert" + head
    assert model.base_model.encoder.layer[0].attention.self.name == "pairwise"
"""
IMPORTS = {
    "the package last": "from transformers import AutoModelForMaskedLM; import fewer_attention",
    "under two names": "import stages.attention.bert, fewer_attention; from transformers import AutoModelForMaskedLM",
}


@pytest.mark.parametrize("imports", IMPORTS.values(), ids=IMPORTS)
def test_an_import_of_the_package_makes_saved_models_known_to_the_auto_classes(imports, run_apart, tmp_path):
    folder = tmp_path / "model"
    size = {"layers": 1, "hidden": HIDDEN, "heads": HEADS, "intermediate": 48, "positions": 9}
    OperatorBertForMaskedLM(make_configuration("pairwise", **size, vocab_size=50)).save_pretrained(folder)
    (tmp_path / "stages").symlink_to(FOLDER.parent)
    run_apart(imports + LOAD, str(folder))


def test_an_import_of_the_package_needs_no_transformers(run_apart):
    run_apart("import sys; sys.modules['transformers'] = None; import fewer_attention")


def test_an_import_of_the_package_imports_no_model_and_the_example_in_the_docstring_is_true(run_apart):
    code = "import doctest, sys, fewer_attention as f"
    code += "; assert not {'fewer_attention.bert', 'transformers.models.bert.modeling_bert'} & {*sys.modules}"
    code += "; r = doctest.testmod(f); assert r.attempted > 5 and not r.failed"
    run_apart(code)
