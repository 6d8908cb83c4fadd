"""Every operator against a slow float64 reference written from its equation, and against stock BERT."""

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from stages.attention.bert import OperatorBertForMaskedLM, configuration
from stages.attention.counts import attention_parameters, counted_attention_parameters, masked_lm_parameters
from stages.attention.operators import OPERATORS

SMALL = {"layers": 4, "hidden": 512, "heads": 8, "intermediate": 2048, "positions": 512}
BASE = {"layers": 12, "hidden": 768, "heads": 12, "intermediate": 3072, "positions": 512}
TOY = {"layers": 2, "hidden": 24, "heads": 3, "intermediate": 32, "positions": 16, "vocab_size": 50}


def linear(X, layer):
    return X @ layer.weight.T + layer.bias


def reference(operator: str, module, X: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """One sequence X [n, h] and one head at a time, as the papers' equations read. seen [n]: keys that count."""
    n, h = X.shape
    d = h // module.heads
    context = torch.zeros(n, h, dtype=X.dtype)
    for i in range(module.heads):
        head = slice(i * d, (i + 1) * d)
        match operator:
            case "original":
                scores = linear(X, module.query)[:, head] @ linear(X, module.key)[:, head].T
                V = linear(X, module.value)[:, head]
            case "symmetric":
                scores = linear(X, module.query)[:, head] @ linear(X, module.query)[:, head].T
                V = linear(X, module.value)[:, head]
            case "pairwise":
                Q = linear(X, module.query)[:, head]
                scores = Q @ module.S[i] @ Q.T
                V = linear(X, module.value)[:, head]
            case "shared":
                S = linear(X, module.shared)
                scores = (S @ torch.diag(module.D_q))[:, head] @ (S @ torch.diag(module.D_k))[:, head].T
                V = (S @ torch.diag(module.D_v))[:, head]
        scores = (scores / d**0.5).masked_fill(~seen, float("-inf"))
        context[:, head] = torch.softmax(scores, dim=-1) @ V
    return context


def module_of(operator: str, hidden=24, heads=3, dropout=0.0):
    torch.manual_seed(5)
    module = OPERATORS[operator](hidden, heads, dropout).double()
    with torch.no_grad():  # diagonals start at one, where their product's gradient could hide a mistake
        for parameter in module.parameters():
            parameter.normal_()
    return module


@pytest.mark.parametrize("padding", [0, 3], ids=["whole", "padded"])
@pytest.mark.parametrize("heads", [1, 3, 6])
@pytest.mark.parametrize("operator", OPERATORS)
def test_output_and_all_gradients_equal_the_definition(operator, heads, padding):
    module = module_of(operator, heads=heads)
    X = torch.randn(2, 7, 24, dtype=torch.float64, requires_grad=True)
    seen = torch.ones(2, 7, dtype=torch.bool)
    seen[1, 7 - padding :] = False
    probe = torch.randn(2, 7, 24, dtype=torch.float64)
    output, _ = module(X, seen[:, None, None, :])
    expected = torch.stack([reference(operator, module, x, mask) for x, mask in zip(X, seen, strict=True)])
    torch.testing.assert_close(output, expected, rtol=1e-10, atol=1e-10)
    inputs = [X, *module.parameters()]
    got = torch.autograd.grad((output * probe).sum(), inputs)
    wanted = torch.autograd.grad((expected * probe).sum(), inputs)
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("operator", OPERATORS)
def test_masked_keys_never_influence_an_output(operator):
    module = module_of(operator)
    X = torch.randn(1, 6, 24, dtype=torch.float64)
    seen = torch.tensor([True, True, True, True, False, False])
    other = X.clone()
    other[0, 4:] = 100.0
    one, two = (module(T, seen[None, None, None, :])[0][0, :4] for T in (X, other))
    torch.testing.assert_close(one, two, rtol=0, atol=0)


@pytest.mark.parametrize("operator", ["symmetric", "shared"])
def test_scores_of_symmetric_and_shared_are_symmetric_in_the_two_tokens(operator):
    module = module_of(operator)
    Q, K, _ = module.queries_keys_values(torch.randn(1, 6, 24, dtype=torch.float64))
    scores = Q @ K.transpose(1, 2)
    torch.testing.assert_close(scores, scores.transpose(1, 2))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("size", [SMALL, BASE], ids=["small", "base"])
def test_attention_parameters_by_formula_equal_those_of_the_module(operator, size):
    formula = attention_parameters(operator, size["hidden"], size["heads"])
    assert formula == counted_attention_parameters(operator, size["hidden"], size["heads"])


@pytest.mark.parametrize(
    ("operator", "size", "published"),
    [
        ("original", BASE, 109_514_298),  # Courtois et al. 2024, Table 2
        ("symmetric", BASE, 102_427_194),
        ("pairwise", BASE, 103_017_018),
        ("original", SMALL, 28_795_194),
        ("symmetric", SMALL, 27_744_570),
        ("pairwise", SMALL, 27_875_642),
        ("shared", BASE, 95_337_218 + 30_520),  # Kowsher et al., Table 4, is a two-label classifier's count
    ],
)
def test_masked_lm_parameters_equal_the_published_counts(operator, size, published):
    assert masked_lm_parameters(operator, **size) == published


def test_original_is_stock_bert():
    torch.manual_seed(0)
    stock = BertForMaskedLM(BertConfig(**configuration("original", **TOY).to_dict())).eval()
    ours = OperatorBertForMaskedLM(configuration("original", **TOY)).eval()
    ours.load_state_dict(stock.state_dict())
    ids = torch.randint(50, (2, 9))
    mask = torch.ones(2, 9, dtype=torch.int64)
    mask[1, 5:] = 0
    torch.testing.assert_close(
        ours(ids, attention_mask=mask).logits, stock(ids, attention_mask=mask).logits, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_saved_model_loads_with_equal_logits(operator, tmp_path):
    model = OperatorBertForMaskedLM(configuration(operator, **TOY)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    model.save_pretrained(tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".safetensors"}
    ids = torch.randint(50, (1, 9))
    loaded = OperatorBertForMaskedLM.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(loaded(ids).logits, model(ids).logits, rtol=0, atol=0)


def test_operators_start_as_their_sources_say():
    torch.manual_seed(0)
    pairwise = OperatorBertForMaskedLM(configuration("pairwise", **SMALL, vocab_size=50))
    attention = pairwise.bert.encoder.layer[0].attention.self
    assert attention.S.std().item() == pytest.approx(1.0, abs=0.02)
    assert attention.query.weight.std().item() == pytest.approx(0.02, abs=0.001)
    assert not attention.query.bias.any()
    shared = OperatorBertForMaskedLM(configuration("shared", **SMALL, vocab_size=50))
    assert (shared.bert.encoder.layer[0].attention.self.D_q == 1).all()


@pytest.mark.parametrize("operator", OPERATORS)
def test_heads_that_do_not_divide_the_width_are_an_error(operator):
    with pytest.raises(ValueError, match="5 heads do not divide the hidden size 24"):
        OPERATORS[operator](24, 5, 0.1)


def test_an_unknown_operator_is_an_error_that_names_the_known_ones():
    with pytest.raises(ValueError, match=r"'sharde'.*original, symmetric, pairwise, shared"):
        OperatorBertForMaskedLM(configuration("sharde", **TOY))
