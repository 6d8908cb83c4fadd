"""BERTs with an operator in the hands of other libraries, beside stock BERT."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from transformers import BertConfig, BertForSequenceClassification

from stages.attention.bert import OperatorBertForSequenceClassification
from stages.attention.configuration import make_configuration
from stages.attention.export import convert_to_stock_bert
from stages.files.model_folders import complete_folder
from tests.toy import write_word_tokenizer
from tests.toy_weights import move_parameters

pytestmark = pytest.mark.nightly
SIZE = {"layers": 2, "hidden": 32, "heads": 4, "intermediate": 96, "positions": 16}
OPERATORS = ["original", "symmetric", "pairwise", "shared", "partial_qk", "hadamard", "over_parameters"]
every_model = pytest.mark.parametrize("operator", ["stock", *OPERATORS])


def build(operator: str):
    """A classifier in evaluation mode with random weights; `stock` is Hugging Face's."""
    torch.manual_seed(0)
    config = make_configuration("original" if operator == "stock" else operator, **SIZE, vocab_size=50)
    if operator == "stock":
        model = BertForSequenceClassification(BertConfig(**config.to_dict()))
    else:
        model = OperatorBertForSequenceClassification(config)
    return move_parameters(model.eval(), 0.1)


def make_inputs(batch: int = 3, length: int = 9) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(50, (batch, length), generator=generator)
    return {"input_ids": ids, "attention_mask": (torch.arange(length) < 9 - torch.arange(batch)[:, None]).long()}


def compute_logits(model, **inputs):
    with torch.no_grad():
        return model(**(inputs or make_inputs())).logits


def list_linear_layers(model):
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear)}


def assert_close(found, wanted, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(found, wanted, rtol=0, atol=tolerance)


@pytest.mark.parametrize("targets", [["query", "value", "shared"], ["dense"], "all-linear"], ids=str)
@every_model
def test_every_adapter_trains_acts_and_merges(operator, targets):
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(build(operator), peft.LoraConfig(target_modules=targets, task_type="SEQ_CLS"))
    adapters = {name: value for name, value in model.named_parameters() if "lora_B" in name}
    before = compute_logits(model)
    optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.05)
    for _ in range(2):
        optimiser.zero_grad()
        model(**make_inputs(), labels=torch.tensor([0, 1, 1])).loss.backward()
        for name, value in adapters.items():
            assert value.grad is not None and value.grad.any(), name
        optimiser.step()
    trained = compute_logits(model)
    assert (trained - before).abs().max() > 0.01
    if operator != "stock":
        with pytest.raises(ValueError, match="merge adapters"):
            convert_to_stock_bert(model.get_base_model())
        with pytest.raises(TypeError, match=r"a PeftModel returns the model from merge_and_unload\(\)"):
            convert_to_stock_bert(model)
    assert_close(compute_logits(model.merge_and_unload()), trained)


@every_model
def test_an_offloaded_model_has_equal_logits(operator, tmp_path):
    accelerate = pytest.importorskip("accelerate")
    model = build(operator)
    wanted = compute_logits(model)
    model.save_pretrained(tmp_path / "saved")
    assert_close(compute_logits(accelerate.cpu_offload(copy.deepcopy(model), torch.device("cpu"))), wanted)
    loaded = type(model).from_pretrained(
        tmp_path / "saved",
        attn_implementation="eager",
        device_map={"": "disk"},
        offload_folder=tmp_path / "offloaded",
    )
    assert_close(compute_logits(loaded, **make_inputs(), output_attentions=True), wanted)


# PyTorch calls the function deprecated
@pytest.mark.filterwarnings("ignore")
@every_model
def test_a_quantised_model_has_nearly_equal_logits(operator):
    model = build(operator)
    wanted = compute_logits(model)
    quantised = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    assert not list_linear_layers(quantised)
    difference = (compute_logits(quantised) - wanted).abs().max()
    assert 0 < difference < 0.02


@every_model
def test_pruned_weights_follow_the_trained_weights(operator):
    model = build(operator)
    layers = list_linear_layers(model)
    for layer in layers.values():
        prune.l1_unstructured(layer, "weight", 0.5)
    before = compute_logits(model)
    for layer in layers.values():
        with torch.no_grad():
            layer.weight_orig.mul_(1.5)
        assert (compute_logits(model) - before).abs().max() > 1e-5
        with torch.no_grad():
            layer.weight_orig.div_(1.5)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@every_model
def test_hooks_of_every_linear_layer_fire(operator, device):
    # tensors on the meta device take the branch of a GPU
    model = build(operator).to(device)
    fired = set()
    layers = list_linear_layers(model)
    for name, layer in layers.items():
        layer.register_forward_hook(lambda *_, name=name: fired.add(name))
    model(make_inputs()["input_ids"].to(device))
    assert fired == set(layers)


@every_model
def test_an_exported_program_takes_other_batches_and_lengths(operator):
    # a program for all lengths up to `positions` would have to tell the whole of W from a part
    longest = 15 if operator == "hadamard" else 16
    model, sizes = build(operator), {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=longest)}
    inputs = make_inputs()
    program = torch.export.export(model, (), inputs, dynamic_shapes=dict.fromkeys(inputs, sizes))
    for batch, length in ((3, 9), (5, 12), (2, longest)):
        inputs = make_inputs(batch, length)
        assert_close(program.module()(**inputs).logits, compute_logits(model, **inputs))


@every_model
def test_recomputed_activations_give_equal_gradients(operator):
    gradients = []
    for recompute in (False, True):
        model = build(operator).train()
        if recompute:
            model.gradient_checkpointing_enable()
        calls = []
        for layer in model.bert.encoder.layer:
            layer.attention.register_forward_hook(lambda *_, calls=calls: calls.append(1))
        torch.manual_seed(2)
        model(**make_inputs(), labels=torch.tensor([0, 1, 1])).loss.backward()
        assert len(calls) == (4 if recompute else 2)
        gradients.append([parameter.grad for parameter in model.parameters()])
    torch.testing.assert_close(*gradients)


@every_model
def test_a_copy_shares_nothing_and_half_precision_is_near(operator):
    model = build(operator)
    wanted = compute_logits(model)
    move_parameters(copy.deepcopy(model), 1.0)
    assert torch.equal(compute_logits(model), wanted)
    assert_close(compute_logits(model.half()).float(), wanted, 0.02)


@pytest.mark.parametrize("operator", OPERATORS)
def test_sentence_transformers_embeds_by_a_saved_model(operator, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    classifier = build(operator)
    classifier.save_pretrained(tmp_path)
    complete_folder(tmp_path, write_word_tokenizer(tmp_path / "words" / "tokenizer.json"), 16, "")
    found = library.SentenceTransformer(str(tmp_path)).encode(["w7 w8 w9"], convert_to_tensor=True)
    with torch.no_grad():
        hidden = classifier.bert(torch.tensor([[2, 7, 8, 9, 3]])).last_hidden_state
    assert_close(found, hidden.mean(1))
