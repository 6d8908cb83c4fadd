"""Stage translation: the Transformer against torch.nn, causality, padding, decoding, BLEU, resumption, sequences."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sacrebleu.metrics.bleu import BLEU
from safetensors.numpy import load_file
from torch import nn

from stages.attention.multihead import AsMultiheadAttention
from stages.encoder_decoder import steps
from stages.encoder_decoder.pairs import BEGIN, END, PAD, Pairs
from stages.encoder_decoder.run import TRANSLATION, TranslationRun
from stages.encoder_decoder.steps import Counts, build_model, compute_rate, evaluate_held_out
from stages.encoder_decoder.transformer import EPSILON, Attention, Transformer
from stages.schema.settings import load_settings
from stages.schema.translation_sections import SequenceTasks, TranslationProtocol
from stages.sentence_pairs import vocabulary
from stages.training.batches import draw_batches
from stages.training.optimisation import build_optimiser
from stages.translation import decoding, loop, sequences, stage
from tests.toy_settings import LAPTOP
from tests.toy_weights import move_parameters

# a toy model is slower on two threads
pytestmark = pytest.mark.usefixtures("one_thread")

WORDS = (23, 29)
SECTION = load_settings(LAPTOP).translation
TRAINING = SECTION.protocols["draft"].model_dump() | {
    "layers": 2, "hidden": 16, "heads": 2, "intermediate": 40, "positions": 12,
    "vocabulary": "separate", "vocabulary_size": 100, "batch_size": 8, "warmup_steps": 4, "beams": 3,
}  # fmt: skip


def make_run(operator: str = "original", seed: int = 1, **changes) -> TranslationRun:
    training = TranslationProtocol.model_construct(**TRAINING | changes)
    return TranslationRun(operator=operator, task=TRANSLATION, size="toy", seed=seed, training=training)


def make_model(operator: str = "original", **changes) -> Transformer:
    """A model with weights far from the initial values, so that nothing is equal by chance."""
    model = build_model(make_run(operator, **changes), WORDS).double().eval()
    torch.manual_seed(3)
    return move_parameters(model, 0.2)


def compute_scores(model: Transformer, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Scores [batch, m, words] of the token after each target token."""
    with torch.no_grad():
        return model.output(model.decode(target, *model.encode(source)))


def draw_ids(words: int, *lengths: int) -> torch.Tensor:
    """Sentences of these lengths, padded to the longest."""
    rows = torch.full((len(lengths), max(lengths)), PAD)
    generator = torch.Generator().manual_seed(len(lengths))
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = torch.randint(4, words, (length,), generator=generator)
    rows[:, 0] = BEGIN
    return rows


def build_library_layer(kind: type[nn.Module], ours: nn.Module) -> nn.Module:
    """A layer of torch.nn with the weights of a layer of our model."""
    hidden, heads, width = (TRAINING[name] for name in ("hidden", "heads", "intermediate"))
    layer = kind(hidden, heads, width, 0.0, layer_norm_eps=EPSILON, batch_first=True, dtype=torch.float64)
    layer.self_attn = AsMultiheadAttention(ours.attention.operator, batch_first=True)
    norms = [ours.attention.norm, ours.feed_forward.norm]
    if kind is nn.TransformerDecoderLayer:
        layer.multihead_attn = AsMultiheadAttention(ours.cross.operator, batch_first=True)
        norms.insert(1, ours.cross.norm)
    layer.linear1.load_state_dict(ours.feed_forward.inner[0].state_dict())
    layer.linear2.load_state_dict(ours.feed_forward.output.state_dict())
    for place, norm in enumerate(norms, 1):
        getattr(layer, f"norm{place}").load_state_dict(norm.state_dict())
    return layer.eval()


def embed(embedding: nn.Embedding, rows: torch.Tensor) -> torch.Tensor:
    """Embeddings and positions, as Vaswani et al. print them."""
    hidden = TRAINING["hidden"]
    places = torch.zeros(rows.shape[1], hidden)
    angles = torch.arange(rows.shape[1])[:, None] / 10_000 ** (torch.arange(0, hidden, 2) / hidden)
    places[:, 0::2], places[:, 1::2] = angles.sin(), angles.cos()
    return embedding(rows) * hidden**0.5 + places


def test_scores_of_original_are_the_scores_of_the_librarys_layers():
    model, source, target = make_model(), draw_ids(WORDS[0], 9, 6, 4), draw_ids(WORDS[1], 5, 8, 8)
    future = nn.Transformer.generate_square_subsequent_mask(target.shape[1], dtype=torch.float64)
    padding = source == PAD
    with torch.no_grad():
        X, Y = embed(model.source, source), embed(model.target, target)
        for ours in model.encoder:
            X = build_library_layer(nn.TransformerEncoderLayer, ours)(X, src_key_padding_mask=padding)
        for ours in model.decoder:
            layer = build_library_layer(nn.TransformerDecoderLayer, ours)
            Y = layer(Y, X, tgt_mask=future, memory_key_padding_mask=padding)
        wanted = model.output(Y)
    real = target != PAD
    torch.testing.assert_close(compute_scores(model, source, target)[real], wanted[real], rtol=0, atol=1e-6)


