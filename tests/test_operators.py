"""Every operator against a slow float64 reference from the equation, and against known properties."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from stages.attention import counts
from stages.attention.base import SelfAttention
from stages.attention.bert import OperatorBertForMaskedLM
from stages.attention.configuration import make_configuration
from stages.attention.operators import OPERATORS, SELF_ATTENTION, build_attention, find_operator_class
from stages.attention.over_parameters import AttentionOverParameters
from stages.parameters import stage as parameters
from stages.schema.operators import describe_operators
from stages.schema.settings import Settings
from stages.settings.stage import require_own_operators
from tests.places import ROOT
from tests.processes import run
from tests.toy import OWN, write_own_operator
from tests.toy_settings import edit_laptop
from tests.toy_weights import move_parameters

POSITIONAL = ["hadamard", "hadamard_by_head", "fixed"]
for_every_operator = pytest.mark.parametrize("operator", SELF_ATTENTION)


def make_operator(operator: str, hidden=24, heads=3, positions=7, **others) -> SelfAttention:
    """Without an output projection, so that the module gives the values of the equations."""
    torch.manual_seed(0)
    return build_attention(operator, hidden, heads, positions=positions, output=False, **others)


def build_operator(operator: str, hidden=24, heads=3, positions=7, seed=5) -> Any:
    """Float64, every parameter drawn from N(0, 1): a start of ones or zeros could hide a mistake."""
    generator = torch.Generator().manual_seed(seed)
    module = make_operator(operator, hidden, heads, positions).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(generator=generator)
    return module


def draw_inputs(batch=1, n=5, hidden=24) -> torch.Tensor:
    return torch.randn(batch, n, hidden, dtype=torch.float64)


def apply_linear(X, layer):
    return X @ layer.weight.T + layer.bias


def compute_scores_and_values(operator: str, m, X, i: int) -> Any:  # noqa: C901, PLR0911  # one equation per operator
    """Scores before the mask and values of head i, for one sequence X [n, h], as the sources print them."""
    n, d = len(X), m.width
    head = slice(i * d, (i + 1) * d)
    root = d**0.5
    whole = {name: apply_linear(X, getattr(m, name)) for name in m.linear_layers}
    of_head: Any = {name: T[:, head] for name, T in whole.items()}
    Q, K, V, S = (of_head.get(name) for name in ("query", "key", "value", "shared"))
    match operator:
        case "original":
            return Q @ K.T / root, V
        case "symmetric":
            return Q @ Q.T / root, V
        case "pairwise":
            return Q @ m.S[i] @ Q.T / root, V
        case "partial_qk":
            scaled = whole["query"] @ torch.diag(m.D)
            return scaled[:, head] @ Q.T / root, V
        case "shared":
            Q = whole["shared"] @ torch.diag(m.D_q)
            K = whole["shared"] @ torch.diag(m.D_k)
            V = whole["shared"] @ torch.diag(m.D_v)
            return Q[:, head] @ K[:, head].T / root, V[:, head]
        case "tied_qkv":
            return S @ S.T / root, S
        case "shared_kv":
            return Q @ S.T / root, S
        case "identity_query":
            return X[:, head] @ K.T / root, V
        case "hadamard":
            return m.W[i, :n, :n] * (X @ X.T) / m.s, V
        case "hadamard_by_head":
            return m.W[i, :n, :n] * (X[:, head] @ X[:, head].T) / m.s, V
        case "fixed":
            return m.W[i, :n, :n], V
        case _:
            pytest.fail(f"add the equation of {operator} to compute_scores_and_values")


def compute_reference(operator: str, m: SelfAttention, X: torch.Tensor, added: torch.Tensor):
    """Scores, weights and output for one sequence X [n, h], head after head; `added` is added to the scores."""
    scores, weights, outputs = [], [], []
    for i in range(m.heads):
        A, V = compute_scores_and_values(operator, m, X, i)
        scores.append(A)
        weights.append(torch.softmax(A + added, dim=-1))
        outputs.append(weights[-1] @ V)
    return torch.stack(scores), torch.stack(weights), torch.cat(outputs, dim=-1)


def assert_equal_gradients(found, wanted, parameters):
    probe = torch.randn(found.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    ours = torch.autograd.grad((found * probe).sum(), parameters, allow_unused=True)
    theirs = torch.autograd.grad((wanted * probe).sum(), parameters, allow_unused=True)
    for one, other in zip(ours, theirs, strict=True):
        # `fixed` with a single key, for example, has no gradient of W.
        if one is None or other is None:
            assert one is None and (other is None or not other.any())
        else:
            torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


@for_every_operator
@settings(max_examples=8, deadline=None)
@given(
    batch=st.integers(1, 3),
    n=st.integers(1, 9),
    heads=st.integers(1, 4),
    d=st.integers(1, 6),
    seed=st.integers(0, 1000),
    longer=st.integers(0, 3),
)
def test_scores_output_and_gradients_equal_the_definition_at_any_size(operator, batch, n, heads, d, seed, longer):
    module = build_operator(operator, heads * d, heads, positions=n + longer, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(batch, n, heads * d, dtype=torch.float64, generator=generator).requires_grad_()
    seen = torch.rand(batch, n, generator=generator) < 0.7
    seen[:, 0] = True
    hidden = torch.zeros(batch, 1, n, dtype=torch.float64).masked_fill(~seen[:, None], -torch.inf)
    wanted = [compute_reference(operator, module, x, added) for x, added in zip(X, hidden, strict=True)]
    scores, _, outputs = map(torch.stack, zip(*wanted, strict=True))
    found = module(X, seen[:, None, None])
    torch.testing.assert_close(found, outputs, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(module.compute_scores(X).expand_as(scores), scores, rtol=1e-12, atol=1e-12)
    assert_equal_gradients(found, outputs, [X, *module.parameters()])


PAST = torch.ones(5, 5, dtype=torch.bool).tril()
ADDED = torch.full((5, 5), 0.3, dtype=torch.float64).masked_fill(~PAST, -torch.inf)
# a mask, and the numbers that it adds to the scores
MASKS = {
    "nothing": (None, torch.zeros(5, 5)),
    "booleans": (PAST[None, None], ADDED - 0.3),
    "numbers": (ADDED[None, None], ADDED),
}


@pytest.mark.parametrize(("mask", "added"), MASKS.values(), ids=MASKS)
@for_every_operator
def test_a_self_score_is_added_to_the_score_of_a_token_with_itself(operator, mask, added):
    module, X = build_operator(operator), draw_inputs()
    module.self_score = 1.8
    _, weights, output = compute_reference(operator, module, X[0], added + 1.8 * torch.eye(5, dtype=torch.float64))
    torch.testing.assert_close(module(X, mask)[0], output, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(module.compute_weights(X, mask)[0], weights, rtol=1e-9, atol=1e-9)


@for_every_operator
def test_a_self_score_changes_no_attention_to_another_sequence_and_no_first_weight(operator):
    plain, scored = make_operator(operator), make_operator(operator, self_score=1.8)
    for one, other in zip(plain.parameters(), scored.parameters(), strict=True):
        assert torch.equal(one, other)
    X, memory = torch.randn(2, 4, 24), torch.randn(2, 4, 24)
    assert torch.equal(scored(X, memory=memory), plain(X, memory=memory))
    assert not torch.allclose(scored(X), plain(X))
    assert torch.equal(scored(X, memory=X), scored(X))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("operator", ["original", "symmetric", "partial_qk", "shared", "tied_qkv"])
def test_the_masked_score_of_a_token_with_itself_has_no_weight_however_well_the_token_matches(operator, dtype):
    module = make_operator(operator, self_score=-1.0e4).to(dtype)
    X = 3 * torch.randn(2, 4, 24, dtype=dtype)
    weights = module.compute_weights(X)
    assert (weights.diagonal(dim1=-2, dim2=-1) == 0).all()
    # The other weights are those of a softmax without the token.
    others = module.compute_scores(X).masked_fill(torch.eye(4, dtype=torch.bool), -torch.inf)
    torch.testing.assert_close(weights, torch.softmax(others, dim=-1))


# identities


@pytest.mark.parametrize("operator", ["symmetric", "partial_qk", "shared", "tied_qkv"])
def test_scores_are_symmetric_in_the_two_tokens(operator):
    A = build_operator(operator).compute_scores(draw_inputs())
    torch.testing.assert_close(A, A.mT)


def test_only_the_product_of_the_query_and_key_diagonals_matters():
    module, other, X = build_operator("shared"), build_operator("shared"), draw_inputs()
    with torch.no_grad():
        other.D_q.copy_(module.D_q * module.D_k)
        other.D_k.fill_(1.0)
    torch.testing.assert_close(other(X), module(X))


def test_positive_diagonals_make_shared_a_tied_operator_with_other_weights():
    """With D_q D_k > 0 the scores are the scores of one projection sqrt(D_q D_k) (X W_s + b_s) with itself."""
    module, tied, X = build_operator("shared"), build_operator("tied_qkv"), draw_inputs()
    with torch.no_grad():
        module.D_q.abs_()
        module.D_k.abs_()
        root = (module.D_q * module.D_k).sqrt()
        tied.shared.weight.copy_(module.shared.weight * root[:, None])
        tied.shared.bias.copy_(module.shared.bias * root)
    torch.testing.assert_close(tied(X) * module.D_v / root, module(X))


# starts and limits


def test_pairwise_from_the_identity_starts_as_symmetric():
    pairwise, symmetric = make_operator("pairwise", start="identity"), make_operator("symmetric")
    symmetric.load_state_dict(pairwise.state_dict(), strict=False)
    X = torch.randn(1, 5, 24)
    torch.testing.assert_close(pairwise(X), symmetric(X))


@pytest.mark.parametrize(("start", "deviation"), [("normal", 1.0), ("scaled", 1 / 8)])
def test_pairwise_starts_its_matrices_as_asked(start, deviation):
    S = make_operator("pairwise", 512, 8, start=start).S
    assert S.std().item() == pytest.approx(deviation, rel=0.02)


def test_diagonals_start_at_one_and_a_tied_start_ties():
    shared, tied = make_operator("shared"), make_operator("original", start="tied")
    for D in (shared.D_q, shared.D_k, shared.D_v, make_operator("partial_qk").D):
        assert (D == 1).all()
    assert torch.equal(tied.key.weight, tied.query.weight)
    assert tied.key.weight is not tied.query.weight


def test_positional_weights_start_as_keras_would():
    module = make_operator("hadamard", 512, 8, 40)
    # the limit of a Glorot-uniform kernel [1, 8, 40, 40]
    assert module.W.abs().max().item() == pytest.approx((6 / (2 * 8 * 40)) ** 0.5, rel=1e-3)
    assert module.s.item() == 1.0


@pytest.mark.parametrize("operator", POSITIONAL)
def test_a_sequence_longer_than_the_positions_is_a_clear_error(operator):
    with pytest.raises(ValueError, match="weights for 7 positions; a sequence has 8"):
        build_operator(operator)(draw_inputs(n=8))
    with pytest.raises(ValueError, match="weights for 7 positions; a sequence has 8"):
        build_operator(operator)(draw_inputs(n=3), memory=draw_inputs(n=8))


class Forwarding(SELF_ATTENTION["original"]):
    name = "forwarding"

    def forward(self, X, *others):
        return X


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_operator("original", heads=5), "5 heads do not divide the hidden size 24"),
        (
            lambda: make_operator("original", heads=0),
            "0 heads do not divide the hidden size 24; expected a divisor, 1 or more",
        ),
        (lambda: make_operator("original", heads=-1), "-1 heads do not divide"),
        (lambda: make_configuration("original", **NARROW | {"heads": 0}), "0 heads do not divide the hidden size 64"),
        (lambda: make_operator("original", hidden=0), "3 heads do not divide the hidden size 0"),
        (lambda: make_operator("original", dropout=1.0), "dropout 1.0; expected a rate from 0 to less than 1"),
        (lambda: make_operator("original", dropout=float("nan")), "dropout nan; expected"),
        (
            lambda: make_operator("pairwise", start="ones"),
            "pairwise: start 'ones'; allowed are normal, identity, scaled",
        ),
        (
            lambda: make_operator("original", score_rate=2.0),
            "original: score_rate is for operators with a matrix or diagonals",
        ),
        (lambda: Forwarding(24, 3, self_score=1.0), "forwarding: self_score is for operators that keep the `forward`"),
        (
            lambda: make_operator("over_parameters"),
            "unknown self-attention 'over_parameters'; known: original, symmetric",
        ),
        (
            lambda: find_operator_class("sharde"),
            "unknown operator 'sharde'; known: original, symmetric, pairwise, shared",
        ),
    ],
)
def test_a_setting_that_an_operator_lacks_is_a_clear_error(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_class_in_place_of_a_name_is_an_error_that_says_how_to_build_a_layer_of_it():
    with pytest.raises(TypeError, match=r"given a class; build a layer of the class by Forwarding\(64, 4\)"):
        build_attention(Forwarding, 64, 4)


@for_every_operator
def test_dropout_hides_other_weights_in_every_sequence_of_a_batch(operator):
    module = make_operator(operator, dropout=0.5).train()
    one, other = module(torch.randn(5, 24).expand(2, -1, -1))
    assert not torch.allclose(one, other)


# the spread of the first scores

SMALL = {"layers": 1, "hidden": 512, "heads": 8, "intermediate": 2048, "positions": 512}
NARROW = {"layers": 1, "hidden": 64, "heads": 4, "intermediate": 256, "positions": 64}
SIZES = [(SMALL, 0.02), (NARROW, 0.05)]
STARTS = [(operator, start) for operator, kind in SELF_ATTENTION.items() for start in kind.starts]


def build_in_a_new_model(operator: str, size: dict, deviation: float, **others) -> Any:
    """The operator inside a new model, initialised by the library and the operator together."""
    torch.manual_seed(3)
    config = make_configuration(operator, **size, vocab_size=50, initializer_range=deviation, **others)
    return OperatorBertForMaskedLM(config).bert.encoder.layer[0].attention.self


@pytest.mark.parametrize("score_spread", [None, 1.6])
@pytest.mark.parametrize(("size", "deviation"), SIZES, ids=["small", "narrow"])
@pytest.mark.parametrize(("operator", "start"), STARTS)
def test_the_first_scores_spread_as_the_closed_formula_says_or_as_asked(operator, start, size, deviation, score_spread):
    module = build_in_a_new_model(operator, size, deviation, start=start, score_spread=score_spread)
    # inputs such as a LayerNorm gives
    X = nn.functional.layer_norm(torch.randn(64, module.hidden), (module.hidden,))
    [scores] = module.compute_scores(X[None])
    measured = scores[:, ~torch.eye(64, dtype=torch.bool)].std().item()
    assert measured == pytest.approx(score_spread or module.compute_first_spread(deviation), rel=0.07)


def test_the_spread_of_squares_and_of_pairwise_is_the_mean_over_weights_at_any_width():
    torch.manual_seed(0)
    W, S = torch.randn(100_000, 4, 2), torch.randn(100_000, 2, 2)
    for operator, products in (("tied_qkv", W @ W.mT), ("pairwise", W @ S @ W.mT)):
        mean = products.square().sum((1, 2)).mean() / 2
        assert make_operator(operator, 4, 2).compute_source_spread(1.0) == pytest.approx(mean.sqrt().item(), rel=0.02)


# the parameters that a score_spread moves
MOVED = {
    "original": {"query.weight", "key.weight"},
    "symmetric": {"query.weight"},
    "pairwise": {"S"},
    "partial_qk": {"D"},
    "shared": {"D_q", "D_k"},
    "shared_kv": {"query.weight"},
    "tied_qkv": {"shared.weight"},
    "hadamard": {"W"},
    "hadamard_by_head": {"W"},
    "fixed": {"W"},
    "identity_query": {"key.weight"},
}


@for_every_operator
def test_a_score_spread_moves_nothing_else(operator):
    plain = build_in_a_new_model(operator, NARROW, 0.05).state_dict()
    spread = build_in_a_new_model(operator, NARROW, 0.05, score_spread=3.0).state_dict()
    moved = {name for name in plain if not torch.equal(plain[name], spread[name])}
    assert moved == MOVED[operator]


# attention over parameters


@pytest.mark.parametrize(("heads", "pairs"), [(8, 1536), (16, 512)])
def test_attention_over_parameters_has_the_weights_of_the_network_that_it_replaces(heads, pairs):
    module = AttentionOverParameters(512, heads, 64, pairs, 0.0)
    weights = sum(T.numel() for T in (module.query.weight, module.K, module.V))
    assert weights + heads * 64 * 512 == 2 * 512 * 2048


@pytest.mark.parametrize("heads", [1, 4])
def test_attention_over_parameters_equals_its_definition(heads):
    module = AttentionOverParameters(12, heads, 3, 5, 0.0).double()
    with torch.no_grad():
        module.initialise(0.02)
    move_parameters(module, 1.0)
    X = draw_inputs(2, 4, 12).requires_grad_()
    outputs = []
    for i, Q in enumerate(apply_linear(X, module.query).split(3, dim=-1)):
        K, V = module.K[i] * 2, module.V[i] * 12**0.5
        outputs.append(torch.softmax(Q @ K.T, dim=-1) @ V)
    wanted = torch.cat(outputs, dim=-1)
    torch.testing.assert_close(module(X), wanted)
    assert_equal_gradients(module(X), wanted, [X, *module.parameters()])


# descriptions and operators of users


def test_every_operator_has_its_own_entry_in_the_catalogue():
    known = describe_operators()
    assert set(known) == set(OPERATORS)
    for name, kind in OPERATORS.items():
        assert vars(kind).items() >= vars(known[name]).items()


def test_a_class_of_the_package_without_an_entry_is_a_clear_error_and_a_users_base_needs_none():
    with pytest.raises(ValueError, match="KeysOnly is missing in CATALOGUE"):
        type("KeysOnly", (OPERATORS["symmetric"],), {"__module__": "stages.attention.operators"})
    # The name of a class of ours makes the class of a user no operator of ours.
    assert "name" not in vars(type("Shared", (SelfAttention,), {"__module__": "own_operators"}))


def test_the_descriptions_and_the_settings_need_no_torch():
    code = "import sys, stages.schema.settings as s; s.load_settings(); assert 'torch' not in sys.modules"
    run(ROOT, "python", "-c", code)


def test_a_users_own_operator_is_counted_as_the_others(tmp_path):
    variant = write_own_operator(tmp_path / "mine.py")
    assert counts.count_layer(variant, NARROW)["attention_parameters"] == 2 * (64 * 64 + 64)
    assert counts.count_block_operations(variant, 96, 4, 64) == counts.count_block_operations("symmetric", 96, 4, 64)
    assert counts.compute_first_score_spread(variant, NARROW, 0.1) is None


def test_a_subclass_of_a_user_inherits_neither_the_spread_of_other_scores_nor_a_citation(tmp_path):
    class Tempered(OPERATORS["symmetric"]):
        name = "tempered"

        def compute_diagonal(self):
            return torch.full((8,), 0.5)

    assert Tempered(8, 2).compute_first_spread(0.02) is None
    assert make_operator("symmetric", 8, 2).compute_first_spread(0.02) is not None
    (tmp_path / "mine.py").write_text('class Tempered(Symmetric):\n    name = "tempered"\n')
    with pytest.raises(ValueError, match="class Tempered: equation is missing"):
        describe_operators(tmp_path / "mine.py", {"tempered"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("import no_such_package", r"ModuleNotFoundError: .*no_such_package"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
    ],
)
def test_a_users_file_that_cannot_be_imported_is_one_error_that_names_it(line, message, tmp_path):
    variant = write_own_operator(tmp_path / "mine.py", f"{line}\n{OWN}")
    with pytest.raises(ValueError, match=rf"mine\.py: cannot be imported \({message}"):
        find_operator_class(variant)


EXPORTABLE = OWN.replace("exportable = False", "exportable = True")
PROJECTIONS = """
    def build_projections(self):
        import torch
        layers = torch.nn.Linear(self.hidden, self.hidden), self.{first}, self.{second}
        with torch.no_grad():
            layers[0].weight.copy_(torch.eye(self.hidden))
            layers[0].bias.zero_()
        return [(layer.weight, layer.bias) for layer in layers]
