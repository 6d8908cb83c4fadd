"""Every operator against a slow float64 reference written from its equation, and against its own properties."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from stages.attention import counts
from stages.attention.base import SelfAttention
from stages.attention.bert import OperatorBertForMaskedLM
from stages.attention.configuration import configuration
from stages.attention.operators import OPERATORS, SELF_ATTENTION, attention, operator_class
from stages.attention.over_parameters import AttentionOverParameters
from stages.schema.operators import FOLDER, described
from stages.schema.settings import Settings
from stages.settings.stage import require_own_operators
from tests.toy import OWN, own_operator

ROOT = Path(__file__).parents[1]
POSITIONAL = ["hadamard", "hadamard_by_head", "fixed"]
SYMMETRIC = ["symmetric", "partial_qk", "shared", "tied_qkv"]


def made(operator: str, hidden: int, heads: int, positions: int, dropout=0.0, **others) -> SelfAttention:
    """Without an output projection, so that it gives what the equations give."""
    return attention(operator, hidden, heads, positions=positions, dropout=dropout, output=False, **others)


def built(operator: str, hidden=24, heads=3, positions=7, seed=5) -> SelfAttention:
    """Float64, no dropout, every parameter drawn from N(0, 1): a start of ones or zeros could hide a mistake."""
    generator = torch.Generator().manual_seed(seed)
    module = made(operator, hidden, heads, positions).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return module


def linear(X, layer):
    return X @ layer.weight.T + layer.bias


def scores_and_values(operator: str, m, X, i: int, head: slice):
    """Scores before the mask and values of head i, for one sequence X [n, h], as the sources print them."""
    n, root = len(X), (head.stop - head.start) ** 0.5
    match operator:
        case "original":
            return linear(X, m.query)[:, head] @ linear(X, m.key)[:, head].T / root, linear(X, m.value)[:, head]
        case "symmetric":
            return linear(X, m.query)[:, head] @ linear(X, m.query)[:, head].T / root, linear(X, m.value)[:, head]
        case "pairwise":
            Q = linear(X, m.query)[:, head]
            return Q @ m.S[i] @ Q.T / root, linear(X, m.value)[:, head]
        case "partial_qk":
            S = linear(X, m.query)
            return (S @ torch.diag(m.D))[:, head] @ S[:, head].T / root, linear(X, m.value)[:, head]
        case "shared":
            S = linear(X, m.shared)
            Q, K, V = (S @ torch.diag(D) for D in (m.D_q, m.D_k, m.D_v))
            return Q[:, head] @ K[:, head].T / root, V[:, head]
        case "tied_qkv":
            S = linear(X, m.shared)[:, head]
            return S @ S.T / root, S
        case "shared_kv":
            S = linear(X, m.shared)[:, head]
            return linear(X, m.query)[:, head] @ S.T / root, S
        case "identity_query":
            return X[:, head] @ linear(X, m.key)[:, head].T / root, linear(X, m.value)[:, head]
        case "hadamard":
            return m.W[i, :n, :n] * (X @ X.T) / m.s, linear(X, m.value)[:, head]
        case "hadamard_by_head":
            return m.W[i, :n, :n] * (X[:, head] @ X[:, head].T) / m.s, linear(X, m.value)[:, head]
        case "fixed":
            return m.W[i, :n, :n], linear(X, m.value)[:, head]


def reference(operator: str, module: SelfAttention, X: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """One sequence X [n, h], one head after the other. seen [n]: keys that count."""
    d = module.hidden // module.heads
    heads = []
    for i in range(module.heads):
        scores, V = scores_and_values(operator, module, X, i, slice(i * d, (i + 1) * d))
        heads.append(torch.softmax(scores.masked_fill(~seen, float("-inf")), dim=-1) @ V)
    return torch.cat(heads, dim=-1)


def assert_equals_reference(operator, module, X, seen):
    X = X.requires_grad_()
    got = module(X, seen[:, None, None, :])
    wanted = torch.stack([reference(operator, module, x, mask) for x, mask in zip(X, seen, strict=True)])
    torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)
    probe = torch.randn(got.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    inputs = [X, *module.parameters()]
    for one, other in zip(
        torch.autograd.grad((got * probe).sum(), inputs, allow_unused=True),
        torch.autograd.grad((wanted * probe).sum(), inputs, allow_unused=True),
        strict=True,
    ):
        if one is None or other is None:  # `fixed` with one key, say
            assert one is None and (other is None or not other.any())
        else:
            torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_the_scores_that_are_probed_are_those_of_the_definition(operator):
    module = built(operator)
    X, d = torch.randn(5, 24, dtype=torch.float64), 8
    wanted = [scores_and_values(operator, module, X, i, slice(i * d, (i + 1) * d))[0] for i in range(3)]
    torch.testing.assert_close(module.scores(X[None])[0], torch.stack(wanted), rtol=0, atol=1e-12)


@pytest.mark.parametrize("operator", SELF_ATTENTION)
@settings(max_examples=8, deadline=None)
@given(
    batch=st.integers(1, 3),
    n=st.integers(1, 9),
    heads=st.integers(1, 4),
    d=st.integers(1, 6),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_output_and_all_gradients_equal_the_definition_at_any_size(operator, batch, n, heads, d, seed, data):
    module = built(operator, heads * d, heads, positions=n + data.draw(st.integers(0, 3)), seed=seed)
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(batch, n, heads * d, dtype=torch.float64, generator=generator)
    seen = torch.rand(batch, n, generator=generator) < 0.7
    seen[:, 0] = True
    assert_equals_reference(operator, module, X, seen)


@pytest.mark.parametrize("masked", ["nothing", "booleans", "numbers"])
@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_a_self_score_is_added_to_the_score_of_a_token_with_itself(operator, masked):
    module = built(operator)
    module.self_score = 1.8
    X, d = torch.randn(1, 5, 24, dtype=torch.float64), 8
    seen = torch.ones(5, 5, dtype=torch.bool).tril()
    added = torch.where(seen, 0.3, -torch.inf).double()
    mask, addend = {"nothing": (None, 0), "booleans": (seen, added.clamp_max(0)), "numbers": (added, added)}[masked]
    mask = mask if mask is None else mask[None, None]
    weights, heads = [], []
    for i in range(3):
        scores, V = scores_and_values(operator, module, X[0], i, slice(i * d, (i + 1) * d))
        weights.append(torch.softmax(scores + 1.8 * torch.eye(5, dtype=torch.float64) + addend, dim=-1))
        heads.append(weights[-1] @ V)
    for training in (False, True):  # without dropout; the two take different paths of the code on some devices
        module.train(training)
        torch.testing.assert_close(module(X, mask)[0], torch.cat(heads, dim=-1), rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(module.weights(X, mask)[0], torch.stack(weights), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_a_self_score_changes_no_attention_to_another_sequence_and_no_first_weight(operator):
    plain, scored = started(operator, 24, 3, 7), started(operator, 24, 3, 7, self_score=1.8)
    assert all(torch.equal(one, other) for one, other in zip(plain.parameters(), scored.parameters(), strict=True))
    X, memory = torch.randn(2, 4, 24), torch.randn(2, 4, 24)
    assert torch.equal(scored.eval()(X, memory=memory), plain.eval()(X, memory=memory))
    assert not torch.allclose(scored(X), plain(X))


def test_a_self_score_for_a_forward_of_a_user_s_own_is_an_error():
    class Plain(SELF_ATTENTION["original"]):
        name = "plain"

        def forward(self, X, *others):
            return X

    with pytest.raises(ValueError, match="plain: self_score is for operators that keep the `forward`"):
        Plain(24, 3, self_score=1.0)


# identities


@pytest.mark.parametrize("operator", SYMMETRIC)
def test_scores_are_symmetric_in_the_two_tokens(operator):
    A = built(operator).scores(torch.randn(1, 6, 24, dtype=torch.float64))
    torch.testing.assert_close(A, A.mT)


def test_only_the_product_of_the_query_and_key_diagonals_matters():
    module, other = built("shared"), built("shared")
    with torch.no_grad():
        other.D_q.copy_(module.D_q * module.D_k)
        other.D_k.fill_(1.0)
    X = torch.randn(1, 6, 24, dtype=torch.float64)
    torch.testing.assert_close(other(X), module(X))


def test_positive_diagonals_make_shared_a_tied_operator_with_other_weights():
    """With D_q D_k > 0 its scores are those of one projection sqrt(D_q D_k) (X W_s + b_s) with itself."""
    module, tied = built("shared"), built("tied_qkv")
    with torch.no_grad():
        module.D_q.abs_()
        module.D_k.abs_()
        root = (module.D_q * module.D_k).sqrt()
        tied.shared.weight.copy_(module.shared.weight * root[:, None])
        tied.shared.bias.copy_(module.shared.bias * root)
    X = torch.randn(1, 6, 24, dtype=torch.float64)
    torch.testing.assert_close(tied(X) * module.D_v / root, module(X))


# starts and limits


def started(operator: str, hidden=512, heads=8, positions=40, **others) -> SelfAttention:
    torch.manual_seed(0)
    return made(operator, hidden, heads, positions, dropout=0.1, **others)


@pytest.mark.parametrize(("start", "deviation"), [("normal", 1.0), ("scaled", 1 / 8)])
def test_pairwise_starts_its_matrices_as_asked(start, deviation):
    assert started("pairwise", start=start).S.std().item() == pytest.approx(deviation, rel=0.02)


def test_pairwise_from_the_identity_starts_as_symmetric():
    module = started("pairwise", start="identity")
    X = torch.randn(1, 5, 512)
    with torch.no_grad():
        Q, V = (T.unflatten(-1, (8, 64)).transpose(1, 2) for T in (module.query(X), module.value(X)))
        expected = nn.functional.scaled_dot_product_attention(Q, Q, V).transpose(1, 2).flatten(2)
        torch.testing.assert_close(module.eval()(X), expected)


def test_an_unknown_start_is_an_error():
    with pytest.raises(ValueError, match=r"pairwise: start 'ones'; allowed are normal, identity, scaled"):
        started("pairwise", start="ones")


def test_diagonals_start_at_one_and_a_tied_start_ties():
    shared, tied = started("shared"), started("original", start="tied")
    assert all((D == 1).all() for D in (shared.D_q, shared.D_k, shared.D_v, started("partial_qk").D))
    assert torch.equal(tied.key.weight, tied.query.weight) and tied.key.weight is not tied.query.weight


def test_positional_weights_start_as_keras_would():
    W = started("hadamard").W  # limit of a Glorot-uniform kernel [1, 8, 40, 40]
    assert W.abs().max().item() == pytest.approx((6 / (2 * 8 * 40)) ** 0.5, rel=1e-3)
    assert started("hadamard").s.item() == 1.0


@pytest.mark.parametrize("operator", POSITIONAL)
def test_a_sequence_longer_than_the_positions_is_a_clear_error(operator):
    with pytest.raises(ValueError, match="weights for 7 positions; a sequence has 8"):
        built(operator)(torch.zeros(1, 8, 24, dtype=torch.float64))


def test_heads_that_do_not_divide_the_width_are_an_error():
    with pytest.raises(ValueError, match="5 heads do not divide the hidden size 24"):
        made("original", 24, 5, 8)


# the spread of the first scores

SMALL = {"layers": 1, "hidden": 512, "heads": 8, "intermediate": 2048, "positions": 512, "initializer_range": 0.02}
NARROW = {"layers": 1, "hidden": 64, "heads": 4, "intermediate": 256, "positions": 64, "initializer_range": 0.05}
STARTS = [(operator, start) for operator, kind in SELF_ATTENTION.items() for start in kind.starts]


def in_a_new_model(operator: str, size: dict, **others) -> SelfAttention:
    """The operator of a whole model, started as the library and the operator start it together."""
    torch.manual_seed(3)
    model = OperatorBertForMaskedLM(configuration(operator, **size, vocab_size=50, **others))
    return model.bert.encoder.layer[0].attention.self


def measured_spread(operator: str, module: SelfAttention) -> float:
    """Over heads and pairs of different tokens, of inputs such as a LayerNorm gives."""
    X = nn.functional.layer_norm(torch.randn(64, module.hidden), (module.hidden,))
    d, different = module.width, ~torch.eye(64, dtype=torch.bool)
    with torch.no_grad():
        heads = [scores_and_values(operator, module, X, i, slice(i * d, (i + 1) * d))[0] for i in range(module.heads)]
    return torch.stack(heads)[:, different].std().item()


@pytest.mark.parametrize("size", [SMALL, NARROW], ids=["small", "narrow"])
@pytest.mark.parametrize(("operator", "start"), STARTS)
def test_the_first_scores_spread_as_the_closed_formula_says(operator, start, size):
    module = in_a_new_model(operator, size, start=start)
    assert measured_spread(operator, module) == pytest.approx(module.first_spread(size["initializer_range"]), rel=0.07)


def test_the_spread_of_squares_is_the_mean_over_weights_at_any_width():
    torch.manual_seed(0)
    W = torch.randn(100_000, 4, 2)
    mean = ((W @ W.mT).square().sum((1, 2)).mean() / 2).sqrt().item()
    assert SELF_ATTENTION["tied_qkv"](4, 2).spread_of_squares(1.0) == pytest.approx(mean, rel=0.02)


@pytest.mark.parametrize("size", [SMALL, NARROW], ids=["small", "narrow"])
@pytest.mark.parametrize(("operator", "start"), STARTS)
def test_the_first_scores_spread_as_asked(operator, start, size):
    module = in_a_new_model(operator, size, start=start, score_spread=1.6)
    assert measured_spread(operator, module) == pytest.approx(1.6, rel=0.07)


MOVED = {  # what a score_spread moves
    "original": {"query.weight", "key.weight"}, "symmetric": {"query.weight"}, "pairwise": {"S"}, "partial_qk": {"D"},
    "shared": {"D_q", "D_k"}, "shared_kv": {"query.weight"}, "tied_qkv": {"shared.weight"}, "hadamard": {"W"},
    "hadamard_by_head": {"W"}, "fixed": {"W"}, "identity_query": {"key.weight"},
}  # fmt: skip


def test_a_tied_start_ties_in_a_whole_model_too():
    module = in_a_new_model("original", NARROW, start="tied", score_spread=3.0)
    assert torch.equal(module.key.weight, module.query.weight)


@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_a_score_spread_moves_nothing_else(operator):
    plain, spread = (in_a_new_model(operator, NARROW, score_spread=value).state_dict() for value in (None, 3.0))
    moved = {name for name in plain if not torch.equal(plain[name], spread[name])}
    assert moved and moved == MOVED.get(operator, moved)


# attention over parameters


@pytest.mark.parametrize(("heads", "pairs"), [(8, 1536), (16, 512)])
def test_attention_over_parameters_has_the_weights_of_the_network_that_it_replaces(heads, pairs):
    module = AttentionOverParameters(512, heads, 64, pairs, 0.0)
    weights = module.query.weight.numel() + module.K.numel() + module.V.numel() + heads * 64 * 512
    assert weights == 2_097_152 == 2 * 512 * 2048


@pytest.mark.parametrize("heads", [1, 4])
def test_attention_over_parameters_equals_its_definition(heads):
    module = AttentionOverParameters(12, heads, 3, 5, 0.0).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_()
    X = torch.randn(2, 4, 12, dtype=torch.float64, requires_grad=True)
    Q = linear(X, module.query)
    wanted = torch.cat(
        [
            torch.softmax(Q[..., 3 * i : 3 * i + 3] @ (module.K[i] * 2).T, dim=-1) @ (module.V[i] * 12**0.5)
            for i in range(heads)
        ],
        dim=-1,
    )
    torch.testing.assert_close(module(X), wanted)
    inputs = [X, *module.parameters()]
    for one, other in zip(
        torch.autograd.grad(module(X).sin().sum(), inputs), torch.autograd.grad(wanted.sin().sum(), inputs), strict=True
    ):
        torch.testing.assert_close(one, other)


# what the operators say of themselves


def test_every_operator_is_described_in_its_file_without_torch():
    known = described()
    assert set(known) == set(OPERATORS)
    for name, kind in OPERATORS.items():
        said = known[name]
        assert said.file == FOLDER / f"{kind.__module__.rpartition('.')[2]}.py"
        for field in ("name", "equation", "source", "exportable", "starts", "scores_alone"):
            assert getattr(said, field) == getattr(kind, field)


def test_the_descriptions_and_the_settings_need_no_torch():
    code = "import sys, stages.schema.settings as s; s.load_settings(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_a_users_own_operator_is_counted_saved_and_loaded_as_the_others(tmp_path):
    variant = own_operator(tmp_path / "mine.py")
    size = {key: value for key, value in NARROW.items() if key != "initializer_range"}
    assert counts.counted_layer(variant, size).items() <= counts.layer_formulas(variant, size).items()
    assert counts.block_work(variant, 96, 4, 64) == counts.block_work("symmetric", 96, 4, 64)
    assert counts.first_score_spread(variant, size, 0.1) is None
    model = OperatorBertForMaskedLM(configuration(**variant, **size, vocab_size=50)).eval()
    model.save_pretrained(tmp_path / "model")
    loaded = OperatorBertForMaskedLM.from_pretrained(tmp_path / "model").eval()
    ids = torch.arange(9)[None]
    with torch.no_grad():
        torch.testing.assert_close(loaded(ids).logits, model(ids).logits, rtol=0, atol=0)


def test_a_users_file_that_cannot_be_imported_is_one_error_that_names_it(tmp_path):
    variant = own_operator(tmp_path / "mine.py", f"import no_such_package\n{OWN}")
    with pytest.raises(ValueError, match=r"mine\.py: cannot be imported \(ModuleNotFoundError: .*no_such_package"):
        operator_class(variant)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"import sys\nsys.exit(0)\n{OWN}", r"mine\.py: cannot be imported \(SystemExit: 0\)"),
        (
            OWN.replace("return X,", "return X[:, :, :5],"),
            r"mine\.py: operator `plain_queries` at size tiny: ",
        ),
        (
            OWN + "\n    def forward(self, X, mask=None):\n        return X[:, :1]\n",
            r"mine\.py: .* size tiny: it makes \(2, 1, 128\) of \(2, 3, 128\)",
        ),
    ],
    ids=["an exit", "a width that does not fit", "a sequence of another length"],
)
def test_a_users_operator_that_cannot_be_computed_stops_the_check_of_settings(text, said, tmp_path, monkeypatch):
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    own_operator(tmp_path / "mine.py", text)
    params |= {"operators": ["original", "plain_queries"], "operators_file": "mine.py"}
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=said):
        require_own_operators(Settings.model_validate(params))
    own_operator(tmp_path / "mine.py", OWN)
    require_own_operators(Settings.model_validate(params))


def test_a_model_whose_operator_has_changed_since_is_not_loaded(tmp_path):
    variant = own_operator(tmp_path / "mine.py")
    own_operator(tmp_path / "mine.py", OWN.replace("return X,", "return -X,"))
    with pytest.raises(ValueError, match=r"mine\.py has changed since the model was trained"):
        configuration(**variant, **{key: value for key, value in NARROW.items() if key != "initializer_range"})


def test_what_is_no_literal_in_a_users_file_is_no_part_of_its_description(tmp_path):
    text = OWN.replace("    source = ", "    of_list = {[]: 1}\n    computed = 2**0.5\n    source = ")
    (tmp_path / "mine.py").write_text(text)
    assert described(tmp_path / "mine.py").keys() > described().keys()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OWN.replace('    source = "an idea of mine"\n', ""), "class PlainQueries: no source"),
        (OWN.replace('"plain_queries"', '"shared"'), r"operators\.py has an operator 'shared' already"),
        ("class Plain(:", "not Python: .*line 1"),
        (
            f"{OWN}\n{OWN.replace('class PlainQueries', 'class Other')}",
            "class Other: .*mine.py has an operator 'plain_queries' already",
        ),
        (OWN.replace('"plain_queries"', "5"), "class PlainQueries: name is 5, expected a text"),
        ("# \udce9", "not Python: 'utf-8'"),
        ("x = 1\0", "not Python.*null bytes"),
    ],
    ids=[
        "no source", "a name twice", "no Python", "a name twice in the file", "a number", "latin-1", "a NUL byte",
    ],
)  # fmt: skip
def test_a_mistake_in_a_users_file_is_one_clear_error(text, said, tmp_path):
    (tmp_path / "mine.py").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=rf"mine\.py.*{said}"):
        described(tmp_path / "mine.py")