@pytest.mark.parametrize("operator", ["original", "shared", "hadamard", "fixed", "over_parameters"])
def test_the_source_has_an_influence_and_later_target_tokens_and_padding_have_none(operator):
    model, source, target = make_model(operator), draw_ids(WORDS[0], 7), draw_ids(WORDS[1], 6)
    scores = compute_scores(model, source, target)
    later = target.clone()
    later[:, 5] = 4 if target[0, 5] != 4 else 5
    changed = compute_scores(model, source, later)
    torch.testing.assert_close(changed[:, :5], scores[:, :5], rtol=0, atol=1e-12)
    assert not torch.allclose(changed[:, 5:], scores[:, 5:])
    longer = [nn.functional.pad(T, (0, 4), value=PAD) for T in (source, target)]
    torch.testing.assert_close(compute_scores(model, *longer)[:, :6], scores, rtol=0, atol=1e-12)
    assert not torch.allclose(compute_scores(model, source % 9, target), scores)


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_a_shared_vocabulary_is_one_matrix():
    model, separate = build_model(make_run(vocabulary="shared"), (29, 29)), build_model(make_run(), (29, 29))
    assert model.source.weight is model.target.weight is model.output.weight
    assert model.output.bias is None
    assert count(separate) - count(model) == 2 * 29 * TRAINING["hidden"] + 29


@pytest.mark.parametrize(("operator", "printed"), [("original", 1_050_624), ("hadamard", 538_113)])
def test_a_layer_has_as_many_parameters_as_the_blog_counts(operator, printed):
    block = Attention(make_run(operator, hidden=512, heads=8, positions=40))
    assert count(block) - count(block.norm) == printed


def test_weights_start_as_keras_starts_them():
    model = build_model(make_run(hidden=64), WORDS)
    for layer in filter(lambda part: isinstance(part, nn.Linear), model.modules()):
        # the limit of Glorot-uniform weights
        assert layer.weight.abs().max().item() == pytest.approx((6 / sum(layer.weight.shape)) ** 0.5, rel=0.02)
        assert not layer.bias.any()
    assert model.source.weight.std().item() == pytest.approx(1 / 8, rel=0.05)


def test_the_rate_rises_over_the_warm_up_and_falls_with_the_root_of_the_step():
    first, last, later = (compute_rate(step, 512, 4000) for step in (0, 3999, 15_999))
    assert last == pytest.approx(512**-0.5 * 4000**-0.5)
    assert (first, later) == (pytest.approx(last / 4000), pytest.approx(last / 2))


def make_pairs() -> Pairs:
    """Five pairs of random sentences."""
    generator = np.random.default_rng(5)
    sides = []
    for words in WORDS:
        lengths = generator.integers(2, 9, 5)
        inner = [generator.integers(4, words, length) for length in lengths]
        sides.append(tuple(np.array([BEGIN, *sentence, END]) for sentence in inner))
    return Pairs(*sides)


def make_update(model: Transformer, run: TranslationRun, step: int = 0) -> Counts:
    """Updates a model by all pairs, with a new optimiser."""
    adam = build_optimiser(model, run.training.betas, run.training.epsilon, 0.0)
    return steps.make_update(model, adam, step, make_pairs(), np.arange(5), run)


def test_the_ceiling_of_the_tutorials_accuracy_is_the_share_of_real_tokens():
    """Every position of every padded target counts; a position that holds padding is never right."""
    # targets of 3, 5 and 10 tokens, in which BEGIN is no label
    real = 2 + 4 + 9
    all_right = Counts(loss=1.0, right=real, tokens=real, pairs=3)
    entry = loop.make_log_entry(1, all_right, all_right, positions=12)
    assert entry["training_accuracy"] == entry["accuracy_ceiling"] == real / (3 * 11)
    assert entry["accuracy"] == 1.0


def test_a_loss_whose_perplexity_exceeds_every_float_gives_an_infinite_perplexity():
    for loss, perplexity in ((709.0, math.exp(709.0)), (710.0, math.inf)):
        counts = Counts(loss=loss, right=0, tokens=1, pairs=1)
        assert loop.make_log_entry(1, counts, counts, positions=12)["perplexity"] == perplexity


