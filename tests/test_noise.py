"""Noise of the stated size, the same for every operator; no noise at level 0."""

import random
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from stages.attention.bert import OperatorBertForSequenceClassification
from stages.attention.configuration import configuration
from stages.attention.operators import OPERATORS
from stages.classification.training import Encoded, encode_frame, predict
from stages.finetuning import stage as finetuning
from stages.noise import embeddings as noise
from stages.noise import probes, stage
from stages.noise.text import KINDS, perturb_frame
from stages.schema.settings import load_settings
from stages.schema.testing_sections import Noise
from tests.toy import TOY

CLS, SEP, PAD = 2, 3, 0
PADDING, SPECIAL = torch.tensor([PAD]), torch.tensor([PAD, CLS, SEP])
FRAME = pd.DataFrame({"text_a": ["one two three four five"] * 20, "text_b": ["six seven", None] * 10, "label": 0})


def model_of(operator="original", labels=3):
    torch.manual_seed(1)
    model = OperatorBertForSequenceClassification(configuration(operator, **TOY, vocab_size=40, num_labels=labels))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return model.eval()


def examples_of(count=40):
    generator = np.random.default_rng(0)
    ids = [np.array([CLS, *generator.integers(5, 40, generator.integers(2, 12)), SEP]) for _ in range(count)]
    return Encoded(tuple(ids), tuple(np.zeros_like(row) for row in ids), generator.integers(0, 3, count))


def settings_of(**changes) -> Noise:
    plain = {"levels": [0.0, 0.4], "kind": "expected_norm", "place": "word_embeddings", "seeds": [1, 2]}
    plain |= {"tasks": ["sst2"], "special_tokens": True, "text": ["typos"], "probes": False}
    return Noise.model_validate(plain | changes)


def added(model, place, kind, level, norm, seed, spared=PADDING):
    """The vectors that the noise adds to the embeddings of one padded batch [2, 5, 16]."""
    ids = torch.tensor([[CLS, 7, 8, 9, SEP], [CLS, 7, SEP, PAD, PAD]])
    module, seen = noise.find_noised_module(model, place), []
    clean = module(ids) if place == "word_embeddings" else module(input_ids=ids)
    hook = module.register_forward_hook(lambda _m, _a, output: seen.append(output))
    with noise.add_noise(model, kind, place, level, norm, seed, spared):
        noised = module(ids) if place == "word_embeddings" else module(input_ids=ids)
    hook.remove()
    return ids, noised - clean


@pytest.mark.parametrize("level", [0.05, 0.4])
@pytest.mark.parametrize("kind", ["expected_norm", "exact_norm", "unit"])
def test_noise_has_the_stated_norm(kind, level):
    G = torch.randn(4000, 64, generator=torch.Generator().manual_seed(0))
    norms = (G * noise.compute_factors(G, kind, level, norm=3.0)).norm(dim=-1)
    expected = level * (3.0 if kind != "unit" else 64**0.5 * (1 - 1 / 256))
    assert norms.mean().item() == pytest.approx(expected, rel=0.01)
    if kind == "exact_norm":
        torch.testing.assert_close(norms, torch.full_like(norms, expected))


@pytest.mark.parametrize("place", ["word_embeddings", "embedding_output"])
def test_the_average_norm_is_over_all_tokens_that_take_noise_whatever_is_padded(place):
    model, examples = model_of(), examples_of()
    module, norms = noise.find_noised_module(model, place), []
    for ids in examples.ids:
        row = torch.from_numpy(ids)[None]
        vectors = module(row) if place == "word_embeddings" else module(input_ids=row)
        norms.append(vectors[0].norm(dim=-1))
    whole = torch.cat(norms).mean().item()
    inner = torch.cat([row[1:-1] for row in norms]).mean().item()
    assert noise.measure_average_norm(model, examples, place, PADDING) == pytest.approx(whole)
    assert noise.measure_average_norm(model, examples, place, SPECIAL) == pytest.approx(inner)


