"""Every operator against a slow float64 reference written from its equation, and against its own properties."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from stages.attention.operators import SELF_ATTENTION, AttentionOverParameters, SelfAttention

PROJECTED = [name for name in SELF_ATTENTION if name not in ("hadamard", "fixed")]
SYMMETRIC = ["symmetric", "partial_qk", "shared", "tied_qkv"]


def built(operator: str, hidden=24, heads=3, positions=7, seed=5) -> SelfAttention:
    """Float64, no dropout, every parameter drawn from N(0, 1): a start of ones or zeros could hide a mistake."""
    generator = torch.Generator().manual_seed(seed)
    module = SELF_ATTENTION[operator](hidden, heads, 0.0, positions).double()
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
        case "original" | "original_tied_init":
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
        case "hadamard":
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


def output(module: SelfAttention, X, mask=None):
    """What the attention block hands to its output projection, the factor that the projection absorbs included."""
    scale = module.output_scale()
    context = module(X, mask)
    return context if scale is None else context * scale


def assert_equals_reference(operator, module, X, seen):
    X = X.requires_grad_()
    got = output(module, X, seen[:, None, None, :])
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


@pytest.mark.parametrize("padding", [0, 3], ids=["whole", "padded"])
@pytest.mark.parametrize("heads", [1, 3, 6])
@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_output_and_all_gradients_equal_the_definition(operator, heads, padding):
    X = torch.randn(2, 7, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    seen = torch.ones(2, 7, dtype=torch.bool)
    seen[1, 7 - padding :] = False
    assert_equals_reference(operator, built(operator, heads=heads), X, seen)


@settings(max_examples=40, deadline=None)
@given(
    operator=st.sampled_from(sorted(SELF_ATTENTION)),
    batch=st.integers(1, 3),
    n=st.integers(1, 9),
    heads=st.integers(1, 4),
    d=st.integers(1, 6),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_the_definition_holds_at_any_size(operator, batch, n, heads, d, seed, data):
    module = built(operator, heads * d, heads, positions=n + data.draw(st.integers(0, 3)), seed=seed)
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(batch, n, heads * d, dtype=torch.float64, generator=generator)
    seen = torch.rand(batch, n, generator=generator) < 0.7
    seen[:, 0] = True
    assert_equals_reference(operator, module, X, seen)


@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_gradients_agree_with_finite_differences(operator):
    module = built(operator, hidden=4, heads=2, positions=3)
    X = 0.5 * torch.randn(1, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    assert torch.autograd.gradcheck(lambda X: output(module, X), X.requires_grad_())


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_masked_keys_never_influence_an_output(operator, training):
    """In training too, where the product is written out."""
    module = built(operator).train(training)
    module.rate = 1e-12 if training else 0.0
    X = torch.randn(1, 6, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    seen = torch.tensor([True, True, True, True, False, False])
    changed = X.clone()
    changed[0, 4:] = 100.0
    one, two = (module(T, seen[None, None, None, :])[0, :4] for T in (X, changed))
    torch.testing.assert_close(one, two, rtol=0, atol=0)


@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_an_added_mask_does_what_a_boolean_one_does(operator):
    module = built(operator)
    X = torch.randn(1, 6, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    seen = torch.tensor([True, True, False, True, False, True])[None, None, None, :]
    added = torch.zeros(seen.shape, dtype=torch.float64).masked_fill(~seen, torch.finfo(torch.float64).min)
    torch.testing.assert_close(module(X, added), module(X, seen))


# identities


@pytest.mark.parametrize("operator", SYMMETRIC)
def test_scores_are_symmetric_in_the_two_tokens(operator):
    module = built(operator)
    Q, K, _ = module.queries_keys_values(torch.randn(1, 6, 24, dtype=torch.float64))
    torch.testing.assert_close(Q @ K.mT, (Q @ K.mT).mT)


@pytest.mark.parametrize("operator", PROJECTED)
def test_an_original_with_the_projections_of_an_operator_has_its_outputs(operator):
    module, original = built(operator), built("original")
    with torch.no_grad():
        for layer, (weight, bias) in zip(
            (original.query, original.key, original.value), module.projections(), strict=True
        ):
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
    X = torch.randn(2, 6, 24, dtype=torch.float64)
    torch.testing.assert_close(original(X), output(module, X), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("operator", ["hadamard", "fixed"])
def test_operators_that_bert_cannot_express_say_so(operator):
    with pytest.raises(ValueError, match="BERT cannot express it"):
        built(operator).projections()


def test_only_the_product_of_the_query_and_key_diagonals_matters():
    module, other = built("shared"), built("shared")
    with torch.no_grad():
        other.D_q.copy_(module.D_q * module.D_k)
        other.D_k.fill_(1.0)
    X = torch.randn(1, 6, 24, dtype=torch.float64)
    torch.testing.assert_close(output(other, X), output(module, X))


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
    torch.testing.assert_close(tied(X) * module.D_v / root, output(module, X))


# starts and limits


def started(operator: str, hidden=512, heads=8, positions=40, **others) -> SelfAttention:
    torch.manual_seed(0)
    module = SELF_ATTENTION[operator](hidden, heads, 0.1, positions, **others)
    with torch.no_grad():
        module.initialise()
    return module


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
    with pytest.raises(ValueError, match=r"'ones'; allowed are normal, identity, scaled"):
        started("pairwise", start="ones")


def test_diagonals_start_at_one_and_a_tied_start_ties():
    shared, tied = started("shared"), started("original_tied_init")
    assert all((D == 1).all() for D in (shared.D_q, shared.D_k, shared.D_v, started("partial_qk").D))
    assert torch.equal(tied.key.weight, tied.query.weight) and tied.key.weight is not tied.query.weight


def test_positional_weights_start_as_keras_would():
    W = started("hadamard").W  # limit of a Glorot-uniform kernel [1, 8, 40, 40]
    assert W.abs().max().item() == pytest.approx((6 / (2 * 8 * 40)) ** 0.5, rel=1e-3)
    assert started("hadamard").s.item() == 1.0


def test_the_blogs_layer_has_its_number_of_parameters():
    with_output = sum(p.numel() for p in started("hadamard").parameters()) + 512 * 512 + 512
    assert with_output == 538_113
    assert sum(p.numel() for p in started("original").parameters()) + 512 * 512 + 512 == 1_050_624


@pytest.mark.parametrize("operator", ["hadamard", "fixed"])
def test_a_sequence_longer_than_the_positions_is_a_clear_error(operator):
    with pytest.raises(ValueError, match="weights for 7 positions; a sequence has 8"):
        built(operator)(torch.zeros(1, 8, 24, dtype=torch.float64))


@pytest.mark.parametrize("operator", SELF_ATTENTION)
def test_heads_that_do_not_divide_the_width_are_an_error(operator):
    with pytest.raises(ValueError, match="5 heads do not divide the hidden size 24"):
        SELF_ATTENTION[operator](24, 5, 0.1, 8)


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
    width = heads * 3
    Q = linear(X, module.query)
    wanted = torch.cat(
        [
            torch.softmax(Q[..., 3 * i : 3 * i + 3] @ (module.K[i] * heads**0.5).T, dim=-1) @ (module.V[i] * width**0.5)
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
