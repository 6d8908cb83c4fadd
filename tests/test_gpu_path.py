"""The path of a GPU as far as a CPU can run it: settings of PyTorch, graphs, batches prepared ahead, padding."""

import os
import threading
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from stages.attention.bert import OperatorBertForMaskedLM
from stages.attention.configuration import make_configuration
from stages.attention.operators import OPERATORS
from stages.classification import training as finetuning
from stages.encoder_decoder import steps as translation
from stages.encoder_decoder.pairs import BEGIN, END, Pairs
from stages.encoder_decoder.run import TRANSLATION, TranslationRun
from stages.masked_lm import batches, steps
from stages.masked_lm.compilation import compile_loss
from stages.masked_lm.corpus import Corpus
from stages.masked_lm.loss import MaskedLMLoss, compute_padded_logits
from stages.masked_lm.masking import count_padded, list_sparse_targets
from stages.schema.settings import load_settings
from stages.training import machine
from stages.training.optimisation import build_optimiser
from stages.translation import sequences
from tests.toy import TOY, VOCABULARY, make_run, make_tuned_run, remove_probes, save_pretrained
from tests.toy_settings import LAPTOP

TRANSLATED = load_settings(LAPTOP).translation
NARROW = {"hidden": 16, "heads": 2, "intermediate": 16}


@pytest.fixture
def flags(monkeypatch):
    """Restores PyTorch's settings after the test, and has `find_device` look for a GPU again."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "as before")
    machine.find_device.cache_clear()
    yield
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.backends.cuda.enable_cudnn_sdp(True)
    machine.find_device.cache_clear()


def test_a_gpu_is_asked_for_strictly_deterministic_kernels_and_for_no_attention_of_cudnn(flags, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert machine.has_gpu()
    assert torch.are_deterministic_algorithms_enabled()
    assert not torch.is_deterministic_algorithms_warn_only_enabled()
    assert not torch.utils.deterministic.fill_uninitialized_memory
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.flash_sdp_enabled() and torch.backends.cuda.mem_efficient_sdp_enabled()


def test_without_a_gpu_no_setting_is_changed(flags, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert not machine.has_gpu()
    assert not torch.are_deterministic_algorithms_enabled()
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == "as before"


# Some of the operations that raise on a GPU with deterministic algorithms, by the documentation of the setting.
NOT_DETERMINISTIC = {
    "bincount",
    "cumsum",
    "grid_sampler_2d_backward",
    "histc",
    "kthvalue",
    "median",
    "nll_loss2d_forward",
    "put_",
    "reflection_pad1d_backward",
    "scatter_reduce",
    "upsample_bilinear2d_backward",
}


def pretrain(operator: str, tokens) -> None:
    trainer = steps.Trainer(make_run(operator), Corpus.open(tokens))
    trainer.advance(0)


def finetune(tmp_path) -> None:
    run = make_tuned_run(tmp_path, epochs=1)
    examples = finetuning.Encoded((np.arange(5), np.arange(3)), (np.zeros(5, int), np.zeros(3, int)), np.array([0, 1]))
    config = make_configuration("pairwise", **TOY, vocab_size=VOCABULARY, num_labels=2)
    model = finetuning.OperatorBertForSequenceClassification(config)
    finetuning.train_model(model, examples, run)


def translate() -> None:
    recipe = TRANSLATED.protocols["blog"].model_copy(update=NARROW)
    run = TranslationRun(operator="hadamard", task=TRANSLATION, size="blog", seed=1, training=recipe)
    sentences = (np.array([BEGIN, 4, END]), np.array([BEGIN, 4, 5, END]))
    model = translation.build_model(run, (10, 10))
    adam = build_optimiser(model, recipe.betas, recipe.epsilon, weight_decay=0.0)
    translation.make_update(model, adam, 0, Pairs(sentences, sentences), np.array([0, 1]), run)


def learn_sequences(task: str) -> None:
    recipe = TRANSLATED.sequence_tasks.model_copy(update=NARROW | {"steps": 2, "warmup_steps": 1})
    run = TranslationRun(operator="original", task=task, size="sequences", seed=1, training=recipe)
    sequences.train(run)


class Operations(TorchDispatchMode):
    """Collects the names of all operations of PyTorch."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        self.names.add(function.overloadpacket.__name__)
        return function(*arguments, **(named or {}))


def test_no_training_needs_an_operation_that_has_no_deterministic_kernel(tokens, tmp_path, monkeypatch):
    with Operations() as operations:
        for operator in OPERATORS:
            pretrain(operator, tokens)
        finetune(tmp_path)
        translate()
        for task in sequences.TASKS:
            learn_sequences(task)
    assert "embedding_dense_backward" in operations.names
    assert not operations.names & NOT_DETERMINISTIC


@pytest.fixture
def graphs(monkeypatch) -> list[str]:
    """The text of every compiled graph, with shapes, in the order of compilation."""
    captured = []

    def backend(graph, _):
        captured.append(graph.print_readable(print_output=False))
        return graph.forward

    torch.compiler.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    return captured


