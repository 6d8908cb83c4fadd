"""Noise of the stated size, the same for every operator; no noise at level 0."""

import numpy as np
import pandas as pd
import pytest
import torch

from stages.attention.bert import OperatorBertForSequenceClassification
from stages.attention.configuration import make_configuration
from stages.classification.training import Encoded, predict_examples
from stages.finetuning import stage as finetuning
from stages.noise import embeddings as noise
from stages.noise import stage
from stages.schema.settings import load_settings
from stages.schema.testing_sections import Noise
from tests.toy import TOY, write_word_tokenizer
from tests.toy_weights import move_parameters

PLACES = ("word_embeddings", "embedding_output")
in_both_places = pytest.mark.parametrize("place", PLACES)
PAD, CLS, SEP = 0, 2, 3
PADDING, SPECIAL = torch.tensor([PAD]), torch.tensor([PAD, CLS, SEP])
FRAME = pd.DataFrame({"text_a": ["w7 w8 w9 w10 w11"] * 20, "text_b": ["w12 w13", None] * 10, "label": 0})


def make_model(operator: str = "original") -> OperatorBertForSequenceClassification:
    torch.manual_seed(1)
    config = make_configuration(operator, **TOY, vocab_size=40, num_labels=3)
    return move_parameters(OperatorBertForSequenceClassification(config), by=0.3).eval()


def make_examples(count: int = 40) -> Encoded:
    generator = np.random.default_rng(0)
    ids = []
    types = []
    for _ in range(count):
        words = generator.integers(5, 40, generator.integers(2, 12))
        ids.append(np.array([CLS, *words, SEP]))
        types.append(np.zeros_like(ids[-1]))
    return Encoded(tuple(ids), tuple(types), generator.integers(0, 3, count))


def embed(model, place: str, ids: torch.Tensor) -> torch.Tensor:
    """Embeds ids [batch, n] up to the place of the noise."""
    module = noise.find_noised_module(model, place)
    if place == "word_embeddings":
        return module(ids)
    return module(input_ids=ids)


def make_settings(**changes) -> Noise:
    return load_settings().noise.model_copy(update=changes)


@pytest.fixture
def tokenizer(tmp_path):
    return write_word_tokenizer(tmp_path / "tokenizer.json")


BATCH = torch.tensor([[CLS, 7, 8, 9, SEP], [CLS, 7, SEP, PAD, PAD]])


def add_noise(model, place: str, seed: int, spared: torch.Tensor = PADDING) -> torch.Tensor:
    """Computes the vectors [2, 5, 16] that the noise adds to the embeddings of BATCH."""
    clean = embed(model, place, BATCH)
    with noise.add_noise(model, make_settings(kind="exact_norm", place=place), 0.5, 2.0, seed, spared):
        return embed(model, place, BATCH) - clean


@pytest.mark.parametrize(("kind", "norm"), [("expected_norm", 3.0), ("exact_norm", 3.0), ("unit", 8.0)])
def test_noise_has_the_stated_norm(kind, norm):
    G = torch.randn(4000, 64, generator=torch.Generator().manual_seed(0))
    norms = (G * noise.compute_factors(G, kind, 0.4, norm=3.0)).norm(dim=-1)
    assert norms.mean().item() == pytest.approx(0.4 * norm, rel=0.01)
    if kind == "exact_norm":
        torch.testing.assert_close(norms, torch.full_like(norms, 0.4 * norm))


@in_both_places
def test_the_average_norm_is_over_all_tokens_that_take_noise_whatever_is_padded(place):
    model, examples = make_model(), make_examples()
    whole = []
    inner = []
    for ids in examples.ids:
        norms = embed(model, place, torch.from_numpy(ids)[None])[0].norm(dim=-1)
        whole.append(norms)
        inner.append(norms[1:-1])
    for spared, norms in ((PADDING, whole), (SPECIAL, inner)):
        average = noise.measure_average_norm(model, examples, place, spared)
        assert average == pytest.approx(torch.cat(norms).mean().item())


@in_both_places
def test_padding_and_spared_tokens_stay_clean(place):
    difference = add_noise(make_model(), place, seed=1, spared=SPECIAL)
    assert torch.equal(difference.norm(dim=-1) > 1e-6, BATCH > SEP)


@in_both_places
@pytest.mark.parametrize("operator", ["pairwise", "shared", "hadamard"])
def test_one_seed_gives_every_operator_the_same_noise(operator, place):
    reference = add_noise(make_model(), place, seed=1)
    model = make_model(operator)
    torch.testing.assert_close(add_noise(model, place, seed=1), reference, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(add_noise(model, place, seed=2), reference, atol=0.1)


def test_level_zero_is_the_clean_prediction_and_strong_noise_changes_predictions(tokenizer):
    model, examples = make_model(), make_examples()
    result = noise.predict_under_noise(
        model, examples, tokenizer, make_settings(levels=[0.0, 5.0], seeds=[1, 2]), "float32"
    )
    clean = predict_examples(model, examples, "float32")
    assert list(result) == ["noise=0", "noise=5"]
    [plain], [one, other] = result.values()
    np.testing.assert_array_equal(plain, clean)
    assert (one != clean).any()
    assert (one != other).any()
    np.testing.assert_array_equal(predict_examples(model, examples, "float32"), clean)  # nothing stays behind


@pytest.mark.parametrize(("special", "spared"), [(True, [PAD]), (False, [PAD, CLS, SEP])])
def test_special_tokens_take_noise_only_where_the_setting_says_so(special, spared, tokenizer, monkeypatch):
    found = []
    monkeypatch.setattr(noise, "measure_average_norm", lambda *arguments: found.append(arguments[-1].tolist()))
    setting = make_settings(levels=[0.0], special_tokens=special)
    noise.predict_under_noise(make_model(), make_examples(2), tokenizer, setting, "float32")
    assert found == [spared]


def test_scores_are_means_over_the_noise_seeds():
    labels = np.array([0, 1, 1, 0])
    drawn = [np.array([0, 1, 1, 0]), np.array([1, 1, 1, 0])]
    assert stage.average_scores("sst2", drawn, labels) == {"accuracy": 0.875}


def test_every_model_that_finetuning_keeps_is_evaluated_and_no_other():
    settings, models = load_settings(), [("courtois2024", "original", "tiny")]
    kept = []
    for run in finetuning.plan_runs(settings, models):
        if run.keep and run.task in settings.noise.tasks:
            kept.append((str(run.keep), run.task, (run.task,), run.pretraining_seed, run.seed))
    evaluated = []
    for run in stage.plan_runs(settings, models):
        evaluated.append((run.folder, run.task, run.evaluated_on, run.pretraining_seed, run.seed))
    assert evaluated == sorted(kept)