@pytest.mark.parametrize("place", ["word_embeddings", "embedding_output"])
def test_padding_and_spared_tokens_stay_clean(place):
    ids, difference = added(model_of(), place, "exact_norm", 0.5, 2.0, seed=1, spared=SPECIAL)
    hit = difference.norm(dim=-1) > 1e-6
    assert torch.equal(hit, (ids != PAD) & (ids != CLS) & (ids != SEP))


@pytest.mark.parametrize("place", ["word_embeddings", "embedding_output"])
@pytest.mark.parametrize("operator", ["pairwise", "shared", "hadamard"])
def test_one_seed_gives_every_operator_the_same_noise(operator, place):
    _, reference = added(model_of(), place, "exact_norm", 0.5, 2.0, seed=1)
    _, same = added(model_of(operator), place, "exact_norm", 0.5, 2.0, seed=1)
    _, other = added(model_of(operator), place, "exact_norm", 0.5, 2.0, seed=2)
    torch.testing.assert_close(same, reference, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(other, reference, atol=0.1)


def test_level_zero_is_the_clean_prediction_and_strong_noise_changes_predictions(tokenizer):
    model, examples = model_of(), examples_of()
    result = noise.predict_under_noise(model, examples, tokenizer, settings_of(levels=[0.0, 5.0]), "float32")
    clean = predict(model, examples, "float32")
    assert list(result) == ["noise=0", "noise=5"]
    [plain], [one, other] = result.values()
    np.testing.assert_array_equal(plain, clean)
    assert (one != clean).any() and (one != other).any()
    np.testing.assert_array_equal(predict(model, examples, "float32"), clean)  # nothing stays behind


def test_scores_are_means_over_the_noise_seeds():
    labels = np.array([0, 1, 1, 0])
    drawn = [np.array([0, 1, 1, 0]), np.array([1, 1, 1, 0])]
    assert stage.average_scores("sst2", drawn, labels) == {"accuracy": 0.875}


def test_every_model_that_finetuning_keeps_is_evaluated_and_no_other():
    settings, models = load_settings(), [("courtois2024", "original", "tiny")]
    tuned = {}
    for run in finetuning.plan_runs(settings, models):
        if run.keep and run.task in settings.noise.tasks:
            tuned[str(run.keep)] = (run.task, run.pretraining_seed, run.seed, run.training.maximum_length)
    evaluated = {}
    for run in stage.plan_runs(settings, models):
        assert run.evaluated_on == (run.task,)
        evaluated[run.folder] = (run.task, run.pretraining_seed, run.seed, run.maximum_length)
    assert evaluated == tuned and list(evaluated) == sorted(evaluated)


# noise in the text


@pytest.mark.parametrize("kind", KINDS)
def test_text_noise_repeats_itself_and_leaves_clean_text_at_level_zero(kind):
    assert perturb_frame(FRAME, kind, 0.0, 1).equals(FRAME)
    noised = perturb_frame(FRAME, kind, 0.4, 1)
    assert noised.equals(perturb_frame(FRAME, kind, 0.4, 1))
    assert not noised["text_a"].equals(FRAME["text_a"])
    assert noised["text_b"].isna().equals(FRAME["text_b"].isna())
    assert (noised["text_a"].str.strip() != "").all()
    for text in ("a", "one", "?!", "x y"):
        assert KINDS[kind](text, 1.0, random.Random(0)).strip()


def test_words_are_dropped_at_the_stated_rate_and_none_is_lost_where_words_are_swapped():
    text = " ".join(f"word{chr(97 + i % 26)}" for i in range(4000))
    dropped = KINDS["dropped_words"](text, 0.3, random.Random(1)).split()
    assert len(dropped) / 4000 == pytest.approx(0.7, abs=0.03)
    swapped = KINDS["swapped_words"](text, 0.3, random.Random(1)).split()
    assert sorted(swapped) == sorted(text.split())


@pytest.fixture
def tokenizer(tmp_path):
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "one", "two", "three", "four", "five", "six", "seven"]
    words = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def test_noise_in_the_text_gives_predictions_by_kind_level_and_seed(tokenizer):
    model, settings = model_of(), settings_of(text=["typos", "dropped_words"])
    predictions = noise.predict_under_text_noise(
        FRAME, settings, lambda frame: predict(model, encode_frame(frame, tokenizer, 16), "float32")
    )
    assert list(predictions) == ["typos=0.4", "dropped_words=0.4"]
    assert [len(drawn) for drawn in predictions.values()] == [2, 2]