def compute_compiled(operator: str, *lengths: int) -> None:
    """Computes the compiled loss of a new model, with gradients, for 24 tokens in sequences of each of the lengths."""
    torch.manual_seed(0)
    loss_of = compile_loss(
        MaskedLMLoss(OperatorBertForMaskedLM(make_configuration(operator, **TOY, vocab_size=VOCABULARY)))
    )
    for length in lengths:
        sequences = torch.randint(5, VOCABULARY, (24 // length, length))
        chosen = torch.rand(sequences.shape) < 0.4
        loss_of(sequences, *list_sparse_targets(sequences, chosen, 64)).backward()


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_loss_is_two_graphs_without_the_embeddings_and_serves_any_number_of_masked_tokens(operator, graphs):
    compute_compiled(operator, 12, 12, 12)
    assert len(graphs) == 2
    assert "softmax" in graphs[0] + graphs[1] or "scaled_dot_product" in graphs[0]
    assert not any("embedding(" in graph for graph in graphs)


def test_a_graph_does_not_depend_on_the_lengths_that_the_process_has_trained_before(graphs):
    compute_compiled("shared", 12)
    fresh = list(graphs)
    torch.compiler.reset()
    graphs.clear()
    compute_compiled("shared", 6, 8, 12)
    assert len(graphs) == 6
    assert graphs[4:] == fresh


CALM = {"hidden_dropout": 0.0, "attention_dropout": 0.0}


def test_batches_prepared_ahead_change_no_bit(tokens, tmp_path, monkeypatch):
    undisturbed = save_pretrained(tokens, tmp_path / "a")
    threads = []
    draw = steps.draw_batch

    def watched(*arguments):
        threads.append(threading.current_thread().name)
        return draw(*arguments)

    monkeypatch.setattr(steps, "draw_batch", watched)
    monkeypatch.setattr(steps, "has_gpu", lambda: True)
    monkeypatch.setattr(steps, "compile_loss", lambda loss_of: loss_of)
    assert save_pretrained(tokens, tmp_path / "b") == undisturbed
    # only the first of the nine batches is drawn while the device waits
    assert [name == "MainThread" for name in threads] == [True] + [False] * 8


def test_a_batch_is_the_same_after_a_jump_and_none_is_prepared_after_the_last(tokens):
    draw = partial(batches.draw_batch, make_run(), Corpus.open(tokens), 9)
    drawn = []
    ahead = batches.Ahead(lambda step: drawn.append(step) or draw(step), 9)
    for step in (0, 1, 7, 8, 3):
        for given, expected in zip(ahead(step).parts, draw(step).parts, strict=True):
            assert all(map(torch.equal, given, expected))
    # the thread has ended, so it prepares nothing more
    ahead._thread.shutdown()
    assert set(drawn) == {0, 1, 2, 7, 8, 3, 4}


def test_a_batch_that_cannot_be_prepared_is_an_error_of_its_step():
    def draw(step: int) -> batches.Batch:
        if step:
            raise ValueError(f"step {step + 1}")
        return batches.Batch([], 1)

    ahead = batches.Ahead(draw, 9)
    ahead(0)
    with pytest.raises(ValueError, match="step 2"):
        ahead(1)


def test_the_compiled_path_gives_the_losses_of_the_plain_one(tokens, tmp_path, monkeypatch):
    plain, _ = save_pretrained(tokens, tmp_path / "a", "hadamard", **CALM)
    torch.compiler.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    for module in (steps, batches):
        monkeypatch.setattr(module, "has_gpu", lambda: True)
    compiled, _ = save_pretrained(tokens, tmp_path / "b", "hadamard", **CALM)
    for one, other in zip(plain, compiled, strict=True):
        assert remove_probes(one) == pytest.approx(remove_probes(other), rel=1e-4)


def test_lists_of_masked_tokens_have_one_length_for_nearly_all_batches():
    assert count_padded(8192, 0.15) == 1472
    assert count_padded(64, 1.0) == 64
    drawn = np.random.default_rng(0).binomial(8192, 0.15, 100_000)
    assert drawn.max() < 1472


@pytest.mark.parametrize("words", [VOCABULARY, 64])
def test_words_of_the_padding_change_neither_loss_nor_gradients(words):
    torch.manual_seed(0)
    model = OperatorBertForMaskedLM(make_configuration("original", **TOY, vocab_size=words))
    hidden = torch.randn(7, TOY["hidden"], requires_grad=True)
    targets = torch.randint(words, (7,))
    parameters = [hidden, *model.cls.parameters()]
    found = []
    for logits in (model.cls(hidden), compute_padded_logits(model.cls, hidden)):
        loss = functional.cross_entropy(logits, targets, reduction="sum")
        found.append([loss, *torch.autograd.grad(loss, parameters)])
    assert logits.shape == (7, 64)
    torch.testing.assert_close(found[1], found[0])