"""
ACTIVATED = """
from stages.attention.operators import Symmetric

class Activated(Symmetric):
    name = "plain_queries"
    equation = "relu"
    source = "a test"

    def compute_queries_keys_values(self, X, memory):
        Q, K, V = super().compute_queries_keys_values(X, memory)
        return Q.relu(), K, V
"""
UNMASKED = (
    ACTIVATED.partition("    def")[0]
    + """
    def complete_mask(self, *_):
        return None
"""
)
# an operator that holds a tensor, as rotary frequencies
HOLDING = (
    OWN.replace("self.key(memory)", "self.key(memory) * getattr(self, 'freqs', 1)")
    + """
    def __init__(self, hidden, *others, **settings):
        super().__init__(hidden, *others, **settings)
        import torch
        freqs = torch.linspace(0.1, 1, hidden)
        {}
"""
)
LOST = "`freqs` of class PlainQueries is not saved with a model; register the tensor by `self.register_buffer"


def require(text: str, **variant) -> Settings:
    """Checks the settings of a run with an operator of a user's, which is a variant if it has settings."""
    edits = {"operators": ["original", "hot" if variant else "plain_queries"], "operators_file": "mine.py"}
    write_own_operator(Path("mine.py"), text)
    settings = Settings.model_validate(edit_laptop(edits | {"variants.hot": {"operator": "plain_queries", **variant}}))
    require_own_operators(settings, settings.operators)
    return settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OWN.replace("return X,", "return X[:, :, :5],"), "RuntimeError: .*correct the operator"),
        (
            OWN + "\n    def forward(self, X, mask=None):\n        return X[:, :1]\n",
            r"the output has the shape \(2, 1, 128\), the input \(2, 3, 128\)",
        ),
        (
            OWN + "\n    def forward(self, X, mask=None):\n        return X\n",
            "TypeError: .*unexpected keyword argument 'project'; correct the operator",
        ),
        (OWN.replace("self.key(memory)", "(self.key(memory) > 0).float()"), "the gradient of `key.weight` is missing"),
        (OWN.replace("self.key(memory)", "self.key(memory).round()"), "the gradient of `key.weight` is 0, so that"),
        (OWN.replace('"value")', '"value", "spare")'), "the gradient of `spare.weight` is missing, so that training"),
        (OWN.replace("self.value(memory)", "self.value(memory).log()"), "the output has numbers that are not finite"),
        (
            OWN.replace("self.key(memory)", "(self.key(memory) * 0).sqrt()"),
            "the gradient of `key.weight` has numbers that are not finite",
        ),
        (
            OWN.replace("return X", "return X * self.D")
            + "\n    @classmethod\n    def list_parameter_shapes(cls, hidden, heads, positions):"
            + '\n        return {"D": (hidden,)}\n',
            "`D` has no first values; set them in `initialise_parameters`",
        ),
        (HOLDING.format('self.register_buffer("freqs", freqs, persistent=False)'), LOST),
        (HOLDING.format("self.freqs = freqs"), LOST),
        (HOLDING.format("type(self).freqs = freqs"), LOST),
        (
            HOLDING.format("self.key = vars(type(self)).get('common', self.key); type(self).common = self.key"),
            "`layer.1.attention.self.key.weight` is `key.weight`, and a saved model holds no tensor twice",
        ),
        (
            HOLDING.format("self.key.weight = self.value.weight"),
            "`value.weight` is `key.weight`, and a saved model holds no tensor twice; give one layer both `roles`",
        ),
        (
            HOLDING.format("import random; self.freqs = random.random()"),
            "a saved and loaded model has other outputs; hold all numbers in parameters and buffers",
        ),
        (EXPORTABLE, "BERT cannot express it; correct `build_projections`, or set `exportable = False`"),
        (
            EXPORTABLE + PROJECTIONS.format(first="value", second="key"),
            "`exportable` is true, but .* has other outputs; correct `build_projections`, or set `exportable = False`",
        ),
        (ACTIVATED, "`exportable` is true, but .* has other outputs"),
        (UNMASKED, "`exportable` is true, but .* has other outputs"),
    ],
    ids=[
        "a width that does not fit",
        "a sequence of another length",
        "a forward without the output projection",
        "a step function",
        "a rounding",
        "an unused layer",
        "NaN",
        "NaN as gradient",
        "a parameter that is not initialised",
        "a buffer that is not saved",
        "a tensor that is no buffer",
        "a tensor of the class",
        "a layer in all models",
        "a weight in two layers",
        "a random number",
        "no projections",
        "wrong projections",
        "projections of the base class",
        "a mask without effect",
    ],
)
def test_a_users_operator_that_cannot_be_trained_or_exported_stops_the_check_of_settings(
    text, message, in_an_empty_folder
):
    with pytest.raises(ValueError, match=rf"mine\.py: operator `plain_queries` at size tiny: .*{message}"):
        require(text)


