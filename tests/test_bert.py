"""BERT with an operator: counts, saving and loading, export to a stock BERT."""

import math

import pytest
import torch
from transformers import AutoModelForMaskedLM, BertConfig, BertForMaskedLM, BertForMultipleChoice, DynamicCache

from stages.attention.bert import OperatorBertForMaskedLM, OperatorBertForSequenceClassification
from stages.attention.configuration import make_configuration
from stages.attention.counts import count_layer, count_model_parameters
from stages.attention.export import STOCK, convert_to_stock_bert
from stages.attention.operators import OPERATORS
from tests.toy_weights import move_parameters

SMALL = {"layers": 4, "hidden": 512, "heads": 8, "intermediate": 2048, "positions": 512}
BASE = {"layers": 12, "hidden": 768, "heads": 12, "intermediate": 3072, "positions": 512}
TOY = {"layers": 2, "hidden": 24, "heads": 3, "intermediate": 96, "positions": 16}
EXPRESSIBLE = [name for name, kind in OPERATORS.items() if kind.exportable]
for_every_operator = pytest.mark.parametrize("operator", OPERATORS)
for_every_model = pytest.mark.parametrize("model", STOCK)


def build_toy(operator, model=OperatorBertForMaskedLM, **settings):
    torch.manual_seed(0)
    config = make_configuration(operator, **TOY, vocab_size=50, **settings)
    return move_parameters(model(config).eval(), 0.2)


def compute_outputs(model, **others):
    torch.manual_seed(1)
    ids = torch.randint(50, (3, 9))
    seen = torch.ones(3, 9, dtype=torch.int64)
    seen[1, 5:] = 0
    types = (torch.arange(9) > 4).long().expand(3, 9)
    inputs = {"input_ids": ids, "attention_mask": seen, "token_type_ids": types}
    if isinstance(model, BertForMultipleChoice):
        # a single choice
        inputs = {name: value[:, None] for name, value in inputs.items()}
    with torch.no_grad():
        result = model(**inputs, **others)
    return [result[name] for name in sorted(result)]


def assert_equal_outputs(model, other, within: float, **asked):
    torch.testing.assert_close(compute_outputs(model, **asked), compute_outputs(other, **asked), rtol=0, atol=within)


@pytest.mark.parametrize("size", [SMALL, TOY], ids=["small", "toy"])
@for_every_operator
def test_parameters_of_a_layer_by_formula_equal_those_counted(operator, size):
    kind, hidden, counted = OPERATORS[operator], size["hidden"], count_layer(operator, size)
    shapes = kind.list_parameter_shapes(hidden, size["heads"], size["positions"]).values()
    weights = len(kind.linear_layers) * hidden**2 + sum(map(math.prod, shapes))
    assert counted["attention_weights"] == weights
    assert counted["attention_parameters"] == weights + len(kind.linear_layers) * hidden
    feed_forward = sum(kind.count_feed_forward_weights(hidden, size["intermediate"]))
    assert counted["feed_forward_parameters"] == feed_forward
    block = counted["attention_block_parameters"]
    assert counted["layer_parameters"] == block + feed_forward + 4 * hidden


@pytest.mark.parametrize(
    ("kind", "operator", "size", "published"),
    [
        ("masked_lm_parameters", "original", BASE, 109_514_298),  # Courtois et al. 2024, Table 2
        ("masked_lm_parameters", "symmetric", BASE, 102_427_194),
        ("masked_lm_parameters", "pairwise", BASE, 103_017_018),
        ("masked_lm_parameters", "original", SMALL, 28_795_194),
        ("masked_lm_parameters", "symmetric", SMALL, 27_744_570),
        ("masked_lm_parameters", "pairwise", SMALL, 27_875_642),
        ("classifier_parameters", "shared", BASE, 95_337_218),  # Kowsher et al., Table 4: a classifier's count
        ("masked_lm_parameters", "shared", BASE, 95_367_738),  # the same model, counted as the rows above are
    ],
)
def test_models_have_the_published_numbers_of_parameters(kind, operator, size, published):
    assert count_model_parameters(kind, operator, size) == published


@pytest.mark.parametrize("size", [SMALL, BASE], ids=["small", "base"])
def test_the_narrow_control_has_the_shared_operators_parameters_to_one_a_layer(size):
    narrow = count_model_parameters("masked_lm_parameters", "original_narrow", size)
    shared = count_model_parameters("masked_lm_parameters", "shared", size)
    assert narrow - shared == size["layers"]


@for_every_model
def test_stock_weights_load_into_original_with_equal_outputs(model, tmp_path):
    torch.manual_seed(0)
    stock = STOCK[model](BertConfig(**make_configuration("original", **TOY, vocab_size=50).to_dict())).eval()
    stock.save_pretrained(tmp_path)
    ours = model.from_pretrained(tmp_path).eval()
    assert_equal_outputs(ours, stock, 1e-5)


def test_what_a_stock_checkpoint_lacks_starts_as_in_a_new_model(tmp_path):
    BertForMaskedLM(BertConfig(**make_configuration("original", **SMALL, vocab_size=50).to_dict())).save_pretrained(
        tmp_path
    )
    stock = BertForMaskedLM.from_pretrained(tmp_path)
    ours = OperatorBertForMaskedLM.from_pretrained(tmp_path, operator="pairwise")
    one, other = (model.bert.encoder.layer[3].attention.self for model in (ours, stock))
    assert torch.equal(one.query.weight, other.query.weight)
    assert one.S.std().item() == pytest.approx(1.0, rel=0.02)