def test_an_update_reports_the_smoothed_loss_before_it_and_the_held_out_loss_is_not_smoothed():
    run, pairs = make_run(label_smoothing=0.5), make_pairs()
    model = build_model(run, WORDS)
    scores, labels = steps.score_pairs(model, pairs, np.arange(5))
    losses = [nn.functional.cross_entropy(scores, labels, label_smoothing=share).item() for share in (0.0, 0.5)]
    assert evaluate_held_out(model, pairs, "float32").loss / len(labels) == pytest.approx(losses[0], rel=1e-5)
    counts = make_update(model, run)
    assert (counts.loss / counts.tokens, counts.tokens, counts.pairs) == (pytest.approx(losses[1]), len(labels), 5)


def test_a_translation_depends_on_its_sentence_pairs():
    assert make_run().job.inputs == (make_run().data,)


def test_dropout_is_drawn_anew_for_every_step():
    run, losses = make_run(dropout=0.5), set()
    for step in range(2):
        losses.add(make_update(build_model(run, WORDS), run, step).loss)
    assert len(losses) == 2


def test_an_update_with_a_gradient_that_is_not_finite_is_an_error_that_names_the_step():
    run = make_run()
    model = build_model(run, WORDS)
    with torch.no_grad():
        model.output.bias[0] = float("nan")
    with pytest.raises(ValueError, match="step 8: loss nan, gradient norm nan: the run has diverged"):
        make_update(model, run, 7)


