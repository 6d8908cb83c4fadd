"""The recipe: masking, schedule, optimiser, resumption, batches."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import get_linear_schedule_with_warmup

from stages.attention.bert import OperatorBertForMaskedLM, OperatorBertForSequenceClassification
from stages.attention.configuration import make_configuration
from stages.attention.operators import OPERATORS
from stages.classification import training as finetuning
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.loss import MaskedLMLoss
from stages.masked_lm.masking import list_sparse_targets, mask_tokens
from stages.masked_lm.steps import build_model
from stages.training.batches import draw_batches, sort_into_batches
from stages.training.optimisation import (
    READ_INTERVAL,
    UnreadLosses,
    apply_gradients,
    build_optimiser,
    compute_linear_rate,
    compute_stepped_rate,
)
from tests.toy import LENGTH, SPECIAL, TOY, VOCABULARY, make_run, make_tuned_run, save_pretrained, write_word_tokenizer

# masking


def mask(shape=(400, 100), share=0.15):
    sequences = torch.randint(5, VOCABULARY, shape)
    sequences[:, 0] = SPECIAL["[CLS]"]
    special = torch.tensor([SPECIAL["[CLS]"], SPECIAL["[SEP]"]])
    corpus = Corpus(None, None, VOCABULARY, SPECIAL["[MASK]"], special)
    return sequences, *mask_tokens(sequences, corpus, share, torch.Generator().manual_seed(3))


def compute_share(marks: torch.Tensor) -> float:
    return marks.float().mean().item()


def test_the_stated_share_is_chosen_and_split_80_10_10():
    sequences, inputs, chosen = mask()
    assert compute_share(chosen[:, 1:]) == pytest.approx(0.15, abs=0.005)
    hidden = inputs[chosen] == SPECIAL["[MASK]"]
    kept = inputs[chosen] == sequences[chosen]
    assert compute_share(hidden) == pytest.approx(0.8, abs=0.02)
    # A random token may be the same token.
    assert compute_share(kept) == pytest.approx(0.1 + 0.1 / VOCABULARY, abs=0.015)


def test_special_tokens_and_unchosen_tokens_stay(tokens):
    assert Corpus.open(tokens).special.tolist() == [SPECIAL[name] for name in ("[CLS]", "[SEP]", "[PAD]")]
    sequences, inputs, chosen = mask()
    assert not chosen[:, 0].any()
    assert torch.equal(inputs[~chosen], sequences[~chosen])


def test_the_sparse_head_gives_the_loss_and_gradients_of_the_whole_one():
    torch.manual_seed(0)
    model = OperatorBertForMaskedLM(make_configuration("original", **TOY, vocab_size=VOCABULARY)).eval()
    sequences, inputs, chosen = mask((3, LENGTH), 0.4)
    loss = MaskedLMLoss(model)(inputs, *list_sparse_targets(sequences, chosen)) / chosen.sum()
    whole = model(inputs, labels=sequences.masked_fill(~chosen, -100)).loss
    torch.testing.assert_close(loss, whole)
    parameters = list(model.parameters())
    own = torch.autograd.grad(loss, parameters)
    expected = torch.autograd.grad(whole, parameters)
    torch.testing.assert_close(own, expected, rtol=1e-4, atol=1e-6)


# optimiser and schedule


@pytest.mark.parametrize(("steps", "warmup"), [(10, 3), (10, 0), (200, 20)])
def test_the_linear_schedule_is_the_librarys(steps, warmup):
    adamw = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    schedule = get_linear_schedule_with_warmup(adamw, warmup, steps)
    for step in range(steps):
        assert compute_linear_rate(step, steps, warmup, 0.5) == pytest.approx(schedule.get_last_lr()[0])
        adamw.step()
        schedule.step()


@pytest.mark.parametrize(("warmup", "rates"), [(0, [3, 3, 2, 2, 1, 1]), (4, [0, 0.75, 1, 1.5, 1, 1])])
def test_stepped_rates_serve_equal_parts_of_the_run_and_are_scaled_in_the_warm_up(warmup, rates):
    assert [compute_stepped_rate(step, 6, warmup, (3.0, 2.0, 1.0)) for step in range(6)] == rates


def test_biases_and_layer_norms_are_not_decayed_and_operators_own_matrices_are():
    model = OperatorBertForMaskedLM(make_configuration("pairwise", **TOY, vocab_size=VOCABULARY))
    decay = {}
    adamw = build_optimiser(model, (0.9, 0.98), 1e-6, 0.1)
    assert (adamw.defaults["betas"], adamw.defaults["eps"]) == ((0.9, 0.98), 1e-6)
    for group in adamw.param_groups:
        for parameter in group["params"]:
            decay[id(parameter)] = group["weight_decay"]
    for name, parameter in model.named_parameters():
        exempt = name.endswith("bias") or "LayerNorm" in name
        assert decay[id(parameter)] == (0.0 if exempt else 0.1), name


def set_gradients(model: torch.nn.Module, value: float) -> None:
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, value)


@pytest.mark.parametrize(("operator", "scores"), [("pairwise", {"S"}), ("shared", {"D_q", "D_k"})])
def test_a_score_rate_is_that_of_the_scores_own_parameters_alone(operator, scores):
    model = OperatorBertForMaskedLM(make_configuration(operator, **TOY, vocab_size=VOCABULARY, score_rate=5.0))
    adamw = build_optimiser(model, (0.9, 0.999), 1e-8, 0.0)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    set_gradients(model, 1.0)
    apply_gradients(model, adamw, 1e-3, 1e9)
    for name, parameter in model.named_parameters():
        rate = 5e-3 if name.rpartition(".")[2] in scores else 1e-3
        # The first step of Adam is the rate, whatever the gradient.
        step = (before[name] - parameter).mean().item()
        assert step == pytest.approx(rate, rel=1e-3), name


def test_gradients_are_clipped_together_and_their_norm_before_is_returned():
    model = torch.nn.Linear(2, 1)
    adamw = build_optimiser(model, (0.5, 0.9), 1e-8, 0.0)
    set_gradients(model, 3.0)
    assert apply_gradients(model, adamw, 1e-3, 1.0).item() == pytest.approx(27**0.5)
    # the first moment is half of the clipped gradient
    moments = [adamw.state[parameter]["exp_avg"].flatten() for parameter in model.parameters()]
    assert torch.cat(moments).norm().item() == pytest.approx(0.5)


@pytest.mark.parametrize("clipping", [1.0, float("inf")])
@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_a_gradient_that_is_not_finite_changes_neither_weights_nor_moments(bad, clipping):
    model = torch.nn.Linear(2, 1)
    adamw = build_optimiser(model, (0.9, 0.999), 1e-8, 0.1)
    states = []
    for value in (1.0, bad):
        set_gradients(model, value)
        apply_gradients(model, adamw, 1e-2, clipping)
        tensors = [parameter.detach() for parameter in model.parameters()]
        for parameter in model.parameters():
            tensors += adamw.state[parameter].values()
        states.append([tensor.clone() for tensor in tensors])
    assert all(map(torch.equal, *states))


def test_updates_are_read_once_and_in_order_and_the_first_that_diverged_is_named():
    unread = UnreadLosses(lambda step, loss: f"step {step}: loss {loss}")
    assert unread.read() == []
    for step in range(3):
        unread.add(step, torch.tensor(step + 0.5), torch.tensor(1.0))
    assert unread.read() == [[0.5, 1.0], [1.5, 1.0], [2.5, 1.0]]
    assert unread.read() == []
    for step, norm in ((3, 1.0), (4, float("nan")), (5, float("inf"))):
        unread.add(step, torch.tensor(2.0), torch.tensor(norm))
    with pytest.raises(
        ValueError, match=r"step 4: loss 2\.0, gradient norm nan: the run has diverged; lower the learning"
    ):
        unread.read()


# fine-tuning


@pytest.mark.parametrize("examples", [3, 3 * READ_INTERVAL])
def test_fine_tuning_that_diverges_ends_within_an_interval_and_names_the_step(examples, monkeypatch):
    seen = []

    def diverge(*_) -> torch.Tensor:
        seen.append(len(seen))
        return torch.tensor(float("nan") if len(seen) == 2 else 1.0)

    monkeypatch.setattr(finetuning, "update_weights", diverge)
    run = make_tuned_run(Path("weights"), epochs=1, batch_size=1)
    with pytest.raises(ValueError, match="fine-tuning .*, step 2: loss 0.0, gradient norm nan"):
        finetuning.train_epochs(torch.nn.Linear(1, 1), [1] * examples, run, lambda _: torch.zeros(()))
    assert len(seen) == min(examples, READ_INTERVAL)


@pytest.fixture
def tokenizer(tmp_path) -> Path:
    return write_word_tokenizer(tmp_path / "tokenizer.json")


@pytest.fixture
def table(tmp_path) -> Path:
    """The label says whether the first word is among w5 to w19."""
    generator = np.random.default_rng(0)
    rows = []
    for first in generator.integers(5, 35, 120):
        others = generator.integers(40, VOCABULARY, generator.integers(1, 5))
        text = " ".join(f"w{number}" for number in (first, *others))
        rows.append((text, None, int(first < 20)))
    path = tmp_path / "table.parquet"
    pd.DataFrame(rows, columns=["text_a", "text_b", "label"]).to_parquet(path)
    return path


def finetune(weights, tokenizer, table, **changes):
    return finetuning.train_and_predict(make_tuned_run(weights, **changes), tokenizer, table, {"toy": table})[0]["toy"]


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_pretrains_and_fine_tunes_to_finite_predictions(operator, tokens, tokenizer, table, tmp_path):
    log, _ = save_pretrained(tokens, tmp_path / "a", operator)
    predictions = finetune(tmp_path / "a/model", tokenizer, table, epochs=1)
    assert np.isfinite([entry["validation_loss"] for entry in log]).all()
    assert set(predictions) <= {0.0, 1.0}
    assert len(predictions) == 120


@pytest.mark.nightly
@pytest.mark.parametrize("operator", ["original", "symmetric", "pairwise", "shared"])
def test_fine_tuning_learns(operator, tokens, tokenizer, table, tmp_path):
    save_pretrained(tokens, tmp_path / "a", operator)
    predictions = finetune(tmp_path / "a/model", tokenizer, table)
    labels = pd.read_parquet(table)["label"]
    assert (labels == predictions).mean() > 0.9


def test_each_rate_of_dropout_is_that_of_the_recipe(tmp_path):
    first = build_model(make_run(hidden_dropout=0.2, attention_dropout=0.3), VOCABULARY)
    first.save_pretrained(tmp_path)
    recipe = make_tuned_run(tmp_path, hidden_dropout=0.4, attention_dropout=0.5)
    second = finetuning.load_weights(OperatorBertForSequenceClassification, recipe, num_labels=2)
    rates = [(model.config.hidden_dropout_prob, model.config.attention_probs_dropout_prob) for model in (first, second)]
    assert rates == [(0.2, 0.3), (0.4, 0.5)]


def test_examples_are_cut_to_the_maximum_length_between_the_special_tokens(tokenizer, table):
    examples = finetuning.encode_table(table, tokenizer, 4)
    assert max(examples.lengths) == 4
    assert {(ids[0], ids[-1]) for ids in examples.ids} == {(SPECIAL["[CLS]"], SPECIAL["[SEP]"])}


def test_the_model_sees_which_text_a_token_is_from_and_a_mask_only_with_padding(tokenizer):
    def show_inputs(ids, attention_mask, token_type_ids):
        return SimpleNamespace(logits=(ids, attention_mask, token_type_ids))

    table = tokenizer.with_name("table.parquet")
    pd.DataFrame({"text_a": ["w5 w6", "w8"], "text_b": ["w7", None], "label": 0}).to_parquet(table)
    examples = finetuning.encode_table(table, tokenizer, 16)
    ids, mask, types = finetuning.compute_logits(show_inputs, examples, np.array([0]))
    assert ids.tolist() == [[SPECIAL["[CLS]"], 5, 6, SPECIAL["[SEP]"], 7, SPECIAL["[SEP]"]]]
    assert types.tolist() == [[0, 0, 0, 0, 1, 1]]
    assert mask is None
    ids, mask, _ = finetuning.compute_logits(show_inputs, examples, np.array([0, 1]))
    assert ids[1].tolist() == [SPECIAL["[CLS]"], 8, SPECIAL["[SEP]"], 0, 0, 0]
    assert mask.tolist() == [[1] * 6, [1, 1, 1, 0, 0, 0]]


def test_every_epoch_has_a_new_order_and_the_schedule_spans_all_epochs(monkeypatch):
    rates, seen = [], []
    zero = torch.zeros(())
    monkeypatch.setattr(finetuning, "update_weights", lambda model, adamw, loss, rate, *_: rates.append(rate) or zero)
    run = make_tuned_run(Path("weights"), epochs=2, warmup_share=0.5)
    finetuning.train_epochs(
        torch.nn.Linear(1, 1), list(range(1, 25)), run, lambda indices: seen.append(indices) or zero
    )
    assert rates == pytest.approx([compute_linear_rate(step, 6, 3, 1e-2) for step in range(6)])
    orders = [np.concatenate(epoch).tolist() for epoch in (seen[:3], seen[3:])]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(24))
    assert orders[0] != orders[1]


@pytest.mark.parametrize("examples", [1, 17, 300])
def test_every_example_is_in_one_batch_of_an_epoch_whose_order_follows_from_the_seed(examples):
    lengths = np.random.default_rng(0).integers(1, 100, examples)
    epoch = [list(batch) for batch in draw_batches(lengths, 8, 5)]
    assert sorted(np.concatenate(epoch)) == list(range(examples))
    assert max(map(len, epoch)) <= 8
    assert [list(batch) for batch in draw_batches(lengths, 8, 5)] == epoch
    # The only batch of few examples is sorted, whatever the seed.
    assert [list(batch) for batch in draw_batches(lengths, 8, 6)] != epoch or examples <= 8


def test_a_batch_holds_examples_of_similar_length():
    lengths = np.random.default_rng(0).integers(1, 100, 300)
    padded = sum(len(batch) * lengths[batch].max() for batch in draw_batches(lengths, 8, 5))
    assert padded < 1.1 * lengths.sum()


def test_a_model_that_is_not_trained_meets_every_example_once_from_the_shortest_on():
    assert [list(batch) for batch in sort_into_batches([3, 1, 3, 2, 1], 2)] == [[1, 4], [3, 0], [2]]