@for_every_model
@pytest.mark.parametrize("operator", EXPRESSIBLE)
def test_an_exported_model_is_stock_bert_with_equal_outputs(operator, model, tmp_path):
    ours = build_toy(operator, model)
    convert_to_stock_bert(ours).save_pretrained(tmp_path)
    stock = STOCK[model].from_pretrained(tmp_path).eval()
    assert type(stock) is STOCK[model] and type(stock.config) is BertConfig
    assert_equal_outputs(stock, ours, 1e-5)


CHANGES = {
    "hook": lambda layer: layer.output.dense.register_forward_hook(lambda layer, X, Y: 2 * Y),
    "forward": lambda layer: setattr(layer.output.dense, "forward", torch.zeros_like),
    "activation": lambda layer: setattr(layer.intermediate, "intermediate_act_fn", torch.nn.ReLU()),
    "norm": lambda layer: setattr(layer.output, "LayerNorm", torch.nn.RMSNorm(24)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_model_with_a_changed_part_is_not_exported(change):
    model = build_toy("shared")
    change(model.bert.encoder.layer[1])
    with pytest.raises(ValueError, match=r"bert.encoder.layer.1.\w+.\w+: a \w+ with other code, hooks or parameters"):
        convert_to_stock_bert(model)


def test_keys_and_values_of_earlier_tokens_are_refused():
    cache = DynamicCache()
    cache.update(torch.zeros(2, 3, 4, 8), torch.zeros(2, 3, 4, 8), 0)
    with pytest.raises(ValueError, match="past_key_values: .*use LoRA in place of prefix tuning"):
        build_toy("shared")(torch.ones(2, 5, dtype=torch.long), past_key_values=cache)


@pytest.mark.parametrize("operator", sorted({*OPERATORS} - {*EXPRESSIBLE}))
def test_what_bert_cannot_express_is_not_exported(operator):
    with pytest.raises(ValueError, match=f"{operator}: .*; BERT cannot express it"):
        convert_to_stock_bert(build_toy(operator))


def test_a_self_score_is_not_exported():
    with pytest.raises(ValueError, match="symmetric: self_score -1.8; BERT adds nothing"):
        convert_to_stock_bert(build_toy("symmetric", self_score=-1.8))


@for_every_model
def test_a_configuration_without_an_operator_is_a_clear_error(model):
    with pytest.raises(
        TypeError, match="given a BertConfig, which names no operator; `make_configuration` makes a config"
    ):
        model(BertConfig(num_hidden_layers=1, vocab_size=50))


def test_a_decoder_which_would_see_future_tokens_is_refused():
    with pytest.raises(ValueError, match=r"config\.is_decoder: given True; an operator's BERT is an encoder"):
        build_toy("symmetric", is_decoder=True)


@for_every_operator
def test_a_saved_model_and_its_encoder_load_with_equal_weights_from_safetensors(operator, tmp_path):
    model = build_toy(operator)
    model.save_pretrained(tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".safetensors"}
    loaded = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    assert type(loaded) is OperatorBertForMaskedLM
    assert_equal_outputs(loaded, model, 0)
    classifier = OperatorBertForSequenceClassification.from_pretrained(tmp_path, num_labels=3)
    taken_over = classifier.bert.state_dict()
    for name, tensor in model.bert.state_dict().items():
        assert torch.equal(taken_over[name], tensor)


@pytest.mark.parametrize(
    ("operator", "settings"),
    [
        ("original", {"variant": "hot", "start": "tied", "score_spread": 2.4}),
        ("symmetric", {"self_score": -1.8}),
    ],
)
def test_a_saved_variant_loads_with_its_settings_and_its_trained_weights(operator, settings, tmp_path):
    # `moved` stands for training: no two projections are tied any longer.
    model = build_toy(operator, **settings)
    model.save_pretrained(tmp_path)
    loaded = OperatorBertForMaskedLM.from_pretrained(tmp_path).eval()
    assert {name: getattr(loaded.config, name) for name in settings} == settings
    assert_equal_outputs(loaded, model, 0)


@for_every_operator
def test_a_new_model_starts_finite_and_as_bert_does(operator):
    torch.manual_seed(0)
    model = OperatorBertForMaskedLM(make_configuration(operator, **SMALL | {"layers": 1}, vocab_size=50))
    linear = [module for module in model.bert.modules() if isinstance(module, torch.nn.Linear)]
    for layer in linear:
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.05)
        assert not layer.bias.any()
    for output in compute_outputs(model):
        assert torch.isfinite(output).all()


@pytest.mark.parametrize("operator", EXPRESSIBLE)
def test_the_attention_weights_are_those_of_the_exported_bert(operator):
    ours = build_toy(operator)
    stock = convert_to_stock_bert(ours)
    stock.set_attn_implementation("eager")
    both = {"output_attentions": True, "output_hidden_states": True}
    assert_equal_outputs(ours, stock, 1e-5, **both)


def test_attention_over_parameters_needs_a_network_wide_enough():
    with pytest.raises(ValueError, match="`intermediate` must be 50 or more"):
        OperatorBertForMaskedLM(make_configuration("over_parameters_wide", **TOY | {"intermediate": 48}))