# probes


@pytest.mark.parametrize("operator", OPERATORS)
def test_probes_of_every_operator_are_in_their_range(operator):
    result = probes.measure_probes(model_of(operator), examples_of(5), seed=1)
    layer = result["layer=1"]
    assert 0 < layer["attention_entropy"] <= 1 and 0 < layer["self_weight"] < 1
    assert 0 <= layer["score_asymmetry"] <= 1 and result["model"]["sensitivity"] > 0
    assert ("negative_diagonal_share" in layer) == (operator in ("shared", "partial_qk"))
    if operator in ("symmetric", "partial_qk", "shared", "tied_qkv"):
        assert layer["score_asymmetry"] == pytest.approx(0, abs=1e-6)


def test_probes_see_the_token_types_as_training_does():
    model, examples = model_of(), examples_of(5)
    with torch.no_grad():
        model.bert.embeddings.token_type_embeddings.weight.mul_(50)
    second = Encoded(examples.ids, tuple(np.ones_like(row) for row in examples.ids), examples.labels)
    alone, paired = (probes.measure_probes(model, found, seed=1) for found in (examples, second))
    assert alone["layer=1"]["attention_entropy"] != paired["layer=1"]["attention_entropy"]
    assert alone["model"]["sensitivity"] != paired["model"]["sensitivity"]


def test_uniform_attention_has_full_entropy_and_a_peak_on_itself_none():
    assert probes.measure_scores(torch.zeros(1, 8, 8))["attention_entropy"] == pytest.approx(1)
    peaked = probes.measure_scores(100 * torch.eye(8)[None])
    assert peaked["attention_entropy"] == pytest.approx(0, abs=1e-6)
    assert peaked["self_weight"] == pytest.approx(1)


def test_negative_entries_of_the_merged_diagonal_are_counted():
    model = model_of("shared")
    module = model.bert.encoder.layer[0].attention.self
    with torch.no_grad():
        module.D_q.fill_(1.0)
        module.D_k.copy_(torch.tensor([-1.0] * 4 + [1.0] * 12))
    assert probes.measure_diagonal(module) == {"negative_diagonal_share": 0.25}


def test_sensitivity_is_the_norm_of_the_jacobian_vector_product():
    model = model_of().double()
    ids = torch.tensor([[CLS, 7, 8, SEP]])
    E = model.bert.embeddings.word_embeddings(ids).detach()
    V = torch.randn(E.shape, generator=torch.Generator().manual_seed(4)).double()
    types = torch.tensor([[0, 0, 1, 1]])
    jacobian = torch.autograd.functional.jacobian(lambda E: model(inputs_embeds=E, token_type_ids=types).logits, E)
    expected = (jacobian * (V / V.norm() * E.norm())).sum((2, 3, 4)).norm().item()
    with torch.no_grad():
        got = probes.measure_sensitivity(model, ids, types, torch.Generator().manual_seed(4))
    assert got == pytest.approx(expected, rel=1e-3)


def test_a_letter_that_changes_places_with_the_next_moves_it_once():
    draw = SimpleNamespace(random=lambda: 0.0, randrange=lambda number: 2)
    assert KINDS["typos"]("abcde", 1.0, draw) == "badce"
