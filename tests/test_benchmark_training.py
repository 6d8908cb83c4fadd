"""The benchmark of training and the stock implementation that it compares with, on toy models."""

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers.models.bert.modeling_bert import BertSelfAttention

from stages.classification import training as finetuning
from stages.masked_lm.corpus import Corpus
from stages.plumbing.training_sections import Finetuning
from stages.timing import peers, speed
from stages.tools.benchmarks import training as benchmark
from stages.tools.benchmarks.training import Problem
from stages.training import machine
from tests.toy import FINETUNING

SIZE = {"layers": 1, "hidden": 16, "heads": 2, "intermediate": 64, "positions": 16}
RECIPE = benchmark.TRAINING | {"maximum_length": 16}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Folder, tokenizer, corpus and the examples of a generated task."""
    folder = tmp_path_factory.mktemp("benchmark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmark, "DOCUMENTS", 20)
        patch.setattr(benchmark, "GENERATED", 40)
        tokenizer = benchmark.prepared_corpus(folder, None, None, 300, 16)
        examples = benchmark.prepared_task(folder, None, "sst2", tokenizer, 16)
    return tokenizer, Corpus.of(folder / "tokens"), examples


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(machine, "SIDES", {"cpu": (64,)})


def test_the_corpus_has_the_asked_vocabulary_and_length(prepared):
    tokenizer, corpus, _ = prepared
    assert corpus.vocabulary_size == 300 and corpus.train.sequence_length == 16
    assert corpus.train[[0]].max() < Tokenizer.from_file(str(tokenizer)).get_vocab_size()


def test_pretraining_is_timed_in_four_ways(prepared):
    tokenizer, corpus, _ = prepared
    speeds = benchmark.pretraining_speeds(corpus, tokenizer, SIZE, batch_size=4, steps=1, rounds=1)
    assert [(line.way, line.precision) for line in speeds] == list(benchmark.WAYS)
    assert all(line.rate > 0 for line in speeds)
    assert speeds[0].ratios[0] == speeds[2].ratios[1] == 1.0
    assert len(benchmark.table(speeds, "tokens").splitlines()) == 5


def test_stock_pretraining_computes_in_the_precision_asked_for_in_any_order(prepared, monkeypatch):
    tokenizer, corpus, _ = prepared
    seen, forward = [], BertSelfAttention.forward

    def watched(self, *arguments, **others):
        self.query.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
        return forward(self, *arguments, **others)

    monkeypatch.setattr(BertSelfAttention, "forward", watched)
    stock = peers.Pretraining(SIZE, benchmark.TRAINING, corpus.vocabulary_size, corpus.train[range(8)], tokenizer)
    for precision in ("float32", "bfloat16", "float32"):
        seen.clear()
        stock.seconds(4, precision, 1)
        assert set(seen) == {getattr(torch, precision)}


def test_fine_tuning_is_timed_and_scored_in_four_ways(prepared):
    _, corpus, (examples, validation) = prepared
    problem = Problem("sst2", SIZE, corpus.vocabulary_size, 16, 8, 1, 1e-3)
    speeds = benchmark.finetuning_speeds(problem, examples, validation, rounds=2)
    assert [(line.way, line.precision) for line in speeds] == list(benchmark.WAYS)
    assert all("accuracy 0." in line.rest for line in speeds)


def test_stock_fine_tuning_pads_every_example_to_the_maximum(prepared):
    _, corpus, (examples, _) = prepared
    stock = peers.Finetuning(SIZE, RECIPE, corpus.vocabulary_size, 2, "float32", 1)
    data = stock.padded(examples)
    assert {len(row["input_ids"]) for row in data} == {16}
    assert [sum(row["attention_mask"]) for row in data] == [len(ids) for ids in examples.ids]
    assert np.array_equal([row["label"] for row in data], examples.labels)


def test_stock_bert_and_ours_predict_alike_from_equal_weights(prepared):
    _, corpus, (examples, validation) = prepared
    stock = peers.Finetuning(SIZE, RECIPE, corpus.vocabulary_size, 2, "float32", 1)
    stock.train(examples, 8, 1, 1e-3)
    recipe = Finetuning.model_validate(FINETUNING)
    own = speed.Finetuning("sst2", recipe, {"operator": "original"}, SIZE, corpus.vocabulary_size)
    own.model.load_state_dict(stock.model.state_dict())
    assert np.array_equal(stock.predict(validation), finetuning.predict(own.model, validation, "float32"))