# a parameter of the tokens from the ninth on
DISTANT = f"""{OWN.replace("self.key(memory)", "self.key(memory) + self.far * self.late(X)")}
    @classmethod
    def list_parameter_shapes(cls, hidden, heads, positions):
        return {{"far": (hidden,)}}

    def initialise_parameters(self):
        self.far.zero_()

    def late(self, X):
        import torch
        return (torch.arange(X.shape[1]) > 7)[:, None]
"""
TEXTS = {
    "not exportable": OWN,
    "exportable": EXPORTABLE + PROJECTIONS.format(first="key", second="value"),
    "a parameter of distant tokens": DISTANT,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("variant", [{}, {"self_score": -1.5}], ids=["plain", "self-score"])
def test_a_users_operator_that_does_what_it_says_passes_the_check_of_settings(text, variant, in_an_empty_folder):
    require(text, **variant)


def test_a_model_whose_operator_has_changed_since_is_not_loaded(tmp_path):
    variant = write_own_operator(tmp_path / "mine.py")
    write_own_operator(tmp_path / "mine.py", OWN.replace("return X,", "return -X,"))
    with pytest.raises(ValueError, match=r"mine\.py has changed since the model was trained"):
        make_configuration(**variant, **NARROW)


def test_attributes_of_a_users_file_that_are_no_literals_are_left_out_of_its_description(tmp_path):
    text = OWN.replace("    source = ", "    of_list = {[]: 1}\n    computed = 2**0.5\n    source = ")
    (tmp_path / "mine.py").write_text(text)
    assert describe_operators(tmp_path / "mine.py").keys() > describe_operators().keys()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OWN.replace('    source = "an idea of mine"\n', ""), "class PlainQueries: source is missing"),
        (OWN.replace('"plain_queries"', '"shared"'), "class PlainQueries: 'shared' is an operator already"),
        ("class Plain(:", "not Python: .*line 1"),
        (
            f"{OWN}\n{OWN.replace('class PlainQueries', 'class Other')}",
            "class Other: 'plain_queries' is an operator already",
        ),
        (OWN.replace('"plain_queries"', "5"), "class PlainQueries: name is 5, expected a text"),
        (OWN.replace('"plain_queries"', '"NaN"'), "class PlainQueries: name: `NaN` is no text for readers of CSV"),
        ("# \udce9", "not Python: 'utf-8'"),
        ("x = 1\0", "not Python.*null bytes"),
    ],
    ids=[
        "no source", "a name twice", "no Python", "a name twice in the file", "a number", "a missing value", "latin-1",
        "a NUL byte",
    ],
)  # fmt: skip
def test_a_mistake_in_a_users_file_is_one_clear_error(text, message, tmp_path):
    (tmp_path / "mine.py").write_bytes(text.encode(errors="surrogateescape"))
    listed = ["plain_queries", "shared", "NaN", 5]
    with pytest.raises(ValueError, match=rf"mine\.py.*{message}"):
        describe_operators(tmp_path / "mine.py", listed)


def test_a_mistake_in_a_class_that_no_run_lists_does_not_matter(in_an_empty_folder):
    draft = OWN.replace("class PlainQueries", "class Draft").replace('    source = "an idea of mine"\n', "")
    drafts = draft.replace("plain_queries", "shared"), draft.replace("plain_queries", "draft")
    parameters.main(require("\n".join((OWN, *drafts, "    list_parameter_shapes = None\n"))))
    counted = pd.read_csv("data/observations/parameters.csv")["operator"]
    assert "plain_queries" in set(counted) and "draft" not in set(counted)