def make_tabulated_model(scores: torch.Tensor, positions: int) -> SimpleNamespace:
    """A model that looks up the log probabilities of the next word, by the sentence and all words before.

    scores: [sentences, prefixes, words]. A prefix has the number whose digits, the last first, are its words.
    """

    def decode(prefix: torch.Tensor, memory: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        numbers = (prefix * scores.shape[-1] ** torch.arange(prefix.shape[1])).sum(-1)
        return scores[memory[:, 0], numbers][:, None]

    def encode(source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return source, source

    return SimpleNamespace(places=range(positions), encode=encode, decode=decode, output=nn.Identity())


def find_best_of_all(scores: list[list[float]], positions: int, alpha: float) -> list[int]:
    """The translation of the highest penalised log probability, found by scoring every hypothesis of a sentence."""
    words, longest = len(scores[0]), positions - 1

    def worth(ids: tuple[int, ...]) -> float:
        number, total = BEGIN, 0.0
        for n, word in enumerate(ids, 1):
            total += scores[number][word]
            if word == END:
                break
            number += word * words**n
        return total / ((5 + n) / 6) ** alpha

    best = max(itertools.product(range(words), repeat=longest), key=worth)
    return list(itertools.takewhile(lambda word: word != END, best))


@pytest.mark.parametrize("alpha", [0.6, 4.0])
def test_a_wide_beam_finds_the_best_of_all_hypotheses_however_late_it_overtakes_those_that_have_ended(alpha):
    """END is likely at first and not later, so that a long hypothesis is often worth more than the first to end."""
    words, positions, source = END + 1, 6, torch.arange(3)[:, None]
    for seed in range(20, 25):
        scores = 2 * torch.randn(3, words**positions, words, generator=torch.Generator().manual_seed(seed))
        scores[..., END] -= 3
        scores[:, BEGIN, END] += 5
        scores = scores.log_softmax(-1)
        wanted = [find_best_of_all(table, positions, alpha) for table in scores.tolist()]
        assert decoding.search_by_beams(make_tabulated_model(scores, positions), source, 3**4, alpha) == wanted


@torch.no_grad()
def test_one_beam_is_greedy_search():
    model, source = make_model(), draw_ids(WORDS[0], 8)
    prefix = torch.full((1, 1), BEGIN)
    while prefix.shape[1] < TRAINING["positions"] and prefix[0, -1] != END:
        following = compute_scores(model, source, prefix)[:, -1:].argmax(-1)
        prefix = torch.cat([prefix, following], dim=1)
    [found] = decoding.search_by_beams(model, source, 1, 0.0)
    assert [BEGIN, *found, END][: prefix.shape[1]] == prefix[0].tolist()


@pytest.fixture
def prepared(in_an_empty_folder) -> None:
    """A folder with the outputs of stage sentence_pairs."""
    draws = np.random.default_rng(1).choice(["one", "two", "old", "new"], (60, 4))
    texts = [(" ".join(row), " ".join(row[::-1])) for row in draws]
    words = vocabulary.train(texts[:40], TRAINING["vocabulary_size"], False, make_run().data)
    for split, part in {"train": texts[:40], "validation": texts[40:50], "test": texts[50:]}.items():
        table = pd.DataFrame(part, columns=["source", "target"])
        sides = [tuple(vocabulary.encode(words[side], list(table[side]))) for side in table]
        Pairs(*sides).save(make_run().data / f"{split}.safetensors")
        table.to_parquet(make_run().data / f"{split}.parquet")


@pytest.mark.parametrize(("target", "tokenizer"), [("de", "13a"), ("zh_CN", "zh")])
def test_bleu_is_sacrebleus_of_whole_translations_and_every_epoch_has_a_separate_order(
    target, tokenizer, prepared, tmp_path, monkeypatch
):
    seeds = []
    monkeypatch.setattr(
        loop, "draw_batches", lambda *arguments: seeds.append(arguments[-1]) or draw_batches(*arguments)
    )
    result = loop.train(make_run(dropout=0.1, target=target), tmp_path)
    assert len(set(seeds)) == TRAINING["epochs"]
    texts = pd.read_parquet(make_run().data / "test.parquet")
    for name, sentences in {"greedy": result["greedy"], "beam": result["beam"], "copy": list(texts["source"])}.items():
        bleu = BLEU(force=True, tokenize=tokenizer).corpus_score(sentences, [list(texts["target"])])
        assert result[f"{name}_bleu"] == bleu.score
    assert f"tok:{tokenizer}" in result["signature"] and "version:" in result["signature"]


def test_observations_count_held_out_tokens_and_translated_sentences():
    log = [{"epoch": 1, "tokens": 7} | dict.fromkeys(stage.BY_EPOCH, 0.5)]
    result = {"log": log, "greedy": ["a", "b"]} | dict.fromkeys(("greedy_bleu", "beam_bleu", "copy_bleu"), 0.5)
    numbers = {row.metric: row.n for row in stage.make_rows(make_run(), result)}
    assert numbers == {
        **dict.fromkeys(("training_loss", "training_accuracy", "accuracy_ceiling")),
        **dict.fromkeys(("accuracy", "perplexity"), 7),
        **dict.fromkeys(("greedy_bleu", "beam_bleu", "copy_bleu"), 2),
    }


def test_a_killed_job_goes_on_to_the_same_bytes(prepared, tmp_path, monkeypatch):
    run = make_run("hadamard", dropout=0.1)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    expected = loop.train(run, whole)
    save, calls = loop.checkpoints.save, []

    def save_and_stop(*arguments):
        save(*arguments)
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop.checkpoints, "save", save_and_stop)
    with pytest.raises(KeyboardInterrupt):
        loop.train(run, broken)
    found = loop.train(run, broken)
    assert found == expected
    before, after = (load_file(folder / "checkpoint.safetensors") for folder in (whole, broken))
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert tensor.tobytes() == after[name].tobytes()


def test_sequences_of_the_recurrence_follow_it():
    x, following = sequences.Recurrence.draw(5, 9, torch.Generator().manual_seed(1))
    torch.testing.assert_close(x[:, 1:], following[:, :-1])
    windows = x.unfold(1, 3, 1)
    torch.testing.assert_close(following[:, 2:], windows @ torch.tensor(sequences.COEFFICIENTS[::-1]))


def test_sequences_of_the_copy_ask_for_one_value_that_they_hold():
    symbols, wanted = sequences.Copy.draw(50, 8, torch.Generator().manual_seed(1))
    for row, value in zip(symbols.tolist(), wanted.tolist(), strict=True):
        held = dict(row[:-1])
        asked = row[-1][0]
        assert len(held) == 7
        assert held[asked] == sequences.KEYS + value


SEQUENCES = SECTION.sequence_tasks.model_dump() | {"positions": 8, "steps": 400, "batch_size": 32}


def compute_sequence_error(task: str, operator: str) -> float:
    training = SequenceTasks.model_construct(**SEQUENCES)
    run = TranslationRun(operator=operator, task=task, size="toy", seed=1, training=training)
    return sequences.train(run)["error"]


@pytest.mark.parametrize("length", [3, 2 * sequences.READ_INTERVAL])
def test_a_sequence_task_that_diverges_ends_within_an_interval_and_names_the_step(length, monkeypatch):
    norms = []

    def diverge(*_) -> torch.Tensor:
        norms.append(float("nan") if len(norms) == 1 else 1.0)
        return torch.tensor(norms[-1])

    monkeypatch.setattr(sequences, "update_weights", diverge)
    monkeypatch.setitem(SEQUENCES, "steps", length)
    with pytest.raises(ValueError, match="step 2: loss .*, gradient norm nan: the run has diverged"):
        compute_sequence_error("copy", "original")
    assert len(norms) == min(length, sequences.READ_INTERVAL)


def test_position_by_itself_solves_the_recurrence_and_not_the_copy():
    assert compute_sequence_error("recurrence", "fixed") < 0.1
    assert compute_sequence_error("copy", "fixed") > 0.7
    assert compute_sequence_error("copy", "original") < 0.2
